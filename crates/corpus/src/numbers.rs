//! The numbers of a JSON document, each with the path of its key, in an order that is not the document's.
//!
//! Texts count only as present: their wording is no figure. `1` and `1.0` are the same number.

use serde_json::Value;
use std::collections::BTreeMap;

/// Which keys of a document take part, and what they are called in the recorded rows.
///
/// A key is a path, `nandscape/gc/victims`; `*` stands for any one part, such as an index. A path stands for
/// everything below it, too.
#[derive(Clone, Copy, Default, Debug)]
pub struct Keys<'a> {
    /// Keys that say nothing about what a run did, and keys that are newer than the recorded rows.
    pub skipped: &'a [&'a str],
    /// Lists of texts, of which only the length counts.
    pub counted: &'a [&'a str],
    /// Keys that have got another name: the recorded one, and today's. Both have as many `*`.
    pub renamed: &'a [(&'a str, &'a str)],
}

/// Sections by name, each with its numbers by path.
type Sections = BTreeMap<String, BTreeMap<String, String>>;

impl Keys<'_> {
    /// The numbers of a document by section: the first part of a path, or the second below `nandscape`.
    pub(crate) fn sections(&self, document: &Value) -> Sections {
        let mut sections = Sections::new();
        self.walk(document, &mut Vec::new(), &mut sections);
        sections
    }

    fn walk(&self, value: &Value, path: &mut Vec<String>, out: &mut Sections) {
        let is_in = |keys: &[&str]| keys.iter().any(|key| rest(key, path) == Some(&[]));
        if is_in(self.skipped) {
            return;
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                fields.iter().for_each(|(key, value)| self.below(key, value, path, out));
            }
            Value::Array(items) if is_in(self.counted) => {
                self.put(path, format!("{} items", items.len()), out);
            }
            Value::Array(items) if !items.is_empty() => {
                let items = items.iter().enumerate();
                items.for_each(|(index, item)| self.below(&index.to_string(), item, path, out));
            }
            _ => self.put(path, plain(value), out),
        }
    }

    fn below(&self, key: &str, value: &Value, path: &mut Vec<String>, out: &mut Sections) {
        path.push(key.into());
        self.walk(value, path, out);
        path.pop();
    }

    fn put(&self, path: &[String], value: String, out: &mut Sections) {
        let path = self.recorded(path);
        let below_ours = path.first().is_some_and(|part| part == "nandscape");
        let section = path.get(usize::from(below_ours)).cloned().unwrap_or_default();
        out.entry(section).or_default().insert(path.join("/"), value);
    }

    /// The path under which a number was recorded.
    fn recorded(&self, path: &[String]) -> Vec<String> {
        let renamed = self.renamed.iter().find_map(|(old, new)| Some((old, new, rest(new, path)?)));
        let Some((old, new, rest)) = renamed else { return path.to_vec() };
        let mut any = new.split('/').zip(path).filter(|(key, _)| *key == "*").map(|(_, part)| part);
        let part = |key: &str| {
            if key == "*" { any.next().cloned().unwrap_or_default() } else { key.into() }
        };
        old.split('/').map(part).chain(rest.iter().cloned()).collect()
    }
}

/// What comes after a key in a path, if that is the key's or below it.
fn rest<'p>(key: &str, path: &'p [String]) -> Option<&'p [String]> {
    let parts = key.split('/').count();
    let (head, rest) = path.split_at_checked(parts)?;
    key.split('/').zip(head).all(|(key, part)| key == "*" || key == part).then_some(rest)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(_) => "text".into(),
        Value::Number(number) => match number.as_f64() {
            // Whole numbers that an f64 holds exactly may be written either way.
            Some(it) if number.is_f64() && it.fract() == 0.0 && it.abs() < 9e15 => {
                (it as i64).to_string()
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEYS: Keys<'_> = Keys {
        skipped: &["nandscape/wall_s", "nandscape/*/note"],
        counted: &["nandscape/warnings"],
        renamed: &[
            ("nandscape/buffers/*/rides", "nandscape/buffers/*/empty"),
            ("nandscape/gc", "nandscape/cleaning"),
        ],
    };

    fn sections(document: &Value) -> Sections {
        KEYS.sections(document)
    }

    fn ours(ours: Value) -> Sections {
        sections(&json!({ "nandscape": ours }))
    }

    /// Neither order, nor wording, nor the way a whole number is written counts.
    #[test]
    fn form_does_not_count() {
        let one = ours(json!({ "waf": { "gc": 2.0, "fs": null }, "steady": true, "why": "so" }));
        let other = ours(json!({ "why": "no", "steady": true, "waf": { "fs": null, "gc": 2 } }));
        assert_eq!(one, other);
        assert_eq!(ours(json!({ "warnings": ["a"] })), ours(json!({ "warnings": [{ "b": 1 }] })));
        assert_eq!(ours(json!({ "wall_s": 1, "a": { "note": 2 } })), Sections::new());
    }

    /// Numbers, flags, presence and the lengths of lists count.
    #[test]
    fn figures_count() {
        let base = ours(json!({ "a": [1, 2.5], "t": "x", "warnings": ["a"], "e": [] }));
        for other in [
            json!({ "a": [1, 2.25], "t": "x", "warnings": ["a"], "e": [] }),
            json!({ "a": [1, 2.5, 3], "t": "x", "warnings": ["a"], "e": [] }),
            json!({ "a": [1, 2.5], "t": null, "warnings": ["a"], "e": [] }),
            json!({ "a": [1, 2.5], "t": "x", "warnings": [], "e": [] }),
            json!({ "a": [1, 2.5], "t": "x", "warnings": ["a"] }),
        ] {
            assert_ne!(base, ours(other.clone()), "{other}");
        }
    }

    /// A key under its new name is the key under its old one, at any depth, and what is below it.
    #[test]
    fn renamed_keys_are_found_again() {
        let old = ours(json!({ "buffers": [{ "rides": 1 }, { "rides": 2 }], "gc": { "x": [3] } }));
        let new =
            ours(json!({ "cleaning": { "x": [3] }, "buffers": [{ "empty": 1 }, { "empty": 2 }] }));
        assert_eq!(old, new);
        let swapped =
            ours(json!({ "gc": { "x": [3] }, "buffers": [{ "empty": 2 }, { "empty": 1 }] }));
        assert_ne!(old, swapped);
    }

    #[test]
    fn sections_are_the_keys_of_ours() {
        let found = sections(&json!({ "jobs": [{ "error": 0 }], "nandscape": { "erases": 7 } }));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["erases", "jobs"]);
        assert_eq!(found["erases"]["nandscape/erases"], "7");
    }
}
