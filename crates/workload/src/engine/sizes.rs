//! How large the next I/O is: one size, a range of them (`bsrange`), or shares (`bssplit`).
//!
//! As in fio (io_u.c, get_next_buflen), a size that does not fit into what is left of the range is
//! drawn again; a range draws `least + largest * u`, cut to a multiple of the least and to the
//! largest, so that every multiple is equally likely; sizes of shares, too, are cut to multiples of the least.

use crate::fio::BlockSizes;
use nandscape_rt::Stream;

/// Sizes in units of the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Sizes {
    Fixed(u32),
    Range {
        least: u32,
        largest: u32,
    },
    /// Sizes, each with the sum of the percentages up to its own.
    Split(Vec<(u32, u64)>),
}

impl Sizes {
    /// Sizes in units of so many bytes; one that is less, in a direction that the job does not use, is one unit.
    pub(super) fn new(sizes: &BlockSizes, unit_bytes: u64) -> Self {
        let units = |bytes: u64| (bytes / unit_bytes).max(1) as u32;
        match sizes {
            BlockSizes::Fixed(bytes) => Self::Fixed(units(*bytes)),
            BlockSizes::Range(least, largest) => {
                Self::Range { least: units(*least), largest: units(*largest) }
            }
            BlockSizes::Split(shares) => {
                let mut below = 0;
                let least = units(sizes.min());
                let split = shares.iter().map(|(bytes, percent)| {
                    below += percent;
                    (units(*bytes) / least * least, below)
                });
                Self::Split(split.collect())
            }
        }
    }

    /// Whether they are drawn.
    pub(super) const fn vary(&self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// The smallest size.
    pub(super) fn least(&self) -> u32 {
        match self {
            Self::Fixed(units) => *units,
            Self::Range { least, .. } => *least,
            Self::Split(shares) => shares.iter().map(|share| share.0).min().unwrap_or(1),
        }
    }

    /// The largest size.
    pub(super) fn largest(&self) -> u32 {
        match self {
            Self::Fixed(units) => *units,
            Self::Range { largest, .. } => *largest,
            Self::Split(shares) => shares.iter().map(|share| share.0).max().unwrap_or(1),
        }
    }

    /// A size within `room` units, which must hold the least size.
    #[inline]
    pub(super) fn draw(&self, room: u64, random: &mut Stream) -> u32 {
        match self {
            Self::Fixed(units) => *units,
            _ => self.draw_varied(room, random),
        }
    }

    #[cold]
    #[inline(never)]
    fn draw_varied(&self, room: u64, random: &mut Stream) -> u32 {
        loop {
            let units = match self {
                Self::Fixed(units) => *units,
                Self::Range { least, largest } => {
                    let units = least + random.below(u64::from(*largest)) as u32;
                    (units - units % least).min(*largest)
                }
                Self::Split(shares) => {
                    let percent = random.below(100);
                    let share = shares.iter().find(|(_, below)| percent < *below);
                    share.map_or(1, |(units, _)| *units)
                }
            };
            if u64::from(units) <= room {
                return units;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sizes: &Sizes, room: u64) -> Vec<u64> {
        let mut random = Stream::new(1, "sizes");
        let mut counts = vec![0; 20];
        (0..100_000).for_each(|_| counts[sizes.draw(room, &mut random) as usize] += 1);
        counts
    }

    /// Every multiple of the least size comes equally often; the largest also where it is none.
    #[test]
    fn ranges_are_even() {
        let counts = drawn(&Sizes::Range { least: 2, largest: 8 }, 100);
        for (units, count) in counts.iter().enumerate() {
            let even = [2, 4, 6, 8].contains(&units);
            assert!(if even { (24_400..25_600).contains(count) } else { *count == 0 }, "{units}");
        }
        let odd = drawn(&Sizes::Range { least: 2, largest: 5 }, 100);
        assert_eq!(odd.iter().sum::<u64>(), odd[2] + odd[4] + odd[5]);
        assert!((19_400..20_600).contains(&odd[5]), "{odd:?}");
    }

    /// Shares hold; where a size does not fit, the others keep their proportions.
    #[test]
    fn splits_follow_their_percentages() {
        let shares = BlockSizes::Split(vec![(4096, 10), (65_536, 50), (32_768, 40)]);
        let split = Sizes::new(&shares, 4096);
        assert_eq!((split.least(), split.largest()), (1, 16));
        let counts = drawn(&split, 16);
        for (units, percent) in [(1, 10), (16, 50), (8, 40)] {
            assert!(counts[units].abs_diff(percent * 1_000) < 600, "{units}: {counts:?}");
        }
        let tight = drawn(&split, 15);
        assert_eq!(tight[16], 0);
        assert!(tight[1].abs_diff(20_000) < 600, "{tight:?}");
    }
}
