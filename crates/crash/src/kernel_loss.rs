//! What a power cut takes by the rules of the kernel's implementation although readers of POSIX expect to find it: the
//! model of file systems permits it, names it by a number (docs/semantics/posix.md, "As the kernel, not as POSIX"), and
//! counts it.

use nandscape_fs::Promises;
use std::fmt;

/// A class of losses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KernelLoss {
    /// A durable file has no name any more: a file that was synced later took its former name, and the rename or the
    /// link that gave it another one is lost.
    Replaced,
    /// A file that was synced has a name that a directory above it had before: the rename or exchange of the directory
    /// is lost.
    FormerPath,
    /// A page that was written since its last sync holds what its block held before: neither its old nor its new
    /// content.
    FormerBlock,
}

impl KernelLoss {
    /// All of them, by their numbers.
    pub const ALL: [Self; 3] = [Self::Replaced, Self::FormerPath, Self::FormerBlock];

    /// Its number in the documentation.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Self::Replaced => "K1",
            Self::FormerPath => "K2",
            Self::FormerBlock => "K3",
        }
    }

    /// Its number and what is counted.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replaced => "K1: synced files replaced by a later one",
            Self::FormerPath => "K2: synced files at a former path",
            Self::FormerBlock => "K3: pages with the former content of their block",
        }
    }

    /// Whether a file system with these promises may lose something in this way.
    #[must_use]
    pub const fn is_permitted_by(self, promises: Promises) -> bool {
        match self {
            Self::Replaced => promises.syncs_single_files,
            Self::FormerPath => true,
            Self::FormerBlock => promises.may_show_stale_blocks,
        }
    }
}

impl fmt::Display for KernelLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.number())
    }
}
