//! The files that tidy looks at: what git tracks, or would track; without git, everything but the
//! build directory. Of files that are not UTF-8 text, and of inputs that a fuzzer made, only the path is known. Paths are
//! relative, with `/`.

use super::source;
use std::io;
use std::path::Path;
use std::process::Command;

/// Inputs that a fuzzer made: what some of them hold looks like text.
const FUZZED: &str = "fuzz/corpus/";

/// A text file of the repository.
pub(crate) struct File {
    pub(super) path: String,
    pub(super) text: String,
    /// Rust files: the text with comments and literals blanked out, byte for byte as long.
    pub(super) code: String,
}

impl File {
    fn new(path: String, text: String) -> Self {
        let code = if path.ends_with(".rs") { source::blank(&text) } else { String::new() };
        Self { path, text, code }
    }

    /// Line number, from 1, of a byte of the text.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count()
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether this is the file that `path` names, with or without its ending, or is in that directory.
    pub(crate) fn is_under(&self, path: &str) -> bool {
        let rest = self.path.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }
}

/// All files of the repository.
pub(crate) struct Tree {
    /// Text files.
    pub(crate) files: Vec<File>,
    /// Paths of the others: pictures, and inputs that a fuzzer made.
    pub(super) others: Vec<String>,
}

impl Tree {
    /// Reads the repository at `root`.
    pub(crate) fn load(root: &Path) -> io::Result<Self> {
        let (mut files, mut others) = (Vec::new(), Vec::new());
        for path in list(root)? {
            // Tracked, but deleted or moved in the work tree.
            let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
            match String::from_utf8(bytes) {
                Ok(text) if !path.starts_with(FUZZED) => files.push(File::new(path, text)),
                _ => others.push(path),
            }
        }
        Ok(Self { files, others })
    }

    /// The Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File::new(path.to_owned(), text.to_owned());
        Self { files: files.iter().map(file).collect(), others: Vec::new() }
    }
}

fn list(root: &Path) -> io::Result<Vec<String>> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    match git {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(names.split_terminator('\0').map(str::to_owned).collect())
        }
        _ => walk(root, ""),
    }
}

/// Every file under `root`/`dir`, build directories and git's own left out.
fn walk(root: &Path, dir: &str) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root.join(dir))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
        match entry.file_type()?.is_dir() {
            true if name == "target" || name == ".git" => {}
            true => paths.extend(walk(root, &path)?),
            false => paths.push(path),
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without git, the walk finds what git would list.
    #[test]
    fn walk_finds_this_file() {
        let paths = walk(Path::new(env!("CARGO_MANIFEST_DIR")), "").unwrap();
        assert!(paths.contains(&"src/tidy/tree.rs".to_owned()));
        assert!(paths.contains(&"Cargo.toml".to_owned()));
    }

    /// Rules do not look into what a fuzzer made, but know that it is there.
    #[test]
    fn fuzzed_inputs_are_no_texts() {
        let tree = Tree::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert!(!tree.files.iter().any(|file| file.path.starts_with(FUZZED)));
        assert!(tree.others.iter().any(|path| path.starts_with(FUZZED)));
    }

    #[test]
    fn lines_count_from_one() {
        let tree = Tree::of(&[("a.rs", "//! a\nfn b() {}\n")]);
        assert_eq!(tree.files[0].line_of(0), 1);
        assert_eq!(tree.files[0].line_of(6), 2);
    }
}
