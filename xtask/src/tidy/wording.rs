//! Words that hide who acts or what is meant, counted over the whole tree: their number may only fall.
//!
//! The first is reported, returned or known; the others stand for a caller, a task, a thread or a process. [`CEILING`] is what is
//! left, in names of the published papers, in quotations and where the word is right.

use super::source::is_word;
use super::tree::File;
use super::{Finding, Tree};

/// The words, in lower case. Spelled in two parts, to pass the check itself.
const WORDS: [&str; 4] =
    [concat!("to", "ld"), concat!("no", "body"), concat!("who", "ever"), concat!("some", "body")];
/// How many there are.
const CEILING: usize = 25;
/// Where [`CEILING`] is.
const HERE: &str = "xtask/src/tidy/wording.rs";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, CEILING)
}

/// Every such word, if there are more than `ceiling`; one finding if there are fewer.
fn check_with(tree: &Tree, ceiling: usize) -> Vec<Finding> {
    let findings: Vec<_> = tree.files.iter().flat_map(hits).collect();
    let count = findings.len();
    if count > ceiling {
        return findings;
    }
    let here = tree.files.iter().find(|file| file.path() == HERE && count < ceiling);
    let message = format!("only {count} such words are left: lower `CEILING`");
    here.map(|file| Finding::at(file, 0, "wording", message)).into_iter().collect()
}

fn hits(file: &File) -> Vec<Finding> {
    let text = file.text.to_ascii_lowercase();
    let mut all = Vec::new();
    for word in WORDS {
        let message = format!("`{word}`: write what is reported, or which caller or task is meant");
        for (at, _) in text.match_indices(word).filter(|(at, _)| is_whole(&text, *at, word.len())) {
            all.push(Finding::at(file, at, "wording", message.clone()));
        }
    }
    all
}

/// Whether letters, digits or underscores continue the word on neither side.
fn is_whole(text: &str, at: usize, len: usize) -> bool {
    let bytes = text.as_bytes();
    let before = at.checked_sub(1).and_then(|i| bytes.get(i));
    !before.into_iter().chain(bytes.get(at + len)).any(|&byte| is_word(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str, ceiling: usize) -> usize {
        check_with(&Tree::of(&[("a.md", text), (HERE, "//! A.")]), ceiling).len()
    }

    /// Each word counts, in any case, alone; what is at the ceiling passes, and what is below it has to lower it.
    #[test]
    fn words_are_counted() {
        let text = WORDS.join(" is ") + ". " + &WORDS[1].to_ascii_uppercase();
        assert_eq!(count(&text, 4), 5);
        assert_eq!(count(&text, 5), 0);
        assert_eq!(count(&text, 6), 1);
        assert_eq!(count(&format!("re{0} {0}_once un{0}", WORDS[0]), 0), 0);
    }
}
