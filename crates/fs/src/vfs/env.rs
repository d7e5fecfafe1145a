//! What a mount stands on.

use super::calls::CallTracker;
use super::space::SpacePool;
use crate::cache::{CacheConfig, PageCache};
use crate::contract::Timestamp;
use crate::counts::FsyncTimes;
use nandscape_block::AsyncDevice;
use nandscape_rt::{Handle, Nanos};
use std::cell::Cell;

/// Times of files are as coarse as Linux's: a tick of 4 ms.
const TICK: Nanos = Nanos::from_ms(4);

/// Parts of a mount that are the same in every file system; `F` is an inode in memory.
pub(crate) struct VolumeEnv<F: 'static> {
    pub(crate) rt: Handle,
    pub(crate) device: AsyncDevice,
    pub(crate) cache: PageCache<F>,
    pub(crate) calls: CallTracker,
    pub(crate) space: SpacePool,
    pub(crate) fsync_times: Cell<FsyncTimes>,
    /// Seconds after 1970 at which the run began.
    epoch_s: i64,
}

impl<F> VolumeEnv<F> {
    pub(crate) fn new(rt: &Handle, device: AsyncDevice, cache: CacheConfig, epoch_s: i64) -> Self {
        Self {
            rt: rt.clone(),
            device,
            cache: PageCache::new(rt, cache),
            calls: CallTracker::new(rt),
            space: SpacePool::default(),
            fsync_times: Cell::default(),
            epoch_s,
        }
    }

    /// The time for files.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.rt.now();
        Timestamp::at(self.epoch_s, Nanos(now.0 - now.0 % TICK.0))
    }
}
