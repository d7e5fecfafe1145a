//! How seeds choose: numbers in a range, evenly or by their size, and one of several by weight.

use nandscape_rt::Stream;

/// Uniform in a range that includes its end.
pub(crate) fn between(rng: &mut Stream, least: u32, most: u32) -> u32 {
    least + rng.below(u64::from(most.max(least) - least) + 1) as u32
}

/// Uniform in the logarithm, from 1 to `max`.
pub(crate) fn log_uniform(rng: &mut Stream, max: u64) -> u64 {
    let bits = rng.below(u64::from(max.max(1).ilog2()) + 1);
    ((1 << bits) + rng.below(1 << bits)).min(max.max(1))
}

/// Index of a weight, drawn in proportion.
pub(crate) fn pick(rng: &mut Stream, weights: &[u64]) -> usize {
    let mut left = rng.below(weights.iter().sum::<u64>().max(1));
    let found = weights.iter().position(|weight| {
        let here = left < *weight;
        left = left.saturating_sub(*weight);
        here
    });
    found.unwrap_or(0)
}
