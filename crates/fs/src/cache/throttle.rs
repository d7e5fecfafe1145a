//! Writers wait for write-back, each by its share of what is dirtied. After Linux's
//! `balance_dirty_pages` in `mm/page-writeback.c`.
//!
//! - What counts is what is dirty and what is on its way, of all files. Up to the middle between
//!   `background_percent` and `dirty_percent` of memory no writer waits; past it, a writer waits until as many
//!   pages are clean as it made dirty; beyond `dirty_percent` every writer waits.
//! - A writer looks before each piece of a call: it dirties no more than may be dirty still. Where that is
//!   nothing, it dirties a few (`Core::ratelimit`) and then waits. So no more than `dirty_percent` of
//!   memory is ever dirty or on its way, and these few of each writer.
//! - Linux computes pauses from a measured bandwidth instead; in the long run either makes writers as fast
//!   as the device.

use super::{CacheConfig, Core, PageCache, bump};
use std::cell::Cell;
use std::rc::Rc;

/// Parts of what may be dirty of which a writer may dirty one where nothing is left, and the most pages that
/// this is: Linux's `ratelimit_pages`, and its least value.
const RATELIMIT_PARTS: u64 = 32;
const RATELIMIT_MAX: u64 = 16;

/// Pages that may be dirty.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Before write-back begins by itself.
    background: u64,
    /// At all.
    dirty: u64,
}

impl Limits {
    pub(super) fn new(config: &CacheConfig) -> Self {
        let share = |percent| (config.pages.saturating_mul(u64::from(percent)) / 100).max(1);
        let (background, dirty) = (share(config.background_percent), share(config.dirty_percent));
        // No writer may wait for write-back that has no reason to begin.
        Self { background: if background < dirty { background } else { dirty / 2 }, dirty }
    }
}

/// Pages that a task has dirtied since it last waited.
pub struct DirtyThrottle {
    core: Rc<Core>,
    unpaid: Cell<u64>,
}

impl<F> PageCache<F> {
    /// The throttle of a task that is going to dirty pages.
    #[must_use]
    pub fn throttle(&self) -> DirtyThrottle {
        DirtyThrottle { core: Rc::clone(&self.core), unpaid: Cell::new(0) }
    }
}

impl DirtyThrottle {
    /// Pages that it may dirty now; if none, it has to [wait](DirtyThrottle::balance_dirty) first.
    #[must_use]
    pub fn allowance(&self) -> u64 {
        let room = self.core.limits.dirty.saturating_sub(self.core.load());
        room.max(self.core.ratelimit().saturating_sub(self.unpaid.get()))
    }

    /// Notes that it dirtied pages.
    pub fn note(&self, pages: u64) {
        bump(&self.unpaid, pages);
    }

    /// To be awaited by it in the end, and whenever it may dirty no more: starts write-back if much is
    /// dirty, and waits its share of it if too much is.
    pub async fn balance_dirty(&self) {
        let core = &self.core;
        let dirtied = self.unpaid.take();
        if dirtied == 0 {
            return;
        }
        if core.is_much_dirty() {
            core.wake.notify_one();
        }
        let paid = core.cleaned.get() + dirtied;
        if core.paid_off().is_none_or(|level| level < paid) && !core.stopped.get() {
            // Who is woken has paid: one who looked again would queue behind those who dirtied meanwhile.
            core.writers.notified_at(paid).await;
        }
    }
}

impl Core {
    /// Pages that the device does not have.
    fn load(&self) -> u64 {
        self.dirty.get() + self.in_flight.get()
    }

    /// Pages that a writer may dirty before it waits although no more may be dirty.
    fn ratelimit(&self) -> u64 {
        (self.limits.dirty / RATELIMIT_PARTS).clamp(1, RATELIMIT_MAX)
    }

    /// Whether write-back begins by itself.
    pub(super) fn is_much_dirty(&self) -> bool {
        self.dirty.get() > self.limits.background
    }

    /// Up to how many pages written back, ever, writers need not wait for: all, if little is dirty or on
    /// its way, and none, if too much is.
    fn paid_off(&self) -> Option<u64> {
        let Limits { background, dirty } = self.limits;
        if self.load() <= background.midpoint(dirty) {
            Some(u64::MAX)
        } else {
            (self.load() <= dirty).then(|| self.cleaned.get())
        }
    }

    /// Pages were written back: those who wait for that go on, as far as they need not wait any more.
    pub(super) fn note_progress(&self) {
        self.progress.notify_waiters();
        if self.is_much_dirty() {
            self.wake.notify_one();
        }
        if let Some(level) = self.paid_off() {
            self.writers.notify_up_to(level);
        }
    }
}
