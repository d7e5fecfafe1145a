//! Places that are not equally popular: zipf over the places of a file, as in fio's
//! `random_distribution=zipf`.
//!
//! Ranks are scattered by a permutation that follows from the run's seed and the number of places: all flowops on
//! as many places have the same hot ones, whichever thread they are of.

use crate::permutation::Permutation;
use nandscape_rt::Stream;
use nandscape_rt::dist::{BadParameter, Zipf};

/// A skewed choice among the places of a file.
#[derive(Clone, Debug)]
pub(super) struct Skew {
    places: u64,
    ranks: Zipf,
    scatter: Permutation,
}

impl Skew {
    /// Over `places` places, with zipf's exponent.
    ///
    /// # Errors
    /// Without places, or with a `theta` that is not above 0.
    pub(super) fn new(places: u64, theta: f64, seed: u64) -> Result<Self, BadParameter> {
        let ranks = Zipf::new(places, theta)?;
        let scatter = Permutation::new(places, &mut Stream::new(seed, "wml.zipf"));
        Ok(Self { places, ranks, scatter })
    }

    /// Whether it is over so many places.
    pub(super) const fn is_over(&self, places: u64) -> bool {
        self.places == places
    }

    /// A place.
    pub(super) fn draw(&self, rng: &mut Stream) -> u64 {
        self.scatter.at(self.ranks.sample(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: u64 = 1_000;

    fn counts(skew: &Skew, thread: &str) -> Vec<u64> {
        let mut rng = Stream::new(7, thread);
        let mut counts = vec![0; PLACES as usize];
        (0..100_000).for_each(|_| counts[skew.draw(&mut rng) as usize] += 1);
        counts
    }

    /// Places from the most popular on.
    fn by_popularity(counts: &[u64]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..counts.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(counts[*place]));
        places
    }

    /// Shares follow zipf: the second place has 1 / 2^theta of the first's draws, and ten in a thousand
    /// places have about four in ten.
    #[test]
    fn shares_are_zipf() {
        let counts = counts(&Skew::new(PLACES, 0.99, 1).unwrap(), "a");
        let order = by_popularity(&counts);
        let of = |rank: usize| counts[order[rank]] as f64;
        assert!((of(1) / of(0) - libm::exp2(-0.99)).abs() < 0.03, "{} {}", of(0), of(1));
        let first: u64 = order[..10].iter().map(|place| counts[*place]).sum();
        assert!((36_000..44_000).contains(&first), "{first}");
    }

    /// Threads agree on which places are hot, these lie apart, and another seed has others.
    #[test]
    fn hot_places_are_shared_and_scattered() {
        let hot = |seed, thread: &str| {
            let counts = counts(&Skew::new(PLACES, 0.99, seed).unwrap(), thread);
            by_popularity(&counts)[..4].to_vec()
        };
        let here = hot(1, "a");
        assert_eq!(here, hot(1, "b"));
        assert_ne!(here, hot(2, "a"));
        let (least, most) = (here.iter().min().unwrap(), here.iter().max().unwrap());
        assert!(most - least > 100, "{here:?}");
    }
}
