//! Checkpoints and cleaning that no operation asks for (`f2fs_balance_fs_bg`, `gc_thread_func`).

use super::checkpoint::Reason;
use super::volume::Volume;
use nandscape_rt::Nanos;
use std::rc::Rc;

/// How often the state is looked at.
const PERIOD: Nanos = Nanos::from_secs(1);
/// Share of all segments that may be prefree, and how many that is at most (`DEF_RECLAIM_PREFREE_SEGMENTS`).
const PREFREE_PERCENT: u32 = 5;
const PREFREE_MAX: u32 = 4096;

impl Volume {
    /// Writes a checkpoint when the last one is old or many segments wait for one, until the volume is unmounted.
    pub(super) async fn checkpoint_in_background(self: &Rc<Self>) {
        loop {
            self.env.rt.sleep(PERIOD.min(self.options.checkpoint_interval)).await;
            if self.env.calls.check_open().is_err() || self.stopped.get() {
                return;
            }
            let age = self.env.rt.now().saturating_sub(self.checkpoints.written_at.get());
            let prefree = self.segments.borrow().prefree_segments();
            let most = (self.segments.borrow().count() * PREFREE_PERCENT / 100).min(PREFREE_MAX);
            let is_due = age >= self.options.checkpoint_interval || prefree > most;
            // An error stops the volume, which every call then says.
            if is_due && self.write_checkpoint(Reason::Sync).await.is_err() {
                return;
            }
        }
    }
}
