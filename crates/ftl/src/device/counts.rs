//! What a conventional SSD counts.

use crate::report::{FlushTime, GcCounts, HostIo, MediaErrors, SectorCounts};
use nandscape_rt::counts;
use serde::Serialize;

/// Everything counted since the last reset.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct DeviceCounts {
    /// Sectors written to media, by cause. Sectors count when they go into a page; those that a write of
    /// a part of a mapping unit adds count as padding.
    pub sectors: SectorCounts,
    /// Sectors that the host transferred.
    pub host: HostIo,
    /// Chunks erased.
    pub erases: u64,
    /// Collection.
    pub gc: GcCounts,
    /// Flushes, and writes that wait for durability.
    pub flush: FlushTime,
    /// What media failed.
    pub media_errors: MediaErrors,
    /// Sectors whose content media dropped, as neither a read nor a mount would return it again.
    pub dropped_sectors: u64,
    /// What only this kind counts.
    pub own: DeviceReport,
    /// Sum over accepted sectors of the sectors in use at the time.
    pub(super) in_use_sum: u128,
}

counts! {
    /// What only a conventional SSD counts.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct DeviceReport {
        /// Writes of a part of a mapping unit that was not in the page being filled.
        pub rmw: u64,
        /// Sectors that those wrote beside the host's; also counted as padding.
        pub rmw_sectors: u64,
        /// Times that records of all unmapped runs replaced the trim records on media.
        pub trim_compactions: u64,
    }
}

counts! {
    /// What only an SSD of IPLFS counts.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct IntervalReport {
        /// Times that records of all unmapped runs replaced the trim records on media.
        pub trim_compactions: u64,
        /// Compactions of the interval maps that found something changed.
        pub compactions: u64,
        /// Map nodes that they looked at.
        pub candidates: u64,
        /// Map nodes that they made smaller.
        pub compacted: u64,
        /// Bytes of bitmaps that they read.
        pub read_bytes: u64,
        /// Bytes of directories and entries that they wrote.
        pub copied_bytes: u64,
        /// Bytes by which map nodes became smaller.
        pub freed_bytes: u64,
        /// Time in which the firmware compacted and did nothing else.
        pub busy_ns: u64,
    }
}
