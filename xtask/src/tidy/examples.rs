//! Every job in examples/ is named in some document, so that a reader finds it and CI runs it.

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let documents = || tree.files.iter().filter(|file| file.path.ends_with(".md"));
    let jobs = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("examples/"))
        .filter(|file| [".fio", ".f"].iter().any(|end| file.path.ends_with(end)));
    let unnamed = jobs.filter(|job| !documents().any(|document| document.text.contains(&job.path)));
    let message = "no document names this example";
    unnamed.map(|job| Finding::at(job, 0, "examples", message.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_that_no_document_names_is_caught() {
        let tree = Tree::of(&[
            ("README.md", "run examples/seen.fio"),
            ("examples/seen.fio", "[a]\n"),
            ("examples/unseen.fio", "[a]\n"),
            ("examples/unseen.f", "run 1\n"),
        ]);
        let paths: Vec<_> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["examples/unseen.fio", "examples/unseen.f"]);
    }
}
