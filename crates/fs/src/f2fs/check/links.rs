//! How many names lead to each inode.

use super::checker::Checker;
use crate::f2fs::format::{Place, mode};

impl Checker {
    /// Each inode but a directory has as many names as it says.
    pub(super) fn check_links(&mut self) {
        for (ino, seen) in &self.inodes {
            if seen.inode_type != mode::DIR && seen.names != seen.links && !seen.is_orphan {
                let what = format!("link count is {}, counted {}", seen.links, seen.names);
                self.report.find(Place::Inode(*ino), what);
            }
        }
    }
}
