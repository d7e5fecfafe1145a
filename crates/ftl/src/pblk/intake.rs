//! The intake side of a pblk: all write buffers, which of them takes a bio, the log of durable discards, and
//! what waits for durability.

use super::buffers::Buffer;
use super::flash::Flash;
use super::flushes::Flushes;
use super::ids::BufferId;
use super::progress::Progress;
use super::rb::{Origin, Ring};
use super::route::Router;
use super::trimmed::Trimmed;
use super::waiting::{Arrival, Queued};
use crate::common::l2p::MapEntry;
use crate::common::trims::{TrimLog, TrimRecord, encode_trims};
use nandscape_block::{Bio, Op, Token};
use nandscape_media::{KEY_TRIM, OpenChannel};
use nandscape_rt::Nanos;

/// The write buffers of a pblk, what chooses among them, and what waits for their durability.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) all: Vec<Buffer>,
    /// The ring of a slot is found by shifting its number by so many bits.
    pub(super) slot_spacing: u32,
    pub(super) router: Router,
    /// The buffer that may write first next time.
    pub(super) writer: usize,
    pub(super) trims: TrimLog,
    pub(super) trimmed: Trimmed,
    pub(super) flushes: Flushes,
}

/// What a table entry names, to the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryState {
    /// Media, or nothing.
    OnMedia,
    /// A place in a ring whose data are on media.
    BufferedDurable,
    /// A place in a ring whose data are nowhere else.
    BufferedVolatile,
}

impl Buffers {
    #[inline]
    pub(super) fn buffer_for(&mut self, bio: &Bio) -> BufferId {
        if bio.op == Op::Discard { 0 } else { self.router.route(bio, &self.all) }
    }

    /// Puts a write into the line for its buffer.
    pub(super) fn queue(&mut self, bio: Bio, token: Token, since: Nanos) {
        let id = self.buffer_for(&bio);
        let queued = Queued::new(bio, id, token, Arrival::at(since));
        self.all[usize::from(id)].queue.push_back(queued);
    }

    /// Logs a record; a full sector of them goes into the ring, in the slot kept for it.
    pub(super) fn log_trim<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        progress: &mut Progress,
        record: TrimRecord,
    ) {
        flash.shadow.note(|ledger| ledger.logged(flash.next_seq));
        self.trims.log(record, flash.next_seq);
        if self.trims.is_full() {
            self.emit_trims(flash, progress);
        }
    }

    /// Sends the pending trim records into the ring.
    pub(super) fn emit_trims<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        progress: &mut Progress,
    ) {
        if self.trims.has_pending() {
            let buffer = &mut self.all[0];
            let records = self.trims.emit(buffer.rb.mem);
            flash.shadow.note(|ledger| {
                ledger.entered(0, flash.next_seq);
                ledger.emitted(records.len(), flash.next_seq);
            });
            buffer.rb.push(KEY_TRIM, Origin::Trim, flash.next_seq);
            buffer.rb.keep(encode_trims(&records));
            buffer.rl.user_in(1, flash.now);
            flash.next_seq += 1;
            progress.needs_pump = true;
        }
    }

    /// The sequence before which everything must be durable so that all changes made so far are.
    #[inline]
    pub(super) fn gate(&self, next_seq: u64) -> u64 {
        next_seq + u64::from(self.trims.has_pending())
    }

    /// Everything logged before this sequence is durable, in whatever buffer.
    pub(super) fn durable(&mut self, next_seq: u64) -> u64 {
        let oldest = self.all.iter().filter_map(|buffer| buffer.rb.oldest_seq()).min();
        let trims = self.trims.durable(self.all[0].rb.sync);
        oldest.unwrap_or(next_seq).min(trims)
    }

    /// A place, or where its data are on media already.
    pub(super) fn on_media(&self, place: MapEntry) -> MapEntry {
        let MapEntry::Buffered(slot) = place else { return place };
        let buffer = &self.all[(slot >> self.slot_spacing) as usize];
        let at = buffer.units.place_of(buffer.rb.position_of(slot));
        at.filter(|_| self.entry_state(place) == EntryState::BufferedDurable)
            .map_or(place, MapEntry::Flash)
    }

    /// What a place is to the cache.
    #[inline]
    pub(super) fn entry_state(&self, place: MapEntry) -> EntryState {
        let MapEntry::Buffered(slot) = place else { return EntryState::OnMedia };
        let rb = self.ring_of(slot);
        if rb.position_of(slot) < rb.sync {
            EntryState::BufferedDurable
        } else {
            EntryState::BufferedVolatile
        }
    }

    /// The ring that a slot belongs to.
    #[inline]
    pub(super) fn ring_of(&self, slot: u32) -> &Ring {
        &self.all[(slot >> self.slot_spacing) as usize].rb
    }
}
