//! The cached mapping table: which part of the logical-to-physical table is in host RAM, what of it
//! is dirty, pinned, loading or being written, and where on media the newest version of each mapping
//! block lies (selective mapping-table loading, section 3; DFTL, ASPLOS 2009).
//!
//! It decides and counts; reading, writing and waiting are the FTL's. The contents are not here
//! either: the complete table stays resident as the simulator's ground truth, of which a block that
//! is not loaded cannot change, because whoever changes it must have it loaded. That is what
//! [`MapCache::dirty`] and [`MapCache::pin`] assert.
//!
//! A miss goes through these steps:
//! 1. [`MapCache::access`] answers [`Lookup::Miss`]; [`MapCache::begin_load`] says what to do.
//! 2. [`Load::WriteBack`]: the FTL begins what [`MapCache::next_write_back`] offers
//!    ([`MapCache::write_back_begin`]), and reports it with [`MapCache::written`]; then it asks again.
//! 3. [`Load::Read`]: the FTL reads the block, reports [`MapCache::loaded`], and serves everybody who
//!    waits for it before it begins another load.
//!
//! Two granularities: whole blocks ([`blocks`], replaced by LRU or [`hotness`]), and single entries
//! ([`dftl`]). Nothing allocates or hashes after the start.

pub(super) mod blind;
mod blocks;
mod dftl;
mod directory;
mod hotness;
mod list;
mod lru;
#[cfg(test)]
mod tests;

use crate::error::FtlError;
use crate::pblk::config::{CacheSize, MapConfig, MapPolicy, WriteMiss};
use crate::pblk::stats::{MapCounts, MapMemoryUse};
use blocks::BlockCache;
use dftl::EntryCache;
use directory::Directory;
use nandscape_block::{Flags, Lba};
use nandscape_media::Ppa;
use nandscape_rt::Nanos;

/// Who looks up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// The host.
    Host,
    /// The host, for a journal.
    Journal,
    /// Garbage collection and the like.
    Ftl,
}

/// A look-up of one sector's mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Access {
    /// In order to change it.
    pub(super) write: bool,
    /// By whom.
    pub(super) by: By,
}

impl Access {
    /// How a bio with these flags looks up.
    pub(super) fn of(write: bool, flags: Flags) -> Self {
        Self { write, by: if flags.has(Flags::JOURNAL) { By::Journal } else { By::Host } }
    }
}

/// What a look-up found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lookup {
    /// In RAM.
    Hit,
    /// Not in RAM: begin a load.
    Miss,
    /// On its way: wait for the load.
    Loading,
}

/// What is to be done so that a block is in RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Load {
    /// It is in RAM; a block that was never written is all zeroes, and costs no read.
    Ready,
    /// Read this, then report `loaded`.
    Read(Ppa),
    /// Somebody else's read will bring it.
    Joined,
    /// Victims must be written back first: begin those that `next_write_back` offers, ask again
    /// when one is written.
    WriteBack,
    /// As much as may be in flight is: ask again when a load or write-back is done.
    Busy,
    /// Everything is pinned and nothing in flight: ask again when something was unpinned.
    NoSlot,
}

/// A write-back that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WriteBack {
    /// Read this first: only some entries of the block are in RAM.
    pub(super) read: Option<Ppa>,
    /// Version that is written.
    pub(super) version: u32,
    /// Dirty entries that become clean; 1 where blocks are cached whole.
    pub(super) entries: u32,
}

#[derive(Debug)]
enum Cache {
    Blocks(BlockCache),
    Entries(EntryCache),
}

/// Runs the same expression on either cache.
macro_rules! either {
    ($cache:expr, $it:ident => $do:expr) => {
        match $cache {
            Cache::Blocks($it) => $do,
            Cache::Entries($it) => $do,
        }
    };
}

/// The cache, the global directory, and what was counted.
#[derive(Debug)]
pub(super) struct MapCache {
    cache: Cache,
    directory: Directory,
    stats: MapCounts,
    /// A sector's block is its address shifted by this.
    block_shift: u32,
    cache_bytes: u64,
    blind_bytes: u64,
}

impl MapCache {
    /// An empty cache for a table of `logical_sectors` entries of `entry_bytes`.
    ///
    /// # Errors
    /// The key whose value makes no sense, or that there is no address space for the index.
    pub(super) fn new(
        config: &MapConfig,
        logical_sectors: u64,
        entry_bytes: u32,
    ) -> Result<Self, FtlError> {
        let size = Size::new(config, logical_sectors, entry_bytes)?;
        let Size { per_block, blocks, slots, blind_bytes, .. } = size;
        let cache = match config.policy {
            MapPolicy::Dftl { protected_percent } => {
                let shape = dftl::Shape { logical_sectors, per_block, slots, protected_percent };
                Cache::Entries(EntryCache::new(config, shape).ok_or(FtlError::AddressSpace)?)
            }
            MapPolicy::Lru | MapPolicy::Hotness(_) => {
                Cache::Blocks(BlockCache::new(config, blocks, slots))
            }
        };
        Ok(Self {
            cache,
            directory: Directory::new(blocks),
            stats: MapCounts::default(),
            block_shift: per_block.trailing_zeros(),
            cache_bytes: u64::from(slots) * size.slot_bytes,
            blind_bytes,
        })
    }

    /// The block of a sector's mapping.
    #[inline]
    pub(super) const fn block_of(&self, lba: Lba) -> u32 {
        (lba.0 >> self.block_shift) as u32
    }

    /// The sectors that a block maps; the last block may map less.
    pub(super) const fn sectors_of(&self, block: u32) -> std::ops::Range<u64> {
        (block as u64) << self.block_shift..(block as u64 + 1) << self.block_shift
    }

    /// Bytes of the cache's memory that are for blind updates.
    pub(super) const fn blind_bytes(&self) -> u64 {
        self.blind_bytes
    }

    /// Whether a slot is free.
    pub(super) fn has_free(&self) -> bool {
        either!(&self.cache, cache => cache.has_free())
    }

    /// Mapping blocks of the whole table.
    pub(super) fn blocks(&self) -> u32 {
        self.directory.blocks()
    }

    /// Looks up one sector's mapping: counts, and makes it recent and hot. Once a sector and
    /// request; whoever comes back after a wait asks [`Self::is_loaded`].
    #[inline]
    pub(super) fn access(&mut self, lba: Lba, access: Access, now: Nanos) -> Lookup {
        let lookup = match &mut self.cache {
            Cache::Blocks(cache) => cache.access((lba.0 >> self.block_shift) as u32, access, now),
            Cache::Entries(cache) => cache.access(lba),
        };
        self.count(access, lookup);
        lookup
    }

    /// Counts a look-up.
    #[inline]
    pub(super) fn count(&mut self, access: Access, lookup: Lookup) {
        let internal = access.by == By::Ftl;
        let counts = if internal { &mut self.stats.internal } else { &mut self.stats.host };
        match lookup {
            Lookup::Hit => counts.hits += 1,
            Lookup::Miss => counts.misses += 1,
            Lookup::Loading => counts.joined_loads += 1,
        }
    }

    /// Whether the sector's mapping is in RAM.
    #[inline]
    pub(super) fn is_loaded(&self, lba: Lba) -> bool {
        match &self.cache {
            Cache::Blocks(cache) => cache.is_loaded(self.block_of(lba)),
            Cache::Entries(cache) => cache.is_loaded(lba),
        }
    }

    /// Whether the sector's mapping is on its way.
    pub(super) fn is_loading(&self, lba: Lba) -> bool {
        match &self.cache {
            Cache::Blocks(cache) => cache.is_loading(self.block_of(lba)),
            Cache::Entries(cache) => cache.is_loading(lba),
        }
    }

    /// Whether blocks are cached whole, and not entry by entry.
    #[inline]
    pub(super) const fn is_whole(&self) -> bool {
        matches!(self.cache, Cache::Blocks(_))
    }

    /// Whether what media hold of a block that has to be read is the truth about all of it.
    pub(super) fn is_settled(&self, block: u32) -> bool {
        match &self.cache {
            Cache::Blocks(cache) => !cache.is_loaded(block),
            Cache::Entries(cache) => cache.is_settled(block),
        }
    }

    /// Takes the next step to have the sector's mapping in RAM.
    pub(super) fn begin_load(&mut self, lba: Lba, now: Nanos) -> Load {
        let block = self.block_of(lba);
        let at = self.directory.location(block);
        let load = match &mut self.cache {
            Cache::Blocks(cache) => cache.begin_load(block, at, now, &mut self.stats),
            Cache::Entries(cache) => cache.begin_load(lba, at, &mut self.stats),
        };
        self.stats.loads += u64::from(matches!(load, Load::Read(_)));
        self.stats.all_slots_pinned += u64::from(load == Load::NoSlot);
        load
    }

    /// The block has been read.
    pub(super) fn loaded(&mut self, block: u32, now: Nanos) {
        match &mut self.cache {
            Cache::Blocks(cache) => cache.loaded(block, now),
            Cache::Entries(cache) => cache.loaded(block),
        }
    }

    /// The sector's mapping changed. It must be in RAM.
    #[inline]
    pub(super) fn dirty(&mut self, lba: Lba) {
        match &mut self.cache {
            Cache::Blocks(cache) => cache.dirty((lba.0 >> self.block_shift) as u32),
            Cache::Entries(cache) => cache.dirty(lba),
        }
    }

    /// The sector's mapping names a place in a ring, which media must never see. It must be in RAM,
    /// and stays there until as many unpins as pins.
    #[inline]
    pub(super) fn pin(&mut self, lba: Lba) {
        match &mut self.cache {
            Cache::Blocks(cache) => cache.pin((lba.0 >> self.block_shift) as u32),
            Cache::Entries(cache) => cache.pin(lba),
        }
    }

    /// Takes one pin away.
    #[inline]
    pub(super) fn unpin(&mut self, lba: Lba) {
        match &mut self.cache {
            Cache::Blocks(cache) => cache.unpin((lba.0 >> self.block_shift) as u32),
            Cache::Entries(cache) => cache.unpin(lba),
        }
    }

    /// Slots whose content is pinned.
    pub(super) fn pinned(&self) -> u32 {
        either!(&self.cache, cache => cache.pinned())
    }

    /// Slots of the cache.
    pub(super) fn slots(&self) -> u32 {
        either!(&self.cache, cache => cache.slots())
    }

    /// The block of the victim that was chosen first and is not being written yet.
    pub(super) fn next_write_back(&self) -> Option<u32> {
        either!(&self.cache, cache => cache.next_write_back())
    }

    /// A block that is worth writing before it must be: the first dirty one among the `window`
    /// blocks (DFTL: entries) used least recently.
    pub(super) fn pick_dirty(&self, window: u32) -> Option<u32> {
        either!(&self.cache, cache => cache.pick_dirty(window))
    }

    /// The block's present contents are about to be written. `None`: there is nothing to write any
    /// more, or it may not be written now because it was pinned meanwhile; a victim stays then, and
    /// who waits for its slot asks for a load again.
    pub(super) fn write_back_begin(&mut self, block: u32) -> Option<WriteBack> {
        let at = self.directory.location(block);
        let (read, entries) = match &mut self.cache {
            Cache::Blocks(cache) => (None, u32::from(cache.write_back_begin(block))),
            Cache::Entries(cache) => (at, cache.write_back_begin(block)),
        };
        if entries == 0 {
            return None;
        }
        self.stats.write_backs += 1;
        self.stats.entries_written += u64::from(entries);
        self.stats.merge_reads += u64::from(read.is_some());
        Some(WriteBack { read, version: self.directory.version(block) + 1, entries })
    }

    /// The write-back is on media; a victim leaves unless it was used again. Returns where the
    /// version before it is dead now.
    pub(super) fn written(&mut self, block: u32, at: Ppa, version: u32) -> Option<Ppa> {
        either!(&mut self.cache, cache => cache.written(block, &mut self.stats));
        self.directory.written(block, at, version)
    }

    /// Where the newest version of a block lies; `None` when it was never written.
    #[inline]
    pub(super) fn location(&self, block: u32) -> Option<Ppa> {
        self.directory.location(block)
    }

    /// Version of a block on media, 0 when it was never written.
    #[cfg(test)]
    pub(super) fn version(&self, block: u32) -> u32 {
        self.directory.version(block)
    }

    /// Collection copied a block; whether the copy is the newest version, and so valid.
    pub(super) fn moved(&mut self, block: u32, from: Ppa, to: Ppa) -> bool {
        self.directory.moved(block, from, to)
    }

    /// Recovery found a block on media. The newest version wins; returns where the loser lies. Of
    /// two copies of one version the later found wins.
    pub(super) fn adopt(&mut self, block: u32, at: Ppa, version: u32) -> Option<Ppa> {
        self.directory.adopt(block, at, version)
    }

    /// What was counted since the last reset.
    pub(super) const fn stats(&self) -> &MapCounts {
        &self.stats
    }

    /// Begins counting anew.
    pub(super) fn reset_stats(&mut self) {
        self.stats = MapCounts::default();
    }

    /// Bytes of RAM, without what the blocks on media take.
    pub(super) fn memory(&self) -> MapMemoryUse {
        MapMemoryUse {
            cache_bytes: self.cache_bytes,
            directory_bytes: self.directory.bytes()
                + either!(&self.cache, cache => cache.directory_bytes()),
            paper_directory_bytes: self.directory.paper_bytes(),
            slot_bytes: either!(&self.cache, cache => cache.slot_bytes()),
            paper_bitmap_bytes: u64::from(self.slots()).div_ceil(8),
            index_bytes: match &self.cache {
                Cache::Blocks(_) => 0,
                Cache::Entries(cache) => cache.index_bytes(),
            },
            staging_bytes: 0,
            blind_bytes: 0,
        }
    }
}

fn refused(key: &'static str, why: &str) -> Result<(), FtlError> {
    Err(FtlError::Config { key, why: why.to_owned() })
}

fn check(config: &MapConfig, logical_sectors: u64) -> Result<(), FtlError> {
    if !matches!(config.block_bytes, 4_096 | 16_384 | 65_536) {
        return refused("ftl.map.block", "must be 4KiB, 16KiB or 64KiB");
    }
    if config.loads_max == 0 {
        return refused("ftl.map.loads", "must be at least 1");
    }
    if config.evict_batch == 0 {
        return refused("ftl.map.evict_batch", "must be at least 1");
    }
    if let WriteMiss::Blind { percent } = config.write_miss {
        if !(1..=99).contains(&percent) {
            return refused("ftl.map.blind_percent", "must be 1 to 99");
        }
        if matches!(config.policy, MapPolicy::Dftl { .. }) {
            return refused(
                "ftl.map.write_miss",
                "\"blind\" goes with caches of whole blocks only",
            );
        }
    }
    if let MapPolicy::Dftl { protected_percent: 100.. } = config.policy {
        return refused("ftl.map.protected_percent", "must be less than 100");
    }
    if logical_sectors >= u64::from(u32::MAX) {
        return refused("ftl.map", "a cached map serves at most 16 TiB");
    }
    Ok(())
}

/// Bytes of an entry that is kept by itself: with its address.
pub(super) const fn single_entry_bytes(entry_bytes: u32) -> u64 {
    entry_bytes as u64 + 4
}

/// How large a table is, and how much of it the cache holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Entries of a block.
    per_block: u32,
    blocks: u32,
    /// What is cached and evicted as one: blocks, or entries.
    members: u64,
    /// Members that the cache holds.
    slots: u32,
    slot_bytes: u64,
    /// Bytes beside them, for blind updates.
    blind_bytes: u64,
}

impl Size {
    /// # Errors
    /// The key whose value makes no sense.
    pub(super) fn new(
        config: &MapConfig,
        logical_sectors: u64,
        entry_bytes: u32,
    ) -> Result<Self, FtlError> {
        check(config, logical_sectors)?;
        let block_bytes = u64::from(config.block_bytes);
        let per_block = config.block_bytes / entry_bytes;
        let blocks = logical_sectors.div_ceil(u64::from(per_block)) as u32;
        let (members, slot_bytes) = match config.policy {
            MapPolicy::Dftl { .. } => (logical_sectors, single_entry_bytes(entry_bytes)),
            MapPolicy::Lru | MapPolicy::Hotness(_) => (u64::from(blocks), block_bytes),
        };
        let all = config.cache.bytes(u64::from(blocks) * block_bytes);
        let blind_bytes = match config.write_miss {
            WriteMiss::Load => 0,
            WriteMiss::Blind { percent } => {
                ((u128::from(all) * u128::from(percent) / 100) as u64).max(1).min(all)
            }
        };
        let bytes = all - blind_bytes;
        // A share of the table is one slot at least.
        let least = u64::from(matches!(config.cache, CacheSize::Percent(1..)));
        let slots = (bytes / slot_bytes).max(least).min(members) as u32;
        if slots == 0 {
            let why = format!("must hold at least {slot_bytes} bytes");
            return Err(FtlError::Config { key: "ftl.map.cache", why });
        }
        let entry = single_entry_bytes(entry_bytes);
        if (1..entry).contains(&blind_bytes) {
            let why = format!("must leave at least {entry} bytes for blind updates");
            return Err(FtlError::Config { key: "ftl.map.cache", why });
        }
        Ok(Self { per_block, blocks, members, slots, slot_bytes, blind_bytes })
    }

    /// What copying may pad, in requests of `request_sectors` whose copies are in the order of their
    /// blocks. While nothing is in flight `buffers` pin what each holds of a write unit.
    pub(super) fn copy_padding(
        self,
        request_sectors: u32,
        ws_opt: u32,
        buffers: u8,
    ) -> CopyPadding {
        let pinned = (ws_opt - 1) * u32::from(buffers);
        if self.slots > pinned || u64::from(self.slots) >= self.members {
            return CopyPadding::NONE;
        }
        CopyPadding {
            request_sectors,
            pins: self.members.min(request_sectors.into()) as u32,
            slots: self.slots,
            unit_sectors: ws_opt.saturating_sub(self.slots).max(1),
        }
    }
}

/// Padding that copying takes where the cache is so small that what is left of a write unit can pin all
/// of it: then the unit is padded, for one copy a slot at least. Nothing elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CopyPadding {
    request_sectors: u32,
    /// Slots that a request may pin, one after the other.
    pins: u32,
    slots: u32,
    unit_sectors: u32,
}

impl CopyPadding {
    pub(super) const NONE: Self = Self { request_sectors: 1, pins: 0, slots: 1, unit_sectors: 0 };

    /// Sectors of padding, at most, for copying so many.
    pub(super) fn of(self, sectors: u32) -> u32 {
        let last = (sectors % self.request_sectors).min(self.pins);
        let pins = sectors / self.request_sectors * self.pins + last;
        pins.div_ceil(self.slots) * self.unit_sectors
    }
}
