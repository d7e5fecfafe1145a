//! Arrows point down only: each crate may name only the crates below it, in any of its dependency
//! tables (docs/ARCHITECTURE.md). Cargo enforces what the manifests say; this enforces the manifests.

use super::tree::File;
use super::{Finding, Tree};

/// Each crate with the crates that it may depend on.
const LAYERS: [(&str, &[&str]); 16] = [
    ("column", &[]),
    ("corpus", &[]),
    ("heap", &[]),
    ("report", &[]),
    ("rt", &[]),
    ("theory", &[]),
    ("block", &["rt"]),
    ("media", &["rt", "block", "column"]),
    ("ftl", &["rt", "block", "column", "media", "theory"]),
    ("fs", &["rt", "block"]),
    ("workload", &["rt", "block", "fs"]),
    ("lab", &["rt", "block", "media", "ftl", "fs", "workload", "heap", "corpus", "theory"]),
    ("crash", &["rt", "block", "media", "ftl", "fs", "corpus"]),
    ("paper", &["rt", "block", "media", "ftl", "fs", "workload", "lab", "report"]),
    (
        "cli",
        &[
            "rt", "block", "column", "media", "ftl", "fs", "workload", "lab", "crash", "report",
            "paper", "heap",
        ],
    ),
    ("inputs", &["rt", "block", "media", "ftl", "fs", "workload", "lab", "report", "paper"]),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some((file, name))
    });
    manifests.flat_map(|(file, name)| check_manifest(file, name)).collect()
}

fn check_manifest(file: &File, name: &str) -> Vec<Finding> {
    let finding = |line: usize, message: String| Finding {
        path: file.path.clone(),
        line,
        rule: "layers",
        message,
    };
    let Some((_, below)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        return vec![finding(1, format!("crate `{name}` has no place in the table of layers"))];
    };
    let upward = dependencies(&file.text).filter(|(_, dependency)| !below.contains(dependency));
    upward.map(|(line, to)| finding(line, format!("`{name}` must not depend on `{to}`"))).collect()
}

/// Line and short name of each dependency on a crate of this workspace.
fn dependencies(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_table = false;
    manifest.lines().enumerate().filter_map(move |(index, line)| {
        let header = line.trim().strip_prefix('[');
        in_table = header.map_or(in_table, |header| header.contains("dependencies"));
        let name = header.map_or(line.trim(), |h| h.rsplit("dependencies.").next().unwrap_or(h));
        let name = name.split(['.', '=', ' ', ']']).next()?.strip_prefix("nandscape-")?;
        in_table.then_some((index + 1, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, manifest: &str) -> Vec<String> {
        check(&Tree::of(&[(path, manifest)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_arrow_that_points_up_is_caught() {
        let manifest = "[package]\nname = \"nandscape-media\"\n[dependencies]\n\
            nandscape-block.workspace = true\nnandscape-ftl = { path = \"../ftl\" }\n\
            [dev-dependencies]\nnandscape-lab.workspace = true\n";
        let expected = [
            "crates/media/Cargo.toml:5: layers: `media` must not depend on `ftl`",
            "crates/media/Cargo.toml:7: layers: `media` must not depend on `lab`",
        ];
        assert_eq!(found("crates/media/Cargo.toml", manifest), expected);
        let table = "[dependencies.nandscape-crash]\nworkspace = true\n";
        assert_eq!(found("crates/rt/Cargo.toml", table).len(), 1);
    }

    #[test]
    fn an_unknown_crate_is_caught() {
        assert_eq!(found("crates/new/Cargo.toml", "[package]\n").len(), 1);
    }

    #[test]
    fn arrows_down_pass() {
        let manifest = "[dependencies]\nnandscape-rt.workspace = true\nserde.workspace = true\n";
        assert!(found("crates/block/Cargo.toml", manifest).is_empty());
    }
}
