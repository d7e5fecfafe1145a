//! Where the files of papers are: in the program, or in a folder. Neither has variables, so that no
//! reproduction depends on whose machine it runs on.

use nandscape_lab::workload::fio::Environment;
use std::io;
use std::path::{Path, PathBuf};

/// Every file of `papers/` with its path from there.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// The file that makes a folder a paper's.
const MARK: &str = "paper.toml";

/// The papers that ship, by the names of their folders.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    let folders = SHIPPED.iter().filter_map(|(path, _)| path.strip_prefix("papers/"));
    folders.filter_map(|path| path.strip_suffix(MARK)?.strip_suffix('/'))
}

/// Files that papers are read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Files {
    /// Those in the program.
    Shipped,
    /// Those of the machine.
    Host,
}

impl Files {
    /// Where the paper of this name is: one that ships, or else a folder.
    #[must_use]
    pub fn find(name: &str) -> (Self, PathBuf) {
        match shipped().any(|id| id == name) {
            true => (Self::Shipped, Path::new("papers").join(name)),
            false => (Self::Host, PathBuf::from(name)),
        }
    }
}

impl Environment for Files {
    fn read(&self, path: &Path) -> io::Result<String> {
        match self {
            Self::Host => std::fs::read_to_string(path),
            Self::Shipped => {
                let found = SHIPPED.iter().find(|(name, _)| Path::new(name) == path);
                let text = found.map(|(_, text)| (*text).to_owned());
                text.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file ships"))
            }
        }
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}
