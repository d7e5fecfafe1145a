//! Copies on media that are superseded and whose content media may drop when what superseded them is durable.

use nandscape_media::Ppa;
use nandscape_rt::invariant;
use std::collections::VecDeque;

/// A copy that is superseded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Superseded {
    at: Ppa,
    gate: u64,
    /// What superseded it has this sequence, or a lower one.
    by: u64,
}

/// Copies that wait, in the order of their gates.
#[derive(Default, Debug)]
pub(crate) struct DeadCopies(VecDeque<Superseded>);

impl DeadCopies {
    /// The copy at `at` is superseded by something with a sequence up to `by`, which is durable when everything before
    /// `gate` is.
    pub(crate) fn push(&mut self, at: Ppa, gate: u64, by: u64) {
        invariant!(
            self.0.back().is_none_or(|last| last.gate <= gate),
            "dead copies wait in the order of their gates"
        );
        self.0.push_back(Superseded { at, gate, by });
    }

    /// Whether none waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next copy that is dead when everything before `durable` is durable, and the sequence that is above its own.
    pub(crate) fn pop(&mut self, durable: u64) -> Option<(Ppa, u64)> {
        self.0.pop_front_if(|copy| copy.gate <= durable).map(|copy| (copy.at, copy.by))
    }

    /// Something that superseded copies cannot be read: a mount may choose them, whichever they are.
    #[cold]
    pub(crate) fn keep_all(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy is dead when its gate is durable, not before, and never before those that wait longer.
    #[test]
    fn copies_are_dead_in_the_order_of_their_gates() {
        let mut dead = DeadCopies::default();
        for (at, gate) in [(1, 10), (2, 10), (3, 20)] {
            dead.push(Ppa(at), gate, gate - 1);
        }
        assert_eq!(dead.pop(9), None);
        assert_eq!([dead.pop(19), dead.pop(19)], [Some((Ppa(1), 9)), Some((Ppa(2), 9))]);
        assert_eq!((dead.pop(19), dead.is_empty()), (None, false));
        dead.keep_all();
        assert_eq!(dead.pop(u64::MAX), None);
    }
}
