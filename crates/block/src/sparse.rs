//! A sector's bytes without those cache lines that say nothing: of all zeroes, of all ones, or the same
//! as in an older content. Of metadata that is most: bitmaps, tables that are not full yet, and blocks
//! of which a log has one copy after the other, each a little different from the one before.
//!
//! A content may share lines with an older one, its base, and through it with that one's base. All that
//! changed along such a chain is at most as many lines as a sector has, so that getting bytes back takes
//! 64 steps at most, and no content keeps alive more lines than two sectors have.

use crate::address::{SECTOR_BYTES, SectorBytes};
use crate::bits::{bits_of, set_bits};
use std::sync::Arc;

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;
const LINES: usize = SECTOR_BYTES as usize / LINE_BYTES;

type Line = [u8; LINE_BYTES];

const _: () = assert!(LINES == u64::BITS as usize);

/// A content by its lines. Line `i` is `lines[n]`, if bit `i` of `kept` is the `n`-th that is set; all
/// ones, if it is set in `ones`, which has no bit of `kept`; and otherwise that of the base, or all zeroes
/// without one.
#[derive(Clone, Debug)]
pub struct SparseBytes {
    kept: u64,
    ones: u64,
    lines: Box<[Line]>,
    base: Option<Arc<SparseBytes>>,
    /// Lines that changed along the chain, from its first content to this one.
    changed: u32,
}

impl SparseBytes {
    /// The most RAM that a content can take besides its base.
    pub const BYTES_MAX: u64 = Self::HEAD_BYTES + SECTOR_BYTES;
    /// Bytes of a shared content without its lines: itself, and the two counts of its `Arc`.
    const HEAD_BYTES: u64 = size_of::<Self>() as u64 + 16;

    /// A content that shares nothing.
    #[must_use]
    pub fn new(bytes: &SectorBytes) -> Self {
        Self::within(bytes, u64::MAX)
    }

    /// The same of bytes that are zeroes but for the lines whose bits are set in `within`.
    #[must_use]
    pub fn within(bytes: &SectorBytes, within: u64) -> Self {
        Self::of_lines(bytes, within, None)
    }

    /// The content that differs from `base` in the lines whose bits are set in `changed`, or some of
    /// them; nothing if too much has changed along the chain.
    #[must_use]
    pub fn changed(base: &Arc<Self>, bytes: &SectorBytes, changed: u64) -> Option<Self> {
        let in_all = base.changed + changed.count_ones().max(1);
        let base = (in_all <= LINES as u32).then(|| Arc::clone(base))?;
        Some(Self { changed: in_all, ..Self::of_lines(bytes, changed, Some(base)) })
    }

    /// The content of these bytes, of which lines that are as in `base` are not kept again; nothing if too much has
    /// changed along the chain.
    #[must_use]
    pub fn following(base: &Arc<Self>, bytes: &SectorBytes) -> Option<Self> {
        let before = base.bytes();
        let lines = before.as_chunks::<LINE_BYTES>().0.iter().zip(bytes.as_chunks().0);
        let differs = |changed, (index, (old, new)): (usize, (&Line, &Line))| {
            changed | u64::from(old != new) << index
        };
        Self::changed(base, bytes, lines.enumerate().fold(0, differs))
    }

    /// Keeps the lines of `which`. Zeroes need no keeping where there is no base.
    fn of_lines(bytes: &SectorBytes, which: u64, base: Option<Arc<Self>>) -> Self {
        let (places, _) = bytes.as_chunks::<LINE_BYTES>();
        let (mut kept, mut ones) = (0_u64, 0_u64);
        for index in set_bits(which) {
            match filling(&places[index]) {
                Some(0) if base.is_none() => {}
                Some(u8::MAX) => ones |= 1 << index,
                _ => kept |= 1 << index,
            }
        }
        let lines = set_bits(kept).map(|index| places[index]).collect();
        Self { kept, ones, lines, base, changed: 0 }
    }

    /// The lines that it says itself.
    const fn own(&self) -> u64 {
        self.kept | self.ones
    }

    /// How many lines it keeps itself.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.lines.len()
    }

    /// The line that begins at byte `64 * index`; of zeroes beyond the last.
    #[must_use]
    pub fn line(&self, index: usize) -> [u8; LINE_BYTES] {
        let bit = 1_u64.checked_shl(index as u32).unwrap_or(0);
        let mut content = self;
        while let Some(base) = content.base.as_deref().filter(|_| content.own() & bit == 0) {
            content = base;
        }
        if content.kept & bit != 0 {
            content.lines[(content.kept & (bit - 1)).count_ones() as usize]
        } else {
            [if content.ones & bit != 0 { u8::MAX } else { 0 }; LINE_BYTES]
        }
    }

    /// The content.
    #[must_use]
    pub fn bytes(&self) -> Box<SectorBytes> {
        let mut bytes = Box::new([0; SECTOR_BYTES as usize]);
        let (places, _) = bytes.as_chunks_mut::<LINE_BYTES>();
        let (mut content, mut left) = (self, u64::MAX);
        loop {
            set_bits(content.ones & left).for_each(|index| places[index] = [u8::MAX; LINE_BYTES]);
            let kept = set_bits(content.kept).zip(&content.lines);
            kept.filter(|(index, _)| left >> index & 1 == 1)
                .for_each(|(index, line)| places[index] = *line);
            left &= !content.own();
            match &content.base {
                Some(base) => content = base,
                None => return bytes,
            }
        }
    }

    /// Bytes of RAM that it takes besides its base, in full however many share it.
    #[must_use]
    pub const fn own_bytes(&self) -> u64 {
        Self::HEAD_BYTES + (self.lines.len() * LINE_BYTES) as u64
    }
}

/// The byte that all of a line is, if it is of all zeroes or of all ones.
fn filling(line: &Line) -> Option<u8> {
    let (words, _) = line.as_chunks::<8>();
    let first = u64::from_ne_bytes(words[0]);
    if first.wrapping_add(1) > 1 {
        return None;
    }
    let differs = words.iter().fold(0, |sum, word| sum | u64::from_ne_bytes(*word) ^ first);
    (differs == 0).then_some(first as u8)
}

/// The lines that a range of bytes touches, as bits.
#[must_use]
pub fn lines_of(range: &std::ops::Range<usize>) -> u64 {
    let (first, end) = (range.start / LINE_BYTES, range.end.div_ceil(LINE_BYTES).min(LINES));
    if range.is_empty() { 0 } else { bits_of(&(first..end)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A content whose lines are of these kinds: zeroes, ones, and two that say something.
    fn content(kinds: &[u8]) -> SectorBytes {
        let mut bytes = [0; SECTOR_BYTES as usize];
        for (line, kind) in bytes.as_chunks_mut::<LINE_BYTES>().0.iter_mut().zip(kinds) {
            match kind {
                0 => {}
                1 => line.fill(u8::MAX),
                2 => line[LINE_BYTES - 1] = 1,
                _ => {
                    line.fill(u8::MAX);
                    line[0] = 0xfe;
                }
            }
        }
        bytes
    }

    fn line_of(bytes: &SectorBytes, index: usize) -> Line {
        bytes.as_chunks::<LINE_BYTES>().0[index]
    }

    proptest! {
        /// Every content comes back whole and by lines, and takes the lines that say something.
        #[test]
        fn contents_come_back(kinds in vec(0..4_u8, LINES)) {
            let bytes = content(&kinds);
            let sparse = SparseBytes::new(&bytes);
            prop_assert_eq!(&*sparse.bytes(), &bytes);
            prop_assert!((0..LINES).all(|index| sparse.line(index) == line_of(&bytes, index)));
            prop_assert_eq!(sparse.line(LINES), [0; LINE_BYTES]);
            let kept = kinds.iter().filter(|kind| **kind > 1).count();
            prop_assert_eq!(sparse.own_bytes(), SparseBytes::HEAD_BYTES + 64 * kept as u64);
            prop_assert!(sparse.own_bytes() <= SparseBytes::BYTES_MAX);
        }

        /// Contents that changed come back, whatever was there before, and take only lines that changed;
        /// a chain ends when all of a sector's lines could have changed along it.
        #[test]
        fn changes_come_back(
            first in vec(0..4_u8, LINES),
            changes in vec((vec(0..4_u8, LINES), any::<u64>(), any::<u64>(), any::<u64>()), 1..20),
        ) {
            let (mut kinds, mut so_far) = (first, 0);
            let mut base = Arc::new(SparseBytes::new(&content(&kinds)));
            for (new, mask, thinner, thinnest) in changes {
                let mask = mask & thinner & thinnest;
                let changed = (0..LINES).filter(|index| mask >> index & 1 == 1);
                changed.for_each(|index| kinds[index] = new[index]);
                so_far += mask.count_ones().max(1);
                let bytes = content(&kinds);
                let Some(sparse) = SparseBytes::changed(&base, &bytes, mask) else {
                    prop_assert!(so_far > LINES as u32);
                    break;
                };
                prop_assert!(so_far <= LINES as u32);
                prop_assert_eq!(&*sparse.bytes(), &bytes);
                prop_assert!((0..LINES).all(|index| sparse.line(index) == line_of(&bytes, index)));
                prop_assert!(sparse.lines() <= mask.count_ones() as usize);
                prop_assert_eq!(sparse.bytes(), SparseBytes::new(&bytes).bytes());
                base = Arc::new(sparse);
            }
        }

        /// A content that follows another takes just the lines that differ, and comes back.
        #[test]
        fn followers_keep_what_differs(first in vec(0..4_u8, LINES), second in vec(0..4_u8, LINES)) {
            let (old, new) = (content(&first), content(&second));
            let base = Arc::new(SparseBytes::new(&old));
            let differ = (0..LINES).filter(|index| line_of(&old, *index) != line_of(&new, *index));
            let ones = |index: &usize| line_of(&new, *index) == [u8::MAX; LINE_BYTES];
            let kept = differ.filter(|index| !ones(index)).count();
            let follower = SparseBytes::following(&base, &new).expect("a chain of two");
            prop_assert_eq!(&*follower.bytes(), &new);
            prop_assert_eq!(follower.lines(), kept);
        }

        /// Just the lines with a byte in the range.
        #[test]
        fn lines_are_those_of_the_bytes(from in 0..=4_096_usize, bytes in 0..=4_096_usize) {
            let range = from..(from + bytes).min(4_096);
            let expected = range.clone().fold(0, |bits, byte| bits | 1_u64 << (byte / LINE_BYTES));
            prop_assert_eq!(lines_of(&range), expected);
        }
    }
}
