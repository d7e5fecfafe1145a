//! The tables of docs/formats that are made from what the program prints itself: between `<!-- keys: NAMES -->` and
//! `<!-- /keys -->`, and likewise for metrics. `NANDSCAPE_CORPUS=write` writes them.

use nandscape_lab::stack::keys;
use nandscape_report::metrics;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A page with every table between markers of this kind replaced by what `make` has for its names, and those names.
fn with_tables(text: &str, kind: &str, make: &dyn Fn(&str) -> String) -> (String, Vec<String>) {
    let (begin, end) = (format!("<!-- {kind}: "), format!("<!-- /{kind} -->"));
    let (mut page, mut rest, mut names) = (String::new(), text, Vec::new());
    while let Some((before, after)) = rest.split_once(&begin) {
        let (named, after) = after.split_once(" -->\n").unwrap();
        let (_, after) = after.split_once(&end).unwrap_or_else(|| panic!("{named}: no {end}"));
        let made: String = make(named);
        _ = write!(page, "{before}{begin}{named} -->\n{made}{end}");
        names.extend(named.split(' ').map(str::to_owned));
        rest = after;
    }
    (page + rest, names)
}

/// Compares the tables of a page with what they are made from, or writes them. Every name must be in the page once.
fn settle(page: &str, kind: &str, names: &[&str], make: &dyn Fn(&str) -> String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (made, found) = with_tables(&text, kind, make);
    let (mut found, mut names) = (found, names.to_vec());
    found.sort();
    names.sort_unstable();
    assert_eq!(found, names, "{page}: each table once");
    if std::env::var("NANDSCAPE_CORPUS").as_deref() == Ok("write") {
        std::fs::write(&path, made).unwrap();
    } else {
        report_difference(&path, &text, &made);
    }
}

fn report_difference(path: &Path, text: &str, made: &str) {
    let differs = text.lines().zip(made.lines()).enumerate().find(|(_, (old, new))| old != new);
    if let Some((at, (old, new))) = differs {
        let hint = "NANDSCAPE_CORPUS=write writes the tables";
        panic!("{}:{}: {hint}:\n  {old}\n  {new}", path.display(), at + 1);
    }
    assert_eq!(text.len(), made.len(), "{}", path.display());
}

/// The keys of stack files are those of `nandscape keys`.
#[test]
fn stack_files_are_described_once() {
    let group = |name: &str| -> &'static keys::Group {
        let found = keys::GROUPS.into_iter().find(|group| group.name == name);
        found.unwrap_or_else(|| panic!("{name}"))
    };
    settle("stack.md", "keys", &keys::GROUPS.map(|group| group.name), &|names| {
        keys::table(&names.split(' ').map(group).collect::<Vec<_>>())
    });
}

/// The metrics of results are those of `nandscape metrics`.
#[test]
fn results_are_described_once() {
    let group = |name: &str| -> &'static metrics::Group {
        let found = metrics::GROUPS.into_iter().find(|group| group.name == name);
        found.unwrap_or_else(|| panic!("{name}"))
    };
    settle("result.md", "metrics", &metrics::GROUPS.map(|group| group.name), &|names| {
        metrics::table(&names.split(' ').map(group).collect::<Vec<_>>())
    });
}
