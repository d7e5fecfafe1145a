//! Tells the binary which commit it was built from: `NANDSCAPE_COMMIT` if set, else git's HEAD,
//! else "unknown". Builds outside a checkout work as well.

use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    println!("cargo::rerun-if-env-changed=NANDSCAPE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(folder) = git(&["rev-parse", "--absolute-git-dir"]) {
        // The log of HEAD grows with every commit and checkout.
        println!("cargo::rerun-if-changed={folder}/logs/HEAD");
    }
    let given = std::env::var("NANDSCAPE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    println!("cargo::rustc-env=NANDSCAPE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}
