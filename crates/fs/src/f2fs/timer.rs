//! Checkpoints and cleaning that no operation asks for (`f2fs_balance_fs_bg`, `gc_thread_func`).

use super::checkpoints::Reason;
use super::format::BLOCKS_PER_SEGMENT;
use super::volume::Volume;
use nandscape_rt::Nanos;
use std::rc::Rc;

/// How often the state is looked at.
const PERIOD: Nanos = Nanos::from_secs(1);
/// Share of all segments that may be prefree, and how many that is at most (`DEF_RECLAIM_PREFREE_SEGMENTS`).
const PREFREE_PERCENT: u32 = 5;
const PREFREE_MAX: u32 = 4096;

/// Shares of all blocks (`LIMIT_INVALID_BLOCK`, `LIMIT_FREE_BLOCK`).
const INVALID_PERCENT: u64 = 40;
const FREE_PERCENT: u64 = 40;

impl Volume {
    /// Writes a checkpoint when the last one is old or many segments wait for one, until the volume is unmounted.
    pub(super) async fn checkpoint_in_background(self: &Rc<Self>) {
        loop {
            self.mount.env.rt.sleep(PERIOD.min(self.mount.options.checkpoint_interval)).await;
            if self.mount.env.calls.check_open().is_err() || self.mount.stopped.get() {
                return;
            }
            let age = self.mount.env.rt.now().saturating_sub(self.checkpoints.written_at.get());
            let prefree = self.segments.borrow().prefree_segments();
            let most = (self.segments.borrow().count() * PREFREE_PERCENT / 100).min(PREFREE_MAX);
            let is_due = age >= self.mount.options.checkpoint_interval || prefree > most;
            // An error stops the volume, which every call then says.
            if is_due && self.write_checkpoint(Reason::Sync).await.is_err() {
                return;
            }
        }
    }

    /// Cleans a section whenever the volume is idle, until it is unmounted (`gc_thread_func`).
    pub(super) async fn run_gc_thread(self: &Rc<Self>) {
        let (least, most) = (self.mount.options.gc_min_sleep, self.mount.options.gc_max_sleep);
        let mut sleep = least;
        loop {
            self.mount.env.rt.sleep(sleep).await;
            if self.mount.env.calls.check_open().is_err() || self.mount.stopped.get() {
                return;
            }
            if !self.is_idle() {
                sleep = sleep.saturating_add(least).min(most);
                continue;
            }
            sleep = match self.has_many_invalid_blocks() {
                true => sleep.saturating_sub(least).max(least),
                false => sleep.saturating_add(least).min(most),
            };
            match self.clean_in_background().await {
                Ok(true) => {}
                Ok(false) => sleep = most.max(self.mount.options.gc_no_gc_sleep),
                // An error of metadata stops the volume; one of a file's data comes out of its next sync.
                Err(_) if self.mount.stopped.get() => return,
                Err(_) => {}
            }
        }
    }

    /// Whether nothing has happened for a while (`is_idle`).
    fn is_idle(&self) -> bool {
        let since = self.operations.idle_time();
        since >= self.mount.options.idle_interval && self.writes.data_in_flight.is_empty()
    }

    /// Whether much of what was written is invalid, and little is free (`has_enough_invalid_blocks`).
    fn has_many_invalid_blocks(&self) -> bool {
        let all = self.nodes.space.user_blocks();
        let free =
            u64::from(self.segments.borrow().free_segments()) * u64::from(BLOCKS_PER_SEGMENT);
        let invalid = all.saturating_sub(self.nodes.space.valid_blocks()).saturating_sub(free);
        invalid > all * INVALID_PERCENT / 100 && free < all * FREE_PERCENT / 100
    }
}
