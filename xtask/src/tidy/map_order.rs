//! Hash tables with a fixed hasher (`FxHashMap`, `FxHashSet`) may be looked up in the virtual crates
//! but never iterated: their order is no contract. The check knows the names declared with such a
//! type in the same file, and looks for these names being iterated.

use super::source::{is_word, words};
use super::tree::File;
use super::virtual_clock::is_virtual;
use super::{Finding, Tree};
use std::collections::BTreeSet;

const ITERATE: [&str; 10] = [
    "iter",
    "iter_mut",
    "into_iter",
    "keys",
    "into_keys",
    "values",
    "values_mut",
    "into_values",
    "drain",
    "retain",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.rust().filter(|file| is_virtual(&file.path));
    files.flat_map(iterations).collect()
}

fn iterations(file: &File) -> Vec<Finding> {
    let code = file.code.as_str();
    let tables: BTreeSet<&str> = words(code)
        .filter(|(_, word)| matches!(*word, "FxHashMap" | "FxHashSet"))
        .filter_map(|(at, _)| declared(code, at))
        .collect();
    words(code)
        .filter(|(at, word)| tables.contains(word) && iterated(code, *at, word))
        .map(|(at, word)| {
            let message = format!("`{word}` is a hash table and must not be iterated");
            Finding::at(file, at, "map-order", message)
        })
        .collect()
}

/// The name that a type or constructor at `at` belongs to: `name: FxHashMap`, `name = FxHashMap`.
fn declared(code: &str, at: usize) -> Option<&str> {
    let line = code[..at].rsplit(['\n', ',', '(', '{', ';']).next()?;
    let name = line.split([':', '=']).next()?.trim_end();
    let from = name.bytes().rposition(|byte| !is_word(byte)).map_or(0, |p| p + 1);
    (name.len() < line.len()).then_some(&name[from..]).filter(|name| !name.is_empty())
}

/// Whether the table named at `at` is iterated there: `name.keys()`, `in &name`, `in self.name`.
fn iterated(code: &str, at: usize, name: &str) -> bool {
    let after = code[at + name.len()..].trim_start();
    if let Some(call) = after.strip_prefix('.') {
        let method = call.trim_start();
        let end = method.bytes().position(|byte| !is_word(byte)).unwrap_or(method.len());
        return ITERATE.contains(&&method[..end]);
    }
    let target = |c: char| c == '&' || c == '.' || c == '_' || c.is_alphanumeric();
    let before = code[..at].trim_end_matches(target).trim_end().trim_end_matches("mut").trim_end();
    let word = before.trim_end_matches('&').trim_end();
    after.starts_with('{') && (word.ends_with(" in") || code[..at].trim_end().ends_with(" in"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(line: &str) -> usize {
        check(&Tree::of(&[("crates/ftl/src/a.rs", &format!("//! A.\n{line}\n"))])).len()
    }

    #[test]
    fn iterating_a_hash_table_is_caught() {
        let bad = [
            "struct S { map: FxHashMap<u32, u32> } fn f(s: &S) { s.map.keys().min() }",
            "let mut seen = FxHashSet::default(); seen.drain();",
            "let seen = FxHashSet::default(); for x in &seen { f(x) }",
            "struct S { map: FxHashMap<u32, u32> } for (k, v) in &mut self.map { f(k) }",
            "fn f(a: u8, map: &FxHashMap<u32, u32>) { for k in map { g(k) } }",
            "let map: FxHashMap<_, _> = FxHashMap::default();\nmap\n    .values();",
        ];
        for line in bad {
            assert_eq!(findings(line), 1, "{line}");
        }
    }

    #[test]
    fn looking_up_passes() {
        let line = "struct S { map: FxHashMap<u32, u32>, list: Vec<u32> }
            fn f(s: &S) { s.map.get(&1); s.map.len(); for x in &s.list { g(x) } s.list.iter() }";
        assert_eq!(findings(line), 0);
    }
}
