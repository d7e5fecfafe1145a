//! Licences: what the program and the fuzz targets are built from may be used under licences that let us be MIT OR
//! Apache-2.0. `cargo metadata` names the licence of each package; expressions of SPDX are read by `spdx`.

use crate::repository::Repository;
use serde_json::Value;
use spdx::{Expression, ParseMode};

/// What a package may be used under.
const ALLOWED: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The packages of the repository that cargo resolves on their own.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// Prints the packages that may not be used, and returns whether there is none.
///
/// # Errors
/// Cargo cannot say what the packages are.
pub(crate) fn run(repository: &Repository) -> Result<bool, String> {
    let (mut packages, mut refused) = (0, Vec::new());
    for manifest in MANIFESTS {
        let metadata = repository.metadata(manifest)?;
        for package in metadata["packages"].as_array().into_iter().flatten() {
            packages += 1;
            refused.extend(refusal(package));
        }
    }
    refused.iter().for_each(|line| println!("{line}"));
    println!("licences: {packages} packages, {} findings", refused.len());
    Ok(refused.is_empty() && packages > 0)
}

/// Why a package may not be used, if so.
fn refusal(package: &Value) -> Option<String> {
    let name = package["name"].as_str().unwrap_or("a package without a name");
    let Some(licence) = package["license"].as_str() else {
        return Some(format!("{name}: states no licence"));
    };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) if is_allowed(&expression) => None,
        Ok(_) => Some(format!("{name}: {licence}: not among those of xtask/src/licences.rs")),
        Err(error) => Some(format!("{name}: {licence}: {}", error.reason)),
    }
}

/// Whether the terms of some allowed licences suffice; an exception only permits more.
fn is_allowed(expression: &Expression) -> bool {
    expression.evaluate(|required| {
        required.license.id().is_some_and(|licence| ALLOWED.contains(&licence.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn some_allowed_terms_have_to_suffice() {
        let refused = |licence: &str| refusal(&json!({ "name": "a", "license": licence }));
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert_eq!(refused(licence), None);
        }
        for licence in ["GPL-2.0-only", "MIT AND GPL-2.0-only", "MPL-2.0", "no licence"] {
            assert!(refused(licence).is_some(), "{licence}");
        }
        assert!(refusal(&json!({ "name": "a", "license": null })).is_some());
    }
}
