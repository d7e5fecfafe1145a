//! A sector's content without its cache lines of all zeroes and of all ones, which is what most of a
//! block of metadata is: bitmaps, logs, tables that are not full yet.

use nandscape_block::{SECTOR_BYTES, SectorBytes};
use std::sync::Arc;

/// Bytes of a cache line.
const LINE: usize = 64;
const LINES: usize = SECTOR_BYTES as usize / LINE;
/// With more lines than this left, a content is shared with its writer instead.
const LINES_MAX: u32 = 56;
/// Bytes of a buffer that is shared: content and the two counts of its `Arc`.
const SHARED_BYTES: u64 = SECTOR_BYTES + 16;

const _: () = assert!(LINES == u64::BITS as usize);

/// A content as it is kept.
#[derive(Clone, Debug)]
pub(super) enum Packed {
    /// As it came.
    Whole(Arc<SectorBytes>),
    /// The lines that are neither all zeroes nor all ones, in order.
    Lines {
        /// Which lines are kept, by bits.
        kept: u64,
        /// Which of the others are all ones.
        ones: u64,
        lines: Box<[[u8; LINE]]>,
    },
}

impl Packed {
    /// The most RAM that a content can take.
    pub(super) const BYTES_MAX: u64 = SHARED_BYTES;

    /// Packs a content.
    pub(super) fn new(bytes: &Arc<SectorBytes>) -> Self {
        let (lines, _) = bytes.as_chunks::<LINE>();
        let (mut kept, mut ones) = (0, 0);
        for (index, line) in lines.iter().enumerate() {
            let is_ones = line[0] == u8::MAX && *line == [u8::MAX; LINE];
            ones |= u64::from(is_ones) << index;
            kept |= u64::from(!is_ones && !is_zeroes(line)) << index;
        }
        if kept.count_ones() > LINES_MAX {
            return Self::Whole(Arc::clone(bytes));
        }
        let mut packed = Vec::with_capacity(kept.count_ones() as usize);
        packed.extend(set_bits(kept).map(|index| lines[index]));
        Self::Lines { kept, ones, lines: packed.into_boxed_slice() }
    }

    /// The content.
    pub(super) fn bytes(&self) -> Arc<SectorBytes> {
        match self {
            Self::Whole(bytes) => Arc::clone(bytes),
            Self::Lines { kept, ones, lines } => {
                let mut bytes = Arc::new([0; SECTOR_BYTES as usize]);
                let (places, _) = Arc::make_mut(&mut bytes).as_chunks_mut::<LINE>();
                set_bits(*ones).for_each(|index| places[index] = [u8::MAX; LINE]);
                set_bits(*kept).zip(lines).for_each(|(index, line)| places[index] = *line);
                bytes
            }
        }
    }

    /// Bytes that it takes besides its place, a buffer counted in full however many share it.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Whole(_) => SHARED_BYTES,
            Self::Lines { lines, .. } => size_of_val(&**lines) as u64,
        }
    }
}

/// Whether a line is all zeroes, in a form that compilers turn into a few instructions.
fn is_zeroes(line: &[u8; LINE]) -> bool {
    let (words, _) = line.as_chunks::<8>();
    words.iter().fold(0, |any, word| any | u64::from_ne_bytes(*word)) == 0
}

/// The numbers of the bits that are set, in order.
fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every content comes back, and takes the lines that say something.
        #[test]
        fn contents_come_back(kinds in proptest::collection::vec(0..4_u8, LINES)) {
            let mut bytes = [0; SECTOR_BYTES as usize];
            for (line, kind) in bytes.as_chunks_mut::<LINE>().0.iter_mut().zip(&kinds) {
                match kind {
                    0 => {}
                    1 => line.fill(u8::MAX),
                    2 => line[LINE - 1] = 1,
                    _ => {
                        line.fill(u8::MAX);
                        line[0] = 0xfe;
                    }
                }
            }
            let bytes = Arc::new(bytes);
            let packed = Packed::new(&bytes);
            prop_assert_eq!(packed.bytes(), bytes);
            let kept = kinds.iter().filter(|kind| **kind > 1).count();
            let expected = if kept > LINES_MAX as usize { SHARED_BYTES } else { (kept * LINE) as u64 };
            prop_assert_eq!(packed.memory_bytes(), expected);
        }
    }
}
