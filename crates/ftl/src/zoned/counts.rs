//! What a zoned SSD counts.

use crate::report::{FlushTime, HostIo, MediaErrors, SectorCounts};
use nandscape_rt::counts;
use nandscape_rt::counts::Counts;
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

/// Zones by state.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct ZoneStates {
    /// Nothing written.
    pub empty: u32,
    /// Opened by a write.
    pub implicitly_opened: u32,
    /// Opened by a command.
    pub explicitly_opened: u32,
    /// Has data and is not open.
    pub closed: u32,
    /// Cannot be written further.
    pub full: u32,
    /// Can only be read.
    pub read_only: u32,
    /// Gone.
    pub offline: u32,
}

/// What only a zoned SSD reports.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct ZonedReport {
    /// Counts of the period.
    #[serde(flatten)]
    pub counts: ZoneCounts,
    /// Zones by state at its end.
    pub zones: ZoneStates,
}

impl Counts for ZonedReport {
    /// The states are those of the later end.
    fn add(&mut self, later: &Self) {
        self.counts.add(&later.counts);
        self.zones = later.zones;
    }

    fn since(&self, earlier: &Self) -> Self {
        Self { counts: self.counts.since(&earlier.counts), zones: self.zones }
    }
}
