//! What waits for durability: flushes, bios with PREFLUSH, writes with FUA.
//!
//! A flush covers what was admitted to the zones before it, and whatever the page-mapped region covers; it completes
//! when both are done. For each zone it waits until everything before an end is on media, full pages at their places,
//! of a page that is partly filled the sectors in the save log. A buffer that survives power cuts keeps all promises
//! of its zones at once.
//!
//! By NVMeVirt's rule (`device::Flush`) nothing is saved or programmed for any of them: they wait until all units, which
//! both parts share, have ended what they were sent.

use super::ZonedFtl;
use super::cover::Entry;
use super::zone::read_only;
use crate::common::waits::Idle;
use crate::error::FtlError;
use nandscape_block::{Bio, BlockDevice, BlockError, Completion, Done, Reply, Submit, Token};
use nandscape_media::{OpenChannel, UnitId};
use nandscape_rt::{Nanos, invariant};

/// For whom a waiter waits.
#[derive(Debug)]
enum Who {
    /// A flush.
    Flush(Token),
    /// A write with PREFLUSH, whose turn has not come; the flush has this number.
    Preflush(Token, u64),
    /// A write with FUA, and its reply.
    Write(Token, Reply),
    /// A write to the page-mapped region with PREFLUSH.
    Held(Box<Bio>, Token),
}

impl Who {
    const fn token(&self) -> Token {
        match self {
            Self::Flush(token)
            | Self::Preflush(token, _)
            | Self::Write(token, _)
            | Self::Held(_, token) => *token,
        }
    }
}

/// What else something waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beside {
    /// Nothing, or nothing any more.
    Nothing,
    /// The page-mapped region.
    Front,
    /// All units being idle, this one last; they are when it may complete.
    Idle(UnitId),
}

/// Something that waits for durability.
#[derive(Debug)]
pub(super) struct Waiter {
    who: Who,
    entries: Vec<Entry>,
    /// What it waits for beside them.
    beside: Beside,
    /// It is complete no earlier.
    at: Nanos,
    result: Result<(), BlockError>,
    since: Nanos,
}

impl Waiter {
    /// A write with FUA that arrived at `at`.
    pub(super) fn write(token: Token, entry: Entry, reply: Reply, at: Nanos, since: Nanos) -> Self {
        Self::new(Who::Write(token, reply), vec![entry], at, since)
    }

    /// A write to the page-mapped region that must not precede what the entries say.
    pub(super) fn held(bio: Bio, token: Token, entries: Vec<Entry>, now: Nanos) -> Self {
        Self::new(Who::Held(Box::new(bio), token), entries, now, now)
    }

    const fn new(who: Who, entries: Vec<Entry>, at: Nanos, since: Nanos) -> Self {
        Self { who, entries, beside: Beside::Nothing, at, result: Ok(()), since }
    }

    /// A write with FUA that waits until all units are idle.
    pub(super) fn write_until(token: Token, idle: Idle, reply: Reply, since: Nanos) -> Self {
        Self::until(Who::Write(token, reply), idle, since)
    }

    fn until(who: Who, idle: Idle, since: Nanos) -> Self {
        Self { beside: Beside::Idle(idle.last), ..Self::new(who, Vec::new(), idle.from, since) }
    }

    /// Whether it waits for nothing any more, at this time.
    fn is_done(&self, now: Nanos) -> bool {
        self.entries.is_empty()
            && match self.beside {
                Beside::Nothing => true,
                Beside::Front => false,
                Beside::Idle(_) => self.at <= now,
            }
    }
}

/// Everything that waits for durability.
#[derive(Default, Debug)]
pub(super) struct Waiters {
    all: Vec<Waiter>,
    /// Flushes of bios with PREFLUSH that are done.
    preflushed: Vec<(u64, Result<(), BlockError>)>,
    next_preflush: u64,
}

impl Waiters {
    /// How a flush for PREFLUSH ended, once; `None` while it goes on.
    pub(super) fn take_preflush(&mut self, flush: u64) -> Option<Result<(), BlockError>> {
        let index = self.preflushed.iter().position(|(done, _)| *done == flush)?;
        Some(self.preflushed.swap_remove(index).1)
    }

    /// The page-mapped region completed a bio; whether that was a part of something here.
    pub(super) fn front_completed(&mut self, completion: &Completion) -> bool {
        let token = completion.token;
        let of =
            |waiter: &&mut Waiter| waiter.beside == Beside::Front && waiter.who.token() == token;
        let Some(waiter) = self.all.iter_mut().find(of) else { return false };
        waiter.beside = Beside::Nothing;
        waiter.at = waiter.at.max(completion.done.at);
        if let Err(error) = &completion.done.result {
            waiter.result = Err(error.clone());
        }
        true
    }

    /// Drops everything; its tokens, but for those of requests that are also queued.
    pub(super) fn abandon(&mut self) -> Vec<Token> {
        self.preflushed.clear();
        let waiters = self.all.drain(..);
        let own = waiters.filter(|waiter| !matches!(waiter.who, Who::Preflush(..)));
        own.map(|waiter| waiter.who.token()).collect()
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        let entries = self.all.iter().map(|w| w.entries.capacity() * size_of::<Entry>());
        (entries.sum::<usize>() + self.all.capacity() * size_of::<Waiter>()) as u64
    }
}

impl<M: OpenChannel> ZonedFtl<M> {
    /// Has something wait until it is durable; it may be, or can never be.
    pub(super) fn wait(&mut self, waiter: Waiter) {
        if !matches!(waiter.who, Who::Held(..)) {
            let missing = |entry: &Entry| entry.end.saturating_sub(self.store.durable(entry.zone));
            let missing: u64 = waiter.entries.iter().map(missing).sum();
            self.store.counts.flush.drained_sectors += missing;
        }
        self.waiters.all.push(waiter);
        self.store.stirred = true;
    }

    /// Serves a flush.
    pub(super) fn flush(&mut self, token: Token) -> Result<Submit, FtlError> {
        if self.store.waits_for_idle() {
            return Ok(self.flush_until_idle(token));
        }
        let mut waiter =
            Waiter::new(Who::Flush(token), self.store.cover_all()?, self.store.now, self.store.now);
        self.flush_front(&mut waiter);
        if waiter.entries.is_empty() && waiter.beside == Beside::Nothing {
            self.store.counts.flush.empty += 1;
            let at = waiter.at.max(self.store.front.link().command(self.store.begins()));
            return Ok(Submit::Done(Done::new(at, waiter.result.map(|()| Reply::None))));
        }
        self.wait(waiter);
        Ok(Submit::Pending)
    }

    /// Serves a flush that has nothing programmed.
    fn flush_until_idle(&mut self, token: Token) -> Submit {
        let accepted = self.store.front.link().command(self.store.begins());
        let Some(idle) = self.store.await_idle(accepted) else {
            self.store.counts.flush.empty += 1;
            return Submit::Done(Done::ok(accepted));
        };
        self.wait(Waiter::until(Who::Flush(token), idle, self.store.now));
        Submit::Pending
    }

    /// Begins the flush that a bio with PREFLUSH waits for; its number, if there is anything to wait for.
    pub(super) fn begin_preflush(&mut self, token: Token) -> Result<Option<u64>, FtlError> {
        let (flush, now) = (self.waiters.next_preflush, self.store.now);
        let who = Who::Preflush(token, flush);
        let waiter = if self.store.waits_for_idle() {
            let Some(idle) = self.store.await_idle(now) else { return Ok(None) };
            Waiter::until(who, idle, now)
        } else {
            let mut waiter = Waiter::new(who, self.store.cover_all()?, now, now);
            self.flush_front(&mut waiter);
            if waiter.entries.is_empty()
                && waiter.beside == Beside::Nothing
                && waiter.result.is_ok()
            {
                invariant!(
                    waiter.is_done(now),
                    "a PREFLUSH that waits for nothing finds everything durable"
                );
                return Ok(None);
            }
            waiter
        };
        self.waiters.next_preflush += 1;
        self.wait(waiter);
        Ok(Some(flush))
    }

    /// Has the page-mapped region flush, as a part of what a waiter waits for.
    fn flush_front(&mut self, waiter: &mut Waiter) {
        let now = self.store.now;
        let Some(pages) = self.store.front.pages_mut() else { return };
        match pages.submit(now, Bio::flush(), waiter.who.token()) {
            Submit::Done(done) => {
                waiter.at = waiter.at.max(done.at);
                waiter.result = done.result.map(drop);
            }
            Submit::Pending => waiter.beside = Beside::Front,
        }
    }

    /// Sends on what waiters wait for, and completes those that wait for nothing any more; whether there was one.
    pub(super) fn settle_waiters(&mut self) -> Result<bool, FtlError> {
        let (mut any, mut index) = (false, 0);
        while index < self.waiters.all.len() {
            let mut entries = std::mem::take(&mut self.waiters.all[index].entries);
            for entry in &entries {
                if !self.store.is_covered(entry) {
                    self.store.push_out(entry.zone, entry.mark.is_some())?;
                }
            }
            entries.retain(|entry| !self.store.is_covered(entry));
            let failed = entries.iter().find(|entry| self.store.zones.get(entry.zone).failed);
            if let Some(zone) = failed.map(|entry| entry.zone) {
                self.waiters.all[index].result = Err(read_only(zone));
                entries.clear();
            }
            let waiter = &mut self.waiters.all[index];
            waiter.entries = entries;
            if waiter.is_done(self.store.now) {
                let waiter = self.waiters.all.remove(index);
                self.settled(waiter);
                any = true;
            } else {
                index += 1;
            }
        }
        Ok(any)
    }

    /// A waiter waits for nothing any more.
    fn settled(&mut self, waiter: Waiter) {
        let Waiter { who, beside, at, result, since, .. } = waiter;
        let at = self.store.no_earlier(at);
        if !matches!(who, Who::Held(..)) {
            let last = self.store.last_programmed();
            let (media, time) = (self.store.front.media(), since..self.store.now);
            match beside {
                Beside::Idle(unit) => self.store.counts.flush.add_idle_wait(media, time, unit),
                Beside::Nothing | Beside::Front => {
                    self.store.counts.flush.add_wait(media, time, &last);
                }
            }
        }
        match who {
            Who::Flush(token) => self.complete(token, Done::new(at, result.map(|()| Reply::None))),
            Who::Write(token, reply) => self.complete(token, Done::new(at, result.map(|()| reply))),
            Who::Preflush(_, flush) => self.waiters.preflushed.push((flush, result)),
            Who::Held(bio, token) => match result {
                Err(error) => self.complete(token, Done::new(at, Err(error))),
                Ok(()) => {
                    if let Submit::Done(done) = self.store.submit_to_front(*bio, token) {
                        self.complete(token, done);
                    }
                }
            },
        }
    }
}
