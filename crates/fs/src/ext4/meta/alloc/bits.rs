//! Searching and changing bitmaps of a group, 64 bits at a time. A set bit is in use.

use crate::ext4::format::Editable;
use std::ops::Range;

/// The words of a bitmap, little-endian as on disk.
type Words<'a> = &'a [[u8; 8]];

/// Words that are looked at as one where nothing is to be found: a cache line.
const STRIDE: usize = 8;

/// A bitmap, with the bits of another one taken for set as well. Bits behind their end are set.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    bitmap: Words<'a>,
    also: Words<'a>,
}

impl<'a> View<'a> {
    pub(crate) fn new(bitmap: &'a [u8], also: Option<&'a [u8]>) -> Self {
        Self { bitmap: bitmap.as_chunks().0, also: also.unwrap_or_default().as_chunks().0 }
    }

    fn word(&self, index: usize) -> u64 {
        let own = self.bitmap.get(index).map_or(u64::MAX, |word| u64::from_le_bytes(*word));
        own | self.also.get(index).map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// The first bit of this value in the range; its end if there is none.
    fn find(&self, value: bool, range: Range<u32>) -> u32 {
        if range.is_empty() {
            return range.end;
        }
        let of_value = |index| self.word(index) ^ if value { 0 } else { u64::MAX };
        let (first, last) = (range.start as usize / 64, (range.end - 1) as usize / 64);
        let rest = of_value(first) & u64::MAX << (range.start % 64);
        let found = if rest != 0 {
            Some((first, rest))
        } else {
            let from = self.skip(!value, first + 1..last + 1);
            (from..=last).map(|index| (index, of_value(index))).find(|(_, bits)| *bits != 0)
        };
        let bit = found.map(|(index, bits)| index as u32 * 64 + bits.trailing_zeros());
        bit.map_or(range.end, |bit| bit.min(range.end))
    }

    /// Goes over strides whose bits all have this value; the word behind them.
    fn skip(&self, value: bool, words: Range<usize>) -> usize {
        let dull = [if value { u64::MAX } else { 0 }; STRIDE];
        let mut at = words.start;
        while at + STRIDE <= words.end && self.stride(at) == Some(dull) {
            at += STRIDE;
        }
        at
    }

    /// A stride that begins with this word, if there are as many words.
    fn stride(&self, at: usize) -> Option<[u64; STRIDE]> {
        let words = |words: Words<'_>| {
            let stride = words.get(at..)?.first_chunk::<STRIDE>()?;
            Some(stride.map(u64::from_le_bytes))
        };
        let mut stride = words(self.bitmap)?;
        if !self.also.is_empty() {
            stride.iter_mut().zip(words(self.also)?).for_each(|(word, also)| *word |= also);
        }
        Some(stride)
    }

    /// The first run of free bits in the range, cut to `max`.
    pub(crate) fn next_run(&self, range: Range<u32>, max: u32) -> Option<Range<u32>> {
        let start = self.find(false, range.clone());
        let end = range.end.min(start.saturating_add(max));
        (start < range.end).then(|| start..self.find(true, start..end))
    }

    /// The first run of `wanted` free bits, or else the longest there is.
    pub(crate) fn best_run(&self, range: Range<u32>, wanted: u32) -> Option<Range<u32>> {
        let mut best: Option<Range<u32>> = None;
        let mut from = range.start;
        while let Some(run) = self.next_run(from..range.end, wanted) {
            from = run.end;
            if best.as_ref().is_none_or(|best| run.len() > best.len()) {
                best = Some(run);
            }
            if best.as_ref().is_some_and(|best| best.len() >= wanted as usize) {
                break;
            }
        }
        best
    }
}

/// Whether every bit of the range has this value.
pub(crate) fn all(bitmap: &[u8], range: Range<u32>, value: bool) -> bool {
    View::new(bitmap, None).find(!value, range.clone()) == range.end
}

/// Gives every bit of the range this value.
pub(crate) fn fill(bitmap: &mut (impl Editable + ?Sized), range: Range<u32>, value: bool) {
    let first = range.start as usize / 8;
    let bytes = bitmap.part(first..(range.end as usize).div_ceil(8).max(first));
    for bit in range {
        let byte = &mut bytes[bit as usize / 8 - first];
        let mask = 1 << (bit % 8);
        *byte = if value { *byte | mask } else { *byte & !mask };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However long the stretches of one value are, and wherever they begin and end, what is found
        /// is the first bit of the other.
        #[test]
        fn strides_hide_nothing(
            (at, value) in (0..2_000_u32, any::<bool>()),
            (start, end) in (0..2_048_u32, 0..2_048_u32),
            by_the_other in any::<bool>(),
        ) {
            let (mut bitmap, mut also) = ([if value { 0 } else { 255 }; 256], [0; 256]);
            fill(if by_the_other && value { &mut also } else { &mut bitmap }, at..at + 1, value);
            let view = View::new(&bitmap, (by_the_other || value).then_some(&also));
            let expected = if (start..end).contains(&at) { at } else { end };
            prop_assert_eq!(view.find(value, start..end), expected);
        }

        /// The runs found are those that a look at each bit finds.
        #[test]
        fn runs_are_what_single_bits_say(
            bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 32),
            busy in proptest::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 32),
            start in 0..256u32,
            wanted in 1..80u32,
        ) {
            let view = View::new(&bytes, Some(&busy));
            let free: Vec<bool> = (0..256)
                .map(|bit| (bytes[bit / 8] | busy[bit / 8]) >> (bit % 8) & 1 == 0)
                .collect();
            let mut runs = Vec::new();
            let mut from = start;
            while let Some(run) = view.next_run(from..256, u32::MAX) {
                prop_assert!(run.clone().all(|bit| free[bit as usize]));
                from = run.end;
                runs.push(run);
            }
            let found: usize = runs.iter().map(ExactSizeIterator::len).sum();
            prop_assert_eq!(found, free[start as usize..].iter().filter(|free| **free).count());
            let longest = runs.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
            let best = view.best_run(start..256, wanted).map_or(0, |run| run.len());
            prop_assert_eq!(best, longest.min(wanted as usize));
        }

        /// Filling changes the range and nothing else.
        #[test]
        fn fills_are_exact(a in 0..256u32, b in 0..256u32, value in any::<bool>()) {
            let range = a.min(b)..a.max(b);
            let mut bytes = [if value { 0 } else { 255 }; 32];
            fill(&mut bytes, range.clone(), value);
            for bit in 0..256 {
                prop_assert_eq!(all(&bytes, bit..bit + 1, value), range.contains(&bit));
            }
        }
    }
}
