//! Transaction ids: 32 bits that wrap, so they are compared by distance, as jbd2's `tid_gt` does.

use std::fmt;

/// The id of a transaction, one more than the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Tid(pub u32);

impl Tid {
    /// The id that follows.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// The id before.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.wrapping_sub(1))
    }

    /// How many ids lie from `earlier` to this one; meaningless if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this is `other` or a later one, of ids less than half the range apart.
    #[must_use]
    pub const fn reached(self, other: Self) -> bool {
        self.since(other) < 1 << 31
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids keep their order when they wrap.
    #[test]
    fn ids_wrap() {
        let last = Tid(u32::MAX);
        assert_eq!(last.next(), Tid(0));
        assert_eq!(Tid(0).previous(), last);
        assert!(Tid(3).reached(last) && !last.reached(Tid(3)) && last.reached(last));
        assert_eq!(Tid(3).since(last), 4);
    }
}
