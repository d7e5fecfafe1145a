//! What the time of cleaning calls in the foreground goes to, in the parts of D2FS's slides ("Filesystem GC is more costly
//! than Device GC"), and what a run may leave out of them to measure the others.
//!
//! | Part | Is |
//! |---|---|
//! | checkpoint | checkpoints that make cleaned sections free, and blocks of the GC journal in their place |
//! | traversal | summaries, nodes that say whether a block still belongs to a page, and nodes on the way to blocks that are read |
//! | metadata | cores that look for the node of a moved page, and change or write it |
//! | allocation | cores that give moved blocks their places in logs |
//! | transfer | reads of moved blocks from the device, and writes to it; what is left of the time of reading and writing |
//!
//! A step is measured from its beginning to its end in virtual time. One task pays for all work of a step, so what cores took is a
//! part of its time.

/// A step of cleaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GcStep {
    /// Finds out which blocks of a segment are to be moved.
    Find,
    /// Reads those that are not in memory.
    Read,
    /// Gives them places, and writes them there.
    Write,
    /// Makes free what was emptied.
    Reclaim,
}

/// Time of cleaning calls, by part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GcParts {
    /// Checkpoints and the GC journal.
    pub checkpoint_ns: u64,
    /// Summaries and nodes that were looked at.
    pub traversal_ns: u64,
    /// Nodes that were changed.
    pub metadata_ns: u64,
    /// Places in logs.
    pub allocation_ns: u64,
    /// Blocks read and written.
    pub transfer_ns: u64,
}

impl GcParts {
    /// A step took so long, of which cores took `nodes` for node pages and `places` for blocks that logs gave.
    pub(crate) const fn note(&mut self, step: GcStep, ns: u64, [nodes, places]: [u64; 2]) {
        match step {
            GcStep::Find => self.traversal_ns += ns,
            GcStep::Reclaim => self.checkpoint_ns += ns,
            GcStep::Read => {
                self.traversal_ns += nodes;
                self.transfer_ns += ns.saturating_sub(nodes);
            }
            GcStep::Write => {
                self.metadata_ns += nodes;
                self.allocation_ns += places;
                self.transfer_ns += ns.saturating_sub(nodes + places);
            }
        }
    }

    /// Applies `merge` to each time and its counterpart in `other`.
    pub(crate) fn zip(&mut self, other: &Self, merge: impl Fn(&mut u64, u64)) {
        merge(&mut self.checkpoint_ns, other.checkpoint_ns);
        merge(&mut self.traversal_ns, other.traversal_ns);
        merge(&mut self.metadata_ns, other.metadata_ns);
        merge(&mut self.allocation_ns, other.allocation_ns);
        merge(&mut self.transfer_ns, other.transfer_ns);
    }

    /// The times by name.
    pub(crate) const fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("checkpoint_ns", self.checkpoint_ns),
            ("traversal_ns", self.traversal_ns),
            ("metadata_ns", self.metadata_ns),
            ("allocation_ns", self.allocation_ns),
            ("transfer_ns", self.transfer_ns),
        ]
    }
}

/// What a run leaves out of cleaning in the foreground, to measure what it costs (`fs.gc_without`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum GcWithout {
    /// Nothing.
    #[default]
    Nothing,
    /// Checkpoints: what was emptied is free at once. A power cut loses data.
    Checkpoint,
    /// What cores take to find the owners of blocks.
    Traversal,
    /// What cores take to change nodes.
    Metadata,
    /// What cores take to give blocks their places.
    Allocation,
    /// All of these.
    All,
}

impl GcWithout {
    /// Whether a part is left out.
    pub(crate) const fn has(self, part: Self) -> bool {
        matches!(self, Self::All) || self as u8 == part as u8
    }

    /// Whether checkpoints are left out.
    pub(crate) const fn checkpoint(self) -> bool {
        self.has(Self::Checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of a step is its part's; of reading and writing, cores take theirs, and the rest is transfer.
    #[test]
    fn parts_add_up() {
        let paid = [30, 20];
        let mut parts = GcParts::default();
        parts.note(GcStep::Find, 5, paid);
        parts.note(GcStep::Read, 40, paid);
        parts.note(GcStep::Write, 100, paid);
        parts.note(GcStep::Reclaim, 7, paid);
        let sum: u64 = parts.named().iter().map(|(_, ns)| ns).sum();
        assert_eq!((sum, parts.transfer_ns, parts.metadata_ns), (152, 60, 30));
        assert_eq!(parts.traversal_ns, 35);
    }
}
