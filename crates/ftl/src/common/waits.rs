//! Where the time went of something that waited until all before it was durable, in an FTL that runs in the device: for
//! what its last program waited, and that program.

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
}

/// `part / whole` of `ns`.
pub(crate) fn share(ns: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { (u128::from(ns) * u128::from(part) / u128::from(whole)) as u64 }
}
