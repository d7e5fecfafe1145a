//! What every kind of FTL counts between two resets. Sectors are placed sectors: written to media and completed or in flight.

use nandscape_rt::counts::Counts;
use nandscape_rt::{Nanos, counts};
use serde::Serialize;

counts! {
    /// Sectors written to media, by cause.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct SectorCounts {
        /// User data.
        pub user: u64,
        /// Valid sectors copied by garbage collection.
        pub gc: u64,
        /// Padding, garbage-collection copies that became stale before they were written, failed programs.
        pub pad: u64,
        /// Metadata of erase units (pblk: start and end metadata of lines).
        pub line_meta: u64,
        /// Mapping blocks.
        pub map: u64,
        /// Trim records.
        pub trim: u64,
        /// User sectors that carried the JOURNAL flag (also counted in `user`).
        pub journal: u64,
        /// Garbage-collection copies that became stale before they were written (also counted in `pad`).
        pub stale: u64,
    }
}

counts! {
    /// Sectors that the host transferred.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct HostIo {
        /// Accepted writes (each write of a sector counts).
        pub written: u64,
        /// Reads.
        pub read: u64,
        /// Discards.
        pub discarded: u64,
        /// Reads that a write buffer served.
        pub buffer_hits: u64,
        /// Reads of sectors that hold nothing: never written, or discarded.
        pub unwritten: u64,
        /// Longest time that a write waited for admission.
        pub stall_ns_max: Nanos = max,
    }
}

counts! {
    /// Garbage collection.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct GcCounts {
        /// Erase units chosen as victims (those without valid sectors left out).
        pub victims: u64,
        /// Sum over victims of their valid sectors when chosen.
        pub victim_valid: u64,
        /// Sum over victims of their data sectors.
        pub victim_data: u64,
        /// Erase units freed without copying.
        pub empty_victims: u64,
        /// Times that the erase rule or a full buffer forced a flush.
        pub forced_flushes: u64,
    }
}

counts! {
    /// Where the time of completed flushes went; the parts add up to `total_ns`.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct FlushTime {
        /// Flushes (also writes with PREFLUSH or FUA) that had something to wait for.
        pub waited: u64,
        /// Flushes that found everything durable; those that wait for idle units, all of them idle.
        pub empty: u64,
        /// Sum of what was not durable in the buffers that a flush covered, in sectors.
        pub drained_sectors: u64,
        /// Sum of waiting times.
        pub total_ns: u64,
        /// On a core, waiting for it, and for locks, before the FTL received the flush; for a write with
        /// FUA alone that is part of the next. Results show it with the host's CPU.
        #[serde(skip)]
        pub cpu_ns: u64,
        /// Waiting for earlier user sectors to be submitted; in an FTL within the device, for whatever was neither
        /// collection nor the last program.
        pub queue_ns: u64,
        /// Waiting for garbage-collection copies ahead in the buffer to be submitted; in an FTL within the device, while
        /// the unit of the last program read, programmed or erased for collection; of a flush that waits for idle units,
        /// that of the last command.
        pub gc_ns: u64,
        /// From the time that the writer took the last entries until their command was submitted. Results
        /// show it with the host's CPU.
        #[serde(skip)]
        pub writer_ns: u64,
        /// Share of the last program that wrote padding.
        pub padding_ns: u64,
        /// Rest of the last program.
        pub program_ns: u64,
    }
}

counts! {
    /// Commands and sectors that media failed.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct MediaErrors {
        /// Programs that failed.
        pub program_failures: u64,
        /// Erases that failed.
        pub erase_failures: u64,
        /// Reads of user or garbage-collected sectors that media could not correct.
        pub uncorrectable: u64,
        /// Reads whose out-of-band key was not the wanted address. Must be 0.
        pub mismatches: u64,
    }
}

counts! {
    /// What the core of an SSD's firmware counts.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct FirmwareCounts {
        /// Nodes and entries of maps that it accessed.
        pub map_accesses: u64,
        /// Time for which that, and compactions of maps, kept it busy.
        pub busy_ns: u64,
    }
}

/// Everything counted since the last reset.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct FtlReport {
    /// Placed sectors.
    pub sectors: SectorCounts,
    /// What the host transferred.
    pub host: HostIo,
    /// Chunk resets issued.
    pub erases: u64,
    /// Garbage collection.
    pub gc: GcCounts,
    /// Flush time.
    pub flush: FlushTime,
    /// What media failed.
    pub media_errors: MediaErrors,
    /// Sectors whose content media dropped, as neither a read nor a mount would return it again.
    pub dropped_sectors: u64,
    /// Mean over accepted user sectors of physical sectors in use: written data sectors of open and full
    /// erase units, without metadata.
    pub in_use_sectors_mean: f64,
    /// What the core of the firmware does; of devices whose maps it accesses.
    pub firmware: Option<FirmwareCounts>,
}

impl Counts for FtlReport {
    fn add(&mut self, later: &Self) {
        let weighted = |report: &Self| report.in_use_sectors_mean * report.host.written as f64;
        let in_use = weighted(self) + weighted(later);
        self.sectors.add(&later.sectors);
        self.host.add(&later.host);
        self.erases += later.erases;
        self.gc.add(&later.gc);
        self.flush.add(&later.flush);
        self.media_errors.add(&later.media_errors);
        self.dropped_sectors += later.dropped_sectors;
        self.in_use_sectors_mean = in_use / self.host.written.max(1) as f64;
        self.firmware.add(&later.firmware);
    }

    fn since(&self, earlier: &Self) -> Self {
        let weighted = |report: &Self| report.in_use_sectors_mean * report.host.written as f64;
        let host = self.host.since(&earlier.host);
        Self {
            sectors: self.sectors.since(&earlier.sectors),
            host,
            erases: self.erases.since(&earlier.erases),
            gc: self.gc.since(&earlier.gc),
            flush: self.flush.since(&earlier.flush),
            media_errors: self.media_errors.since(&earlier.media_errors),
            dropped_sectors: self.dropped_sectors.since(&earlier.dropped_sectors),
            in_use_sectors_mean: (weighted(self) - weighted(earlier)) / host.written.max(1) as f64,
            firmware: self.firmware.since(&earlier.firmware),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(written: u64, in_use_sectors_mean: f64, stall: u64) -> FtlReport {
        let host = HostIo { written, stall_ns_max: Nanos(stall), ..HostIo::default() };
        FtlReport { host, in_use_sectors_mean, ..FtlReport::default() }
    }

    /// The mean of two periods is weighted by the sectors that were accepted in each.
    #[test]
    fn means_are_weighted() {
        let mut both = report(10, 100.0, 7);
        both.add(&report(30, 200.0, 5));
        assert_eq!(both, report(40, 175.0, 7));
        assert_eq!(both.since(&report(10, 100.0, 7)), report(30, 200.0, 7));
    }
}
