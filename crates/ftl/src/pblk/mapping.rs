//! The cached mapping table at work: who needs a mapping that is not in RAM waits for its block to be
//! read (selective mapping-table loading, section 3; DFTL).
//!
//! The simulator keeps the complete table in `l2p`, as ground truth; [`MapCache`] says which part of
//! it the host has in RAM. Guarantees:
//! - no table entry is looked at or changed for anybody whose mapping is not loaded;
//! - when a block has been read, everybody who waits for it is served before another load begins, so
//!   that the smallest cache makes progress;
//! - a block with entries whose data are not durable is pinned; media never see places in a ring, but
//!   the address that a durable entry will have when it leaves its ring;
//! - what is read equals the truth: media carry a digest of each block, and a load compares it.
//!
//! Writes and discards wait at the head of their buffer's queue, whose followers' blocks are loaded
//! ahead; reads wait each for itself; copies at the head of the requests that have arrived.

use super::Pblk;
use super::cpu::MapTask;
use super::ids::BufferId;
use super::intake::EntryState;
use super::mapcache::blind::BlindBuffer;
use super::mapcache::{Access, By, Load, Lookup, MapCache, single_entry_bytes};
use super::mapread::Reads;
use super::mapstore::MapStore;
use super::units::WriteUnit;
use super::waiting::Queued;
use crate::common::bits::bit;
use crate::common::l2p::MapEntry;
use crate::common::oob::key_lba;
use crate::error::FtlError;
use crate::kind::{FtlRun, OmittedRule};
use crate::pblk::config::{Config, MapKind};
use crate::pblk::events::EventKind;
use crate::pblk::stats::{MapCounts, MapMemoryUse};
use nandscape_block::{Lba, SectorData, Tag};
use nandscape_media::{Geometry, Kind, OpenChannel, Ppa};
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts;
use smallvec::SmallVec;
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
    wants: VecDeque<Lba>,
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

    /// Queues a load, unless it is under way already.
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

    fn want_served(&mut self) {
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

    /// Begins counting anew.
    pub(super) fn reset_counts(&mut self) {
        self.cache.reset_stats();
        self.counts = MapCounts::default();
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// How many of the next `room` sectors of a write or discard have their mapping in RAM.
    #[inline]
    pub(super) fn mapped_part(&mut self, queued: &mut Queued, room: u32) -> u32 {
        let Some(mapping) = &mut self.mapping else { return room };
        let range = queued.inserted..queued.inserted + room;
        let access = Access::of(true, queued.flags);
        let spare = if queued.discard { 0 } else { mapping.spare() };
        mapping.ready(queued.lba, range, &mut queued.looked, (access, spare), self.flash.now)
    }

    /// How many of the next `room` copies of a request can be looked up now. Stale ones need no
    /// look-up: their valid bit is gone.
    pub(super) fn mapped_copies(&mut self, number: usize, room: u32) -> u32 {
        let Some(mapping) = &mut self.mapping else { return room };
        let request = &mut self.collector.requests[number];
        let access = Access { write: true, by: By::Ftl };
        let (from, len) = (request.inserted, request.sectors.len());
        let mut ready = None;
        let mut spare = mapping.spare();
        for index in from..len.min(from + mapping.loads_max.max(room as usize)) {
            let (at, key) = request.sectors[index];
            let Some(lba) = key_lba(key).filter(|_| self.flash.lines.is_valid(at)) else {
                continue;
            };
            if ready.is_some() && index < request.looked as usize {
                continue;
            }
            if !mapping.is_here(lba, index as u32, &mut request.looked, access, self.flash.now) {
                if ready.is_none() && spare > 0 {
                    spare -= 1;
                } else {
                    mapping.want_for(lba, access);
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
    fn look_ahead(&mut self) {
        let Some(mapping) = &mut self.mapping else { return };
        for buffer in &mut self.buffers.all {
            let end = buffer.queue.len().min(mapping.loads_max);
            for queued in buffer.queue.range_mut(buffer.looked.min(end)..end) {
                if queued.looked == 0 && (queued.discard || mapping.blind.is_none()) {
                    let access = Access::of(true, queued.flags);
                    mapping.look(queued.lba, 0, &mut queued.looked, access, self.flash.now);
                }
            }
            buffer.looked = end;
        }
    }

    /// Moves what can move of the map. Whether anything did.
    #[inline]
    pub(super) fn pump_map(&mut self) -> Result<bool, FtlError> {
        if self.mapping.is_none() {
            return Ok(false);
        }
        self.look_ahead();
        let mut moved = self.collect_map()?;
        moved |= self.write_blocks()?;
        moved |= self.merge_ahead();
        moved |= self.start_loads()?;
        Ok(moved)
    }

    /// Begins the loads that are wanted, in order, as far as there are slots.
    pub(super) fn start_loads(&mut self) -> Result<bool, FtlError> {
        let mut moved = false;
        while let Some(mapping) = &mut self.mapping {
            let Some(&lba) = mapping.wants.front().filter(|_| !mapping.starved) else { break };
            if mapping.owed >= mapping.wants.len() && !mapping.cache.has_free() {
                break;
            }
            let block = mapping.cache.block_of(lba);
            match mapping.cache.begin_load(lba, self.flash.now) {
                Load::Ready => {
                    mapping.want_served();
                    self.serve_mapped(block)?;
                }
                Load::Read(_) => {
                    mapping.want_served();
                    self.order_map(MapTask::Load(block))?;
                }
                Load::Joined => mapping.want_served(),
                Load::WriteBack => {
                    mapping.owed += 1;
                    // Written with what the next loads evict, so that they share write units.
                    while self.begin_write_back()? {}
                }
                Load::Busy => break,
                Load::NoSlot => {
                    return Ok(self.starve() || moved);
                }
            }
            moved = true;
        }
        Ok(moved)
    }

    /// Everything is pinned: asks again when something is unpinned. Never moves anything.
    fn starve(&mut self) -> bool {
        if let Some(mapping) = &mut self.mapping {
            mapping.starved = true;
        }
        false
    }

    /// Whether somebody waits for a mapping and everything is pinned.
    pub(super) fn is_starved(&self) -> bool {
        self.mapping.as_ref().is_some_and(|mapping| mapping.starved)
    }

    /// Lets whatever can leave the rings. Whether anything could.
    pub(super) fn recycle_all(&mut self) -> bool {
        let mut recycled = false;
        for id in 0..self.buffers.all.len() {
            while self.recycle(id as BufferId) {
                recycled = true;
            }
        }
        recycled
    }

    /// Reads a mapping block, and compares it with the truth.
    pub(super) fn read_block(&mut self, block: u32) -> Result<(), FtlError> {
        let end = self.read_pieces(block)?;
        self.verify_block(block);
        self.flash.events.push(end, EventKind::MapLoad(block));
        Ok(())
    }

    /// Reserves the time for reading all pieces of a block. When the last arrives.
    pub(super) fn read_pieces(&mut self, block: u32) -> Result<Nanos, FtlError> {
        let Some(mapping) = &self.mapping else { return Ok(self.flash.now) };
        let pieces: SmallVec<[(Ppa, u32); 2]> =
            mapping.pieces_of(block).map(|(_, at, sectors)| (at, sectors)).collect();
        self.read_all(pieces)
    }

    /// A block that media hold must be what the table says, since nobody can have changed it.
    fn verify_block(&mut self, block: u32) {
        let Some(mapping) = &self.mapping else { return };
        if !self.rules.run.keep_content || !mapping.is_settled(block) {
            return;
        }
        let shape = mapping.store.shape;
        let truth = self.digest(block);
        let (mut wrong, mut lost) = (0, 0);
        for (piece, at, _) in mapping.pieces_of(block) {
            let oob = self.flash.media.oob(at);
            let holds = oob.kind == Kind::Map && oob.key == shape.key(block, piece);
            if !self.flash.media.readable(at) {
                lost += 1;
            } else if !holds || self.flash.media.data(at) != SectorData::Tag(truth) {
                wrong += 1;
            }
        }
        self.flash.counts.media_errors.mismatches += wrong;
        self.flash.counts.media_errors.uncorrectable += lost;
    }

    /// The digest of a block's entries, as media may know them; nothing where no content is kept.
    pub(super) fn digest(&self, block: u32) -> Tag {
        let Some(mapping) = self.mapping.as_ref().filter(|_| self.rules.run.keep_content) else {
            return Tag::ZERO;
        };
        let sectors = mapping.cache.sectors_of(block);
        Tag::new(if mapping.in_ring[block as usize] == 0 {
            self.flash.l2p.digest(sectors)
        } else {
            self.flash.l2p.digest_as(sectors, |place| self.buffers.on_media(place))
        })
    }

    /// A unit's entries are durable: those that the table names may go to media with their block.
    pub(super) fn unpin_durable(&mut self, id: BufferId, unit: &WriteUnit) {
        let Some(mapping) = &mut self.mapping else { return };
        let rb = &self.buffers.all[usize::from(id)].rb;
        for position in unit.first..unit.first + u64::from(unit.entries) {
            let named =
                |lba: &Lba| self.flash.l2p.get(*lba) == MapEntry::Buffered(rb.slot(position));
            if let Some(lba) = key_lba(rb.key(position)).filter(named) {
                mapping.changed(lba, EntryState::BufferedVolatile, EntryState::BufferedDurable);
            }
        }
    }

    /// Those of a unit's entries that `live` names have left the ring.
    #[inline]
    pub(super) fn entries_left(&mut self, id: BufferId, unit: &WriteUnit, mut live: u64) {
        let Some(mapping) = &mut self.mapping else { return };
        let rb = &self.buffers.all[usize::from(id)].rb;
        while live != 0 {
            if let Some(lba) = key_lba(rb.key(unit.first + u64::from(live.trailing_zeros()))) {
                mapping.left_ring(lba);
            }
            live &= live - 1;
        }
    }

    /// A block has been read: everybody who waits for it goes on.
    pub(super) fn map_loaded(&mut self, block: u32) {
        if let Some(mapping) = &mut self.mapping {
            mapping.cache.loaded(block, self.flash.now);
        }
        if let Err(error) = self.serve_mapped(block) {
            self.stop(error.into());
        }
    }

    /// Whoever waits for this block goes on. Others would find nothing new.
    fn serve_mapped(&mut self, block: u32) -> Result<(), FtlError> {
        self.merge_block(block);
        self.resume_reads(block)?;
        if self.collector.awaits.take_if(|awaited| *awaited == block).is_some() {
            self.insert_copies();
        }
        for id in 0..self.buffers.all.len() {
            let awaits = &mut self.buffers.all[id].awaits;
            if awaits.take_if(|awaited| *awaited == block).is_some() && self.admit_queued_at(id) {
                self.progress.drained = false;
            }
        }
        Ok(())
    }
}
