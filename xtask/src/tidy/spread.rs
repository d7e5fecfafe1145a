//! A type's inherent functions lie in few files, so that a change of its state has few places to look at.
//!
//! `circles` follows `use`, so files that call each other through one type's methods look independent; this rule counts
//! them. [`WIDER`] lists the types that are above the limit, with what they have: it may only fall.

use super::source::words;
use super::tree::File;
use super::{Finding, Tree};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Files that may have inherent functions of one type.
const FILES_MAX: usize = 12;

/// A type that more files may have functions of.
struct Wider {
    /// The file that defines it.
    path: &'static str,
    name: &'static str,
    files: usize,
}

const WIDER: &[Wider] =
    &[Wider { path: "crates/fs/src/ext4/volume.rs", name: "Volume", files: 13 }];

/// Where [`WIDER`] is.
const HERE: &str = "xtask/src/tidy/spread.rs";

/// A type: the file that defines it, and its name.
type Type<'a> = (&'a str, &'a str);

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, WIDER)
}

fn check_with(tree: &Tree, wider: &[Wider]) -> Vec<Finding> {
    let definitions = definitions(tree);
    let mut spread: BTreeMap<Type<'_>, BTreeSet<&str>> = BTreeMap::new();
    for file in sources(tree) {
        for name in inherent(&file.code) {
            let nearest = definitions.get(name).into_iter().flatten().max_by_key(|path| {
                let depth = Reverse(path.split('/').count());
                (**path == file.path, shared_folders(path, &file.path), depth)
            });
            if let Some(path) = nearest {
                spread.entry((path, name)).or_default().insert(&file.path);
            }
        }
    }
    let found = spread.iter().filter_map(|(&(path, name), files)| {
        let listed = wider.iter().find(|one| one.path == path && one.name == name);
        let most = listed.map_or(FILES_MAX, |one| one.files);
        let file = tree.files.iter().find(|file| file.path == path)?;
        let count = files.len();
        let message = format!("functions of `{name}` are in {count} files, of at most {most}");
        (count > most).then(|| Finding::at(file, 0, "spread", message))
    });
    let fallen = wider.iter().filter_map(|one| {
        let count = spread.get(&(one.path, one.name)).map_or(0, BTreeSet::len);
        let file = tree.files.iter().find(|file| file.path == HERE)?;
        let message =
            format!("`{}` of {} is in {count} files: lower its entry", one.name, one.path);
        (count < one.files).then(|| Finding::at(file, 0, "spread", message))
    });
    found.chain(fallen).collect()
}

/// Rust files, those of tests left out.
fn sources(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.rust().filter(|file| !file.path.contains("/tests/") && !file.path.ends_with("tests.rs"))
}

/// The files that define a type, by its name.
fn definitions(tree: &Tree) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in sources(tree) {
        let words: Vec<_> = words(&file.code).map(|(_, word)| word).collect();
        for pair in words.windows(2).filter(|pair| matches!(pair[0], "struct" | "enum" | "union")) {
            all.entry(pair[1]).or_default().push(&file.path);
        }
    }
    all
}

/// How many folders two paths have in common.
fn shared_folders(one: &str, other: &str) -> usize {
    let (one, other) = (one.split('/'), other.split('/'));
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// The types of which a file has inherent blocks at its outermost level.
fn inherent(code: &str) -> impl Iterator<Item = &str> {
    code.split("\nimpl").skip(1).filter_map(|block| {
        let head = block.split('{').next()?;
        let head = without_generics(head)?;
        let is_trait = words(head).any(|(_, word)| word == "for");
        let name = words(head.split(['<', ' ', '\n']).find(|part| !part.is_empty())?).last()?.1;
        (!is_trait).then_some(name)
    })
}

/// A block's head after `impl`, without its parameters.
fn without_generics(head: &str) -> Option<&str> {
    if !head.starts_with('<') {
        return head.starts_with(char::is_whitespace).then_some(head);
    }
    let mut depth = 0_usize;
    let end = head.char_indices().find(|&(at, c)| {
        match c {
            '<' => depth += 1,
            '>' if !head[..at].ends_with('-') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    end.and_then(|(at, _)| head.get(at + 1..))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type in its file and in `count` - 1 others, by generic blocks, beside a trait's and another type of the name.
    fn found(count: usize, wider: &[Wider]) -> Vec<String> {
        let part = "//! P.\nimpl<M: Media<Kind = Vec<u8>>> super::Big<M> {\n    fn f() {}\n}\n";
        let paths: Vec<_> = (1..count).map(|n| format!("crates/a/src/p{n}.rs")).collect();
        let mut files = vec![
            ("crates/a/src/big.rs", "//! B.\nstruct Big<M>(M);\nimpl<M> Big<M> {\n}\n"),
            ("crates/a/src/show.rs", "//! S.\nimpl<M> Display for Big<M> {\n}\n"),
            ("crates/a/src/other/big.rs", "//! O.\nstruct Big;\nimpl Big {}\n"),
            (HERE, "//! H."),
        ];
        files.extend(paths.iter().map(|path| (path.as_str(), part)));
        check_with(&Tree::of(&files), wider).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_type_in_many_files_is_caught() {
        assert!(found(FILES_MAX, &[]).is_empty());
        let expected =
            ["crates/a/src/big.rs:1: spread: functions of `Big` are in 13 files, of at most 12"];
        assert_eq!(found(FILES_MAX + 1, &[]), expected);
    }

    /// A type that is listed has its own limit, which has to follow what it has.
    #[test]
    fn limits_only_fall() {
        let wider = |files| [Wider { path: "crates/a/src/big.rs", name: "Big", files }];
        assert!(found(14, &wider(14)).is_empty());
        assert_eq!(found(14, &wider(13)).len(), 1);
        let lower = "`Big` of crates/a/src/big.rs is in 14 files: lower its entry";
        assert!(found(14, &wider(15))[0].ends_with(lower));
    }
}
