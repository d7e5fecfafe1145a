//! A random order of `0..n` without memory: a keyed bijection, evaluated at 0, 1, 2, ...
//!
//! fio remembers in a bitmap which blocks a pass has touched and searches on from a taken one, which
//! costs a bit a block and favours blocks behind long taken runs. Here four rounds of odd multiply,
//! add and xor-shift permute the smallest power of two that holds `n`, and values beyond `n` walk on
//! until they fall inside (fewer than two steps on average). Black and Rogaway, "Ciphers with
//! Arbitrary Finite Domains" (2002), for the walk.

use nandscape_rt::Stream;

const ROUNDS: usize = 4;

/// A bijection of `0..n`.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    rounds: [(u64, u64); ROUNDS],
    mask: u64,
    shift: u32,
    n: u64,
}

impl Permutation {
    /// A random permutation of `0..n`, `n` from 1 to 2^63.
    pub(crate) fn new(n: u64, random: &mut Stream) -> Self {
        let mask = n.next_power_of_two() - 1;
        let rounds = std::array::from_fn(|_| (random.bits() | 1, random.bits()));
        Self { rounds, mask, shift: (mask.count_ones() / 2).max(1), n }
    }

    /// Where `index`, below `n`, goes.
    #[inline]
    pub(crate) fn at(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            for (factor, addend) in self.rounds {
                x = x.wrapping_mul(factor).wrapping_add(addend) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value comes exactly once.
    #[test]
    fn it_is_a_bijection_at_every_size() {
        let mut random = Stream::new(3, "permutation");
        for n in (1..70).chain([1_000, 4_095, 4_096, 4_097]) {
            let permutation = Permutation::new(n, &mut random);
            let mut seen = vec![false; n as usize];
            (0..n).for_each(|i| seen[permutation.at(i) as usize] = true);
            assert!(seen.iter().all(|s| *s), "{n}");
        }
    }

    /// It looks random: values that follow one another are uncorrelated, and any stretch of the
    /// order covers the range evenly.
    #[test]
    fn neighbours_land_apart_and_stretches_cover_evenly() {
        let n = 1_000_003;
        let permutation = Permutation::new(n, &mut Stream::new(5, "permutation"));
        let values: Vec<f64> = (0..n).map(|i| permutation.at(i) as f64 / n as f64 - 0.5).collect();
        let products: f64 = values.windows(2).map(|w| w[0] * w[1]).sum();
        let correlation = products / n as f64 * 12.0;
        assert!(correlation.abs() < 0.005, "{correlation}");
        for stretch in values.chunks_exact(10_000) {
            let mut cells = [0_u32; 10];
            stretch.iter().for_each(|v| cells[((v + 0.5) * 10.0) as usize] += 1);
            let chi: f64 =
                cells.iter().map(|c| (f64::from(*c) - 1e3) * (f64::from(*c) - 1e3) / 1e3).sum();
            assert!(chi < 40.0, "{chi}: beyond one in a hundred thousand for nine degrees");
        }
    }
}
