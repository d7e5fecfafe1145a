//! The journal on its way to media, and what waits for it.
//!
//! - A full sector is written at once, the one that is being filled when something must be durable. Both are in the
//!   buffer of the page-mapped region then, and a flush of that makes them durable; one is in flight at a time.
//! - A flush of the host writes what the journal has first, then covers both parts of the device.
//! - When half of the ring is used, a snapshot is taken, at a sector's end: everything that it says is made durable, then
//!   its head. After that the ring before it is free.

use super::journal::{Entry, Journal, JournalSector};
use super::lines::LineState;
use super::snapshot::{SavedLine, Snapshot};
use super::space::Class;
use super::{CoupledFtl, Own};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::{
    Bio, BlockDevice, Done, Lba, Payload, SECTOR_BYTES, SectorBytes, SectorData, Submit, Token,
};
use nandscape_media::OpenChannel;
use std::collections::VecDeque;
use std::sync::Arc;

/// Sectors of a snapshot that are written together.
const SNAPSHOT_WRITE: usize = 32;

/// What waits for a position of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiter {
    /// A bio of the host, which completes.
    Complete(Token),
    /// A part of a write, with this number.
    Piece(u32),
}

/// How far a snapshot is.
#[derive(Debug)]
enum Stage {
    /// Its body is being written; from this sector on it is not on its way.
    Body(usize),
    /// What it says is being made durable.
    Settling,
    /// Its head is being written.
    Head,
    /// Its head is being made durable.
    Committing,
}

/// A snapshot on its way.
#[derive(Debug)]
struct Taking {
    stage: Stage,
    number: u64,
    start: u64,
    /// What is to be written when all else is durable.
    head: Option<Payload>,
    body: Vec<u8>,
}

/// A flush of the host in flight, and the position of the journal that it covers.
#[derive(Clone, Copy, Debug)]
struct Flush {
    token: Token,
    position: u64,
}

/// The journal and what waits for it.
#[derive(Debug)]
pub(super) struct Persist {
    pub(super) journal: Journal,
    /// Sectors that wait for room in the ring.
    blocked: VecDeque<JournalSector>,
    /// Sectors on their way into the buffer.
    writing: u32,
    /// The position up to which everything is to be durable.
    wanted: u64,
    /// That of the flush in flight.
    flushing: Option<u64>,
    waiters: Vec<(u64, Waiter)>,
    /// Flushes of the host that wait until the journal is in the buffer.
    held: VecDeque<Token>,
    flushes: Vec<Option<Flush>>,
    snapshot: Option<Taking>,
    /// The number of the last snapshot.
    pub(super) snapshots: u64,
}

impl Persist {
    pub(super) const fn new(sizes: super::config::JournalSizes) -> Self {
        Self {
            journal: Journal::new(sizes, 0, 0, 0),
            blocked: VecDeque::new(),
            writing: 0,
            wanted: 0,
            flushing: None,
            waiters: Vec::new(),
            held: VecDeque::new(),
            flushes: Vec::new(),
            snapshot: None,
            snapshots: 0,
        }
    }

    /// Whether everything that was handed out is in the buffer.
    fn is_settled(&self) -> bool {
        self.writing == 0 && self.blocked.is_empty()
    }

    /// Everything of the host that waits is dropped; its tokens.
    pub(super) fn abandon(&mut self) -> Vec<Token> {
        let mut tokens: Vec<Token> = self.held.drain(..).collect();
        tokens.extend(self.flushes.drain(..).flatten().map(|flush| flush.token));
        tokens.extend(self.waiters.drain(..).filter_map(|(_, waiter)| match waiter {
            Waiter::Complete(token) => Some(token),
            Waiter::Piece(_) => None,
        }));
        tokens
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        let snapshot = self.snapshot.as_ref().map_or(0, |taking| taking.body.capacity());
        let waiters = self.waiters.capacity() * size_of::<(u64, Waiter)>();
        let sectors = self.blocked.len() as u64 * SECTOR_BYTES;
        self.journal.bytes() + sectors + (snapshot + waiters) as u64
    }
}

/// A sector of the firmware's.
fn payload(bytes: Box<SectorBytes>) -> Payload {
    Payload::collect(vec![SectorData::Bytes(Arc::from(bytes))])
}

impl<M: OpenChannel> CoupledFtl<M> {
    /// Adds an entry to the journal.
    pub(super) fn note(&mut self, entry: Entry) -> Result<(), FtlError> {
        match self.persist.journal.append(entry) {
            Some(sector) => self.write_sector(sector),
            None => Ok(()),
        }
    }

    /// Everything noted so far is to be durable; the position to wait for.
    pub(super) fn want_durable(&mut self) -> u64 {
        let position = self.persist.journal.position();
        if !self.persist.journal.is_durable(position) {
            self.persist.wanted = position;
            self.stirred = true;
        }
        position
    }

    /// Has something wait until the journal is durable up to a position.
    pub(super) fn wait_for(&mut self, position: u64, waiter: Waiter) {
        self.persist.waiters.push((position, waiter));
        self.stirred = true;
    }

    fn write_sector(&mut self, sector: JournalSector) -> Result<(), FtlError> {
        if !self.persist.blocked.is_empty() || !self.persist.journal.has_room(sector.number) {
            self.persist.blocked.push_back(sector);
            return Ok(());
        }
        self.submit_sector(&sector)
    }

    fn submit_sector(&mut self, sector: &JournalSector) -> Result<(), FtlError> {
        let at = self.persist.journal.address(sector.number);
        self.persist.writing += 1;
        self.counts.own.journal_sectors += 1;
        self.submit_inside(Bio::write(at, 1, payload(sector.encode())), Own::JournalWrite)
    }

    /// Writes what the journal has that is in no sector on its way.
    pub(super) fn write_news(&mut self) -> Result<(), FtlError> {
        match self.persist.journal.partial() {
            Some(sector) => self.write_sector(sector),
            None => Ok(()),
        }
    }

    /// Whether everything that the journal has is in the buffer, so that a flush covers it; sends it there if it is not.
    pub(super) fn settle_journal(&mut self) -> Result<bool, FtlError> {
        self.write_news()?;
        Ok(self.persist.is_settled())
    }

    pub(super) fn journal_written(&mut self, done: Done) -> Result<(), FtlError> {
        done.result?;
        self.persist.writing -= 1;
        Ok(())
    }

    pub(super) fn journal_flushed(&mut self, done: Done) -> Result<(), FtlError> {
        done.result?;
        if let Some(position) = self.persist.flushing.take() {
            self.made_durable(position);
        }
        Ok(())
    }

    /// The journal is durable up to a position: what waited for that goes on.
    fn made_durable(&mut self, position: u64) {
        self.persist.journal.made_durable(position);
        self.stirred = true;
        let journal = &self.persist.journal;
        let (ready, waiting): (Vec<_>, _) = std::mem::take(&mut self.persist.waiters)
            .into_iter()
            .partition(|(position, _)| journal.is_durable(*position));
        self.persist.waiters = waiting;
        for (_, waiter) in ready {
            match waiter {
                Waiter::Complete(token) => self.complete(token, Done::ok(self.now)),
                Waiter::Piece(number) => self.piece_ended(number, self.now, None),
            }
        }
    }

    /// Takes the journal and the flushes that wait for it as far as they go.
    pub(super) fn pump_journal(&mut self) -> Result<(), FtlError> {
        if self.persist.journal.wants_snapshot() && self.persist.snapshot.is_none() {
            self.begin_snapshot()?;
        }
        while let Some(sector) = self.persist.blocked.front()
            && self.persist.journal.has_room(sector.number)
            && let Some(sector) = self.persist.blocked.pop_front()
        {
            self.submit_sector(&sector)?;
        }
        let Persist { wanted, flushing, .. } = self.persist;
        if !self.persist.journal.is_durable(wanted)
            && flushing.is_none()
            && self.settle_journal()?
        {
            self.persist.flushing = Some(self.persist.journal.position());
            self.counts.own.journal_flushes += 1;
            self.submit_inside(Bio::flush(), Own::JournalFlush)?;
        }
        if self.persist.is_settled() && !self.persist.held.is_empty() {
            for token in std::mem::take(&mut self.persist.held) {
                if let Submit::Done(done) = self.serve_flush(token)? {
                    self.complete(token, done);
                }
            }
        }
        Ok(())
    }

    /// Serves a flush of the host.
    pub(super) fn serve_flush(&mut self, token: Token) -> Result<Submit, FtlError> {
        if !self.run.omits(OmittedRule::LostTrims) && !self.settle_journal()? {
            self.persist.held.push_back(token);
            self.stirred = true;
            return Ok(Submit::Pending);
        }
        let position = self.persist.journal.position();
        let flush = Some(Flush { token, position });
        let slot = match self.persist.flushes.iter().position(Option::is_none) {
            Some(slot) => slot,
            None => {
                self.persist.flushes.push(None);
                self.persist.flushes.len() - 1
            }
        };
        let own = Own::Flush(slot as u32);
        match self.flash.submit(self.now, Bio::flush(), own.token()) {
            Submit::Done(done) => {
                if done.result.is_ok() {
                    self.made_durable(position);
                }
                Ok(Submit::Done(self.for_host(done)))
            }
            Submit::Pending => {
                self.persist.flushes[slot] = flush;
                Ok(Submit::Pending)
            }
        }
    }

    pub(super) fn flush_done(&mut self, slot: u32, done: Done) -> Result<(), FtlError> {
        let slot = self.persist.flushes.get_mut(slot as usize);
        let Some(Flush { token, position }) = slot.and_then(Option::take) else { return Ok(()) };
        if done.result.is_ok() {
            self.made_durable(position);
        }
        let done = self.for_host(done);
        self.complete(token, done);
        Ok(())
    }

    /// Begins a snapshot of what is now.
    pub(super) fn begin_snapshot(&mut self) -> Result<(), FtlError> {
        if !self.persist.journal.is_fresh() {
            let sector = self.persist.journal.turn();
            self.write_sector(sector)?;
        }
        self.persist.snapshots += 1;
        let number = self.persist.snapshots;
        let snapshot = self.snapshot(number);
        let (start, (head, body)) = (snapshot.start, snapshot.encode());
        let head = Some(payload(head));
        self.persist.snapshot = Some(Taking { stage: Stage::Body(0), number, start, head, body });
        self.counts.own.snapshots += 1;
        self.write_body(0)
    }

    fn snapshot(&self, number: u64) -> Snapshot {
        let saved = |line: u32| {
            let of = *self.lines.get(line);
            let is_held = matches!(of.state, LineState::Open | LineState::Closed);
            is_held.then(|| SavedLine {
                logical: of.logical,
                line,
                generation: of.generation,
                written: self.flash.store.admitted(line),
                bitmap: self.lines.bitmap(line).to_vec(),
            })
        };
        let class_of = |lba| self.space.class_at(lba);
        Snapshot {
            number,
            start: self.persist.journal.number,
            mount: self.persist.journal.mount,
            lines: (0..self.lines.count()).filter_map(saved).collect(),
            records: Class::ALL.map(|class| self.records.list(class_of, class)),
        }
    }

    /// Whether a snapshot is on its way.
    pub(super) const fn is_taking_snapshot(&self) -> bool {
        self.persist.snapshot.is_some()
    }

    /// Writes the sectors of a snapshot's body from one on, or has them settle if there are none.
    fn write_body(&mut self, from: usize) -> Result<(), FtlError> {
        let Some(taking) = &mut self.persist.snapshot else { return Ok(()) };
        let sector = SECTOR_BYTES as usize;
        let rest = taking.body.get(from * sector..).unwrap_or_default();
        if rest.is_empty() {
            taking.stage = Stage::Settling;
            taking.body = Vec::new();
            return self.submit_own(Bio::flush(), Own::Snapshot);
        }
        let sectors: Vec<_> = rest
            .chunks(sector)
            .take(SNAPSHOT_WRITE)
            .map(|bytes| {
                let mut whole = Box::new([0; SECTOR_BYTES as usize]);
                whole[..bytes.len()].copy_from_slice(bytes);
                SectorData::Bytes(Arc::from(whole))
            })
            .collect();
        let count = sectors.len();
        taking.stage = Stage::Body(from + count);
        let at = self.slot_of(self.persist.snapshots).plus(1 + from as u64);
        self.counts.own.snapshot_sectors += count as u64;
        let bio = Bio::write(at, count as u32, Payload::collect(sectors));
        self.submit_inside(bio, Own::Snapshot)
    }

    /// The first sector of the slot of a snapshot.
    pub(super) const fn slot_of(&self, number: u64) -> Lba {
        let sizes = &self.persist.journal.sizes;
        Lba(sizes.start + number % 2 * sizes.slot)
    }

    /// A part of a snapshot is done.
    pub(super) fn snapshot_done(&mut self, done: Done) -> Result<(), FtlError> {
        done.result?;
        let Some(taking) = &mut self.persist.snapshot else { return Ok(()) };
        match taking.stage {
            Stage::Body(next) => self.write_body(next),
            Stage::Settling => {
                taking.stage = Stage::Head;
                let (head, number) = (taking.head.take().unwrap_or_default(), taking.number);
                self.counts.own.snapshot_sectors += 1;
                let bio = Bio::write(self.slot_of(number), 1, head);
                self.submit_inside(bio, Own::Snapshot)
            }
            Stage::Head => {
                taking.stage = Stage::Committing;
                self.submit_inside(Bio::flush(), Own::Snapshot)
            }
            Stage::Committing => {
                self.persist.journal.start = taking.start;
                self.persist.snapshot = None;
                Ok(())
            }
        }
    }
}
