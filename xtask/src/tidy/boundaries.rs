//! Boundaries: which names may occur in which files.
//!
//! A dependency on a crate does not say how much of it is used. These rows do: outside a few files nothing
//! names a particular FTL or file system, or what has been given up. Names are searched in code; comments and
//! literals depend on nothing.

use super::{File, Finding, Tree};

const RULE: &str = "boundary";

/// Names that files may not contain.
struct Boundary {
    /// Directories or files, as prefixes of paths.
    paths: &'static [&'static str],
    /// The names. One that ends with `\b` must end there; otherwise it may continue.
    words: &'static [&'static str],
    /// Directories or files in which the names may occur, as prefixes of paths.
    files: &'static [&'static str],
    /// Expressions in which the names may occur anywhere; they end with the name.
    phrases: &'static [&'static str],
    why: &'static str,
}

const BOUNDARIES: &[Boundary] = &[
    Boundary {
        paths: &["crates/lab/src", "crates/cli/src", "crates/paper/src", "crates/report/src"],
        words: &[r"Pblk\b", "pblk::", "pblk as"],
        files: &["crates/lab/src/stack/ftl", "crates/lab/src/stack/keys"],
        phrases: &["FtlConfig::Pblk", "FtlKind::Pblk", "Detail::Pblk"],
        why: "an FTL is named only where its stack section is read or described",
    },
    Boundary {
        paths: &["crates/lab/src", "crates/crash/src", "crates/cli/src", "crates/workload/src"],
        words: &[r"Ext4\b", "ext4::", "ext4 as"],
        files: &["crates/lab/src/stack/fs", "crates/crash/src/fs/draw"],
        phrases: &["FsConfig::Ext4", "FsKind::Ext4"],
        why: "a file system is named only where its options are read or drawn",
    },
    Boundary {
        paths: &["crates"],
        words: &["HostCpu", "upcall_pending", "buffer_write", "buffer_read"],
        files: &[],
        phrases: &[],
        why: "one host charges all CPU time, and the link has the controller's costs",
    },
    Boundary {
        paths: &["crates/media/src/nand"],
        words: &["firmware", "pcie", "buffer_"],
        files: &[],
        phrases: &[],
        why: "NAND knows nothing of the controller and the host link",
    },
    Boundary {
        paths: &["crates/crash/src"],
        words: &["ext4", "Pblk"],
        files: &[
            "crates/crash/src/draw/pblk",
            "crates/crash/src/loss/pblk",
            "crates/crash/src/fs/draw",
        ],
        phrases: &["FtlConfig::Pblk", "Victim::Pblk"],
        why: "a campaign knows kinds of devices and file systems only where it draws them",
    },
    Boundary {
        paths: &["crates"],
        words: &["LineReport", "FtlStats"],
        files: &[],
        phrases: &[],
        why: "every FTL reports in one form",
    },
];

/// Every name where it may not be, and every row that checks nothing.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    BOUNDARIES.iter().flat_map(|boundary| boundary.findings(tree)).collect()
}

impl Boundary {
    fn findings(&self, tree: &Tree) -> Vec<Finding> {
        let of = |path: &'static str| tree.files.iter().filter(move |file| file.is_under(path));
        if let Some(path) =
            self.paths.iter().chain(self.files).find(|path| of(path).next().is_none())
        {
            let message = format!("a boundary names this path, and no file has it ({})", self.why);
            return vec![Finding { path: (*path).into(), line: 1, rule: RULE, message }];
        }
        let files = self.paths.iter().flat_map(|path| of(path)).filter(|file| file.is_rust());
        let guarded = files.filter(|file| !self.files.iter().any(|path| file.is_under(path)));
        guarded.flat_map(|file| self.findings_in(file)).collect()
    }

    fn findings_in(&self, file: &File) -> Vec<Finding> {
        let all = self.words.iter().flat_map(|&word| {
            let ends = occurrences(file.code(), word).into_iter();
            ends.filter(|&end| !self.permits(&file.code()[..end])).map(move |end| (word, end))
        });
        all.map(|(word, end)| {
            let name = word.trim_end_matches(r"\b");
            Finding::at(file, end, RULE, format!("`{name}` may not be named here: {}", self.why))
        })
        .collect()
    }

    /// Whether a name may be at the end of this code.
    fn permits(&self, code: &str) -> bool {
        self.phrases.iter().any(|phrase| {
            let before = code.strip_suffix(phrase);
            before.is_some_and(|before| !before.ends_with(continues))
        })
    }
}

/// Where a name ends, each time that it occurs.
fn occurrences(code: &str, word: &str) -> Vec<usize> {
    let (name, whole) = match word.strip_suffix(r"\b") {
        Some(name) => (name, true),
        None => (word, false),
    };
    let ends = code.match_indices(name).map(|(at, _)| at + name.len());
    ends.filter(|&end| !whole || !code[end..].starts_with(continues)).collect()
}

/// Whether a character continues a name.
fn continues(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Boundary = Boundary {
        paths: &["crates/lab/src", "crates/cli/src"],
        words: &[r"Pblk\b", "pblk::", "buffer_"],
        files: &["crates/lab/src/stack/ftl"],
        phrases: &["FtlKind::Pblk", "Detail::Pblk"],
        why: "a test",
    };

    /// Lines of findings in a file of this text.
    fn found(path: &str, text: &str) -> Vec<usize> {
        let others = [
            ("crates/lab/src/lib.rs", ""),
            ("crates/cli/src/main.rs", ""),
            ("crates/lab/src/stack/ftl/pblk.rs", "use x::Pblk;"),
            (path, text),
        ];
        ROW.findings(&Tree::of(&others)).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn planted_names_are_found() {
        let text =
            "use ftl::Pblk;\n\nfn a(b: &ftl::pblk::B) { b.buffer_read(); }\ntype C = MyPblk<u8>;\n";
        assert_eq!(found("crates/lab/src/run/mod.rs", text), [1, 4, 3, 3]);
        assert_eq!(found("crates/cli/src/a.rs", "fn a(b: Pblk)"), [1]);
        assert_eq!(found("crates/lab/src/stack/ftls.rs", "fn a(b: Pblk)"), [1]);
    }

    #[test]
    fn what_is_permitted_is_no_finding() {
        for text in ["FtlKind::Pblk => 1", "Pblks", "// Pblk", "\"pblk::\"", "x::Detail::Pblk(_)"] {
            assert_eq!(found("crates/lab/src/a.rs", text), [0; 0], "{text}");
        }
        assert_eq!(found("crates/lab/src/stack/ftl/a.rs", "use ftl::Pblk;"), [0; 0]);
        assert_eq!(found("crates/fs/src/a.rs", "use ftl::Pblk;"), [0; 0]);
        assert_eq!(found("crates/lab/src/a.rs", "MyFtlKind::Pblk"), [1]);
    }

    /// A row whose directory has moved does not pass.
    #[test]
    fn a_row_without_files_is_a_finding() {
        let tree = Tree::of(&[("crates/lab/src/lib.rs", ""), ("crates/cli/src/main.rs", "")]);
        let [finding] = ROW.findings(&tree).try_into().unwrap();
        assert_eq!(finding.path, "crates/lab/src/stack/ftl");
    }
}
