//! `nandscape docs`: the tutorial, the glossary and the pages of docs/formats, which an installed program carries.

use crate::args::DocsArgs;
use crate::output::{Failure, print};
use crate::table::lay_out;
use anyhow::anyhow;

/// Names and texts of the pages that are not about a format.
const GUIDES: &[(&str, &str)] = &[
    ("tutorial", include_str!("../../../docs/tutorial.md")),
    ("glossary", include_str!("../../../docs/GLOSSARY.md")),
    ("comparison", include_str!("../../../docs/comparison.md")),
];

/// Names and texts of the pages about formats.
const FORMATS: &[(&str, &str)] = &[
    ("coupled", include_str!("../../../docs/formats/coupled.md")),
    ("crash", include_str!("../../../docs/formats/crash.md")),
    ("ext4", include_str!("../../../docs/formats/ext4.md")),
    ("f2fs", include_str!("../../../docs/formats/f2fs.md")),
    ("job", include_str!("../../../docs/formats/job.md")),
    ("journal", include_str!("../../../docs/formats/journal.md")),
    ("line", include_str!("../../../docs/formats/line.md")),
    ("logs", include_str!("../../../docs/formats/logs.md")),
    ("paper", include_str!("../../../docs/formats/paper.md")),
    ("report", include_str!("../../../docs/formats/report.md")),
    ("result", include_str!("../../../docs/formats/result.md")),
    ("stack", include_str!("../../../docs/formats/stack.md")),
    ("state", include_str!("../../../docs/formats/state.md")),
    ("sweep", include_str!("../../../docs/formats/sweep.md")),
    ("timeline", include_str!("../../../docs/formats/timeline.md")),
    ("trace", include_str!("../../../docs/formats/trace.md")),
    ("wml", include_str!("../../../docs/formats/wml.md")),
];

/// Lists the pages, or prints one.
pub(crate) fn docs(args: &DocsArgs) -> Result<(), Failure> {
    let Some(name) = &args.page else { return print(&list()) };
    let asked = name.trim_start_matches("docs/formats/").trim_end_matches(".md");
    match pages().find(|(page, _)| *page == asked) {
        Some((_, text)) => print(text),
        None => {
            let names: Vec<&str> = pages().map(|(page, _)| *page).collect();
            let names = names.join(", ");
            Err(Failure::input(anyhow!("unknown page \"{name}\"; available: {names}")))
        }
    }
}

fn pages() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    GUIDES.iter().chain(FORMATS)
}

fn list() -> String {
    let titles = pages().map(|(_, text)| title(text).to_owned());
    let names = pages().map(|(page, _)| (*page).to_owned());
    let columns =
        [("page".to_owned(), names.collect()), ("title".to_owned(), titles.collect::<Vec<_>>())];
    lay_out(&columns, 2).iter().map(|line| format!("{}\n", line.trim())).collect()
}

/// The heading of a page.
fn title(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every page of the folder is carried, in order, and has a title.
    #[test]
    fn every_page_is_carried() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats");
        let files = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .map(|name| name.trim_end_matches(".md").to_owned())
            .collect();
        names.sort();
        assert_eq!(names, FORMATS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        assert!(pages().all(|(_, text)| !title(text).is_empty()));
    }
}
