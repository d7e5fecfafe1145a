//! The load between two power cuts: what a seed chooses about it, and the requests it draws.

use crate::draw::sample::pick;
use crate::draw::streams::{Senders, Streams};
use crate::request::{Request, Sender};
use crate::settings::Settings;
use crate::shrink::keep::Keep;
use crate::shrink::numbers::Numbers;
use nandscape_block::{Flags, Lba};
use nandscape_rt::{Nanos, Stream};
use std::collections::VecDeque;

/// What comes next of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Submit this as soon as the queue has a free slot.
    Submit(Request),
    /// Wait until nothing is in flight.
    Drain,
    /// Leave the device alone for so long.
    Pause(Nanos),
    /// No more.
    End,
}

/// How often each kind of request comes, relative to the others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mix {
    /// Reads.
    pub read: u32,
    /// Writes without flags.
    pub write: u32,
    /// Writes with FUA.
    pub fua: u32,
    /// Writes with PREFLUSH.
    pub preflush: u32,
    /// Writes with PREFLUSH and FUA.
    pub preflush_fua: u32,
    /// Flushes.
    pub flush: u32,
    /// Discards.
    pub discard: u32,
}

/// Everything that a seed chooses about a load. Times are the longest of a uniform draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// Requests in flight at once.
    pub depth: u32,
    /// Requests until the cut comes at the latest.
    pub ops: u32,
    /// Kinds of requests.
    pub mix: Mix,
    /// Longest write and read, in sectors.
    pub sectors_max: u32,
    /// Longest discard, in sectors.
    pub discard_sectors_max: u32,
    /// Share of the device in use.
    pub span_percent: u32,
    /// Share of that span which is hot; 0: uniform.
    pub hot_span_percent: u32,
    /// Share of requests that go to the hot span.
    pub hot_percent: u32,
    /// Pause between two requests.
    pub think_ns: u64,
    /// Requests between two idle periods; 0: none.
    pub burst_ops: u32,
    /// Idle period.
    pub idle_ns: u64,
    /// After so many requests everything is waited for and a commit (one sector, PREFLUSH and FUA)
    /// follows; 0: none.
    pub commit_ops: u32,
    /// Share of the device that is written in order before the first round; above 100 it goes on
    /// from the beginning.
    pub fill_percent: u32,
    /// Who sends the requests.
    pub streams: Streams,
}

impl Load {
    /// All of it, as keys and values.
    pub(crate) fn settings(&self) -> Settings {
        let Mix { read, write, fua, preflush, preflush_fua, flush, discard } = self.mix;
        let mix = Settings::default()
            .with("read", read)
            .with("write", write)
            .with("fua", fua)
            .with("preflush", preflush)
            .with("preflush_fua", preflush_fua)
            .with("flush", flush)
            .with("discard", discard);
        Settings::default()
            .with("depth", self.depth)
            .with("requests", self.ops)
            .with("mix", mix)
            .with("sectors_max", self.sectors_max)
            .with("discard_sectors_max", self.discard_sectors_max)
            .with("span_percent", self.span_percent)
            .with("hot_span_percent", self.hot_span_percent)
            .with("hot_percent", self.hot_percent)
            .with("think_max_ns", self.think_ns)
            .with("burst_requests", self.burst_ops)
            .with("idle_max_ns", self.idle_ns)
            .with("commit_every", self.commit_ops)
            .with("fill_percent", self.fill_percent)
            .and(self.streams.settings())
    }
}

/// Draws the requests of a load, at addresses of a device that is written at random.
#[derive(Debug)]
pub(crate) struct LoadSource<'a> {
    load: &'a Load,
    senders: Senders,
    span: u64,
    issued: u32,
    /// The last request was followed by the pause that belongs to it.
    rested: bool,
    /// A commit is due once everything is waited for.
    draining: bool,
    /// The requests that are sent. The others are drawn all the same.
    keep: Keep,
    /// What comes before the next of these, and that request.
    held: VecDeque<Next>,
}

impl<'a> LoadSource<'a> {
    /// Requests on a device of `sectors`, as many of them as are left.
    pub(crate) fn new(load: &'a Load, sectors: u64, keep: Keep) -> Self {
        let span = (sectors * u64::from(load.span_percent) / 100).clamp(1, sectors);
        let senders = Senders::new(load.streams, sectors);
        let held = VecDeque::new();
        Self { load, senders, span, issued: 0, rested: true, draining: false, keep, held }
    }

    /// The number of the last request that was drawn, from 1.
    pub(crate) const fn drawn(&self) -> u32 {
        self.issued
    }

    /// Whether the last request was drawn.
    pub(crate) fn is_drawn(&self) -> bool {
        self.issued >= self.keep.last(self.load.ops)
    }

    /// The requests that were sent, and the next one: what comes before it may have begun.
    pub(crate) fn sent(&self) -> Numbers {
        self.keep.up_to((self.issued + 1).min(self.load.ops))
    }

    fn pause(&self, rng: &mut Stream) -> Option<Nanos> {
        let due = |every: u32| every > 0 && self.issued.is_multiple_of(every);
        let limit = if due(self.load.burst_ops) { self.load.idle_ns } else { self.load.think_ns };
        (limit > 0).then(|| Nanos(rng.below(limit + 1)))
    }

    fn commit_due(&self) -> bool {
        let every = self.load.commit_ops;
        every > 0 && self.issued > 0 && self.issued.is_multiple_of(every)
    }

    fn range(&self, sectors_max: u32, rng: &mut Stream) -> (Lba, u32) {
        // Half of all requests are of one sector: partly overlapping neighbours are the rule.
        let sectors = if rng.chance(0.5) { 1 } else { 1 + rng.below(u64::from(sectors_max)) };
        let sectors = sectors.min(self.span);
        let hot =
            self.load.hot_span_percent > 0 && rng.below(100) < u64::from(self.load.hot_percent);
        let span =
            if hot { self.span * u64::from(self.load.hot_span_percent) / 100 } else { self.span };
        let first = rng.below(span.max(1)).min(self.span - sectors);
        (Lba(first), sectors as u32)
    }

    fn write(&self, flags: Flags, rng: &mut Stream) -> Request {
        let (lba, sectors) = self.range(self.load.sectors_max, rng);
        Request::Write(lba, sectors, flags, Sender::ANONYMOUS)
    }

    fn commit(&self, rng: &mut Stream) -> Request {
        let (lba, _) = self.range(1, rng);
        Request::Write(lba, 1, Flags::PREFLUSH | Flags::FUA, Sender::ANONYMOUS)
    }

    fn draw(&self, rng: &mut Stream) -> Request {
        let m = self.load.mix;
        let weights =
            [m.read, m.write, m.fua, m.preflush, m.preflush_fua, m.flush, m.discard].map(u64::from);
        match pick(rng, &weights) {
            0 => {
                let (lba, sectors) = self.range(self.load.sectors_max, rng);
                Request::Read(lba, sectors)
            }
            1 => self.write(Flags::NONE, rng),
            2 => self.write(Flags::FUA, rng),
            3 => self.write(Flags::PREFLUSH, rng),
            4 => self.write(Flags::PREFLUSH | Flags::FUA, rng),
            5 => Request::Flush(Sender::ANONYMOUS),
            _ => {
                let (lba, sectors) = self.range(self.load.discard_sectors_max, rng);
                Request::Discard(lba, sectors)
            }
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.load.depth as usize
    }

    pub(crate) fn next(&mut self, rng: &mut Stream) -> Next {
        if self.keep.is_all() {
            return self.drawn_next(rng);
        }
        if let Some(next) = self.held.pop_front() {
            return next;
        }
        let (mut pause, mut drain) = (None, false);
        while !self.is_drawn() {
            match self.drawn_next(rng) {
                // The time between two requests stays what it is.
                Next::Pause(span) => pause = Some(pause.unwrap_or(Nanos::ZERO) + span),
                Next::Drain => drain = true,
                Next::Submit(_) if !self.keep.has(self.issued) => drain = false,
                request => {
                    let pause = pause.map(Next::Pause).into_iter();
                    self.held.extend(pause.chain(drain.then_some(Next::Drain)).chain([request]));
                    return self.held.pop_front().unwrap_or(Next::End);
                }
            }
        }
        Next::End
    }

    fn drawn_next(&mut self, rng: &mut Stream) -> Next {
        if self.issued >= self.load.ops {
            return Next::End;
        }
        if !self.rested {
            self.rested = true;
            if let Some(pause) = self.pause(rng) {
                return Next::Pause(pause);
            }
        }
        let commit = self.commit_due();
        if commit && !self.draining {
            self.draining = true;
            return Next::Drain;
        }
        (self.draining, self.rested) = (false, false);
        self.issued += 1;
        let request = if commit { self.commit(rng) } else { self.draw(rng) };
        Next::Submit(self.senders.send(request, self.issued, rng))
    }
}

/// Windows of at most `window` sectors that cover `sectors`.
pub(crate) fn windows(sectors: u64, window: u32) -> impl Iterator<Item = (Lba, u32)> {
    let window = u64::from(window.max(1));
    let starts = (0..sectors).step_by(window as usize);
    starts.map(move |first| (Lba(first), window.min(sectors - first) as u32))
}
