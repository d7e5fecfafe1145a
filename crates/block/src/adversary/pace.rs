//! When the adversary acts: how long a bio takes, and when within that time it lands. The style is drawn,
//! for each class of bios alone: so journal writes may be slow where data is fast, and the other way round.

use crate::bio::{Bio, Flags, Op};
use crate::zone::ZoneAction;
use nandscape_rt::{Nanos, Stream};
use std::ops::Range;

/// Scales of latencies: at once, tens of microseconds, tens of milliseconds.
const SCALES_NS: [Range<u64>; 3] = [0..1, 5_000..100_000, 1_000_000..50_000_000];
/// How often a class may have each of them.
const WEIGHTS: [[u64; 3]; 6] = [[1, 0, 0], [0, 1, 0], [1, 4, 0], [4, 1, 0], [8, 64, 1], [0, 32, 1]];
/// Classes of bios: flushes, writes of a journal, of metadata, other writes, reads.
const CLASSES: usize = 5;
/// One bio in so many lands in pieces of its own time each.
const PIECES_ONE_IN: u64 = 4;

/// The drawn style.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    weights: [[u64; 3]; CLASSES],
}

/// When the steps of a bio come, from its submission on.
pub(super) struct Timing {
    /// Its flush takes effect.
    pub(super) flush: Option<Nanos>,
    /// Its sectors land or are taken, or it takes effect on its zone.
    pub(super) pieces: Vec<(Nanos, Range<u32>)>,
    pub(super) complete: Nanos,
}

impl Pace {
    pub(super) fn draw(rng: &mut Stream) -> Self {
        let weights = std::array::from_fn(|_| WEIGHTS[rng.below(WEIGHTS.len() as u64) as usize]);
        Self { weights }
    }

    /// Draws when the steps of a bio come.
    pub(super) fn time(&self, bio: &Bio, rng: &mut Stream) -> Timing {
        let complete = self.latency(bio, rng);
        if bio.op == Op::Flush {
            let (flush, pieces) = (Some(complete), Vec::new());
            return Timing { flush, pieces, complete };
        }
        if matches!(bio.op, Op::Zone(..) | Op::ZoneReport) {
            let takes_effect =
                matches!(bio.op, Op::Zone(_, ZoneAction::Reset | ZoneAction::Finish));
            let pieces = takes_effect.then(|| (instant(Nanos::ZERO, complete, rng), 0..0));
            return Timing { flush: None, pieces: pieces.into_iter().collect(), complete };
        }
        let flush = bio.flags.has(Flags::PREFLUSH);
        let flush = flush.then(|| instant(Nanos::ZERO, complete, rng));
        let begin = flush.unwrap_or_default();
        let mut pieces = Vec::new();
        let mut from = 0;
        while from < bio.sectors {
            let left = bio.sectors - from;
            let count = match rng.below(PIECES_ONE_IN) {
                0 => 1 + rng.below(left.into()) as u32,
                _ => left,
            };
            pieces.push((instant(begin, complete, rng), from..from + count));
            from += count;
        }
        Timing { flush, pieces, complete }
    }

    fn latency(&self, bio: &Bio, rng: &mut Stream) -> Nanos {
        let weights = &self.weights[class(bio)];
        let mut left = rng.below(weights.iter().sum());
        let mut scale = 0;
        while left >= weights[scale] {
            left -= weights[scale];
            scale += 1;
        }
        Nanos(rng.within(SCALES_NS[scale].clone()))
    }
}

fn class(bio: &Bio) -> usize {
    match bio.op {
        Op::Flush => 0,
        Op::Read => 4,
        _ if bio.flags.has(Flags::JOURNAL) => 1,
        _ if bio.flags.has(Flags::META) => 2,
        _ => 3,
    }
}

/// An instant in a range: as early or as late as may be, or in between.
fn instant(begin: Nanos, end: Nanos, rng: &mut Stream) -> Nanos {
    match rng.below(4) {
        0 => begin,
        1 => end,
        _ => Nanos(begin.0 + rng.below(end.0 - begin.0 + 1)),
    }
}
