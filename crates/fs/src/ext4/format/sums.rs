//! The checksum of a block that changes a little at a time.
//!
//! CRC-32C is linear: the register after a block is that after as many zeroes, and what each byte adds
//! to it. So it follows from the registers after the block's parts, each begun at 0, and those of parts
//! that have not changed are known. Invariants: `parts[i]` is the register after part `i`, begun at 0,
//! if bit `i` of `known` is set; `whole` is what follows from `parts`, known or not.

use super::BLOCK_BYTES;
use super::checksum::{Editable, Summed, crc32c};
use nandscape_block::Tag;
use nandscape_block::sparse::{LINE_BYTES, lines_of};
use std::cell::Cell;
use std::ops::Range;
use std::sync::LazyLock;

/// Parts of a block: as many as pay, since a sum looks at each, and reads those that changed.
const PARTS: usize = 8;
const PART_BYTES: usize = BLOCK_BYTES / PARTS;
/// The reflected polynomial.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// What is known of the checksum of a block, and which cache lines may have changed.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sums {
    parts: [Cell<u32>; PARTS],
    whole: Cell<u32>,
    known: Cell<u8>,
    changed: Cell<u64>,
}

impl Sums {
    /// The bytes in a range may change.
    fn forget(&self, range: &Range<usize>) {
        let parts = range.start / PART_BYTES..range.end.div_ceil(PART_BYTES);
        let changed = parts.fold(0, |bits, part| bits | 1 << part);
        self.known.set(self.known.get() & !changed);
        self.changed.set(self.changed.get() | lines_of(range));
    }

    /// The lines of 64 bytes that may have changed since [`Sums::settle`], as bits.
    pub(crate) fn changed(&self) -> u64 {
        self.changed.get()
    }

    /// The same; from here on changes count from zero.
    pub(crate) fn settle(&self) -> u64 {
        self.changed.take()
    }

    fn part(&self, block: &[u8; BLOCK_BYTES], index: usize) -> u32 {
        let bit = 1 << index;
        if self.known.get() & bit == 0 {
            let bytes = &block[index * PART_BYTES..][..PART_BYTES];
            let sum = crc32c(0, bytes);
            let change = self.parts[index].replace(sum) ^ sum;
            self.whole.set(self.whole.get() ^ after_zeroes(change, PARTS - 1 - index));
            self.known.set(self.known.get() | bit);
        }
        self.parts[index].get()
    }

    /// The register after all of the block that these sums are of, begun at 0.
    pub(crate) fn whole(&self, block: &[u8; BLOCK_BYTES]) -> u32 {
        for index in 0..PARTS {
            self.part(block, index);
        }
        self.whole.get()
    }

    /// The register after the first `end` bytes of the block that these sums are of.
    pub(crate) fn crc32c(&self, register: u32, block: &[u8; BLOCK_BYTES], end: usize) -> u32 {
        if end >= BLOCK_BYTES {
            return after_block(register, self.whole(block));
        }
        let whole = end / PART_BYTES;
        let sum = |register, index| after_zeroes(register, 1) ^ self.part(block, index);
        let register = (0..whole).fold(register, sum);
        crc32c(register, &block[whole * PART_BYTES..end])
    }
}

/// The bytes of a block that is being changed, and the sums that are known of it.
pub(crate) struct BlockMut<'a> {
    bytes: &'a mut [u8; BLOCK_BYTES],
    sums: &'a Sums,
}

impl<'a> BlockMut<'a> {
    pub(crate) const fn new(bytes: &'a mut [u8; BLOCK_BYTES], sums: &'a Sums) -> Self {
        Self { bytes, sums }
    }

    /// Puts bytes where others may stand already; only those that differ change.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        for (at, line) in (at..).step_by(LINE_BYTES).zip(bytes.chunks(LINE_BYTES)) {
            let range = at..at + line.len();
            if self.bytes[range.clone()] != *line {
                self.part(range).copy_from_slice(line);
            }
        }
    }

    /// All bytes, to be changed.
    pub(crate) fn whole(&mut self) -> &mut [u8; BLOCK_BYTES] {
        self.sums.forget(&(0..BLOCK_BYTES));
        self.bytes
    }
}

impl AsRef<[u8]> for BlockMut<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl Summed for BlockMut<'_> {
    fn crc32c(&self, register: u32, end: usize) -> u32 {
        self.sums.crc32c(register, self.bytes, end)
    }
}

impl Editable for BlockMut<'_> {
    fn part(&mut self, range: Range<usize>) -> &mut [u8] {
        self.sums.forget(&range);
        &mut self.bytes[range]
    }
}

/// The register after a block from `register` on, by that after the same block begun at 0.
pub(crate) fn after_block(register: u32, whole: u32) -> u32 {
    after_zeroes(register, PARTS) ^ whole
}

/// The register after the pattern of a tag, begun at 0.
///
/// Patterns are affine over the tags' bits ([`Tag::expand`]), so it is what all patterns have in common
/// and what each byte of the tag adds to that.
pub(crate) fn of_pattern(tag: Tag) -> u32 {
    if tag == Tag::ZERO {
        return 0;
    }
    let (common, tables) = &*OF_PATTERNS;
    let bytes = tag.bits().to_le_bytes();
    let added = tables.iter().zip(bytes).map(|(table, byte)| table[usize::from(byte)]);
    added.fold(*common, |sum, part| sum ^ part)
}

/// What all patterns have in common, and what each byte of a tag adds.
type OfPatterns = (u32, [[u32; 256]; size_of::<u64>()]);

static OF_PATTERNS: LazyLock<OfPatterns> = LazyLock::new(|| {
    let of = |bits: u64| crc32c(0, &Tag::new(bits).expand()[..]);
    // What a bit adds shows beside another one: without any there is no pattern.
    let added: [u32; 64] = std::array::from_fn(|bit| {
        let other = if bit == 0 { 2 } else { 1 };
        of(1 << bit | other) ^ of(other)
    });
    let mut tables = [[0; 256]; size_of::<u64>()];
    for (table, added) in tables.iter_mut().zip(added.chunks(8)) {
        for byte in 1..256_usize {
            table[byte] = table[byte & (byte - 1)] ^ added[byte.trailing_zeros() as usize];
        }
    }
    (of(1) ^ added[0], tables)
});

/// The register after a block of which only the first `used` bytes may be other than zero.
pub(crate) fn crc32c_padded(register: u32, block: &[u8; BLOCK_BYTES], used: usize) -> u32 {
    let parts = used.min(BLOCK_BYTES).div_ceil(PART_BYTES);
    let register = crc32c(register, &block[..parts * PART_BYTES]);
    after_zeroes(register, PARTS - parts)
}

/// What becomes of each byte of a register over so many zeroes.
type AfterZeroes = [[u32; 256]; 4];

/// The same over the zeroes of none to all parts of a block.
static AFTER_ZEROES: [AfterZeroes; PARTS + 1] = after_parts();

/// The register after as many zeroes as so many parts have bytes.
fn after_zeroes(register: u32, parts: usize) -> u32 {
    look_up(&AFTER_ZEROES[parts], register)
}

const fn look_up(tables: &AfterZeroes, register: u32) -> u32 {
    let [a, b, c, d] = register.to_le_bytes();
    tables[0][a as usize] ^ tables[1][b as usize] ^ tables[2][c as usize] ^ tables[3][d as usize]
}

const fn after_parts() -> [AfterZeroes; PARTS + 1] {
    let mut tables = [after_part(); PARTS + 1];
    let mut at = 0;
    while at < 4 * 256 {
        let (byte, value) = (at / 256, at % 256);
        tables[0][byte][value] = (value << (8 * byte)) as u32;
        let mut parts = 1;
        while parts <= PARTS {
            tables[parts][byte][value] = look_up(&tables[1], tables[parts - 1][byte][value]);
            parts += 1;
        }
        at += 1;
    }
    tables
}

const fn after_part() -> AfterZeroes {
    let mut table = [[0; 256]; 4];
    let mut bit = 0;
    while bit < 32 {
        // Of a single bit of a register, and then of all bytes that have it and lower ones.
        let (mut register, mut step) = (1_u32 << bit, 0);
        while step < 8 * PART_BYTES {
            register = register >> 1 ^ if register & 1 == 1 { POLYNOMIAL } else { 0 };
            step += 1;
        }
        let (byte, first) = (bit / 8, 1 << (bit % 8));
        let mut lower = 0;
        while lower < first {
            table[byte][first + lower] = table[byte][lower] ^ register;
            lower += 1;
        }
        bit += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The checksum of a pattern is that of its bytes.
        #[test]
        fn patterns_need_no_bytes(bits in any::<u64>(), shift in 0..63_u32) {
            for tag in [Tag::ZERO, Tag::new(1 << shift), Tag::new(bits), Tag::new(bits >> shift)] {
                prop_assert_eq!(of_pattern(tag), crc32c(0, &tag.expand()[..]));
            }
        }

        /// Whatever was changed and summed before, the checksum is that of the bytes.
        #[test]
        fn sums_are_of_the_bytes(
            changes in proptest::collection::vec((0..BLOCK_BYTES, 0..300_usize, any::<u8>()), 0..8),
            register in any::<u32>(),
            end in 0..=BLOCK_BYTES,
        ) {
            let (mut bytes, sums) = ([0; BLOCK_BYTES], Sums::default());
            for (at, len, byte) in changes {
                let mut block = BlockMut::new(&mut bytes, &sums);
                block.part(at..BLOCK_BYTES.min(at + len)).fill(byte);
                prop_assert_eq!(block.crc32c(register, end), crc32c(register, &block.as_ref()[..end]));
                block.put(0, &[byte; 200]);
                prop_assert_eq!(&block.as_ref()[..200], &[byte; 200]);
                prop_assert_eq!(block.crc32c(register, end), crc32c(register, &block.as_ref()[..end]));
                sums.settle();
                BlockMut::new(&mut bytes, &sums).put(0, &[byte; 200]);
                prop_assert_eq!(sums.changed(), 0);
            }
            let whole = sums.crc32c(register, &bytes, BLOCK_BYTES);
            prop_assert_eq!(whole, crc32c(register, &bytes));
            prop_assert_eq!(whole, after_block(register, sums.whole(&bytes)));
            *BlockMut::new(&mut bytes, &sums).whole() = [7; BLOCK_BYTES];
            prop_assert_eq!(sums.crc32c(register, &bytes, end), crc32c(register, &bytes[..end]));
            bytes[end..].fill(0);
            prop_assert_eq!(crc32c_padded(register, &bytes, end), crc32c(register, &bytes));
        }
    }
}
