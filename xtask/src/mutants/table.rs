//! The tables of mutants, `xtask/mutants/*.toml`: which expression or statements of which file a mutant replaces, and
//! which promise it breaks. A snippet occurs exactly once in its file; the sources themselves know nothing of mutants.

use crate::files::{listed, text};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What a snippet is in Rust, which decides how it is wrapped.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// A complete expression.
    Expression,
    /// Complete statements that bind nothing that later ones use.
    Statements,
}

/// A change that breaks a promise.
#[derive(Clone, PartialEq, Eq, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    pub(super) id: String,
    /// The table that it is from: `pblk`, `ext4`, ...
    #[serde(skip)]
    pub(super) area: String,
    /// Relative to the repository.
    pub(super) file: String,
    /// Numbered promises of `docs/semantics`, such as `device 11`; of mutants of figures `figure`, the page of `docs/formats` that
    /// defines the figure, and its name or words there: `figure result waf.gc`.
    pub(super) promise: Vec<String>,
    /// What goes wrong, in a sentence.
    pub(super) breaks: String,
    pub(super) form: Form,
    pub(super) find: String,
    pub(super) replace: String,
    /// Checks to try first: `crash ARGUMENTS` of a campaign of the gate, without seeds, or `test CRATE PROGRAM [FILTER]`.
    #[serde(default)]
    pub(super) first: Vec<String>,
    /// Why no check can tell it from the product, if none can.
    pub(super) equivalent: Option<String>,
}

impl Mutant {
    /// Whether it changes a figure, not what a device or a file system holds.
    pub(super) fn is_of_figures(&self) -> bool {
        ["figures", "figures_results"].contains(&self.area.as_str())
    }

    /// The crate of its file, without `nandscape-`.
    pub(super) fn owner(&self) -> &str {
        self.file.split('/').nth(1).unwrap_or_default()
    }

    /// Whether it changes an FTL or SSD; others change the page cache or a file system.
    pub(super) fn is_of_ftls(&self) -> bool {
        ["common", "coupled", "pblk", "ssd", "zoned"].contains(&self.area.as_str())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    mutant: Vec<Mutant>,
}

/// The mutants of all tables, by area and in the order of their tables.
///
/// # Errors
/// A table cannot be read, or an id occurs twice.
pub(super) fn load(root: &Path) -> Result<Vec<Mutant>, String> {
    let mut files = listed(&root.join("xtask/mutants"))?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    let mut mutants = Vec::new();
    for file in files {
        let text = text(&file)?;
        let area = file.file_stem().unwrap_or_default().to_string_lossy();
        mutants.extend(parse(&area, &text).map_err(|e| format!("{}: {e}", file.display()))?);
    }
    let mut seen = BTreeMap::new();
    for mutant in &mutants {
        if seen.insert(mutant.id.as_str(), ()).is_some() {
            return Err(format!("mutant {:?} occurs twice", mutant.id));
        }
    }
    Ok(mutants)
}

fn parse(area: &str, text: &str) -> Result<Vec<Mutant>, String> {
    let mut table: Table = toml::from_str(text).map_err(|e| e.to_string())?;
    table.mutant.iter_mut().for_each(|mutant| area.clone_into(&mut mutant.area));
    Ok(table.mutant)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        [[mutant]]
        id = "a"
        file = "crates/x/src/lib.rs"
        promise = ["device 1"]
        breaks = "Nothing is waited for."
        form = "statements"
        find = "wait();"
        replace = ""
    "#;

    #[test]
    fn tables_are_read() {
        let mutants = parse("pblk", TABLE).unwrap();
        assert_eq!(mutants.len(), 1);
        let Mutant { area, form, equivalent, first, .. } = &mutants[0];
        assert_eq!((area.as_str(), *form), ("pblk", Form::Statements));
        assert_eq!((equivalent, first.len()), (&None, 0));
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(parse("pblk", &TABLE.replace("breaks", "brakes")).is_err());
    }

    /// The numbered promises of a page, by the headings above them.
    fn promises(page: &str, text: &str) -> Vec<String> {
        let mut chapter = String::new();
        let mut found = Vec::new();
        for line in text.lines() {
            if line.starts_with('#') {
                chapter = match (page, line.trim_start_matches('#').trim()) {
                    ("f2fs", "Zones") => " zoned".into(),
                    ("f2fs", "Append-only address spaces") => " append-only".into(),
                    ("f2fs", "Upcalls") => " upcalls".into(),
                    ("f2fs", "GC journal") => " gc-journal".into(),
                    _ => String::new(),
                };
            }
            let number = line.split_once(". ").and_then(|(number, _)| number.parse::<u32>().ok());
            found.extend(number.map(|number| format!("{page}{chapter} {number}")));
        }
        found
    }

    /// Whether a page of `docs/formats` defines a figure: in a table of metrics, or by a key or words.
    fn defines(page: &str, text: &str, name: &str) -> bool {
        match page {
            "result" => text.contains(&format!("| `{name}` |")),
            _ => text.contains(name),
        }
    }

    #[test]
    fn figures_are_those_of_the_formats() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mutants = load(&root).unwrap();
        let of_figures = || mutants.iter().filter(|mutant| mutant.is_of_figures());
        for (mutant, promise) in of_figures().flat_map(|it| it.promise.iter().map(move |p| (it, p)))
        {
            let named = promise.strip_prefix("figure ").and_then(|named| named.split_once(' '));
            let (page, name) = named.unwrap_or_else(|| panic!("{}: {promise:?}", mutant.id));
            let file = root.join("docs/formats").join(page).with_extension("md");
            let text = std::fs::read_to_string(file).unwrap();
            assert!(defines(page, &text, name), "{}: {promise:?}", mutant.id);
        }
        for owner in ["media", "workload", "lab", "report", "paper"] {
            assert!(of_figures().any(|mutant| mutant.owner() == owner), "{owner}");
        }
        assert!(of_figures().count() >= 40);
    }

    #[test]
    fn every_numbered_promise_has_a_mutant() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mutants = load(&root).unwrap();
        let mut numbered = 0;
        for page in ["device", "posix", "f2fs"] {
            let file = root.join("docs/semantics").join(page).with_extension("md");
            for promise in promises(page, &std::fs::read_to_string(file).unwrap()) {
                numbered += 1;
                assert!(
                    mutants.iter().any(|mutant| mutant.promise.contains(&promise)),
                    "{promise}"
                );
            }
        }
        assert_eq!(numbered, 18 + 33 + 6 + 5 + 5 + 12);
    }
}
