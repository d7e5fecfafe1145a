//! The journal on its way to media, and what waits for it.
//!
//! - A full sector is written at once, the one that is being filled when something must be durable. Both are in the
//!   buffer of the page-mapped region then, and a flush of that makes them durable; one is in flight at a time.
//! - A flush of the host writes what the journal has first, then covers both parts of the device. By NVMeVirt's rule
//!   (`device::Flush`) it does neither, and nothing of the journal is durable by it; the firmware's own flushes wait for
//!   idle units then, too, and what they cover counts as durable although a power cut may lose it.
//! - When half of the ring is used, a snapshot is taken, at a sector's end: everything that it says is made durable, then
//!   its head. After that the ring before it is free.

#[cfg(test)]
mod tests;

use super::CoupledFtl;
use super::flash::{Flash, Own};
use super::journal::{Entry, Journal, JournalSector};
use super::lines::Lines;
use super::records::Records;
use super::snapshot::{SavedLine, Snapshot};
use super::space::Class;
use crate::error::FtlError;
use crate::zoned::Store;
use nandscape_block::{
    Bio, BlockDevice, Done, Payload, SECTOR_BYTES, SectorBytes, SectorData, Submit, Token,
};
use nandscape_media::OpenChannel;
use nandscape_rt::{Shadow, defect, invariant};
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
    /// What it says of lines: how far they are written, in which generation.
    covered: Shadow<Vec<(u32, u32, u32)>>,
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

    /// A flush that is sent now covers everything that was noted.
    fn assert_handed(&self) {
        invariant!(
            self.blocked.is_empty() && self.writing == 0 && !self.journal.has_news(),
            "completion: all of the journal is in the buffer when a flush is to cover it"
        );
    }

    /// Everything of the host that waits is dropped: its tokens, and the numbers of writes of which parts wait.
    pub(super) fn abandon(&mut self) -> (Vec<Token>, Vec<u32>) {
        let mut tokens: Vec<Token> = self.held.drain(..).collect();
        tokens.extend(self.flushes.drain(..).flatten().map(|flush| flush.token));
        let mut parts = Vec::new();
        for (_, waiter) in self.waiters.drain(..) {
            match waiter {
                Waiter::Complete(token) => tokens.push(token),
                Waiter::Piece(number) => parts.push(number),
            }
        }
        (tokens, parts)
    }

    /// Adds an entry to the journal.
    pub(super) fn note<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        entry: Entry,
    ) -> Result<(), FtlError> {
        match self.journal.append(entry) {
            Some(sector) => self.write_sector(flash, sector),
            None => Ok(()),
        }
    }

    /// Everything noted so far is to be durable; the position to wait for.
    pub(super) fn want_durable<M: OpenChannel>(&mut self, flash: &mut Flash<M>) -> u64 {
        let position = self.journal.position();
        if !self.journal.is_durable(position) {
            self.wanted = position;
            flash.stirred = true;
        }
        position
    }

    /// Has something wait until the journal is durable up to a position.
    pub(super) fn wait_for<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        position: u64,
        waiter: Waiter,
    ) {
        self.waiters.push((position, waiter));
        flash.stirred = true;
    }

    fn write_sector<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        sector: JournalSector,
    ) -> Result<(), FtlError> {
        if !self.blocked.is_empty() || !self.journal.has_room(sector.number) {
            self.blocked.push_back(sector);
            return Ok(());
        }
        self.submit_sector(flash, &sector)
    }

    fn submit_sector<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        sector: &JournalSector,
    ) -> Result<(), FtlError> {
        invariant!(
            self.journal.has_room(sector.number),
            "a sector of the ring is written when the snapshot does not need what is at its place"
        );
        let at = self.journal.address(sector.number);
        self.writing += 1;
        flash.counts.own.journal_sectors += 1;
        let bio = Bio::write(at, 1, payload(sector.encode()));
        match flash.submit_inside(bio, Own::JournalWrite)? {
            Some(done) => self.journal_written(done),
            None => Ok(()),
        }
    }

    /// Writes what the journal has that is in no sector on its way.
    pub(super) fn write_news<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
    ) -> Result<(), FtlError> {
        match self.journal.partial() {
            Some(sector) => self.write_sector(flash, sector),
            None => Ok(()),
        }
    }

    /// Whether everything that the journal has is in the buffer, so that a flush covers it; sends it there if it is not.
    pub(super) fn settle_journal<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
    ) -> Result<bool, FtlError> {
        self.write_news(flash)?;
        Ok(self.is_settled())
    }

    pub(super) fn journal_written(&mut self, done: Done) -> Result<(), FtlError> {
        done.result?;
        self.writing -= 1;
        Ok(())
    }

    /// Begins a snapshot of what is now.
    pub(super) fn begin_snapshot<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        lines: &Lines,
        records: &Records,
    ) -> Result<(), FtlError> {
        if !self.journal.is_fresh() {
            let sector = self.journal.turn();
            self.write_sector(flash, sector)?;
        }
        invariant!(self.journal.is_fresh(), "a snapshot is taken at the end of a sector");
        self.snapshots += 1;
        let number = self.snapshots;
        let snapshot = self.snapshot(number, &flash.zones.store, lines, records);
        let mut covered = Shadow::<Vec<_>>::default();
        covered.note(|covered| {
            covered.extend(snapshot.lines.iter().map(|of| (of.line, of.generation, of.written)));
        });
        let (start, (head, body)) = (snapshot.start, snapshot.encode());
        let head = Some(payload(head));
        self.snapshot = Some(Taking { stage: Stage::Body(0), number, start, head, body, covered });
        flash.counts.own.snapshots += 1;
        self.write_body(flash, 0)
    }

    fn snapshot<M: OpenChannel>(
        &self,
        number: u64,
        store: &Store<M>,
        lines: &Lines,
        records: &Records,
    ) -> Snapshot {
        let saved = |line: u32| {
            let of = *lines.get(line);
            of.state.holds_data().then(|| SavedLine {
                logical: of.logical,
                line,
                generation: of.generation,
                written: store.admitted(line),
                bitmap: lines.bitmap(line).to_vec(),
            })
        };
        let class_of = |lba| lines.space.class_at(lba);
        let snapshot = Snapshot {
            number,
            start: self.journal.number,
            mount: self.journal.mount,
            lines: (0..lines.count()).filter_map(saved).collect(),
            records: Class::ALL.map(|class| records.list(class_of, class)),
        };
        invariant!(
            snapshot.lines.iter().all(|of| u64::from(of.written) <= store.capacity()),
            "lines of a snapshot are written no further than they can be"
        );
        invariant!(
            snapshot.records.iter().map(Vec::len).sum::<usize>() as u64 == records.open(),
            "a snapshot has every open record"
        );
        invariant!(
            (0..lines.count()).all(|line| {
                lines.get(line).valid == 0 || snapshot.lines.iter().any(|of| of.line == line)
            }),
            "a snapshot has every line that holds data"
        );
        snapshot
    }

    /// Whether a snapshot is on its way.
    pub(super) const fn is_taking_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Writes the sectors of a snapshot's body from one on, or has them settle if there are none.
    fn write_body<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        from: usize,
    ) -> Result<(), FtlError> {
        let Some(taking) = &mut self.snapshot else {
            return Err(defect!("what is written of a snapshot is of one on its way").into());
        };
        let sector = SECTOR_BYTES as usize;
        let rest = taking.body.get(from * sector..).unwrap_or_default();
        if rest.is_empty() {
            taking.stage = Stage::Settling;
            taking.body = Vec::new();
            let done = flash.submit_own(Bio::flush(), Own::Snapshot)?;
            return self.snapshot_sent(flash, done);
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
        let at = self.journal.slot_of(self.snapshots).plus(1 + from as u64);
        flash.counts.own.snapshot_sectors += count as u64;
        let bio = Bio::write(at, count as u32, Payload::collect(sectors));
        let done = flash.submit_inside(bio, Own::Snapshot)?;
        self.snapshot_sent(flash, done)
    }

    /// A part of a snapshot was sent; it may be done at once.
    fn snapshot_sent<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        done: Option<Done>,
    ) -> Result<(), FtlError> {
        done.map_or(Ok(()), |done| self.snapshot_done(flash, done))
    }

    /// A part of a snapshot is done.
    pub(super) fn snapshot_done<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        done: Done,
    ) -> Result<(), FtlError> {
        done.result?;
        let Some(taking) = &mut self.snapshot else {
            return Err(defect!("what ends of a snapshot is of one on its way").into());
        };
        match taking.stage {
            Stage::Body(next) => self.write_body(flash, next),
            Stage::Settling => {
                invariant!(
                    taking.covered.agrees(|covered| is_durable(&flash.zones.store, covered)),
                    "what a snapshot says of lines is durable before its head is written"
                );
                taking.stage = Stage::Head;
                let Some(head) = taking.head.take() else {
                    return Err(defect!("the head of a snapshot is written once").into());
                };
                let number = taking.number;
                flash.counts.own.snapshot_sectors += 1;
                let bio = Bio::write(self.journal.slot_of(number), 1, head);
                let done = flash.submit_inside(bio, Own::Snapshot)?;
                self.snapshot_sent(flash, done)
            }
            Stage::Head => {
                taking.stage = Stage::Committing;
                let done = flash.submit_inside(Bio::flush(), Own::Snapshot)?;
                self.snapshot_sent(flash, done)
            }
            Stage::Committing => {
                self.journal.start = taking.start;
                self.snapshot = None;
                Ok(())
            }
        }
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        let snapshot = self.snapshot.as_ref().map_or(0, |taking| taking.body.capacity());
        let waiters = self.waiters.capacity() * size_of::<(u64, Waiter)>();
        let sectors = self.blocked.len() as u64 * SECTOR_BYTES;
        self.journal.bytes() + sectors + (snapshot + waiters) as u64
    }
}

/// Whether lines are durable as far as this says that they are written. By NVMeVirt's rule, and without the rules of
/// lines, they need not be.
fn is_durable<M: OpenChannel>(store: &Store<M>, covered: &[(u32, u32, u32)]) -> bool {
    let is_durable = |&(id, generation, written): &(u32, u32, u32)| {
        store.is_failed(id) || store.is_durable_or_gone(id, generation, written)
    };
    store.may_break_promises() || covered.iter().all(is_durable)
}

/// A sector of the firmware's.
fn payload(bytes: Box<SectorBytes>) -> Payload {
    Payload::collect(vec![SectorData::Bytes(Arc::from(bytes))])
}

impl<M: OpenChannel> CoupledFtl<M> {
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
        self.flash.stirred = true;
        let journal = &self.persist.journal;
        let (ready, waiting): (Vec<_>, _) = std::mem::take(&mut self.persist.waiters)
            .into_iter()
            .partition(|(position, _)| journal.is_durable(*position));
        self.persist.waiters = waiting;
        for (_, waiter) in ready {
            match waiter {
                Waiter::Complete(token) => self.complete(token, Done::ok(self.flash.now)),
                Waiter::Piece(number) => {
                    let now = self.flash.now;
                    if let Some((token, done)) = self.writes.piece_ended(number, now, None, now) {
                        self.complete(token, done);
                    }
                }
            }
        }
    }

    /// Takes the journal and the flushes that wait for it as far as they go.
    pub(super) fn pump_journal(&mut self) -> Result<(), FtlError> {
        if self.persist.journal.wants_snapshot() && self.persist.snapshot.is_none() {
            self.persist.begin_snapshot(&mut self.flash, &self.lines, &self.records)?;
        }
        while let Some(sector) = self.persist.blocked.front()
            && self.persist.journal.has_room(sector.number)
            && let Some(sector) = self.persist.blocked.pop_front()
        {
            self.persist.submit_sector(&mut self.flash, &sector)?;
        }
        let Persist { wanted, flushing, .. } = self.persist;
        if !self.persist.journal.is_durable(wanted)
            && flushing.is_none()
            && self.persist.settle_journal(&mut self.flash)?
        {
            self.persist.assert_handed();
            self.persist.flushing = Some(self.persist.journal.position());
            self.flash.counts.own.journal_flushes += 1;
            if let Some(done) = self.flash.submit_inside(Bio::flush(), Own::JournalFlush)? {
                self.journal_flushed(done)?;
            }
        }
        while self.persist.is_settled()
            && !self.persist.held.is_empty()
            && self.flush_covers_journal()?
            && let Some(token) = self.persist.held.pop_front()
        {
            if let Submit::Done(done) = self.flush_both(token) {
                self.complete(token, done);
            }
        }
        Ok(())
    }

    /// Whether a flush of the media side covers what it has to of the journal; sends that on its way if it does not.
    pub(super) fn flush_covers_journal(&mut self) -> Result<bool, FtlError> {
        let covers = self.rules.covers_journal() && !self.flash.waits_for_idle();
        Ok(!covers || self.persist.settle_journal(&mut self.flash)?)
    }

    /// Serves a flush of the host.
    pub(super) fn serve_flush(&mut self, token: Token) -> Result<Submit, FtlError> {
        if !self.flush_covers_journal()? {
            self.persist.held.push_back(token);
            self.flash.stirred = true;
            return Ok(Submit::Pending);
        }
        Ok(self.flush_both(token))
    }

    /// Flushes both parts of the device for the host.
    fn flush_both(&mut self, token: Token) -> Submit {
        if self.rules.covers_journal() && !self.flash.waits_for_idle() {
            self.persist.assert_handed();
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
        match self.flash.zones.submit(self.flash.now, Bio::flush(), own.token()) {
            Submit::Done(done) => {
                self.host_flushed(position, &done);
                Submit::Done(self.for_host(done))
            }
            Submit::Pending => {
                self.persist.flushes[slot] = flush;
                Submit::Pending
            }
        }
    }

    /// A flush of the host ended, before which the journal had this position. By NVMeVirt's rule it says nothing of that.
    fn host_flushed(&mut self, position: u64, done: &Done) {
        if done.result.is_ok() && !self.flash.waits_for_idle() {
            self.made_durable(position);
        }
    }

    pub(super) fn flush_done(&mut self, slot: u32, done: Done) -> Result<(), FtlError> {
        let slot = self.persist.flushes.get_mut(slot as usize);
        // A device that stopped has answered all of its flushes.
        let Some(Flush { token, position }) = slot.and_then(Option::take) else { return Ok(()) };
        self.host_flushed(position, &done);
        let done = self.for_host(done);
        self.complete(token, done);
        Ok(())
    }
}
