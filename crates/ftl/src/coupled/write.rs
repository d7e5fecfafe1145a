//! Writes of the host.
//!
//! - A superblock is written in order, from its first sector on. The first one opens it: each instance gives it a line.
//! - A write that needs lines which are not free yet waits, and with it all that follow: what has a place never waits.
//! - A write with PREFLUSH waits until the journal is in the buffer, so that the flush that precedes it covers that, too.
//! - A write with FUA is complete when it and the journal's word that its line was opened are durable; where flushes wait for
//!   idle units, when these are idle.

use super::CoupledFtl;
use super::flash::Own;
use super::journal::Entry;
use super::lines::LineState;
use super::persist::Waiter;
use super::space::InSuperblock;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::zone::{ZoneAction, ZoneId};
use nandscape_block::{Bio, BlockError, Done, Flags, Lba, Op, Payload, Reply, Submit, Token};
use nandscape_media::OpenChannel;
use nandscape_rt::{Nanos, defect, invariant};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Lines of an instance that the host's data leave alone: one for each class that collection writes.
pub(super) const RESERVE: u32 = super::config::CLASSES;

/// What ends writes to a device.
pub(super) const EXHAUSTED: BlockError =
    BlockError::ReadOnly(Cow::Borrowed("no free line, and nothing to collect"));

/// A superblock of the host that is partly written.
#[derive(Clone, Copy, Debug)]
struct OpenSuperblock {
    superblock: u32,
    written: u32,
    /// When it was written last, in writes.
    last: u64,
    /// Where the journal says that its lines were opened.
    position: u64,
}

/// A bio that waits for its turn.
#[derive(Debug)]
struct Waiting {
    bio: Bio,
    token: Token,
    done: u32,
    since: Nanos,
    /// The number under which its parts are counted, if any is on its way.
    number: Option<u32>,
}

/// A write whose parts are on their way.
#[derive(Clone, Debug)]
struct Write {
    token: Token,
    parts: u32,
    at: Nanos,
    error: Option<BlockError>,
    /// It was answered with [`Submit::Pending`].
    is_pending: bool,
}

/// The host's writes.
#[derive(Default, Debug)]
pub(super) struct Writes {
    open: Vec<OpenSuperblock>,
    count: u64,
    waiting: VecDeque<Waiting>,
    /// Those to the page-mapped region, which wait for the journal alone.
    held: VecDeque<(Bio, Token)>,
    /// The superblock that is being opened.
    opening: Option<u32>,
    parts: Vec<Option<Write>>,
}

impl Writes {
    /// Whether a write waits for a line.
    pub(super) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Everything of the host that waits is dropped; its tokens.
    pub(super) fn abandon(&mut self) -> Vec<Token> {
        // One that is being served is answered by that.
        let pending = |of: &mut Option<Write>| of.take_if(|of| of.is_pending);
        let mut tokens: Vec<Token> =
            self.parts.iter_mut().filter_map(pending).map(|of| of.token).collect();
        let waiting = self.waiting.drain(..).filter(|waiting| waiting.number.is_none());
        tokens.extend(waiting.map(|waiting| waiting.token));
        tokens.extend(self.held.drain(..).map(|(_, token)| token));
        tokens
    }

    /// A write whose parts will be counted; its number. One part is the write itself, until all of it has a place.
    #[inline]
    fn begin(&mut self, token: Token, is_pending: bool, now: Nanos) -> u32 {
        let write = Write { token, parts: 1, at: now, error: None, is_pending };
        match self.parts.iter().position(Option::is_none) {
            Some(number) => {
                self.parts[number] = Some(write);
                number as u32
            }
            None => {
                self.parts.push(Some(write));
                (self.parts.len() - 1) as u32
            }
        }
    }

    #[inline]
    fn write_mut(&mut self, number: u32) -> Option<&mut Write> {
        self.parts.get_mut(number as usize)?.as_mut()
    }

    #[inline]
    fn mark_pending(&mut self, number: u32) {
        if let Some(write) = self.write_mut(number) {
            write.is_pending = true;
        }
    }

    /// All of a write has a place, or never will: it completes when its parts have.
    #[inline]
    fn answer(&mut self, number: u32, now: Nanos) -> Submit {
        let Some(write) = self.write_mut(number) else { return Submit::Pending };
        write.parts -= 1;
        if write.parts > 0 {
            write.is_pending = true;
            return Submit::Pending;
        }
        let at = write.at;
        let result = write.error.take().map_or(Ok(Reply::None), Err);
        self.parts[number as usize] = None;
        Submit::Done(Done::new(at.max(now), result))
    }

    /// A part of a write has ended; the end of the write, if that was pending and this its last part.
    #[inline]
    pub(super) fn piece_ended(
        &mut self,
        number: u32,
        at: Nanos,
        error: Option<BlockError>,
        now: Nanos,
    ) -> Option<(Token, Done)> {
        let write = self.write_mut(number)?;
        write.at = write.at.max(at);
        if let Some(error) = error {
            write.error.get_or_insert(error);
        }
        if write.parts > 1 || !write.is_pending {
            write.parts -= 1;
            return None;
        }
        let token = write.token;
        match self.answer(number, now) {
            Submit::Done(done) => Some((token, done)),
            Submit::Pending => None,
        }
    }

    #[inline]
    fn is_open(&self, superblock: u32) -> bool {
        self.open.iter().any(|of| of.superblock == superblock)
    }

    /// Whether a write goes where its superblock is written next; the place of that in the list.
    #[inline]
    fn check_order(&self, lba: Lba, at: InSuperblock) -> Result<usize, FtlError> {
        let index = self.open.iter().position(|of| of.superblock == at.superblock);
        let index = index.filter(|&index| self.open[index].written == at.sector);
        let what = "a write that is not at the end of an open superblock";
        index.ok_or(BlockError::Region { lba, what }.into())
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        (self.open.capacity() * size_of::<OpenSuperblock>()
            + self.waiting.capacity() * size_of::<Waiting>()
            + self.parts.capacity() * size_of::<Option<Write>>()) as u64
    }
}

/// How far a write came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// All of it has a place.
    Whole,
    /// It waits for a line, or for the journal.
    Waits,
}

impl<M: OpenChannel> CoupledFtl<M> {
    /// Serves a write.
    pub(super) fn serve_write(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        if self.rules.is_random(&bio) {
            return self.write_random(bio, token);
        }
        let mut waiting = Waiting { bio, token, done: 0, since: self.flash.now, number: None };
        let submit = match self.writes.waiting.is_empty() {
            true => self.serve_waiting(&mut waiting, false)?,
            false => None,
        };
        Ok(submit.unwrap_or_else(|| {
            waiting.number.into_iter().for_each(|number| self.writes.mark_pending(number));
            self.writes.waiting.push_back(waiting);
            // Victims leave sooner where a write waits for their lines.
            self.flash.stirred = true;
            Submit::Pending
        }))
    }

    /// Serves a write with PREFLUSH to the page-mapped region, which waits for the journal.
    fn write_random(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        if !self.flush_covers_journal()? {
            self.writes.held.push_back((bio, token));
            return Ok(Submit::Pending);
        }
        Ok(self.submit_as_is(bio, token))
    }

    /// Serves writes that wait, in order. One of which serving fails waits on, and is refused with the others.
    pub(super) fn pump_writes(&mut self) -> Result<(), FtlError> {
        while !self.writes.held.is_empty()
            && self.flush_covers_journal()?
            && let Some((bio, token)) = self.writes.held.pop_front()
        {
            if let Submit::Done(done) = self.submit_as_is(bio, token) {
                self.complete(token, done);
            }
        }
        while let Some(mut waiting) = self.writes.waiting.pop_front() {
            let token = waiting.token;
            let served = self.serve_waiting(&mut waiting, true);
            match served {
                Ok(Some(Submit::Done(done))) => self.complete(token, done),
                Ok(Some(Submit::Pending)) => {}
                Ok(None) | Err(_) => {
                    waiting.number.into_iter().for_each(|number| self.writes.mark_pending(number));
                    self.writes.waiting.push_front(waiting);
                    return served.map(drop);
                }
            }
        }
        Ok(())
    }

    /// Serves a write whose turn it is, and which was answered with [`Submit::Pending`] or not yet; `None` if it waits.
    fn serve_waiting(
        &mut self,
        waiting: &mut Waiting,
        is_pending: bool,
    ) -> Result<Option<Submit>, FtlError> {
        let flushes = waiting.bio.flags.has(Flags::PREFLUSH) && waiting.done == 0;
        if flushes && !self.flush_covers_journal()? {
            return Ok(None);
        }
        let number = match waiting.number {
            Some(number) => number,
            None => self.writes.begin(waiting.token, is_pending, self.flash.now),
        };
        waiting.number = Some(number);
        match self.proceed(waiting, number) {
            Ok(Progress::Waits) => return Ok(None),
            Ok(Progress::Whole) => {}
            Err(error) => self.refuse(number, error)?,
        }
        let stalled = self.flash.now - waiting.since;
        self.flash.counts.stall_ns_max = self.flash.counts.stall_ns_max.max(stalled);
        Ok(Some(self.writes.answer(number, self.flash.now)))
    }

    /// A write breaks a rule, or the device takes no more, and then none of what follows; an error of the device itself goes
    /// on.
    fn refuse(&mut self, number: u32, error: FtlError) -> Result<(), FtlError> {
        match error {
            FtlError::Stopped(error @ BlockError::Zone { .. }) => Err(error.into()),
            FtlError::Stopped(error) => {
                if let Some(write) = self.writes.write_mut(number) {
                    write.error.get_or_insert(error.clone());
                }
                if matches!(error, BlockError::ReadOnly(_)) {
                    self.stop(error);
                }
                Ok(())
            }
            other => Err(other),
        }
    }

    pub(super) fn piece_done(&mut self, number: u32, done: Done) -> Result<(), FtlError> {
        let done = self.for_host(done);
        let (at, error) = (done.at, done.result.err());
        if let Some((token, done)) = self.writes.piece_ended(number, at, error, self.flash.now) {
            self.complete(token, done);
        }
        Ok(())
    }

    /// Gives a write its places, superblock by superblock.
    fn proceed(&mut self, waiting: &mut Waiting, number: u32) -> Result<Progress, FtlError> {
        let flags = waiting.bio.flags;
        while waiting.done < waiting.bio.sectors {
            let lba = waiting.bio.lba.plus(waiting.done.into());
            let left = waiting.bio.sectors - waiting.done;
            let Some(at) = self.rules.space.superblock(lba) else {
                return Err(BlockError::Unsupported("addresses outside the regions").into());
            };
            let sectors = left.min(self.rules.space.superblock_sectors - at.sector);
            self.check_live(lba, sectors)?;
            if at.sector == 0 {
                self.end_void(at.superblock)?;
            }
            if at.sector == 0
                && !self.writes.is_open(at.superblock)
                && !self.open(lba, at.superblock)?
            {
                return Ok(Progress::Waits);
            }
            let index = self.writes.check_order(lba, at)?;
            let position = self.writes.open[index].position;
            self.place(&waiting.bio, waiting.done, at, sectors, number)?;
            if let Some(error) = self.stopped.clone() {
                return Err(error.into());
            }
            let covers_opening = flags.has(Flags::FUA) && !self.flash.waits_for_idle();
            if covers_opening && !self.persist.journal.is_durable(position) {
                self.persist.want_durable(&mut self.flash);
                self.persist.wait_for(&mut self.flash, position, Waiter::Piece(number));
                if let Some(write) = self.writes.write_mut(number) {
                    write.parts += 1;
                }
            }
            waiting.done += sectors;
        }
        Ok(Progress::Whole)
    }

    /// Closes an open superblock of which all that was written is discarded: the write of its first sector begins it again.
    fn end_void(&mut self, superblock: u32) -> Result<(), FtlError> {
        let begun = |of: &OpenSuperblock| of.superblock == superblock && of.written > 0;
        let holds = |instance| {
            let line = self.lines.of(self.rules.space.line_of(superblock, instance));
            line.is_some_and(|line| self.lines.get(line).valid > 0)
        };
        if !self.writes.open.iter().any(begun) || (0..self.rules.space.instances).any(holds) {
            return Ok(());
        }
        self.close_superblock(superblock)
    }

    /// The bound on sectors that hold data.
    fn check_live(&self, lba: Lba, sectors: u32) -> Result<(), FtlError> {
        if self.lines.live() + u64::from(sectors) <= self.rules.sizes.live_sectors {
            return Ok(());
        }
        Err(BlockError::Region { lba, what: "more live sectors than the device holds" }.into())
    }

    /// Opens a superblock; whether there are lines for it.
    fn open(&mut self, lba: Lba, superblock: u32) -> Result<bool, FtlError> {
        if self.writes.opening != Some(superblock) {
            self.lines.check_unused(
                lba,
                superblock,
                self.rules.run.omits(OmittedRule::RecordReference),
                &mut self.walk,
            )?;
            self.close_for(superblock)?;
            self.writes.opening = Some(superblock);
        }
        let mut is_there = true;
        for instance in 0..self.rules.space.instances {
            is_there &= self.make_free(instance, RESERVE)?;
        }
        if !is_there {
            return Ok(false);
        }
        for instance in 0..self.rules.space.instances {
            if !self.open_line(self.rules.space.line_of(superblock, instance))? {
                return Ok(false);
            }
        }
        for instance in 0..self.rules.space.instances {
            self.collect_ahead(instance)?;
        }
        let (written, last) = (0, self.writes.count);
        let position = self.persist.journal.position();
        self.writes.open.push(OpenSuperblock { superblock, written, last, position });
        self.writes.opening = None;
        Ok(true)
    }

    /// Gives a logical line the next line of its instance, if it has none; whether it has one.
    pub(super) fn open_line(&mut self, logical: u32) -> Result<bool, FtlError> {
        if self.lines.of(logical).is_some() {
            return Ok(true);
        }
        let Some(line) = self.lines.next_free(self.rules.space.instance(logical)) else {
            return Ok(false);
        };
        let Some(generation) = self.flash.zones.store.open(line)? else { return Ok(false) };
        invariant!(
            !self.lines.is_referenced(logical)
                || self.rules.run.omits(OmittedRule::RecordReference),
            "records: an address that an open record names is not used again"
        );
        self.lines.assign(line, logical, generation, &mut self.walk);
        self.persist.note(&mut self.flash, Entry::Opened { logical, line, generation })?;
        Ok(true)
    }

    /// Closes the superblock of a region that was written least recently, if another one would be too many.
    fn close_for(&mut self, superblock: u32) -> Result<(), FtlError> {
        let region = |superblock: u32| superblock / self.rules.space.superblocks;
        let here = self.writes.open.iter().filter(|of| region(of.superblock) == region(superblock));
        if here.clone().count() < self.rules.config.open_max as usize {
            return Ok(());
        }
        let Some(oldest) = here.min_by_key(|of| of.last).map(|of| of.superblock) else {
            return Err(defect!("a region with too many open superblocks has one").into());
        };
        self.close_superblock(oldest)
    }

    /// A superblock takes no more writes.
    fn close_superblock(&mut self, superblock: u32) -> Result<(), FtlError> {
        self.writes.open.retain(|of| of.superblock != superblock);
        for instance in 0..self.rules.space.instances {
            if let Some(line) = self.lines.of(self.rules.space.line_of(superblock, instance)) {
                self.close_line(line)?;
            }
        }
        Ok(())
    }

    /// A line takes no more writes.
    pub(super) fn close_line(&mut self, line: u32) -> Result<(), FtlError> {
        self.lines.enter(line, LineState::Closed);
        if !self.flash.zones.store.is_full(line) && !self.flash.zones.store.is_failed(line) {
            self.act_on_line(line, ZoneAction::Finish, Own::Nothing)?;
        }
        self.settle_line(line)
    }

    /// Has the media side change the state of a line's zone.
    pub(super) fn act_on_line(
        &mut self,
        line: u32,
        action: ZoneAction,
        own: Own,
    ) -> Result<(), FtlError> {
        let at = self.flash.zones.store.address(line, 0);
        self.submit_own(Bio::new(Op::Zone(ZoneId(line), action), at, 0), own)
    }

    /// Writes sectors of a bio to the lines of a superblock.
    fn place(
        &mut self,
        bio: &Bio,
        first: u32,
        at: InSuperblock,
        sectors: u32,
        number: u32,
    ) -> Result<(), FtlError> {
        let instances = self.rules.space.instances;
        for turn in 0..instances.min(sectors) {
            let instance = (at.sector + turn) % instances;
            let logical = self.rules.space.line_of(at.superblock, instance);
            let Some(line) = self.lines.resolve(logical, &mut self.walk) else {
                return Err(defect!("an open superblock has a line in each instance").into());
            };
            self.flash.access(&mut self.walk);
            let count = (sectors - turn).div_ceil(instances);
            let from = (at.sector + turn) / instances;
            let payload = strided(&bio.payload, first + turn, instances, count);
            let lba = self.flash.zones.store.address(line, from);
            let Bio { op, flags, placement, scope, owner, .. } = *bio;
            let piece = Bio { op, lba, sectors: count, flags, placement, scope, owner, payload };
            (from..from + count).for_each(|sector| {
                self.lines.mark(line, sector, true);
            });
            if let Some(write) = self.writes.write_mut(number) {
                write.parts += 1;
            }
            self.submit_own(piece, Own::Piece(number))?;
        }
        self.advance_superblock(at.superblock, sectors)
    }

    /// A superblock was written further.
    fn advance_superblock(&mut self, superblock: u32, sectors: u32) -> Result<(), FtlError> {
        self.writes.count += 1;
        let last = self.writes.count;
        let Some(index) = self.writes.open.iter().position(|of| of.superblock == superblock) else {
            return Err(defect!("a superblock that is written is open").into());
        };
        let of = &mut self.writes.open[index];
        (of.written, of.last) = (of.written + sectors, last);
        if of.written == self.rules.space.superblock_sectors {
            return self.close_superblock(superblock);
        }
        Ok(())
    }
}

/// Every so many sectors of a payload, from one on.
fn strided(payload: &Payload, first: u32, step: u32, count: u32) -> Payload {
    match payload {
        Payload::None => Payload::None,
        Payload::Run(tag) if step == 1 || count == 1 => Payload::Run(tag.plus(first.into())),
        Payload::Run(tag) => {
            let tags = (0..count).map(|index| tag.plus(u64::from(first + index * step)));
            Payload::Tags(tags.collect())
        }
        Payload::Tags(tags) => {
            let tags = (0..count).map(|index| tags[(first + index * step) as usize]);
            Payload::Tags(tags.collect())
        }
        Payload::Sectors(sectors) => {
            let sectors = (0..count).map(|index| sectors[(first + index * step) as usize].clone());
            Payload::Sectors(sectors.collect())
        }
    }
}
