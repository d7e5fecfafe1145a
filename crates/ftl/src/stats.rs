//! What an FTL counts. Sectors are placed sectors: written to media and completed or in flight.

use crate::cpu::CpuCounts;
use nandscape_rt::Nanos;

/// Sectors written to media, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SectorCounts {
    /// User data.
    pub user: u64,
    /// Valid sectors copied by garbage collection.
    pub gc: u64,
    /// Padding, garbage-collection copies that turned out stale on the way, failed programs.
    pub pad: u64,
    /// Start and end metadata of lines.
    pub line_meta: u64,
    /// Mapping blocks.
    pub map: u64,
    /// Trim records.
    pub trim: u64,
    /// User sectors that carried the JOURNAL flag (also counted in `user`).
    pub journal: u64,
}

impl SectorCounts {
    /// Both together.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            user: self.user + other.user,
            gc: self.gc + other.gc,
            pad: self.pad + other.pad,
            line_meta: self.line_meta + other.line_meta,
            map: self.map + other.map,
            trim: self.trim + other.trim,
            journal: self.journal + other.journal,
        }
    }
}

/// Where the time of completed flushes went; the parts add up to `total_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlushTime {
    /// Flushes (also writes with PREFLUSH or FUA) that had something to wait for.
    pub waited: u64,
    /// Flushes that found everything durable.
    pub empty: u64,
    /// Sum of what was not durable in the buffers that a flush covered, in sectors.
    pub drained: u64,
    /// Sum of waiting times.
    pub total_ns: u64,
    /// On a core, waiting for it, and for locks, before the FTL learned of the flush; of a write with FUA
    /// alone that is part of the next.
    pub cpu_ns: u64,
    /// Waiting for earlier user sectors to be submitted.
    pub queue_ns: u64,
    /// Waiting for garbage-collection copies ahead in the ring to be submitted.
    pub gc_ns: u64,
    /// From the time that the writer took the last entries until their command was submitted.
    pub writer_ns: u64,
    /// Share of the last program that wrote padding.
    pub padding_ns: u64,
    /// Rest of the last program.
    pub program_ns: u64,
}

impl FlushTime {
    const fn plus(&self, other: &Self) -> Self {
        Self {
            waited: self.waited + other.waited,
            empty: self.empty + other.empty,
            drained: self.drained + other.drained,
            total_ns: self.total_ns + other.total_ns,
            cpu_ns: self.cpu_ns + other.cpu_ns,
            queue_ns: self.queue_ns + other.queue_ns,
            gc_ns: self.gc_ns + other.gc_ns,
            writer_ns: self.writer_ns + other.writer_ns,
            padding_ns: self.padding_ns + other.padding_ns,
            program_ns: self.program_ns + other.program_ns,
        }
    }
}

/// Garbage collection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GcCounts {
    /// Lines chosen as victims (lines that were empty by themselves left out).
    pub victims: u64,
    /// Sum over victims of their valid sectors when chosen.
    pub victim_valid: u64,
    /// Sum over victims of their data sectors.
    pub victim_data: u64,
    /// Lines freed without copying anything.
    pub free_rides: u64,
    /// Times that the erase rule or a full ring forced a drain.
    pub forced_drains: u64,
}

impl GcCounts {
    const fn plus(&self, other: &Self) -> Self {
        Self {
            victims: self.victims + other.victims,
            victim_valid: self.victim_valid + other.victim_valid,
            victim_data: self.victim_data + other.victim_data,
            free_rides: self.free_rides + other.free_rides,
            forced_drains: self.forced_drains + other.forced_drains,
        }
    }
}

/// Look-ups in a mapping table that is cached, each of one sector (4 KiB), counted once a sector and
/// request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LookupCounts {
    /// Found in RAM.
    pub hits: u64,
    /// Found on its way.
    pub joined: u64,
    /// Not found.
    pub misses: u64,
}

impl LookupCounts {
    const fn plus(&self, other: &Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            joined: self.joined + other.joined,
            misses: self.misses + other.misses,
        }
    }
}

/// A mapping table that is cached.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapCounts {
    /// Look-ups by the host, journal included.
    pub host: LookupCounts,
    /// Look-ups by the FTL itself (collection).
    pub internal: LookupCounts,
    /// Blocks read on a miss.
    pub loads: u64,
    /// Misses of something never written, which cost no read.
    pub zero_fills: u64,
    /// Blocks written back.
    pub write_backs: u64,
    /// Dirty entries that went with them; equal where blocks are cached whole.
    pub entries_written: u64,
    /// Blocks read in order to be written in part (DFTL).
    pub merge_reads: u64,
    /// Blocks (DFTL: entries) that left without a write.
    pub evictions_clean: u64,
    /// Blocks (DFTL: entries) that left after one.
    pub evictions_dirty: u64,
    /// Times that everything was pinned.
    pub no_slot: u64,
    /// Sectors of mapping blocks read, for whatever reason.
    pub read_sectors: u64,
    /// Padding in write units of mapping blocks, a part of the mapping sectors written.
    pub pad_sectors: u64,
    /// Sectors copied when mapping lines were collected, another part.
    pub copied_sectors: u64,
    /// Mapping lines collected; those that were empty by themselves left out.
    pub victims: u64,
    /// Sum over them of their valid sectors when chosen.
    pub victim_valid: u64,
}

impl MapCounts {
    /// The sum.
    pub(crate) const fn plus(&self, other: &Self) -> Self {
        Self {
            host: self.host.plus(&other.host),
            internal: self.internal.plus(&other.internal),
            loads: self.loads + other.loads,
            zero_fills: self.zero_fills + other.zero_fills,
            write_backs: self.write_backs + other.write_backs,
            entries_written: self.entries_written + other.entries_written,
            merge_reads: self.merge_reads + other.merge_reads,
            evictions_clean: self.evictions_clean + other.evictions_clean,
            evictions_dirty: self.evictions_dirty + other.evictions_dirty,
            no_slot: self.no_slot + other.no_slot,
            read_sectors: self.read_sectors + other.read_sectors,
            pad_sectors: self.pad_sectors + other.pad_sectors,
            copied_sectors: self.copied_sectors + other.copied_sectors,
            victims: self.victims + other.victims,
            victim_valid: self.victim_valid + other.victim_valid,
        }
    }

    /// Share of the host's look-ups that were found in RAM; 1 without look-ups.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let total = self.host.hits + self.host.joined + self.host.misses;
        if total == 0 { 1.0 } else { self.host.hits as f64 / total as f64 }
    }
}

/// What a write buffer is for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum BufferRole {
    /// Whatever nothing else claims.
    #[default]
    Normal,
    /// Files that are fsynced.
    Fsync,
    /// The journal.
    Journal,
    /// Copies of garbage collection.
    Copies,
}

impl BufferRole {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Fsync => "fsync",
            Self::Journal => "journal",
            Self::Copies => "gc",
        }
    }
}

/// What went through one write buffer, and what became of the lines that it filled.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BufferCounts {
    /// What it is for.
    pub role: BufferRole,
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
    pub free_rides: u64,
}

impl BufferCounts {
    const fn plus(&self, other: &Self) -> Self {
        Self {
            role: self.role,
            user: self.user + other.user,
            gc: self.gc + other.gc,
            pad: self.pad + other.pad,
            victims: self.victims + other.victims,
            victim_valid: self.victim_valid + other.victim_valid,
            free_rides: self.free_rides + other.free_rides,
        }
    }
}

/// A snapshot of everything counted since the last reset.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct FtlStats {
    /// Placed sectors.
    pub sectors: SectorCounts,
    /// User sectors accepted (each write of a sector counts).
    pub user_written: u64,
    /// User sectors read.
    pub user_read: u64,
    /// User sectors read from the write buffer.
    pub ring_hits: u64,
    /// User sectors discarded.
    pub discarded: u64,
    /// Chunk resets issued.
    pub erases: u64,
    /// Garbage collection.
    pub gc: GcCounts,
    /// The cached mapping table; `None` where all of it is in RAM.
    pub map: Option<MapCounts>,
    /// The host's CPU; `None` where it costs nothing.
    pub cpu: Option<CpuCounts>,
    /// Each write buffer.
    pub buffers: Vec<BufferCounts>,
    /// Flush time.
    pub flush: FlushTime,
    /// Padding histogram: `pad_dist[k]` units were written with `k + 1` padding sectors.
    pub pad_dist: Vec<u64>,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Reads of user or garbage-collected sectors that media could not correct.
    pub uncorrectable: u64,
    /// Reads whose out-of-band key was not the wanted address. Must be 0.
    pub mismatches: u64,
    /// Average over accepted user sectors of physical sectors in use: written data sectors of
    /// open and closed lines, without line metadata.
    pub in_use_sectors_mean: f64,
    /// Longest time that a user write waited for admission.
    pub stall_ns_max: Nanos,
}

impl FtlStats {
    /// Nothing counted yet, by an FTL with such buffers that writes units of this many sectors.
    pub(crate) fn new(unit_sectors: u32, roles: impl Iterator<Item = BufferRole>) -> Self {
        let buffers = roles.map(|role| BufferCounts { role, ..BufferCounts::default() }).collect();
        Self { pad_dist: vec![0; unit_sectors as usize], buffers, ..Self::default() }
    }

    /// Takes in what the same FTL counted right behind this.
    pub fn extend(&mut self, later: &Self) {
        let weighted = |stats: &Self| stats.in_use_sectors_mean * stats.user_written as f64;
        let in_use = weighted(self) + weighted(later);
        self.sectors = self.sectors.plus(&later.sectors);
        self.user_written += later.user_written;
        self.user_read += later.user_read;
        self.ring_hits += later.ring_hits;
        self.discarded += later.discarded;
        self.erases += later.erases;
        self.gc = self.gc.plus(&later.gc);
        self.map = self.map.zip(later.map).map(|(map, later)| map.plus(&later));
        for (buffer, later) in self.buffers.iter_mut().zip(&later.buffers) {
            *buffer = buffer.plus(later);
        }
        if let (Some(cpu), Some(later)) = (&mut self.cpu, &later.cpu) {
            cpu.extend(later);
        }
        self.flush = self.flush.plus(&later.flush);
        self.pad_dist.resize(self.pad_dist.len().max(later.pad_dist.len()), 0);
        self.pad_dist.iter_mut().zip(&later.pad_dist).for_each(|(sum, more)| *sum += more);
        self.program_failures += later.program_failures;
        self.erase_failures += later.erase_failures;
        self.uncorrectable += later.uncorrectable;
        self.mismatches += later.mismatches;
        self.in_use_sectors_mean = in_use / self.user_written.max(1) as f64;
        self.stall_ns_max = self.stall_ns_max.max(later.stall_ns_max);
    }
}

/// Bytes of RAM for the mapping table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapMemoryUse {
    /// The table, or the cache.
    pub cache_bytes: u64,
    /// What is kept for each mapping block: locations, version, cache slot, hotness.
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
    /// What the table really takes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.cache_bytes + self.directory_bytes + self.slot_bytes + self.staging_bytes
    }
}

/// Bytes of RAM, by component.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MemoryUse {
    /// Logical-to-physical table, with all that caching it takes.
    pub map_bytes: u64,
    /// The parts of `map_bytes`.
    pub map: MapMemoryUse,
    /// Valid bitmaps.
    pub bitmap_bytes: u64,
    /// Per-line state and victim lists.
    pub line_bytes: u64,
    /// Write buffers and requests under way.
    pub buffers_bytes: u64,
}

impl MemoryUse {
    /// Everything together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.map_bytes + self.bitmap_bytes + self.line_bytes + self.buffers_bytes
    }
}
