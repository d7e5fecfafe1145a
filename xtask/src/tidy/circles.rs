//! No circles: within a crate, files take names from each other one way. A folder and what is in it count
//! as one, so a `mod.rs` and its parts may know each other; unit tests do not count. Names are followed
//! through `use` alone, to the innermost module that their path names.

use super::source::words;
use super::tree::File;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// A module's path within its crate.
type Module = Vec<String>;

/// The files of a crate, by module.
type Crate<'a> = BTreeMap<Module, &'a File>;

/// Modules that each module leads to.
type Arrows = BTreeMap<Module, BTreeSet<Module>>;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Crate<'_>> = BTreeMap::new();
    for file in tree.rust() {
        if let Some((name, module)) = module_of(&file.path) {
            crates.entry(name).or_default().insert(module, file);
        }
    }
    crates.values().flat_map(circles).collect()
}

/// The crate that a source file belongs to, and its module there.
fn module_of(path: &str) -> Option<(&str, Module)> {
    let (name, inner) = path.strip_suffix(".rs")?.split_once("/src/")?;
    let mut module: Module = inner.split('/').map(str::to_owned).collect();
    module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    Some((name, module))
}

/// A finding for each set of files that all lead to each other.
fn circles(files: &Crate<'_>) -> Vec<Finding> {
    let own = |(module, file): (&Module, &&File)| (module.clone(), arrows(module, file, files));
    let own: Arrows = files.iter().map(own).collect();
    let reached: Arrows = own.keys().map(|from| (from.clone(), reach(from, &own))).collect();
    let mut reported = BTreeSet::new();
    let mut findings = Vec::new();
    for (from, file) in files {
        let leads_back = |to: &&Module| reached[*to].contains(from);
        let circle: Vec<&Module> = reached[from].iter().filter(leads_back).collect();
        if circle.is_empty() || !reported.insert(circle.clone()) {
            continue;
        }
        let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
        let message = format!("a circle of modules: {}", names.join(", "));
        findings.push(Finding::at(file, 0, "circles", message));
    }
    findings
}

/// Everything that arrows lead to from a module; itself only where they lead back.
fn reach(from: &Module, arrows: &Arrows) -> BTreeSet<Module> {
    let mut waiting: Vec<&Module> = arrows[from].iter().collect();
    let mut reached = BTreeSet::new();
    while let Some(module) = waiting.pop() {
        if reached.insert(module.clone()) {
            waiting.extend(&arrows[module]);
        }
    }
    reached
}

/// The modules of the crate that a file takes names from, without those that it is in or that are in it.
fn arrows(module: &Module, file: &File, files: &Crate<'_>) -> BTreeSet<Module> {
    let apart = |to: &Module| !to.starts_with(module) && !module.starts_with(to);
    let paths = uses(product(&file.code));
    paths.iter().filter_map(|path| resolve(module, path, files)).filter(apart).collect()
}

/// The code without unit tests, which stand at its end.
fn product(code: &str) -> &str {
    let tests = code.find("#[cfg(test)]\nmod tests {");
    &code[..tests.unwrap_or(code.len())]
}

/// The innermost module that a path names, or nothing if it leads out of the crate.
fn resolve(module: &Module, path: &[&str], files: &Crate<'_>) -> Option<Module> {
    let mut found = module.clone();
    for (index, part) in path.iter().enumerate() {
        match *part {
            "crate" => found.clear(),
            "self" => {}
            "super" => drop(found.pop()),
            name => {
                found.push(name.to_owned());
                if !files.contains_key(&found) {
                    found.pop();
                    return (index > 0).then_some(found);
                }
            }
        }
    }
    Some(found)
}

/// The path of every name that is used, groups taken apart.
fn uses(code: &str) -> Vec<Vec<&str>> {
    let is_use = |&(_, word): &(usize, &str)| word == "use";
    let ends = |(at, _): (usize, &str)| {
        let text = &code[at + "use".len()..];
        &text[..text.find(';').unwrap_or(text.len())]
    };
    let mut paths = Vec::new();
    words(code).filter(is_use).map(ends).for_each(|text| take_apart(text, &[], &mut paths));
    paths
}

/// Adds what a path with groups names, behind `prefix`.
fn take_apart<'a>(text: &'a str, prefix: &[&'a str], paths: &mut Vec<Vec<&'a str>>) {
    let (own, group) = match text.split_once('{') {
        Some((own, group)) => (own, Some(group.rsplit_once('}').map_or(group, |(group, _)| group))),
        None => (text, None),
    };
    let parts = own.split("::").map(|part| part.split_whitespace().next().unwrap_or_default());
    let path: Vec<_> =
        prefix.iter().copied().chain(parts.filter(|part| !part.is_empty())).collect();
    match group {
        Some(group) => members(group).for_each(|member| take_apart(member, &path, paths)),
        None => paths.push(path),
    }
}

/// The members of a group, which may hold groups.
fn members(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    group.split(move |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_caught() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\nmod b;\nmod c;\nmod d;\nmod e;"),
            ("crates/a/src/b.rs", "//! B.\nuse crate::{c::C, e};"),
            ("crates/a/src/c.rs", "//! C.\nuse super::d::{D, inner::{E, F as G}};"),
            ("crates/a/src/d/mod.rs", "//! D.\nmod inner;"),
            ("crates/a/src/d/inner.rs", "//! Inner.\nuse crate::{self, b::B};"),
            ("crates/a/src/e.rs", "//! E."),
        ];
        let expected = ["crates/a/src/b.rs:1: circles: a circle of modules: b, c, d::inner"];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn arrows_one_way_pass() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\nmod b;\nmod c;\npub use b::B;\npub use c::C;"),
            ("crates/a/src/b.rs", "//! B.\nuse crate::C;\nuse std::c::D;\nuse super::c::E;"),
            ("crates/a/src/c/mod.rs", "//! C.\nmod part;\nuse part::Part;\nuse c::D;"),
            ("crates/a/src/c/part.rs", "//! Part.\nuse super::{C, E};"),
            (
                "crates/a/src/c/named.rs",
                "//! T.\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
            ),
            ("crates/z/src/b.rs", "//! B of another.\nuse crate::c::C;"),
            ("crates/z/src/c.rs", "//! C of another."),
        ];
        assert!(found(&files).is_empty(), "{:?}", found(&files));
    }
}
