//! What only pblk counts: its write buffers, its padding, a cached mapping table and the host's CPU, and
//! what the mapping table takes of RAM.

use super::costs::CpuCounts;
use nandscape_rt::counts;
use serde::Serialize;

counts! {
    /// What only pblk counts.
    #[derive(Clone, PartialEq, Default, Debug)]
    pub struct PblkReport {
        /// Each write buffer.
        pub buffers: Vec<BufferCounts>,
        /// Padding histogram: `pad_units[k]` units were written with `k + 1` padding sectors.
        pub pad_units: Vec<u64>,
        /// The cached mapping table; `None` where all of it is in RAM.
        pub map: Option<MapCounts>,
        /// The host's CPU; `None` where it costs nothing.
        pub cpu: Option<CpuCounts>,
    }
}

counts! {
    /// Look-ups in a mapping table that is cached, each of one sector (4 KiB), counted once per sector and
    /// request.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct LookupCounts {
        /// Found in RAM.
        pub hits: u64,
        /// Found while its load was in flight.
        pub joined_loads: u64,
        /// Not found.
        pub misses: u64,
    }
}

counts! {
    /// A mapping table that is cached.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct MapCounts {
        /// Blocks read on a miss.
        pub loads: u64,
        /// Blocks written back.
        #[serde(rename = "writebacks")]
        pub write_backs: u64,
        /// Look-ups by the host, journal included.
        #[serde(rename = "host_lookups")]
        pub host: LookupCounts,
        /// Look-ups by the FTL itself (collection).
        #[serde(rename = "internal_lookups")]
        pub internal: LookupCounts,
        /// Misses of something never written, which cost no read.
        pub zero_fills: u64,
        /// Blocks read in order to be written in part (DFTL).
        pub merge_reads: u64,
        /// Dirty entries written back with blocks; equal where blocks are cached whole.
        pub entries_written: u64,
        /// Blocks (DFTL: entries) that left without a write.
        pub evictions_clean: u64,
        /// Blocks (DFTL: entries) that left after one.
        pub evictions_dirty: u64,
        /// Times that everything was pinned.
        pub all_slots_pinned: u64,
        /// Updates of sectors whose block was not in RAM and was not loaded for them.
        pub blind_updates: u64,
        /// Blocks that such updates were merged into.
        pub merges: u64,
        /// Updates merged.
        pub merged_entries: u64,
        /// Sectors of mapping blocks read, for whatever reason.
        pub read_sectors: u64,
        /// Padding in write units of mapping blocks, a part of the mapping sectors written.
        pub pad_sectors: u64,
        /// Sectors copied when mapping lines were collected, another part.
        pub copied_sectors: u64,
        /// Mapping lines collected; those that were empty by themselves left out.
        pub victims: u64,
        /// Sum over them of their valid sectors when chosen.
        #[serde(skip)]
        pub victim_valid: u64,
    }
}

impl MapCounts {
    /// Share of the host's look-ups that were found in RAM; 1 without look-ups.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let total = self.host.hits + self.host.joined_loads + self.host.misses;
        if total == 0 { 1.0 } else { self.host.hits as f64 / total as f64 }
    }
}

/// What a write buffer is for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BufferRole {
    /// Whatever nothing else claims.
    #[default]
    Normal,
    /// Files that are fsynced.
    Fsync,
    /// The journal.
    Journal,
    /// Copies of garbage collection.
    Gc,
}

impl BufferRole {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Fsync => "fsync",
            Self::Journal => "journal",
            Self::Gc => "gc",
        }
    }
}

counts! {
    /// What went through one write buffer, and what became of the lines that it filled.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
    pub struct BufferCounts {
        /// What it is for.
        pub role: BufferRole = last,
        /// User sectors and trim records placed.
        pub user: u64,
        /// Copies placed.
        pub gc: u64,
        /// Padding, and copies that turned out stale.
        pub pad: u64,
        /// Its lines that were collected.
        pub victims: u64,
        /// Valid sectors of them.
        pub victim_valid: u64,
        /// Its lines that were empty by themselves.
        pub empty_victims: u64,
    }
}

/// Bytes of RAM for the mapping table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapMemoryUse {
    /// The table, or the cache.
    pub cache_bytes: u64,
    /// The buffer of blind updates.
    pub blind_bytes: u64,
    /// What is kept for each mapping block: locations, version, cache slot, hotness, and where its blind
    /// updates are.
    pub directory_bytes: u64,
    /// What is kept for each slot of the cache.
    pub slot_bytes: u64,
    /// Written mapping sectors that media do not serve yet.
    pub staging_bytes: u64,
    /// The directory by the paper's equation 1, at 40 bytes a block. Not in the total.
    pub paper_directory_bytes: u64,
    /// The paper's bitmap of free slots. Not in the total.
    pub paper_bitmap_bytes: u64,
    /// DFTL's index by address, which spares the simulator hashing. Not in the total.
    pub index_bytes: u64,
}

impl MapMemoryUse {
    /// What it is made of, by name, and the figures that are not in the total.
    pub(crate) const fn parts(&self) -> [(&'static str, u64); 8] {
        [
            ("cache", self.cache_bytes),
            ("blind", self.blind_bytes),
            ("directory", self.directory_bytes),
            ("slot", self.slot_bytes),
            ("staging", self.staging_bytes),
            ("paper_directory", self.paper_directory_bytes),
            ("paper_bitmap", self.paper_bitmap_bytes),
            ("index", self.index_bytes),
        ]
    }

    /// What the table really takes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.cache_bytes
            + self.blind_bytes
            + self.directory_bytes
            + self.slot_bytes
            + self.staging_bytes
    }
}
