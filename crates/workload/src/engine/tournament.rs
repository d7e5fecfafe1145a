//! Who is next: a winner tree over a fixed set of leaves, each with the instant of its next event.
//!
//! Changing a leaf walks to the root once, a load and a compare a level; a binary heap would pop and
//! push. Equal instants take turns: the leaf that was set last loses ties on its whole way to the
//! root, so at every node the children alternate, and none starves where time stands still.

use nandscape_rt::Nanos;

/// A leaf with its event, or without one at [`Nanos::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Leaf {
    at: Nanos,
    leaf: usize,
}

/// The winner tree.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    /// The winner of all, node 1. Node `i` has the children `2i` and `2i + 1`; the leaves come last.
    first: Leaf,
    /// The other nodes, by parent: pair `i` holds the children of node `i`, and pair 0 nothing. A walk
    /// finds a node and the one it plays against by one index.
    pairs: Box<[[Leaf; 2]]>,
}

impl Tournament {
    /// A tournament of `leaves`, at least one, none of them with an event.
    pub(crate) fn new(leaves: usize) -> Self {
        let none = Leaf { at: Nanos::MAX, leaf: 0 };
        Self { first: none, pairs: vec![[none; 2]; leaves].into() }
    }

    /// The earliest event's time ([`Nanos::MAX`] when there is none) and leaf.
    #[inline]
    pub(crate) fn first(&self) -> (Nanos, usize) {
        (self.first.at, self.first.leaf)
    }

    /// The leaf's event is at `at`.
    #[inline]
    pub(crate) fn set(&mut self, leaf: usize, at: Nanos) {
        let mut node = self.pairs.len() + leaf;
        let mut winner = Leaf { at, leaf };
        while node > 1 {
            let side = node & 1;
            node >>= 1;
            let pair = &mut self.pairs[node];
            pair[side] = winner;
            let other = pair[side ^ 1];
            winner = if other.at <= winner.at { other } else { winner };
        }
        self.first = winner;
    }

    /// The leaf has no event.
    #[inline]
    pub(crate) fn clear(&mut self, leaf: usize) {
        self.set(leaf, Nanos::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Stream;

    /// At every size the tree's first event is one of the earliest.
    #[test]
    fn the_first_is_the_earliest() {
        let mut random = Stream::new(1, "tournament");
        for leaves in [1, 2, 3, 5, 8, 33] {
            let mut tree = Tournament::new(leaves);
            let mut model = vec![Nanos::MAX; leaves];
            for _ in 0..2_000 {
                let leaf = random.below(leaves as u64) as usize;
                let at = if random.chance(0.3) { Nanos::MAX } else { Nanos(random.below(50)) };
                tree.set(leaf, at);
                model[leaf] = at;
                let (first, leaf) = tree.first();
                assert_eq!(Some(&first), model.iter().min());
                assert!(first == Nanos::MAX || model[leaf] == first);
            }
        }
    }

    /// Where time stands still, every leaf gets its turn.
    #[test]
    fn ties_take_turns() {
        for leaves in [2, 3, 8, 33, 100] {
            let mut tree = Tournament::new(leaves);
            (0..leaves).for_each(|leaf| tree.set(leaf, Nanos(7)));
            let mut turns = vec![0; leaves];
            for _ in 0..100 * leaves {
                let (at, leaf) = tree.first();
                turns[leaf] += 1;
                tree.set(leaf, at);
            }
            assert!(turns.iter().all(|n| (45..=200).contains(n)), "{leaves}: {turns:?}");
        }
    }
}
