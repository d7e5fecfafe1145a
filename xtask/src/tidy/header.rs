//! Every Rust file opens with `//!`: what it is, what it guarantees, its source.

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let bare = tree.rust().filter(|file| !opens_with_doc(&file.text));
    let message = "the file must open with `//!` and say what it is";
    bare.map(|file| Finding::at(file, 0, "header", message.to_owned())).collect()
}

fn opens_with_doc(text: &str) -> bool {
    text.strip_prefix("//! ")
        .is_some_and(|rest| !rest.lines().next().unwrap_or("").trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_header_is_caught() {
        let bad = ["use a;\n", "/// Item.\nfn f() {}\n", "//!\n", "//! \nfn f() {}\n", ""];
        for text in bad {
            assert_eq!(check(&Tree::of(&[("a.rs", text)])).len(), 1, "{text:?}");
        }
        assert!(check(&Tree::of(&[("a.rs", "//! A.\n"), ("b.md", "b")])).is_empty());
    }
}
