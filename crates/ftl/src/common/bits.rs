//! Sets of numbers as words of 64 bits.

/// The word that has the bit of a number, and the word with that bit alone.
#[inline]
pub(crate) const fn bit(number: u64) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}
