//! Named random streams. Every component draws from its own stream, derived from the run's seed
//! and the component's name, so adding one component does not shift the others' draws.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::ops::Range;

/// One component's private source of randomness (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` of the run with this seed.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        let named = name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(named))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`, by multiply-shift (bias below n / 2^64). `n` must not be 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `[0, 1)`, 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }

    /// Uniform in `range`, which must not be empty.
    #[inline]
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// Puts `items` into a random order, each order equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for left in (2..=items.len()).rev() {
            items.swap(left - 1, self.below(left as u64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bits on every machine, and other ones for another seed or name.
    #[test]
    fn golden_vectors() {
        let first = |seed, name| {
            let mut rng = Stream::new(seed, name);
            [rng.bits(), rng.bits(), rng.bits()]
        };
        assert_eq!(
            first(1, "workload"),
            [1702620305894345707, 4266136981299617151, 14204176643930867235]
        );
        assert_eq!(
            first(1, "faults"),
            [2462227126977446836, 11489486540679675571, 3117187302071491867]
        );
        assert_eq!(
            first(2, "workload"),
            [3933254612342799095, 346393128575043135, 3815707186457385056]
        );
    }

    #[test]
    fn golden_draws() {
        let mut rng = Stream::new(1, "draws");
        assert_eq!([rng.below(10), rng.below(1_000), rng.below(1 << 40)], [1, 401, 475060911396]);
        assert_eq!([rng.within(5..8), rng.within(5..8), rng.within(100..101)], [7, 7, 100]);
        assert_eq!(rng.unit().to_bits(), 4581927175271907872);
        let mut cards = [0, 1, 2, 3, 4, 5, 6, 7];
        rng.shuffle(&mut cards);
        assert_eq!(cards, [0, 2, 3, 5, 4, 6, 1, 7]);
    }

    /// Every outcome of a range is drawn, about equally often, and none outside it.
    #[test]
    fn ranges_are_uniform() {
        let mut rng = Stream::new(4, "ranges");
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[(rng.within(100..107) - 100) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (9_500..10_500).contains(&count)), "{seen:?}");
    }

    /// Every order of three is drawn, about equally often.
    #[test]
    fn shuffles_are_uniform() {
        let mut rng = Stream::new(4, "shuffles");
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..60_000 {
            let mut cards = [1, 2, 3];
            rng.shuffle(&mut cards);
            *seen.entry(cards).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|&count| (9_500..10_500).contains(&count)), "{seen:?}");
    }

    #[test]
    fn chances_are_kept() {
        let mut rng = Stream::new(4, "chances");
        let hits = (0..100_000).filter(|_| rng.chance(0.25)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
        assert!(!(0..1_000).any(|_| rng.chance(0.0)));
        assert!((0..1_000).all(|_| rng.chance(1.0)));
    }
}
