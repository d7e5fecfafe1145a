//! Bitmaps of blocks and inodes: bit 0 of byte 0 first, a set bit in use. Bits beyond the bytes count
//! as in use.

use std::ops::Range;

/// Whether a bit is set.
#[must_use]
pub fn is_set(bitmap: &[u8], bit: u32) -> bool {
    bitmap.get(bit as usize / 8).is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
}

/// Sets bits, or clears them.
pub fn set(bitmap: &mut [u8], bits: Range<u32>, used: bool) {
    let mut bit = bits.start;
    while bit < bits.end {
        let whole = bit.is_multiple_of(8) && bits.end - bit >= 8;
        let (mask, step) = if whole { (0xff, 8) } else { (1 << (bit % 8), 1) };
        if let Some(byte) = bitmap.get_mut(bit as usize / 8) {
            *byte = if used { *byte | mask } else { *byte & !mask };
        }
        bit += step;
    }
}

/// The first bit in `bits` that is set, or clear.
#[must_use]
pub fn find(bitmap: &[u8], bits: Range<u32>, used: bool) -> Option<u32> {
    let skipped = if used { 0 } else { 0xff };
    let mut bit = bits.start;
    while bit < bits.end {
        if bit.is_multiple_of(8) && bitmap.get(bit as usize / 8) == Some(&skipped) {
            bit += 8;
        } else if is_set(bitmap, bit) == used {
            return Some(bit);
        } else {
            bit += 1;
        }
    }
    None
}

/// How many of the first `bits` are clear.
#[must_use]
pub fn free(bitmap: &[u8], bits: u32) -> u32 {
    let whole = bitmap.get(..bits as usize / 8).unwrap_or(bitmap);
    let rest = whole.len() as u32 * 8..bits;
    let rest = rest.filter(|&bit| !is_set(bitmap, bit)).count() as u32;
    whole.iter().map(|byte| byte.count_zeros()).sum::<u32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Setting, finding and counting agree with a plain array of flags.
        #[test]
        fn bitmaps_are_arrays_of_flags(
            changes in proptest::collection::vec((0..200_u32, 0..80_u32, any::<bool>()), 0..20),
            from in 0..210_u32,
            used in any::<bool>(),
        ) {
            let (mut bytes, mut flags) = ([0; 25], [false; 200]);
            for (at, len, used) in changes {
                let end = (at + len).min(200);
                set(&mut bytes, at..end, used);
                flags[at as usize..end as usize].fill(used);
            }
            prop_assert!((0..200).all(|bit| is_set(&bytes, bit) == flags[bit as usize]));
            let expected = (from..200).find(|&bit| flags[bit as usize] == used);
            prop_assert_eq!(find(&bytes, from..200, used), expected);
            let clear = |n: usize| flags[..n].iter().filter(|used| !**used).count() as u32;
            prop_assert_eq!(free(&bytes, 200), clear(200));
            prop_assert_eq!(free(&bytes, 117), clear(117));
        }
    }
}
