//! What a coupled SSD counts.

use crate::report::GcCounts;
use nandscape_rt::Nanos;
use nandscape_rt::counts;
use serde::Serialize;

/// Everything counted here since the last reset; what the media side counts is counted there.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Counts {
    /// Collection of lines.
    pub(super) gc: GcCounts,
    /// Sectors of regions that the host discarded.
    pub(super) discarded: u64,
    /// Longest time that a write waited for a line.
    pub(super) stall_ns_max: Nanos,
    /// How long units erased victims.
    pub(super) erase_ns: u64,
    /// What only this kind counts.
    pub(super) own: CoupledCounts,
}

impl Counts {
    /// Sectors of the journal and of snapshots.
    pub(super) const fn own_sectors(&self) -> u64 {
        self.own.journal_sectors + self.own.snapshot_sectors
    }
}

counts! {
    /// What only a coupled SSD counts. Pages moved are those of records opened and merged; records carried and opened are
    /// open still, completed or deleted.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct CoupledCounts {
        /// Records that were open when counting began.
        pub carried: u64 = first,
        /// Records that are open.
        pub open: u64 = last,
        /// Victims that were erased.
        pub collected: u64,
        /// Time from when the collection of each began to the end of its erase, summed.
        pub collect_ns: u64,
        /// The time of these collections on media: how long each unit of an instance reads, programs and erases for them, as
        /// a mean over its units, summed.
        pub collect_media_ns: u64,
        /// Sectors of victims that were not valid.
        pub reclaimed: u64,
        /// Lines in use of the region to which data is moved.
        pub region_lines: u64 = last,
        /// All lines of that region.
        pub region_lines_all: u64 = last,
        /// Bytes of RAM of records and of the tables that find them.
        pub record_bytes: u64 = last,
        /// Pages that collection moved.
        pub moved: u64,
        /// Records that were opened.
        pub opened: u64,
        /// Moves of pages whose records had not been offered.
        pub merged: u64,
        /// Records whose pages were discarded before they were offered.
        pub deleted: u64,
        /// Records of completed upcalls.
        pub completed: u64,
        /// Upcalls that the host fetched.
        pub upcalls: u64,
        /// Records in them.
        pub sent: u64,
        /// Sectors of the journal written.
        pub journal_sectors: u64,
        /// Flushes of the journal.
        pub journal_flushes: u64,
        /// Snapshots taken, and their sectors.
        pub snapshots: u64,
        /// Sectors of snapshots written.
        pub snapshot_sectors: u64,
    }
}
