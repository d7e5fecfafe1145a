//! Where the time went of something that waited until all before it was durable, in an FTL that runs in the device: for
//! what its last program waited, and that program. And of something that waited until all units were idle.

use crate::report::FlushTime;
use nandscape_media::{OpenChannel, UnitId};
use nandscape_rt::Nanos;
use std::ops::Range;

/// A program that completed.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Programmed {
    pub(crate) unit: u32,
    /// When the unit began it, its transfer included.
    pub(crate) began: Nanos,
    pub(crate) ended: Nanos,
    /// Sectors that it wrote.
    pub(crate) sectors: u32,
    /// Those of them that hold nothing.
    pub(crate) padding: u32,
}

impl FlushTime {
    /// Counts a wait that ended when this program had: the program, by what it wrote, and before it the time in which its
    /// unit worked for collection, and the rest.
    pub(crate) fn add_wait(
        &mut self,
        media: &impl OpenChannel,
        time: Range<Nanos>,
        last: &Programmed,
    ) {
        let began = last.began.clamp(time.start, time.end);
        let program_ns = (last.ended.clamp(began, time.end) - began).0;
        let total_ns = (time.end - time.start).0;
        let unit = UnitId(last.unit);
        let collection_ns = media.collection_time(unit, time.start..began).0;
        let gc_ns = collection_ns.min(total_ns - program_ns);
        let padding_ns = share(program_ns, last.padding.into(), last.sectors.into());
        self.waited += 1;
        self.total_ns += total_ns;
        self.gc_ns += gc_ns;
        self.queue_ns += total_ns - program_ns - gc_ns;
        self.padding_ns += padding_ns;
        self.program_ns += program_ns - padding_ns;
    }

    /// Counts a wait that ended when this unit, the last one, was idle: the time in which the unit worked for collection,
    /// and the rest. What waits so has nothing programmed, and so no program of its own.
    pub(crate) fn add_idle_wait(
        &mut self,
        media: &impl OpenChannel,
        time: Range<Nanos>,
        unit: UnitId,
    ) {
        let total_ns = (time.end - time.start).0;
        let gc_ns = media.collection_time(unit, time).0.min(total_ns);
        self.waited += 1;
        self.total_ns += total_ns;
        self.gc_ns += gc_ns;
        self.queue_ns += total_ns - gc_ns;
    }
}

/// All units being idle, as something waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Idle {
    /// From when on they are, by the commands that had been sent when the wait began.
    pub(crate) from: Nanos,
    /// The one that is so last.
    pub(crate) last: UnitId,
}

impl Idle {
    /// Of these media, now.
    pub(crate) fn of(media: &impl OpenChannel) -> Self {
        let (from, last) = media.idle_from();
        Self { from, last }
    }

    /// What a wait for it is for, unless they are by `at`.
    pub(crate) fn awaited(media: &impl OpenChannel, at: Nanos) -> Option<Self> {
        Some(Self::of(media)).filter(|idle| !idle.has_come(at))
    }

    /// Whether the wait is over.
    pub(crate) fn has_come(self, now: Nanos) -> bool {
        self.from <= now
    }
}

/// `part / whole` of `ns`.
pub(crate) fn share(ns: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { (u128::from(ns) * u128::from(part) / u128::from(whole)) as u64 }
}
