//! Checking a volume: every structure, and that they agree with each other. Shares nothing with mounting
//! but the format's code, and changes nothing.
//!
//! Passes, as fsck.f2fs has them: superblocks, checkpoint and logs; SIT and NAT as they stand; the tree from
//! the orphans and from the root on, over nodes, summaries and names; then what was reached against the
//! NAT, the SIT, and the counts of the checkpoint. What is checked is the state of the last checkpoint:
//! fsyncs that wait to be rolled forward are no finding. Moves in a GC journal that count are one, and the
//! only one: sections that the checkpoint refers to may have been written again, and a replay alone makes the
//! volume whole. Blocks of file data are never read, so a volume
//! whose data are tags is checked like any other.
//!
//! Every node is entered once, and every directory block read once, whatever leads there: the check of a
//! damaged volume ends.

mod checker;
mod counts;
mod dirs;
mod files;
mod inodes;
mod links;
mod nodes;
mod tables;

use super::format::FormatError;
use super::raw::RawError;
use crate::report::CheckReport;
use checker::Checker;
use nandscape_block::AsyncDevice;
use nandscape_rt::BoxFuture;

impl CheckReport {
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
pub fn check(device: &AsyncDevice) -> BoxFuture<'_, Result<CheckReport, RawError>> {
    Box::pin(check_all(device))
}

async fn check_all(device: &AsyncDevice) -> Result<CheckReport, RawError> {
    let mut checker = Checker::open(device).await?;
    if checker.waits_for_replay().await? {
        return Ok(checker.finish());
    }
    checker.load_sit().await?;
    checker.load_nat().await?;
    checker.check_logs();
    checker.check_nat_bits().await?;
    checker.check_orphans().await?;
    checker.check_tree().await?;
    checker.check_links();
    checker.check_counts();
    Ok(checker.finish())
}
