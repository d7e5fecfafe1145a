//! `nandscape docs`: the pages of docs/formats, which an installed program carries.

use crate::args::DocsArgs;
use crate::output::{Failure, print};
use crate::table::lay_out;
use anyhow::anyhow;

/// Names and texts of the pages.
const PAGES: &[(&str, &str)] = &[
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
    match PAGES.iter().find(|(page, _)| *page == asked) {
        Some((_, text)) => print(text),
        None => {
            let names: Vec<&str> = PAGES.iter().map(|(page, _)| *page).collect();
            let names = names.join(", ");
            Err(Failure::input(anyhow!("unknown page \"{name}\"; available: {names}")))
        }
    }
}

fn list() -> String {
    let titles = PAGES.iter().map(|(_, text)| title(text).to_owned());
    let names = PAGES.iter().map(|(page, _)| (*page).to_owned());
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
        assert_eq!(names, PAGES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        assert!(PAGES.iter().all(|(_, text)| !title(text).is_empty()));
    }
}
