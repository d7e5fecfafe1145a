//! A queue of a fixed depth.

use super::driver::Driver;
use nandscape_block::{Bio, Completion};
use nandscape_ftl::Ftl;
use nandscape_rt::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keeps `depth` bios in flight until `count` have completed; how long that took.
pub(crate) fn keep_busy<F: Ftl, S>(
    driver: &mut Driver<F, S>,
    depth: u64,
    count: u64,
    bio: impl Fn(u64) -> Bio,
) -> Nanos {
    let begun = driver.now;
    let (mut sent, mut ended) = (0, 0);
    let mut known = BinaryHeap::new();
    while ended < count {
        while sent < count && sent - ended < depth {
            if let Some(done) = driver.submit(bio(sent), sent) {
                assert!(done.result.is_ok());
                known.push(Reverse(done.at));
            }
            sent += 1;
        }
        let next = known.peek().map(|at| at.0);
        let now = driver.ftl.next_event().into_iter().chain(next).min().expect("in flight");
        driver.now = driver.now.max(now);
        let mut done = Vec::new();
        driver.ftl.advance(driver.now, &mut done);
        for Completion { done, .. } in done {
            assert!(done.result.is_ok());
            known.push(Reverse(done.at));
        }
        while known.peek().is_some_and(|at| at.0 <= driver.now) {
            known.pop();
            ended += 1;
        }
    }
    driver.now - begun
}
