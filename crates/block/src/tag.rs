//! Tags: 63 bits that stand for a fixed pseudo-random 4 KiB pattern. [`Tag::ZERO`] is a sector of
//! zeroes, which is what a sector never written reads as.

use crate::address::{SECTOR_BYTES, SectorBytes};
use std::ops::Range;

/// JBD2's magic, big-endian in a block's first word; no pattern begins with it.
const JBD2_MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

/// Identity of a sector's content: 63 bits, standing for a fixed 4 KiB pattern.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Tag(u64);

impl Tag {
    /// A sector of zeroes.
    pub const ZERO: Self = Self(0);
    const MASK: u64 = u64::MAX >> 1;

    /// The tag with these low 63 bits.
    #[inline]
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits & Self::MASK)
    }

    /// The 63 bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The tag `n` further on, for runs.
    #[inline]
    #[must_use]
    pub const fn plus(self, n: u64) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// The pattern that this tag is; zeroes for [`Tag::ZERO`].
    ///
    /// Each of its little-endian words is fixed noise with the tag laid over it (exclusive or),
    /// turned left by as many bits as there are words before. So patterns are affine over the tags'
    /// bits: those of `a`, `b` and `c` laid over each other are that of `a ^ b ^ c`, as long as none
    /// of the four is [`Tag::ZERO`]; a linear checksum of a pattern follows from those of a few. In
    /// the first word the low byte is the noise's, whatever the tag, and not that of JBD2's magic.
    #[must_use]
    pub fn expand(self) -> Box<SectorBytes> {
        let mut bytes = Box::new([0; SECTOR_BYTES as usize]);
        self.write_pattern(&mut bytes, 0..SECTOR_BYTES as usize);
        bytes
    }

    /// Writes a part of the pattern to its place among zeroes.
    pub(crate) fn write_pattern(self, bytes: &mut SectorBytes, part: Range<usize>) {
        if self == Self::ZERO || part.is_empty() {
            return;
        }
        let (first, end) = (part.start / WORD_BYTES, part.end.div_ceil(WORD_BYTES));
        let words = &mut bytes.as_chunks_mut::<WORD_BYTES>().0[first..end];
        let (left, right) = (part.start % WORD_BYTES, end * WORD_BYTES - part.end);
        let kept = [words[0], words[words.len() - 1]];
        for (index, word) in (first..).zip(&mut *words) {
            *word = self.word(index).to_le_bytes();
        }
        let last = words.len() - 1;
        words[0][..left].copy_from_slice(&kept[0][..left]);
        words[last][WORD_BYTES - right..].copy_from_slice(&kept[1][WORD_BYTES - right..]);
    }

    #[inline]
    const fn word(self, index: usize) -> u64 {
        let turned = self.0.rotate_left(index as u32 % u64::BITS);
        NOISE[index] ^ if index == 0 { turned & !0xff } else { turned }
    }
}

const WORD_BYTES: usize = size_of::<u64>();
const WORDS: usize = SECTOR_BYTES as usize / WORD_BYTES;

/// What patterns have in common (splitmix64, seeded with zero).
static NOISE: [u64; WORDS] = noise();

const fn noise() -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let (mut state, mut index) = (0_u64, 0);
    while index < WORDS {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        words[index] = z ^ (z >> 31);
        index += 1;
    }
    words
}

const _: () = assert!(noise()[0] as u8 != JBD2_MAGIC[0]);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No pattern begins with JBD2's magic: all begin with the same byte, which is another one.
        #[test]
        fn no_pattern_begins_with_the_magic(bits in any::<u64>()) {
            let tag = Tag::new(bits);
            let first = if tag == Tag::ZERO { 0 } else { NOISE[0] as u8 };
            prop_assert_eq!(tag.expand()[0], first);
            prop_assert_ne!(first, JBD2_MAGIC[0]);
        }

        /// Patterns laid over each other are patterns.
        #[test]
        fn patterns_are_affine(a in 1..=Tag::MASK, b in 1..=Tag::MASK, c in 1..=Tag::MASK) {
            prop_assume!(a ^ b ^ c != 0);
            let [x, y, z, sum] = [a, b, c, a ^ b ^ c].map(|bits| Tag::new(bits).expand());
            prop_assert!((0..x.len()).all(|at| x[at] ^ y[at] ^ z[at] == sum[at]));
        }
    }
}
