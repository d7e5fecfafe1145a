//! What a check of a file system says, of any kind: what is wrong, with its place, and what was counted on the way.

use std::fmt;

/// Findings that are kept; the others are counted.
const FINDINGS_MAX: usize = 1_000;

/// Something that is wrong with a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The structure, such as "inode 12".
    pub place: String,
    /// The problem.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CheckReport {
    /// What is wrong, in the order of the passes.
    pub findings: Vec<Finding>,
    /// How many more findings there are.
    pub findings_left_out: u64,
    /// Inodes in use; of F2FS those that were reached.
    pub inodes: u64,
    /// Directories among them.
    pub directories: u64,
    /// Inodes that wait to be deleted.
    pub orphans: u64,
    /// Blocks in use; of F2FS those of the main area, reserved ones included.
    pub blocks: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn find(&mut self, place: impl fmt::Display, what: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { place: place.to_string(), what: what.into() });
        } else {
            self.findings_left_out += 1;
        }
    }
}
