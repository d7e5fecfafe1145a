//! What was last written of each node, so that the next copy keeps only the cache lines that changed: a node is written
//! with every fsync and checkpoint that needs it, each time to another place, and little of it changes between. A device
//! in memory holds all of these copies until their segments are free.

use nandscape_block::{SectorBytes, SectorData, SparseBytes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nodes of which a copy is kept; with more, all are forgotten, and the next copies are whole.
const COPIES_MAX: usize = 1 << 17;

/// The newest copies of nodes, by number.
#[derive(Default)]
pub(crate) struct Copies(BTreeMap<u32, Arc<SparseBytes>>);

impl Copies {
    /// The content of a node that is to be written.
    pub(crate) fn next(&mut self, nid: u32, bytes: &SectorBytes) -> SectorData {
        let known = self.0.get(&nid);
        let follower = known.and_then(|older| SparseBytes::following(older, bytes));
        let copy = Arc::new(follower.unwrap_or_else(|| SparseBytes::new(bytes)));
        if known.is_none() && self.0.len() >= COPIES_MAX {
            self.0.clear();
        }
        self.0.insert(nid, Arc::clone(&copy));
        SectorData::Sparse(copy)
    }

    /// A node is gone.
    pub(crate) fn remove(&mut self, nid: u32) {
        self.0.remove(&nid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy takes the lines that changed since the last one, and what it shows is what was written; one of a node
    /// that was removed shares nothing.
    #[test]
    fn copies_share_what_did_not_change() {
        let lines = |content: &SectorData| match content {
            SectorData::Sparse(sparse) => sparse.lines(),
            other => panic!("{other:?}"),
        };
        let mut copies = Copies::default();
        let mut bytes = [7; 4_096];
        assert_eq!(lines(&copies.next(5, &bytes)), 64);
        for round in 1..=100_u8 {
            bytes[usize::from(round) * 40] = round;
            bytes[4_095] = round;
            let copy = copies.next(5, &bytes);
            assert_eq!(copy.expand().as_deref(), Some(&bytes));
            assert!([1, 2, 64].contains(&lines(&copy)), "{}", lines(&copy));
        }
        assert_eq!(lines(&copies.next(6, &bytes)), 64);
        copies.remove(5);
        assert_eq!(lines(&copies.next(5, &bytes)), 64);
    }
}
