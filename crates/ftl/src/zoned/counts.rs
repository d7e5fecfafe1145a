//! What a zoned SSD counts.

use crate::report::{FlushTime, HostIo, MediaErrors, SectorCounts};
use nandscape_rt::counts;
use serde::Serialize;

/// Everything counted of the zones since the last reset.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct ZonedCounts {
    /// Sectors written to media, by cause. User sectors count when they go into a page, copies of chunks as collection,
    /// pages of the save log as padding.
    pub sectors: SectorCounts,
    /// Sectors that the host transferred.
    pub host: HostIo,
    /// Chunks erased.
    pub erases: u64,
    /// Flushes, and writes that wait for durability.
    pub flush: FlushTime,
    /// What media failed.
    pub media_errors: MediaErrors,
    /// What only this kind counts.
    pub own: ZoneCounts,
    /// How long units erase.
    pub(super) erase_ns: u64,
    /// How long units read and program for copies that the firmware above makes from zone to zone.
    pub(super) copy_ns: u64,
    /// Sectors of the zones that were on media at each sector that the host wrote.
    pub(super) in_use_sum: u128,
}

counts! {
    /// What only a zoned SSD counts.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct ZoneCounts {
        /// Zones reset.
        pub resets: u64,
        /// Zones finished.
        pub finishes: u64,
        /// Zones opened by a command.
        pub opens: u64,
        /// Zones closed by a command.
        pub closes: u64,
        /// Appends.
        pub appends: u64,
        /// Commands that broke a rule of their zone.
        pub refused: u64,
        /// Sectors of partly filled pages that were written to the save log.
        pub saved_sectors: u64,
        /// Chunks whose content went to a spare one.
        pub relocated_chunks: u64,
    }
}
