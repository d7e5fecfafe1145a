//! No circles: among the modules of one folder, names are taken one way, where a folder counts with all that is in it.
//! What a `mod.rs` takes from its own parts, and they from it, does not count; neither do unit tests. A name that a
//! module passes on (`use` in it binds the name) leads to where it comes from.

use super::source::words;
use super::tree::File;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// A module's path within its crate.
type Module = Vec<String>;

/// The files of a crate, by module.
type Files<'a> = BTreeMap<Module, &'a File>;

/// What the modules of a folder take from each other: for each pair, a file that takes, and from which module.
type Arrows<'a> = BTreeMap<(Module, Module), (&'a File, Module)>;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Files<'_>> = BTreeMap::new();
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

/// A finding for each set of modules of a folder that all lead to each other.
fn circles(files: &Files<'_>) -> Vec<Finding> {
    let names = Names::of(files);
    let mut folders: BTreeMap<Module, Arrows<'_>> = BTreeMap::new();
    // Unit tests may stand in a file of their own.
    let product_files = files.iter().filter(|(module, _)| !is_tests(module));
    for (module, file) in product_files {
        for path in paths(product(&file.code)) {
            let Some(to) = names.resolve(module, &path, 0) else { continue };
            let shared = module.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if shared == module.len() || shared == to.len() {
                continue;
            }
            let arrow = (module[..=shared].to_vec(), to[..=shared].to_vec());
            let arrows = folders.entry(module[..shared].to_vec()).or_default();
            arrows.entry(arrow).or_insert((file, to));
        }
    }
    folders.values().flat_map(circles_of_folder).collect()
}

fn is_tests(module: &Module) -> bool {
    module.iter().any(|part| part == "tests")
}

fn circles_of_folder(arrows: &Arrows<'_>) -> Vec<Finding> {
    let mut leads: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        leads.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        leads.keys().map(|from| (*from, reach(from, &leads))).collect();
    let leads_to =
        |from: &Module, to: &Module| reached.get(from).is_some_and(|all| all.contains(to));
    let mut reported = BTreeSet::new();
    let mut findings = Vec::new();
    for from in leads.keys() {
        let circle: Vec<&Module> =
            reached[*from].iter().copied().filter(|to| leads_to(to, from)).collect();
        if circle.is_empty() || !reported.insert(circle.clone()) {
            continue;
        }
        let inside = |(from, to): &(Module, Module)| circle.contains(&from) && circle.contains(&to);
        let of_circle: Vec<_> =
            arrows.iter().filter(|(arrow, _)| inside(arrow)).map(|(_, taken)| taken).collect();
        let takes =
            |(file, to): &&(&File, Module)| format!("{} takes from {}", file.path, to.join("::"));
        let examples: Vec<_> = of_circle.iter().map(takes).collect();
        let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
        let message =
            format!("a circle of modules: {} ({})", names.join(", "), examples.join("; "));
        findings.push(Finding::at(of_circle[0].0, 0, "circles", message));
    }
    findings
}

/// Everything that arrows lead to from a module; itself only where they lead back.
fn reach<'a>(
    from: &Module,
    leads: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let next = |module: &Module| leads.get(module).into_iter().flatten().copied();
    let mut waiting: Vec<&Module> = next(from).collect();
    let mut reached = BTreeSet::new();
    while let Some(module) = waiting.pop() {
        if reached.insert(module) {
            waiting.extend(next(module));
        }
    }
    reached
}

/// The code without unit tests, which stand at its end.
fn product(code: &str) -> &str {
    let tests = code.find("#[cfg(test)]\nmod tests {");
    &code[..tests.unwrap_or(code.len())]
}

/// What the names of a crate mean.
struct Names<'a> {
    /// For each module, the names that its `use` binds, with their paths.
    bound: BTreeMap<&'a Module, BTreeMap<&'a str, Vec<&'a str>>>,
}

/// Modules that a name is passed on through; more are a circle of `use`.
const PASSED_ON: u32 = 8;

impl<'a> Names<'a> {
    fn of(files: &'a Files<'a>) -> Self {
        let bound = files.iter().map(|(module, file)| {
            let names = uses(product(&file.code)).into_iter();
            let of_module = names.map(|used| (used.name, used.path)).collect();
            (module, of_module)
        });
        Self { bound: bound.collect() }
    }

    /// The innermost module that a path names, or nothing if it leads out of the crate.
    fn resolve(&self, module: &Module, path: &[&str], depth: u32) -> Option<Module> {
        let mut found = module.clone();
        for (index, part) in path.iter().enumerate() {
            match *part {
                "crate" => found.clear(),
                "self" => {}
                "super" => drop(found.pop()),
                name => {
                    found.push(name.to_owned());
                    if self.bound.contains_key(&found) {
                        continue;
                    }
                    found.pop();
                    if index == 0 {
                        return None;
                    }
                    let passed_on = self.bound.get(&found).and_then(|names| names.get(name));
                    let passed_on = passed_on.filter(|_| depth < PASSED_ON);
                    return match passed_on {
                        // One that leads out of the crate is taken from where it is passed on.
                        Some(path) => self.resolve(&found, path, depth + 1).or(Some(found)),
                        None => Some(found),
                    };
                }
            }
        }
        Some(found)
    }
}

/// A name that a `use` binds.
struct Used<'a> {
    name: &'a str,
    path: Vec<&'a str>,
}

/// The names that every `use` binds, groups taken apart.
fn uses(code: &str) -> Vec<Used<'_>> {
    let is_use = |&(_, word): &(usize, &str)| word == "use";
    let ends = |(at, _): (usize, &str)| {
        let text = &code[at + "use".len()..];
        &text[..text.find(';').unwrap_or(text.len())]
    };
    let mut found = Vec::new();
    words(code).filter(is_use).map(ends).for_each(|text| take_apart(text, &[], &mut found));
    found
}

/// The paths that code names: those of `use`, and those that begin with `crate` or `super` elsewhere.
fn paths(code: &str) -> Vec<Vec<&str>> {
    let begins = |&(_, word): &(usize, &str)| ["crate", "super"].contains(&word);
    let path = |(at, _): (usize, &str)| {
        let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let text = &code[at..];
        let text = &text[..text.find(|c| !is_of_path(c)).unwrap_or(text.len())];
        text.split("::").filter(|part| !part.is_empty()).collect()
    };
    // A path that ends where a group begins names the module alone, and `use` has the rest.
    let elsewhere = words(code).filter(begins).map(path).filter(|path: &Vec<&str>| path.len() > 1);
    uses(code).into_iter().map(|used| used.path).chain(elsewhere).collect()
}

/// Adds what a path with groups names, behind `prefix`.
fn take_apart<'a>(text: &'a str, prefix: &[&'a str], found: &mut Vec<Used<'a>>) {
    let (own, group) = match text.split_once('{') {
        Some((own, group)) => (own, Some(group.rsplit_once('}').map_or(group, |(group, _)| group))),
        None => (text, None),
    };
    let (own, alias) = match own.split_once(" as ") {
        Some((own, alias)) => (own, Some(alias.trim())),
        None => (own, None),
    };
    let parts = own.split("::").map(str::trim);
    let path: Vec<_> =
        prefix.iter().copied().chain(parts.filter(|part| !part.is_empty())).collect();
    match group {
        Some(group) => members(group).for_each(|member| take_apart(member, &path, found)),
        None => {
            let is_self = |part: &&&str| **part != "self";
            let name = alias.or(path.iter().rev().find(is_self).copied());
            found.extend(name.map(|name| Used { name, path }));
        }
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
        let expected = "crates/a/src/b.rs:1: circles: a circle of modules: b, c, d (crates/a/src/b.rs takes \
            from c; crates/a/src/c.rs takes from d; crates/a/src/d/inner.rs takes from b)";
        assert_eq!(found(&files), [expected]);
    }

    /// `report` takes a name that `coupled` passes on from its part, and that part takes from `report`: files alone make
    /// no circle.
    #[test]
    fn names_are_followed_to_where_they_come_from() {
        let report = ("crates/a/src/report.rs", "//! R.\nuse crate::coupled::Counts as C;");
        let coupled =
            ("crates/a/src/coupled/mod.rs", "//! C.\nmod counts;\npub use counts::Counts;");
        let counts = ("crates/a/src/coupled/counts.rs", "//! C.\nuse crate::Gc;");
        let root =
            ("crates/a/src/lib.rs", "//! A.\nmod report;\nmod coupled;\npub use report::Gc;");
        let files = [root, report, coupled, counts];
        let expected = "crates/a/src/coupled/counts.rs:1: circles: a circle of modules: coupled, report \
            (crates/a/src/coupled/counts.rs takes from report; crates/a/src/report.rs takes from coupled::counts)";
        assert_eq!(found(&files), [expected]);
        let elsewhere = ("crates/a/src/coupled/counts.rs", "//! C.\nfn f() { crate::report::f() }");
        assert_eq!(found(&[root, report, coupled, elsewhere]).len(), 1);
    }

    /// Circles within a folder are found, too, and those of folders between crates' parts.
    #[test]
    fn each_folder_has_its_own_order() {
        let files = [
            ("crates/a/src/d/mod.rs", "//! D.\nmod b;\nmod c;"),
            ("crates/a/src/d/b.rs", "//! B.\nuse super::c::C;"),
            ("crates/a/src/d/c/mod.rs", "//! C.\nmod e;"),
            ("crates/a/src/d/c/e.rs", "//! E.\nuse crate::d::b::B;"),
        ];
        assert!(
            found(&files)[0].contains("a circle of modules: d::b, d::c ("),
            "{:?}",
            found(&files)
        );
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
