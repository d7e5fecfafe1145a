//! The cached mapping table at work: who needs a mapping that is not in RAM waits for its block to be
//! read (selective mapping-table loading, section 3; DFTL).
//!
//! The simulator keeps the complete table in `l2p`, as ground truth; [`MapCache`] says which part of
//! it the host has in RAM. Guarantees:
//! - no table entry is looked at or changed for a request whose mapping is not loaded;
//! - when a block has been read, every request that waits for it is served before another load begins, so
//!   that the smallest cache makes progress;
//! - a block with entries whose data are not durable is pinned; media never see places in a ring, but
//!   the address that a durable entry will have when it leaves its ring;
//! - what is read equals the truth: media carry a digest of each block, and a load compares it.
//!
//! Writes and discards wait at the head of their buffer's queue, whose followers' blocks are loaded
//! ahead; reads wait each for itself; copies at the head of the requests that have arrived.

use super::collector::Request;
use super::flash::Flash;
use super::intake::{Buffers, EntryState};
use super::mapcache::blind::BlindBuffer;
use super::mapcache::{Access, By, Lookup, MapCache, single_entry_bytes};
use super::mapread::Reads;
use super::mapstore::MapStore;
use super::rb::Ring;
use super::units::WriteUnit;
use super::waiting::Queued;
use crate::common::bits::bit;
use crate::common::l2p::{L2p, MapEntry};
use crate::common::oob::key_lba;
use crate::error::FtlError;
use crate::kind::{FtlRun, OmittedRule};
use crate::pblk::config::{Config, MapKind};
use crate::pblk::stats::{MapCounts, MapMemoryUse};
use nandscape_block::{Lba, Tag};
use nandscape_media::Geometry;
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts;
use std::collections::VecDeque;
use std::ops::Range;

/// Sectors of one request whose entries are asked for together where entries are cached singly.
const ENTRIES_AHEAD: u32 = 32;

/// The cached map.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) cache: MapCache,
    pub(super) store: MapStore,
    /// Entries that wait for their blocks; `None`: a write miss loads its block.
    pub(super) blind: Option<Box<BlindBuffer>>,
    /// The block that was asked for last to be merged, until it is.
    pub(super) merge_last: Option<u32>,
    /// Loads that may be in flight.
    loads_max: usize,
    /// Sectors whose mapping is to be loaded, in order of demand, each once.
    pub(super) wants: VecDeque<Lba>,
    /// A bit for what comes with one load: a block or, where entries are cached singly, a sector.
    wanted: Box<[u64]>,
    /// Everything is pinned: nothing can be loaded until something leaves a ring.
    pub(super) starved: bool,
    /// Evictions begun for wants.
    pub(super) owed: usize,
    /// Blocks with places in a ring stay in RAM.
    pins: bool,
    /// The mount is not over: nothing moves but mapping blocks.
    pub(super) mounting: bool,
    /// Entries of each block that name a place in a ring.
    in_ring: Box<[u32]>,
    pub(super) reads: Reads,
    /// Whether media keep what is written, digests of blocks included.
    pub(super) keeps_content: bool,
    /// What the cache does not count.
    pub(super) counts: MapCounts,
}

impl Mapping {
    /// Nothing loaded; `None` where the whole table is in RAM.
    ///
    /// # Errors
    /// The key whose value makes no sense.
    pub(super) fn new(
        (config, run): (&Config, &FtlRun),
        geometry: &Geometry,
        logical_sectors: u64,
        entry_bytes: u32,
        frontier: u8,
    ) -> Result<Option<Box<Self>>, FtlError> {
        let MapKind::Cached(map) = &config.map else { return Ok(None) };
        let cache = MapCache::new(map, logical_sectors, entry_bytes)?;
        let store = MapStore::new(map, geometry, cache.blocks(), frontier);
        let blind = match cache.blind_bytes() {
            0 => None,
            bytes => {
                let entry = single_entry_bytes(entry_bytes);
                let buffer = BlindBuffer::new(bytes, entry, logical_sectors, cache.blocks());
                Some(Box::new(buffer.ok_or(FtlError::AddressSpace)?))
            }
        };
        let wants = if cache.is_whole() { u64::from(cache.blocks()) } else { logical_sectors };
        let in_ring = vec![0; cache.blocks() as usize].into_boxed_slice();
        Ok(Some(Box::new(Self {
            cache,
            store,
            blind,
            merge_last: None,
            loads_max: map.loads_max as usize,
            wants: VecDeque::new(),
            wanted: vec![0; wants.div_ceil(64) as usize].into_boxed_slice(),
            starved: false,
            owed: 0,
            pins: !run.omits(OmittedRule::MapPins),
            mounting: false,
            in_ring,
            reads: Reads::default(),
            keeps_content: run.keep_content,
            counts: MapCounts::default(),
        })))
    }

    /// How many of a request's next sectors have their mapping in RAM; asks for the first that has
    /// not. Each sector is counted as a look-up once, `looked` says how far that is. Up to `spare`
    /// sectors may go on without it.
    pub(super) fn ready(
        &mut self,
        first: Lba,
        range: Range<u32>,
        looked: &mut u32,
        (access, mut spare): (Access, u64),
        now: Nanos,
    ) -> u32 {
        for index in range.clone() {
            let lba = first.plus(u64::from(index));
            if !self.is_here(lba, index, looked, access, now) {
                if spare > 0 {
                    spare -= 1;
                    continue;
                }
                self.want_for(lba, access);
                if !self.cache.is_whole() {
                    self.ask_along(first, index + 1..range.end, looked, access, now);
                }
                return index - range.start;
            }
        }
        range.end - range.start
    }

    /// Whether the sector's mapping is in RAM; if not it is asked for.
    #[inline]
    fn look(&mut self, lba: Lba, index: u32, looked: &mut u32, access: Access, now: Nanos) -> bool {
        let here = self.is_here(lba, index, looked, access, now);
        if !here {
            self.want(lba);
        }
        here
    }

    /// Whether the sector's mapping is in RAM, in its block or as a blind update.
    #[inline]
    fn is_here(
        &mut self,
        lba: Lba,
        index: u32,
        looked: &mut u32,
        access: Access,
        now: Nanos,
    ) -> bool {
        let is_new = index >= *looked;
        *looked = (*looked).max(index + 1);
        if self.holds_blind(lba) {
            if is_new {
                self.cache.count(access, Lookup::Hit);
            }
            return true;
        }
        if is_new {
            self.cache.access(lba, access, now) == Lookup::Hit
        } else {
            self.cache.is_loaded(lba)
        }
    }

    /// Asks for what lets a look-up go on: where the buffer of blind updates is full, for a merge.
    #[cold]
    fn want_for(&mut self, lba: Lba, access: Access) {
        let merges = access.write && self.is_full();
        if !(merges && (self.merge_last.is_some() || self.merge_one())) {
            self.want(lba);
        }
    }

    /// Whether what media hold of a block is the truth about all of it.
    pub(super) fn is_settled(&self, block: u32) -> bool {
        let blind = self.blind.as_ref().is_some_and(|blind| blind.has_block(block));
        !blind && self.cache.is_settled(block)
    }

    /// Entries of one block can come with one read, if all are asked for before it begins.
    fn ask_along(
        &mut self,
        first: Lba,
        range: Range<u32>,
        looked: &mut u32,
        access: Access,
        now: Nanos,
    ) {
        let most = ENTRIES_AHEAD.min(self.cache.slots() / 4);
        let block = self.cache.block_of(first.plus(u64::from(range.start) - 1));
        for index in range.take(most as usize) {
            let lba = first.plus(u64::from(index));
            if self.cache.block_of(lba) != block {
                break;
            }
            self.look(lba, index, looked, access, now);
        }
    }

    /// Queues a load, unless it is in flight already.
    #[cold]
    pub(super) fn want(&mut self, lba: Lba) {
        if self.cache.is_loading(lba) {
            return;
        }
        let (word, bit) = self.want_bit(lba);
        if self.wanted[word] & bit == 0 {
            self.wanted[word] |= bit;
            self.wants.push_back(lba);
        }
    }

    fn want_bit(&self, lba: Lba) -> (usize, u64) {
        let key = if self.cache.is_whole() { self.cache.block_of(lba).into() } else { lba.0 };
        bit(key)
    }

    pub(super) fn want_served(&mut self) {
        if let Some(lba) = self.wants.pop_front() {
            let (word, bit) = self.want_bit(lba);
            self.wanted[word] &= !bit;
        }
    }

    /// A table entry changed, from and to a place of this kind.
    #[inline]
    pub(super) fn changed(&mut self, lba: Lba, from: EntryState, to: EntryState) {
        let in_ring = &mut self.in_ring[self.cache.block_of(lba) as usize];
        *in_ring += u32::from(to != EntryState::OnMedia);
        *in_ring -= u32::from(from != EntryState::OnMedia);
        if self.holds_blind(lba) {
            return;
        }
        if !self.pins {
            return self.changed_unpinned(lba);
        }
        self.cache.dirty(lba);
        match (from == EntryState::BufferedVolatile, to == EntryState::BufferedVolatile) {
            (false, true) => self.cache.pin(lba),
            (true, false) => self.unpin(lba),
            _ => {}
        }
    }

    /// A blind update becomes a change of its block, which is in RAM now.
    pub(super) fn merged(&mut self, lba: Lba, named: EntryState) {
        if !self.pins {
            return self.changed_unpinned(lba);
        }
        self.cache.dirty(lba);
        if named == EntryState::BufferedVolatile {
            self.cache.pin(lba);
        }
    }

    /// The block may have left although it named a ring.
    #[cold]
    fn changed_unpinned(&mut self, lba: Lba) {
        if self.cache.is_loaded(lba) {
            self.cache.dirty(lba);
        }
    }

    fn unpin(&mut self, lba: Lba) {
        self.cache.unpin(lba);
        self.starved = false;
    }

    /// A table entry that named a ring names media, as media know already.
    fn left_ring(&mut self, lba: Lba) {
        self.in_ring[self.cache.block_of(lba) as usize] -= 1;
    }

    /// What was counted.
    pub(super) fn counts(&self) -> MapCounts {
        self.cache.stats().plus(&self.counts)
    }

    /// Bytes of RAM.
    pub(super) fn memory(&self) -> MapMemoryUse {
        let mut memory = self.cache.memory();
        memory.directory_bytes += self.store.directory_bytes();
        memory.staging_bytes = self.store.staging_bytes();
        if let Some(blind) = &self.blind {
            memory.blind_bytes = blind.bytes();
            memory.directory_bytes += blind.index_bytes();
        }
        memory
    }

    /// Begins to count from nothing.
    pub(super) fn reset_counts(&mut self) {
        self.cache.reset_stats();
        self.counts = MapCounts::default();
    }

    /// How many of the next `room` sectors of a write or discard have their mapping in RAM.
    pub(super) fn ready_part(&mut self, queued: &mut Queued, room: u32, now: Nanos) -> u32 {
        let range = queued.inserted..queued.inserted + room;
        let access = Access::of(true, queued.flags);
        let spare = if queued.discard { 0 } else { self.spare() };
        self.ready(queued.lba, range, &mut queued.looked, (access, spare), now)
    }

    /// How many of the next `room` copies of a request can be looked up now. Stale ones need no
    /// look-up: their valid bit is gone.
    pub(super) fn ready_copies<M>(
        &mut self,
        flash: &Flash<M>,
        request: &mut Request,
        room: u32,
    ) -> u32 {
        let access = Access { write: true, by: By::Ftl };
        let (from, len) = (request.inserted, request.sectors.len());
        let mut ready = None;
        let mut spare = self.spare();
        for index in from..len.min(from + self.loads_max.max(room as usize)) {
            let (at, key) = request.sectors[index];
            let Some(lba) = key_lba(key).filter(|_| flash.lines.is_valid(at)) else {
                continue;
            };
            if ready.is_some() && index < request.looked as usize {
                continue;
            }
            if !self.is_here(lba, index as u32, &mut request.looked, access, flash.now) {
                if ready.is_none() && spare > 0 {
                    spare -= 1;
                } else {
                    self.want_for(lba, access);
                    ready.get_or_insert((index - from) as u32);
                }
            }
            if ready.is_none() && index + 1 == from + room as usize {
                break;
            }
        }
        ready.unwrap_or(room).min(room)
    }

    /// Asks for the first mapping of writes and discards that wait behind the head of a queue.
    pub(super) fn look_ahead(&mut self, buffers: &mut Buffers, now: Nanos) {
        for buffer in &mut buffers.all {
            let end = buffer.queue.len().min(self.loads_max);
            for queued in buffer.queue.range_mut(buffer.looked.min(end)..end) {
                if queued.looked == 0 && (queued.discard || self.blind.is_none()) {
                    let access = Access::of(true, queued.flags);
                    self.look(queued.lba, 0, &mut queued.looked, access, now);
                }
            }
            buffer.looked = end;
        }
    }

    /// The digest of a block's entries, as media may know them; nothing where no content is kept.
    pub(super) fn digest<M>(&self, flash: &Flash<M>, buffers: &Buffers, block: u32) -> Tag {
        if !self.keeps_content {
            return Tag::ZERO;
        }
        let sectors = self.cache.sectors_of(block);
        Tag::new(if self.in_ring[block as usize] == 0 {
            flash.l2p.digest(sectors)
        } else {
            flash.l2p.digest_as(sectors, |place| buffers.on_media(place))
        })
    }

    /// A unit's entries are durable: those that the table names may go to media with their block.
    pub(super) fn unpin_durable(&mut self, l2p: &L2p, rb: &Ring, unit: &WriteUnit) {
        for position in unit.first..unit.first + u64::from(unit.entries) {
            let named = |lba: &Lba| l2p.get(*lba) == MapEntry::Buffered(rb.slot(position));
            if let Some(lba) = key_lba(rb.key(position)).filter(named) {
                self.changed(lba, EntryState::BufferedVolatile, EntryState::BufferedDurable);
            }
        }
    }

    /// Those of a unit's entries that `live` names have left the ring.
    pub(super) fn entries_left(&mut self, rb: &Ring, unit: &WriteUnit, mut live: u64) {
        while live != 0 {
            if let Some(lba) = key_lba(rb.key(unit.first + u64::from(live.trailing_zeros()))) {
                self.left_ring(lba);
            }
            live &= live - 1;
        }
    }
}
