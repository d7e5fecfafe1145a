//! A host that writes anywhere: each address is an object, whose versions follow each other.

use super::{HostView, Phase, Requests, window_of};
use crate::device::model::Object;
use crate::draw::load::{LoadSource, Next, windows};
use crate::draw::plan::Plan;
use crate::request::{Request, Sender};
use crate::shrink::keep::Keep;
use nandscape_block::{DeviceCaps, Flags, Lba};
use nandscape_rt::Stream;

/// The host; see the head of this file.
pub(crate) struct Random<'a> {
    plan: &'a Plan,
    sectors: u64,
    window: u32,
    scan_window: u32,
    load_rng: Stream,
    scan_rng: Stream,
    requests: Requests<'a>,
}

impl<'a> Random<'a> {
    pub(crate) fn new(seed: u64, plan: &'a Plan, caps: &DeviceCaps) -> Self {
        let window = window_of(caps);
        Self {
            plan,
            sectors: caps.sectors,
            window,
            scan_window: if plan.unreadable { 1 } else { window },
            load_rng: Stream::new(seed, "load"),
            scan_rng: Stream::new(seed, "scan"),
            requests: Requests::listed(Vec::new()),
        }
    }

    fn fill(&self, keep: Keep) -> Requests<'a> {
        let filled = self.sectors * u64::from(self.plan.load.fill_percent) / 100;
        let left = (1..).zip(windows(filled, self.window)).filter(|(number, _)| keep.has(*number));
        let writes = left.map(|(_, (lba, sectors))| {
            let first = lba.0 % self.sectors;
            let sectors = u64::from(sectors).min(self.sectors - first);
            Request::Write(Lba(first), sectors as u32, Flags::NONE, Sender::ANONYMOUS)
        });
        Requests::filling(writes.collect(), keep)
    }

    fn reads(&self) -> impl Iterator<Item = Request> + use<> {
        windows(self.sectors, self.scan_window).map(|(lba, sectors)| Request::Read(lba, sectors))
    }

    fn inspect(&mut self) -> Vec<Request> {
        let percent = u64::from(self.plan.scan_percent);
        let reads = self.reads();
        reads.filter(|_| percent >= 100 || self.scan_rng.below(100) < percent).collect()
    }

    fn finish(&self) -> Vec<Request> {
        [Request::Flush(Sender::ANONYMOUS)].into_iter().chain(self.reads()).collect()
    }
}

impl HostView for Random<'_> {
    fn begin(&mut self, phase: Phase, keep: Keep) {
        self.requests = match phase {
            Phase::Fill => self.fill(keep),
            Phase::Load => Requests::Drawn(LoadSource::new(&self.plan.load, self.sectors, keep)),
            Phase::Inspect => Requests::listed(self.inspect()),
            Phase::Finish => Requests::listed(self.finish()),
        };
    }

    fn requests(&self) -> &Requests<'_> {
        &self.requests
    }

    fn load_rng(&mut self) -> &mut Stream {
        &mut self.load_rng
    }

    fn next(&mut self) -> Next {
        self.requests.next(&mut self.load_rng)
    }

    fn object(&self, lba: Lba) -> Object {
        Object(lba.0)
    }

    fn address(&self, object: Object) -> Lba {
        Lba(object.0)
    }
}
