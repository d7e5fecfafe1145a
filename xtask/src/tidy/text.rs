//! In every text file: no paths of one machine, no markers of unfinished work.

use super::source::is_whole;
use super::tree::File;
use super::{Finding, Tree};

/// Directories that exist on one machine only. Spelled in two parts, to pass the check itself.
const MACHINE: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
/// Words that stand for work left undone.
const MARKERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let paths = MACHINE.iter().flat_map(|path| {
        let message = format!("`{path}` is a path of one machine");
        let hits = file.text.match_indices(path);
        hits.map(move |(at, _)| Finding::at(file, at, "machine-path", message.clone()))
    });
    let markers = MARKERS.iter().flat_map(|marker| {
        let message = format!("`{marker}`: finish it, or file an issue");
        let hits = file.text.match_indices(marker);
        hits.filter(|(at, word)| is_whole(&file.text, *at, word.len()))
            .map(move |(at, _)| Finding::at(file, at, "marker", message.clone()))
    });
    paths.chain(markers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&'static str> {
        check(&Tree::of(&[("a.md", text)])).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn machine_paths_and_markers_are_caught() {
        for path in MACHINE {
            assert_eq!(found(&format!("see {path}me")), ["machine-path"]);
        }
        for marker in MARKERS {
            assert_eq!(found(&format!("a\n# {marker}: later")), ["marker"]);
            assert!(found(&format!("MY{marker} {marker}_ID")).is_empty());
        }
    }

    #[test]
    fn plain_text_passes() {
        assert!(found("the work/home directory, a root, a todo list").is_empty());
    }
}
