//! Trees beside the contract in memory, on devices with append-only regions.

use super::devices::{assert_exact, coupled, device, interval, options};
use crate::churn::{Churn, Shape};
use crate::common::slow::{Slow, with};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::FileSystem;

/// A sequence of calls on a new volume, compared with the model; blocks that cleaning moved.
fn churn(fresh: Slow, seed: u64) -> (Slow, u64) {
    with(fresh, async move |rt, device| {
        let mut shape =
            Shape::new(seed, (seed % 3) as usize, 1, [6, 4, 2][(seed / 3 % 3) as usize]);
        let features = shape.made.features;
        shape.made = options(device.caps(), seed);
        shape.made.features = features;
        let mut churn = Churn::begin(&rt, device, seed, shape).await;
        churn.run(700).await;
        churn.compare().await;
        let moved = churn.fs.counts().detail.count("gc", "blocks_moved").expect("a count");
        churn.fs.unmount().await.expect("an unmount");
        moved
    })
}

/// Calls answer as the contract in memory does, and leave a sound volume; nothing is cleaned.
#[test]
fn interval_trees_are_those_of_the_model() {
    for seed in 1..6 {
        let (left, moved) = churn(device(interval(), 0), seed);
        assert_eq!(moved, 0, "blocks that cleaning moved");
        drop(assert_exact(left));
    }
}

/// The same where the device moves blocks meanwhile.
#[test]
fn coupled_trees_are_those_of_the_model() {
    for seed in 1..6 {
        let (left, moved) = churn(device(coupled(), 6), seed);
        assert_eq!(moved, 0, "blocks that cleaning moved");
        drop(assert_exact(left));
    }
}
