//! Links between documents lead somewhere: the target of every relative Markdown link is a file or a
//! folder of the repository. Anchors and addresses on the web are not followed.

use super::tree::File;
use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let documents = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    documents.flat_map(|document| broken(document, tree)).collect()
}

fn broken(document: &File, tree: &Tree) -> Vec<Finding> {
    let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let dead = targets(&document.text).filter(|(_, target)| !exists(tree, &join(folder, target)));
    dead.map(|(at, target)| {
        Finding::at(document, at, "links", format!("`{target}` does not exist"))
    })
    .collect()
}

/// Offset and path of each relative link.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("](").filter_map(|(at, open)| {
        let target = text[at + open.len()..].split([')', '#', '\n']).next()?;
        (!target.is_empty() && !target.contains(':')).then_some((at, target))
    })
}

/// `path` as seen from `folder`, without `.` and `..`.
fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let inside = |known: &String| known.strip_prefix(path).is_some_and(|r| r.starts_with('/'));
    let mut paths = tree.files.iter().map(|file| &file.path).chain(&tree.others);
    paths.any(|known| known == path || inside(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&Tree::of(&[("docs/a.md", text), ("docs/b/c.md", ""), ("README.md", "")])).len()
    }

    #[test]
    fn a_link_to_nowhere_is_caught() {
        for target in ["gone.md", "README.md", "../b/c.md", "b/c", "./a.m"] {
            assert_eq!(found(&format!("see [x]({target})")), 1, "{target}");
        }
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        for target in ["b/c.md", "b", "../README.md#here", "#here", "https://a.org/b.md", "./a.md"]
        {
            assert_eq!(found(&format!("see [x]({target})")), 0, "{target}");
        }
    }
}
