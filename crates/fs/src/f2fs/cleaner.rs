//! What cleaning keeps between sections: what it has done, the section that it is at, and where the search for the next one
//! goes on ([`victim`](super::victim)).

use super::age_threshold::AgeRange;
use super::counts::GcCounts;
use super::gc_parts::GcStep;
use super::mount_info::MountInfo;
use super::moves::GcJournal;
use nandscape_rt::sync::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;

/// How a victim is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GcKind {
    /// Few valid blocks that have not changed for long.
    Background,
    /// The fewest valid blocks; they are on the device when the call returns.
    Foreground,
}

/// Cleaning of a mounted volume.
pub(crate) struct Cleaner {
    pub(super) mount: Rc<MountInfo>,
    /// The GC journal, if the mount uses one.
    pub(crate) journal: Option<GcJournal>,
    /// Held by cleaning.
    pub(crate) lock: Mutex<()>,
    pub(crate) counts: Cell<GcCounts>,
    /// Sections whose blocks cleaning in the background has made dirty.
    pub(crate) background_victims: RefCell<BTreeSet<u32>>,
    /// The section that is being cleaned.
    pub(crate) cleaning: Cell<Option<u32>>,
    /// Where the search for a victim in the background goes on.
    pub(super) last_victim: Cell<u32>,
    /// Ages of sections that age-threshold cleaning has seen.
    pub(super) victim_ages: Cell<AgeRange>,
}

impl Cleaner {
    pub(crate) fn new(mount: Rc<MountInfo>, journal: Option<GcJournal>) -> Self {
        Self {
            lock: Mutex::new(&mount.env.rt, "cleaning", ()),
            mount,
            journal,
            counts: Cell::default(),
            background_victims: RefCell::default(),
            cleaning: Cell::default(),
            last_victim: Cell::new(0),
            victim_ages: Cell::default(),
        }
    }

    /// Runs a step of cleaning; one in the foreground is measured, and costs what the run left of it.
    pub(super) async fn step<T>(
        &self,
        (step, kind): (GcStep, GcKind),
        work: impl Future<Output = T>,
    ) -> T {
        if kind == GcKind::Background {
            return work.await;
        }
        let (began, before) = (self.mount.env.rt.now(), self.mount.cpu.of_cleaning());
        let result = self.mount.cpu.clean(step, work).await;
        let paid = self.mount.cpu.of_cleaning();
        let paid =
            [paid.node_page_ns - before.node_page_ns, paid.allocation_ns - before.allocation_ns];
        let mut counts = self.counts.get();
        counts.parts.note(step, self.mount.env.rt.now().saturating_sub(began).0, paid);
        self.counts.set(counts);
        result
    }
}
