//! Checking a volume: every structure, and that they agree with each other. Shares nothing with mounting
//! but the format's code, and changes nothing.
//!
//! Passes, as fsck.f2fs has them: superblocks, checkpoint and logs; SIT and NAT as they stand; the tree from
//! the orphans and from the root on, over nodes, summaries and names; then what was reached against the
//! NAT, the SIT, and the counts of the checkpoint. What is checked is the state of the last checkpoint:
//! fsyncs that wait to be rolled forward are no finding. Blocks of file data are never read, so a volume
//! whose data are tags is checked like any other.
//!
//! Every node is entered once, and every directory block read once, whatever leads there: the check of a
//! damaged volume ends.

mod counts;
mod dirs;
mod files;
mod inodes;
mod links;
mod nodes;
mod tables;
mod volume;

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
    /// Inodes that were reached.
    pub inodes: u32,
    /// Directories among them.
    pub directories: u32,
    /// Inodes that wait to be deleted.
    pub orphans: u32,
    /// Blocks of the main area in use, reserved ones included.
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

    /// What a format error says is a finding at its own place.
    fn unsound(&mut self, error: &FormatError) {
        let place = match error {
            FormatError::Corrupt { place, .. }
            | FormatError::Checksum { place, .. }
            | FormatError::Incompatible { place, .. } => *place,
        };
        let text = error.to_string();
        let prefix = place.to_string();
        let rest = text.strip_prefix(&prefix).unwrap_or(&text);
        self.find(place, rest.trim_start_matches([',', ':', ' ']));
    }
}

/// Checks a volume that no other task changes.
///
/// # Errors
/// Nothing that could be checked; what is wrong with a volume that can be checked is in the report.
pub fn check(device: &AsyncDevice) -> BoxFuture<'_, Result<Report, RawError>> {
    Box::pin(check_all(device))
}

async fn check_all(device: &AsyncDevice) -> Result<Report, RawError> {
    let mut volume = Volume::open(device).await?;
    volume.load_sit().await?;
    volume.load_nat().await?;
    volume.check_logs();
    volume.check_nat_bits().await?;
    volume.check_orphans().await?;
    volume.check_tree().await?;
    volume.check_links();
    volume.check_counts();
    Ok(volume.finish())
}
