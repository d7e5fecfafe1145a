//! Background write-back: one task a mount, as Linux has one a device.

use super::read::Backing;
use super::{IN_FLIGHT_MAX, PageCache};
use crate::contract::Result;
use nandscape_rt::Nanos;
use nandscape_rt::combine::select2;
use std::future::Future;
use std::rc::Rc;

/// Pages of one file that are written before the next file has its turn.
const TURN_PAGES: u64 = 1024;

/// A file system that writes dirty pages back.
pub trait WriteBack: Backing {
    /// Sends up to `pages` dirty pages of the file to the device; need not wait for them. Those that cannot
    /// be sent are taken and finished with the error, or writers would wait for them for ever.
    fn write_back(&self, file: &Rc<Self::File>, pages: u64) -> impl Future<Output = Result<()>>;
}

/// Writes old pages back, and the oldest when too many are dirty, until the cache is stopped.
pub async fn flush_in_background<B: WriteBack>(cache: PageCache<B::File>, backing: B) {
    let core = &cache.core;
    let mut look_at = core.handle.now().saturating_add(core.config.period);
    while !core.stopped.get() {
        let _ = select2(core.wake.notified(), core.handle.sleep_until(look_at)).await;
        while core.is_much_dirty() && turn(&cache, &backing, Nanos::MAX).await {}
        if core.handle.now() >= look_at {
            look_at = core.handle.now().saturating_add(core.config.period);
            let begun = core.handle.now();
            let expired = begun.saturating_sub(core.config.age);
            while begun >= core.config.age && turn(&cache, &backing, expired).await {}
        }
    }
}

/// Writes some of the file that has been dirty longest, if since `expired` or before. Whether there
/// was such a file and something was written.
async fn turn<B: WriteBack>(cache: &PageCache<B::File>, backing: &B, expired: Nanos) -> bool {
    let core = &cache.core;
    let oldest =
        cache.dirty_files.borrow().first_key_value().map(|(key, file)| (key.0, file.clone()));
    let Some((_, pages)) = oldest.filter(|(since, _)| *since <= expired) else { return false };
    while core.in_flight.get() > IN_FLIGHT_MAX && !core.stopped.get() {
        core.progress.notified().await;
    }
    let before = core.cleaned.get() + core.in_flight.get();
    let limit = if expired == Nanos::MAX { TURN_PAGES } else { u64::MAX };
    // What went wrong is the pages' matter: the next sync of the file tells it.
    if let Some(file) = pages.file() {
        let _ = backing.write_back(&file, limit).await;
    }
    pages.requeue();
    core.cleaned.get() + core.in_flight.get() > before && !core.stopped.get()
}
