//! Work that shares nothing, on several threads. Results come back in any order; a caller that needs an
//! order restores it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

/// Calls `work` with every number of `range` on as many threads as wanted, and `gather` with each
/// result on this one. Numbers are taken in order until `stop` says so; what was taken is finished.
#[expect(clippy::disallowed_methods, reason = "no result depends on which thread computed it")]
pub(crate) fn spread<T: Send>(
    threads: u32,
    range: Range<u64>,
    stop: &(dyn Fn() -> bool + Sync),
    work: &(dyn Fn(u64) -> T + Sync),
    gather: impl FnMut(T),
) {
    let next = AtomicU64::new(range.start);
    let (sender, results) = mpsc::channel();
    let take_turns = |sender: mpsc::Sender<T>| {
        while !stop() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= range.end || sender.send(work(number)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(|| take_turns(sender));
        }
        drop(sender);
        results.into_iter().for_each(gather);
    });
}

/// As many threads as were asked for, or as there are cores.
pub(crate) fn threads(asked: Option<u32>) -> u32 {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    asked.unwrap_or_else(cores)
}
