//! Checking an ext4 file system: every structure, and that they agree with each other. Shares nothing
//! with mounting but the format's code, and changes nothing.
//!
//! Passes, as e2fsck has them: superblock and groups; inodes and the blocks they claim; directories;
//! connections and link counts; bitmaps and counts. Blocks of file data are never read, but for targets
//! of symbolic links, so a volume whose data are tags is checked like any other. A journal that still
//! holds transactions is a finding: what was checked is the state before they are replayed.

mod checker;
mod dirs;
mod extents;
mod groups;
mod index;
mod inodes;
mod journal;
mod links;
mod reserved;
mod space;
mod superblock;
mod symlinks;
mod xattrs;

use super::format::{FormatError, Place};
use super::raw::RawError;
use crate::report::CheckReport;
use checker::Checker;
use nandscape_block::AsyncDevice;
use nandscape_rt::BoxFuture;

impl CheckReport {
    /// What a format error says is a finding; the value otherwise.
    fn sound<T>(&mut self, place: Place, result: Result<T, FormatError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let said = error.to_string();
                let what = said.strip_prefix(&format!("{place}: ")).unwrap_or(&said);
                self.find(place, what);
                None
            }
        }
    }
}

/// Checks a file system that does not change meanwhile.
///
/// # Errors
/// Nothing that could be checked; what is wrong with a file system that can be checked is in the report.
pub fn check(device: &AsyncDevice) -> BoxFuture<'_, Result<CheckReport, RawError>> {
    Box::pin(check_all(device))
}

async fn check_all(device: &AsyncDevice) -> Result<CheckReport, RawError> {
    let mut checker = Checker::open(device).await?;
    checker.read_groups().await?;
    checker.check_superblock();
    checker.check_inodes().await?;
    checker.check_resize_inode().await?;
    checker.check_journal().await?;
    checker.check_directories().await?;
    checker.check_orphans().await?;
    checker.check_links();
    checker.check_bitmaps().await?;
    Ok(checker.finish())
}
