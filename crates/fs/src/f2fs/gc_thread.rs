//! Cleaning that no operation asks for: when the volume is idle (`gc_thread_func`).

use super::format::BLOCKS_PER_SEGMENT;
use super::gc::Cleaning;

/// Shares of all blocks (`LIMIT_INVALID_BLOCK`, `LIMIT_FREE_BLOCK`).
const INVALID_PERCENT: u64 = 40;
const FREE_PERCENT: u64 = 40;

impl Cleaning<'_> {
    /// Cleans a section whenever the volume is idle, until it is unmounted (`gc_thread_func`).
    pub(super) async fn run_gc_thread(&self) {
        let (least, most) =
            (self.volume.mount.options.gc_min_sleep, self.volume.mount.options.gc_max_sleep);
        let mut sleep = least;
        loop {
            self.volume.mount.env.rt.sleep(sleep).await;
            if self.volume.mount.env.calls.check_open().is_err() || self.volume.mount.stopped.get()
            {
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
                Ok(false) => sleep = most.max(self.volume.mount.options.gc_no_gc_sleep),
                // An error of metadata stops the volume; one of a file's data comes out of its next sync.
                Err(_) if self.volume.mount.stopped.get() => return,
                Err(_) => {}
            }
        }
    }

    /// Whether nothing has happened for a while (`is_idle`).
    fn is_idle(&self) -> bool {
        let since = self.volume.operations.idle_time();
        since >= self.volume.mount.options.idle_interval
            && self.volume.writes.data_in_flight.is_empty()
    }

    /// Whether much of what was written is invalid, and little is free (`has_enough_invalid_blocks`).
    fn has_many_invalid_blocks(&self) -> bool {
        let all = self.volume.nodes.space.user_blocks();
        let free = u64::from(self.volume.segments.borrow().free_segments())
            * u64::from(BLOCKS_PER_SEGMENT);
        let invalid =
            all.saturating_sub(self.volume.nodes.space.valid_blocks()).saturating_sub(free);
        invalid > all * INVALID_PERCENT / 100 && free < all * FREE_PERCENT / 100
    }
}
