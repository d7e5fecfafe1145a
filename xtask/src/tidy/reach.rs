//! No dead files: every Rust file is the root of a target, or some `mod` leads to it. Roots are what
//! Cargo discovers by itself, and every `path = "….rs"` of a manifest. Modules are found as the Rust
//! Reference says: `name.rs` or `name/mod.rs` in the module's directory, or a `path` attribute.

use super::source::words;
use super::tree::File;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files: BTreeMap<&str, &File> = tree.rust().map(|f| (f.path.as_str(), f)).collect();
    let mut waiting: Vec<(String, bool)> = roots(tree).map(|path| (path, true)).collect();
    let mut reached = BTreeSet::new();
    while let Some((path, is_root)) = waiting.pop() {
        if let Some(file) = files.get(path.as_str()).filter(|_| reached.insert(path.clone())) {
            waiting.extend(children(file, is_root).into_iter().map(|path| (path, false)));
        }
    }
    let dead = files.values().filter(|file| !reached.contains(&file.path));
    let message = "no `mod` leads to this file";
    dead.map(|file| Finding::at(file, 0, "reach", message.to_owned())).collect()
}

/// Files that Cargo builds by themselves.
fn roots(tree: &Tree) -> impl Iterator<Item = String> {
    let packages = tree.files.iter().filter_map(|file| {
        let dir = file.path.strip_suffix("Cargo.toml")?;
        Some((file, dir))
    });
    packages.flat_map(|(manifest, dir)| {
        let inside = |file: &&File| file.path.strip_prefix(dir).is_some_and(is_discovered);
        let found = tree.rust().filter(inside).map(|file| file.path.clone());
        let named = named_targets(&manifest.text).map(|path| format!("{dir}{path}"));
        found.chain(named).collect::<Vec<_>>()
    })
}

/// The values of a manifest's `path` keys.
fn named_targets(manifest: &str) -> impl Iterator<Item = &str> {
    manifest.lines().filter_map(|line| {
        let value = line.trim().strip_prefix("path")?.trim_start().strip_prefix('=')?;
        Some(value.trim().trim_matches('"'))
    })
}

/// Whether Cargo takes the file at this path of a package for the root of a target.
fn is_discovered(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// Where the `mod name;` declarations of a file may lead.
fn children(file: &File, is_root: bool) -> Vec<String> {
    let (parent, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let stem = name.trim_end_matches(".rs");
    let owns_directory = is_root || stem == "mod";
    let dir = if owns_directory { parent.to_owned() } else { format!("{parent}/{stem}") };
    let mut paths = Vec::new();
    for (at, module) in declared(&file.code) {
        paths.push(format!("{dir}/{module}.rs"));
        paths.push(format!("{dir}/{module}/mod.rs"));
        paths.extend(path_attribute(file, at).map(|path| joined(parent, path)));
    }
    paths
}

/// A path in a folder; `..` at its beginning leads out of it.
fn joined(folder: &str, path: &str) -> String {
    match (path.strip_prefix("../"), folder.rsplit_once('/')) {
        (Some(rest), Some((above, _))) => joined(above, rest),
        _ => format!("{folder}/{path}"),
    }
}

/// `mod name;` with the offset of `mod`.
fn declared(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let all: Vec<_> = words(code).collect();
    (1..all.len()).filter_map(move |i| {
        let ((at, keyword), (name_at, name)) = (all[i - 1], all[i]);
        let ends = code[name_at + name.len()..].trim_start().starts_with(';');
        (keyword == "mod" && ends).then_some((at, name))
    })
}

/// The file that `#[path = "…"]` before the `mod` at `at` names.
fn path_attribute(file: &File, at: usize) -> Option<&str> {
    let item = file.code[..at].rfind([';', '}']).map_or(0, |end| end + 1);
    let attribute = file.code[item..at].find("#[path")? + item;
    file.text[attribute..at].split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: (&str, &str) =
        ("crates/a/Cargo.toml", "[package]\n[[bin]]\npath = \"odd/x.rs\"\n");

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(&[&[MANIFEST], files].concat());
        check(&tree).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_file_that_no_mod_names_is_caught() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\n// mod gone;\nmod b;"),
            ("crates/a/src/b.rs", "//! B.\nmod inner { }"),
            ("crates/a/src/gone.rs", "//! Gone.\nmod child;"),
            ("crates/a/src/gone/child.rs", "//! Child of a dead file."),
            ("crates/a/src/inner.rs", "//! Shadowed by an inline module."),
        ];
        let expected =
            ["crates/a/src/gone.rs", "crates/a/src/gone/child.rs", "crates/a/src/inner.rs"];
        assert_eq!(dead(&files), expected);
    }

    #[test]
    fn modules_and_targets_are_reached() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\npub mod b;\n#[cfg(test)]\nmod tests;"),
            ("crates/a/src/b.rs", "//! B.\nmod c;"),
            ("crates/a/src/b/c.rs", "//! C.\n#[path = \"odd.rs\"]\nmod d;"),
            ("crates/a/src/b/odd.rs", "//! D."),
            ("crates/a/src/tests/e.rs", "//! E.\nmod f;"),
            ("crates/a/src/tests/e/f.rs", "//! F."),
            ("crates/a/src/tests/mod.rs", "//! Tests.\nmod e;"),
            ("crates/a/tests/t.rs", "//! T.\nmod common;"),
            ("crates/a/tests/common/mod.rs", "//! Common."),
            ("crates/a/tests/u/main.rs", "//! U.\n#[path = \"../both/mod.rs\"]\nmod both;"),
            ("crates/a/tests/both/mod.rs", "//! Both."),
            ("crates/a/benches/speed.rs", "//! Speed."),
            ("crates/a/odd/x.rs", "//! X."),
        ];
        assert!(dead(&files).is_empty(), "{:?}", dead(&files));
    }
}
