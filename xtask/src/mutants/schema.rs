//! A copy of the repository that holds all mutants at once: each snippet is wrapped so that an environment variable
//! chooses between it and its replacement. It is built once, and every mutant is a run of the same program.

use super::table::{Form, Mutant};
use crate::repository::git;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// The variable that chooses a mutant, by its number from 1. Without it no snippet is replaced.
pub(super) const CHOICE: &str = "NANDSCAPE_MUTANT";

/// What decides: in the copy's `nandscape_rt`, and in each crate that has mutants and does not depend on it.
const CHOOSER: &str = r#"//! Which mutant this process is.

/// Whether it is the one with this number.
pub fn is(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let chosen = || std::env::var("NANDSCAPE_MUTANT").ok()?.parse().ok();
    *CHOSEN.get_or_init(|| chosen().unwrap_or(0)) == number
}
"#;

/// Writes the copy of `root` to `copy`. Files that are there as they should be stay untouched, so that a later build
/// compiles what changed.
///
/// # Errors
/// A file cannot be read or written, or a snippet does not occur exactly once.
pub(super) fn write(root: &Path, copy: &Path, mutants: &[Mutant]) -> Result<(), String> {
    let wrapped = wrap_all(root, mutants)?;
    let mut choosers = BTreeSet::from(["crates/rt/src".to_owned()]);
    for mutant in mutants {
        choosers.extend(own_chooser(root, &mutant.file)?);
    }
    let declares =
        |path: &str| path.strip_suffix("/lib.rs").is_some_and(|folder| choosers.contains(folder));
    for path in tracked(root)? {
        let source = || std::fs::read(root.join(&path)).map_err(|e| format!("{path}: {e}"));
        let mut content = match wrapped.get(&path) {
            Some(text) => text.clone().into_bytes(),
            None => source()?,
        };
        if declares(&path) {
            content.extend_from_slice(b"\npub mod mutant;\n");
        }
        put(&copy.join(&path), &content)?;
    }
    let put_chooser =
        |folder: &String| put(&copy.join(folder).join("mutant.rs"), CHOOSER.as_bytes());
    choosers.iter().try_for_each(put_chooser)
}

/// The folder of sources of a file's crate, if that does not depend on `nandscape_rt` and so decides by itself.
///
/// # Errors
/// The file is of no crate.
fn own_chooser(root: &Path, file: &str) -> Result<Option<String>, String> {
    let (folder, _) =
        file.split_once("/src/").ok_or_else(|| format!("{file}: not of a crate's sources"))?;
    let manifest = root.join(folder).join("Cargo.toml");
    let depends = crate::files::text(&manifest)?.contains("nandscape-rt.");
    Ok((!depends).then(|| format!("{folder}/src")))
}

/// Files that git knows of.
fn tracked(root: &Path) -> Result<Vec<String>, String> {
    let names = git(root, None, &["ls-files", "-z"])?;
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn put(file: &Path, content: &[u8]) -> Result<(), String> {
    let shown = |e: std::io::Error| format!("{}: {e}", file.display());
    if std::fs::read(file).is_ok_and(|there| there == content) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(shown)?;
    }
    std::fs::write(file, content).map_err(shown)
}

/// Every file that has mutants, with all of them.
///
/// # Errors
/// A file cannot be read, or a snippet does not occur exactly once.
pub(super) fn wrap_all(
    root: &Path,
    mutants: &[Mutant],
) -> Result<BTreeMap<String, String>, String> {
    let mut by_file: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in (1..).zip(mutants) {
        by_file.entry(&mutant.file).or_default().push((number, mutant));
    }
    let wrap_file = |(file, mutants): (&str, Vec<(u32, &Mutant)>)| {
        let source =
            std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
        let chooser = if own_chooser(root, file)?.is_some() { "crate" } else { "::nandscape_rt" };
        let text = wrap(&source, &mutants, chooser).map_err(|e| format!("{file}: {e}"))?;
        Ok((file.to_owned(), text))
    };
    by_file.into_iter().map(wrap_file).collect()
}

/// `source` with all of these mutants, of which the module `mutant` of `chooser` decides. Several may replace the same snippet;
/// otherwise snippets do not overlap.
fn wrap(source: &str, mutants: &[(u32, &Mutant)], chooser: &str) -> Result<String, String> {
    let mut places: BTreeMap<(usize, usize), Vec<(u32, &Mutant)>> = BTreeMap::new();
    for &(number, mutant) in mutants {
        let place = place_of(source, mutant)?;
        places.entry((place.start, place.end)).or_default().push((number, mutant));
    }
    let (mut text, mut written) = (String::new(), 0);
    for ((start, end), here) in places {
        let Some(before) = source.get(written..start) else {
            return Err(format!("the snippet of {:?} overlaps another one", here[0].1.id));
        };
        text += before;
        text += &choice(&source[start..end], &here, chooser)?;
        written = end;
    }
    Ok(text + &source[written..])
}

fn place_of(source: &str, mutant: &Mutant) -> Result<Range<usize>, String> {
    let mut found = source.match_indices(&mutant.find);
    match (found.next(), found.next()) {
        (Some((start, snippet)), None) if !snippet.is_empty() => Ok(start..start + snippet.len()),
        (None, _) => Err(format!("the snippet of {:?} does not occur", mutant.id)),
        _ => Err(format!("the snippet of {:?} occurs more than once", mutant.id)),
    }
}

/// The snippet, or the replacement of the mutant that is chosen.
fn choice(snippet: &str, mutants: &[(u32, &Mutant)], chooser: &str) -> Result<String, String> {
    let form = mutants[0].1.form;
    if let Some((_, other)) = mutants.iter().find(|(_, mutant)| mutant.form != form) {
        return Err(format!(
            "{:?} takes the snippet of another mutant for something else",
            other.id
        ));
    }
    let branch = |(number, mutant): &(u32, &Mutant)| {
        format!("if {chooser}::mutant::is({number}) {{ {} }} else ", mutant.replace)
    };
    let branches: String = mutants.iter().map(branch).collect();
    Ok(match form {
        Form::Expression => format!("({branches}{{ {snippet} }})"),
        Form::Statements => format!("{branches}{{ {snippet} }}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::table::load;

    fn mutant(form: Form, find: &str, replace: &str) -> Mutant {
        Mutant {
            id: find.into(),
            area: "pblk".into(),
            file: "a.rs".into(),
            promise: Vec::new(),
            breaks: String::new(),
            form,
            find: find.into(),
            replace: replace.into(),
            first: Vec::new(),
            equivalent: None,
        }
    }

    #[test]
    fn snippets_are_wrapped() {
        let (less, wait) =
            (mutant(Form::Expression, "a < b", "a <= b"), mutant(Form::Statements, "wait();", ""));
        let more = mutant(Form::Expression, "a < b", "a > b");
        let text =
            wrap("if a < b { wait(); }", &[(1, &less), (2, &wait), (3, &more)], "::nandscape_rt")
                .unwrap();
        assert_eq!(
            text,
            "if (if ::nandscape_rt::mutant::is(1) { a <= b } else if ::nandscape_rt::mutant::is(3) { a > b } else { a < b }) \
             { if ::nandscape_rt::mutant::is(2) {  } else { wait(); } }"
        );
    }

    #[test]
    fn snippets_occur_once_and_do_not_overlap() {
        let whole = mutant(Form::Expression, "a < b", "true");
        let part = mutant(Form::Expression, "b", "c");
        assert!(wrap("a < b", &[(1, &whole), (2, &part)], "crate").is_err());
        assert!(wrap("a < b; a < b", &[(1, &whole)], "crate").is_err());
        assert!(wrap("b", &[(1, &whole)], "crate").is_err());
    }

    /// Every mutant of the tables fits the sources as they are.
    #[test]
    fn tables_fit_the_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mutants = load(&root).unwrap();
        assert!(mutants.len() >= 150, "{} mutants", mutants.len());
        wrap_all(&root, &mutants).unwrap();
    }
}
