//! Sets of up to sixty-four things, as words.

use std::ops::Range;

/// The numbers of the bits that are set, in order.
pub fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    (0..bits.count_ones()).map(move |_| {
        let index = bits.trailing_zeros() as usize;
        bits &= bits - 1;
        index
    })
}

/// The word in which the bits of a range are set, as far as a word has them.
#[must_use]
pub fn bits_of(range: &Range<usize>) -> u64 {
    let below = |bit: usize| {
        let bit = u32::try_from(bit).unwrap_or(u32::MAX);
        1_u64.checked_shl(bit).map_or(u64::MAX, |bit| bit - 1)
    };
    below(range.end) & !below(range.start)
}
