//! Checking an ext4 file system: every structure, and that they agree with each other. Shares nothing
//! with mounting but the format's code, and changes nothing.
//!
//! Passes, as e2fsck has them: superblock and groups; inodes and the blocks they claim; directories;
//! connections and link counts; bitmaps and counts. Blocks of file data are never read, but for targets
//! of symbolic links, so a volume whose data are tags is checked like any other. A journal that still
//! holds transactions is a finding: what was checked is the state before they are replayed.

mod bad;
mod dirs;
mod extents;
mod groups;
mod index;
mod inodes;
mod journal;
mod links;
mod orphan_file;
mod resize;
mod space;
mod superblock;
mod symlinks;
mod volume;
mod xattrs;

use super::format::{FormatError, Place};
use super::raw::RawError;
use crate::kind::{self, CheckReport};
use nandscape_block::AsyncDevice;
use nandscape_rt::BoxFuture;
use std::fmt;
use volume::Volume;

/// Findings that are kept; the others are counted.
const FINDINGS_MAX: usize = 1_000;

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// What.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl From<Report> for CheckReport {
    fn from(report: Report) -> Self {
        let finding =
            |Finding { place, what }: Finding| kind::Finding { place: place.to_string(), what };
        Self {
            findings: report.findings.into_iter().map(finding).collect(),
            findings_left_out: report.findings_left_out,
            inodes: report.inodes.into(),
            directories: report.directories.into(),
            orphans: report.orphans.into(),
            blocks: report.blocks,
        }
    }
}

/// What a check saw.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// How many findings more there are.
    pub findings_left_out: u64,
    /// Inodes in use.
    pub inodes: u32,
    /// Directories among them.
    pub directories: u32,
    /// Inodes that wait to be deleted.
    pub orphans: u32,
    /// Blocks in use.
    pub blocks: u64,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn find(&mut self, place: Place, what: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { place, what: what.into() });
        } else {
            self.findings_left_out += 1;
        }
    }

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

/// Checks a file system that nobody changes meanwhile.
///
/// # Errors
/// Nothing that could be checked; what is wrong with a file system that can be checked is in the report.
pub fn check(device: &AsyncDevice) -> BoxFuture<'_, Result<Report, RawError>> {
    Box::pin(check_all(device))
}

async fn check_all(device: &AsyncDevice) -> Result<Report, RawError> {
    let mut volume = Volume::open(device).await?;
    volume.read_groups().await?;
    volume.check_superblock();
    volume.check_inodes().await?;
    volume.check_resize_inode().await?;
    volume.check_journal().await?;
    volume.check_directories().await?;
    volume.check_orphans().await?;
    volume.check_links();
    volume.check_bitmaps().await?;
    Ok(volume.finish())
}
