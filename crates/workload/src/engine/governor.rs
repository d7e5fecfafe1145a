//! What may keep a job from issuing although it has more to do and slots to do it in: pauses, the
//! depth that a latency allows, requests that are taken back in batches, its share in a flow, the
//! times of a log, zones that other jobs hold.
//!
//! A job that is governed asks before each I/O; all others never come here.

use super::flow::Member;
use super::iolog::Playback;
use super::reaper::Reaper;
use super::search::Search;
use crate::fio::{Counted, JobSpec, ThinkTime};
use nandscape_rt::Nanos;
use std::ops::Range;

/// Whether a job asks before each I/O.
pub(super) fn governs(spec: &JobSpec) -> bool {
    let thinks = spec.thinking.time > Nanos::ZERO && spec.thinking.counted == Counted::Issued;
    thinks
        || spec.replays()
        || spec.zoning.is_zbd()
        || spec.serializes_overlaps
        || spec.flow.weight > 0
        || spec.goal.target > Nanos::ZERO
        || Reaper::new(spec.reaping, spec.depth()).is_some()
}

/// What keeps a job.
#[derive(Clone, Debug)]
pub(super) struct Governor {
    pub(super) reaper: Option<Reaper>,
    pub(super) search: Option<Search>,
    pub(super) member: Option<Member>,
    pub(super) playback: Option<Playback>,
    pub(super) overlaps: Option<Overlaps>,
    depth: u32,
}

impl Governor {
    /// The governor of a job, if it is governed.
    pub(super) fn new(spec: &JobSpec, job: u32, playback: Option<Playback>) -> Option<Self> {
        let depth = spec.depth();
        governs(spec).then(|| Self {
            reaper: Reaper::new(spec.reaping, depth),
            search: Search::new(spec.goal, depth),
            member: (spec.flow.weight > 0).then(|| Member::new(job, spec.flow)),
            playback,
            overlaps: spec.serializes_overlaps.then(Overlaps::default),
            depth,
        })
    }

    /// Whether no more may be in flight.
    pub(super) fn is_full(&self, in_flight: u32) -> bool {
        in_flight >= self.search.as_ref().map_or(self.depth, Search::depth)
    }

    /// Whether nothing may be issued, with so many in flight.
    pub(super) fn holds(&self, in_flight: u32) -> bool {
        self.is_full(in_flight) || self.reaper.as_ref().is_some_and(Reaper::is_waiting)
    }
}

/// `serialize_overlap`: the bytes that are in flight.
#[derive(Clone, Default, Debug)]
pub(super) struct Overlaps {
    in_flight: Vec<Range<u64>>,
}

impl Overlaps {
    /// Whether any of these bytes are in flight.
    pub(super) fn has(&self, bytes: &Range<u64>) -> bool {
        self.in_flight.iter().any(|other| other.start < bytes.end && bytes.start < other.end)
    }

    pub(super) fn issued(&mut self, bytes: Range<u64>) {
        self.in_flight.push(bytes);
    }

    pub(super) fn completed(&mut self, bytes: &Range<u64>) {
        if let Some(at) = self.in_flight.iter().position(|other| other == bytes) {
            self.in_flight.swap_remove(at);
        }
    }
}

/// Nothing is issued until all that is in flight is back, and then for so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pause {
    pub(super) length: Nanos,
    /// Its end, once it has begun.
    pub(super) until: Option<Nanos>,
    /// What was measured before does not count.
    pub(super) forgets: bool,
}

impl Pause {
    pub(super) const fn new(length: Nanos) -> Self {
        Self { length, until: None, forgets: false }
    }
}

/// Counts towards the next pause of `thinktime`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTimeState {
    rules: ThinkTime,
    /// I/Os behind the last pause.
    ios: u64,
    /// Its end.
    since: Nanos,
}

impl ThinkTimeState {
    /// The thinker that `rules` ask for, if any.
    pub(super) fn new(rules: ThinkTime) -> Option<Self> {
        (rules.time > Nanos::ZERO).then_some(Self { rules, ios: 0, since: Nanos::ZERO })
    }

    /// Starts to count.
    pub(super) const fn restart(&mut self, now: Nanos) {
        (self.ios, self.since) = (0, now);
    }

    /// An I/O was issued, or completed: the pause that follows it, if one does.
    pub(super) fn counts(&mut self, what: Counted, now: Nanos) -> Option<Pause> {
        if self.rules.counted != what {
            return None;
        }
        self.ios += 1;
        let timed = self.rules.io_time > Nanos::ZERO;
        let blocks = self.rules.blocks.unwrap_or(if timed { u64::MAX } else { 1 });
        let late = timed && now.saturating_sub(self.since) >= self.rules.io_time;
        (late || self.ios >= blocks).then(|| Pause::new(self.rules.time))
    }
}
