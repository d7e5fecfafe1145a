//! What only ext4 counts: its journal, and file-level records.

use super::journal;
use crate::counts::CountGroup;
use nandscape_rt::words::counted;

/// Counts of a mounted ext4.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Of the journal.
    pub journal: journal::Counts,
    /// File-level records written.
    pub records: u64,
    /// Blocks of the journal's area that they took.
    pub record_blocks: u64,
}

impl Counts {
    /// Applies `merge` to each count and its counterpart in `other`.
    pub(crate) fn zip(&mut self, other: &Self, merge: impl Fn(&mut u64, u64)) {
        let (ours, theirs) = (&mut self.journal, &other.journal);
        merge(&mut ours.commits, theirs.commits);
        merge(&mut ours.log_blocks, theirs.log_blocks);
        merge(&mut ours.copies, theirs.copies);
        merge(&mut ours.frozen, theirs.frozen);
        merge(&mut ours.revoke_blocks, theirs.revoke_blocks);
        merge(&mut ours.home_blocks, theirs.home_blocks);
        merge(&mut ours.forced_checkpoints, theirs.forced_checkpoints);
        merge(&mut ours.superblocks, theirs.superblocks);
        merge(&mut self.records, other.records);
        merge(&mut self.record_blocks, other.record_blocks);
    }

    pub(crate) fn groups(&self) -> Vec<CountGroup> {
        let journal = &self.journal;
        let journal = vec![
            ("commits", journal.commits),
            ("blocks", journal.log_blocks),
            ("copies", journal.copies),
            ("frozen", journal.frozen),
            ("revoke_blocks", journal.revoke_blocks),
            ("superblocks", journal.superblocks),
            ("home_blocks", journal.home_blocks),
            ("forced_checkpoints", journal.forced_checkpoints),
        ];
        let records = vec![("count", self.records), ("blocks", self.record_blocks)];
        vec![CountGroup::of("journal", journal), CountGroup::of("ijournal_records", records)]
    }

    pub(crate) fn phrases(&self) -> Vec<String> {
        let journal = &self.journal;
        let mut phrases = vec![format!(
            "{}, {}, {}",
            counted(journal.commits, ["commit", "commits"]),
            counted(journal.log_blocks, ["journal block", "journal blocks"]),
            counted(journal.home_blocks, ["checkpointed block", "checkpointed blocks"]),
        )];
        if self.records > 0 {
            let records = counted(self.records, ["file record", "file records"]);
            let blocks = counted(self.record_blocks, ["block", "blocks"]);
            phrases.push(format!("{records} in {blocks}"));
        }
        phrases
    }
}
