//! Changes of a sorted list of extents: put one in, cut a range out. Neighbours that can be one
//! extent become one.
//!
//! Invariants: a list maps each block of the file once, in order; to join extents changes no mapping; a cut takes what it
//! answers, and nothing else.

use crate::ext4::format::{EXTENT_BLOCKS_MAX, Extent, UNWRITTEN_BLOCKS_MAX};
use nandscape_rt::invariant;
use std::ops::Range;

/// Blocks of a file, by their numbers in it.
pub(crate) type Logical = Range<u64>;

/// Puts an extent where nothing is mapped yet.
pub(super) fn insert(extents: &mut Vec<Extent>, new: Extent) {
    let at = extents.partition_point(|extent| extent.logical < new.logical);
    let touches = |extent: &Extent| part(extent, &(new.logical.into()..new.logical_end()));
    invariant!(
        extents.get(at).and_then(touches).is_none()
            && at.checked_sub(1).and_then(|before| touches(&extents[before])).is_none(),
        "a block of a file is mapped once: {new:?}"
    );
    extents.insert(at, new);
    join(extents, at);
    if at > 0 {
        join(extents, at - 1);
    }
}

/// Makes one extent of the two at `at` and behind it, if that is possible.
fn join(extents: &mut Vec<Extent>, at: usize) {
    let Some(&[left, right]) = extents.get(at..).and_then(<[_]>::first_chunk) else { return };
    let most = if left.unwritten { UNWRITTEN_BLOCKS_MAX } else { EXTENT_BLOCKS_MAX };
    let total = u32::from(left.blocks) + u32::from(right.blocks);
    let touches = left.logical_end() == u64::from(right.logical) && left.end() == right.start;
    if touches && left.unwritten == right.unwritten && total <= u32::from(most) {
        extents[at].blocks = total as u16;
        invariant!(
            part(&extents[at], &(right.logical.into()..right.logical_end())) == Some(right),
            "to join {left:?} and {right:?} changes no mapping"
        );
        extents.remove(at + 1);
    }
}

/// The part of an extent that lies in the range.
pub(super) fn part(extent: &Extent, range: &Logical) -> Option<Extent> {
    let start = u64::from(extent.logical).max(range.start);
    let end = extent.logical_end().min(range.end);
    (start < end).then(|| Extent {
        logical: start as u32,
        blocks: (end - start) as u16,
        start: extent.start + (start - u64::from(extent.logical)),
        ..*extent
    })
}

fn blocks_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| u64::from(extent.blocks)).sum()
}

/// Cuts the range out; returns what was mapped there.
pub(super) fn cut(extents: &mut Vec<Extent>, range: &Logical) -> Vec<Extent> {
    let removed: Vec<Extent> = extents.iter().filter_map(|extent| part(extent, range)).collect();
    if removed.is_empty() {
        return removed;
    }
    let kept = |extent: &Extent| {
        [part(extent, &(0..range.start)), part(extent, &(range.end..u64::MAX))]
            .into_iter()
            .flatten()
    };
    let left: Vec<Extent> = extents.iter().flat_map(kept).collect();
    invariant!(
        blocks_of(extents) == blocks_of(&left) + blocks_of(&removed),
        "a cut of {range:?} takes what it answers, and nothing else"
    );
    *extents = left;
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Where each block of a file is, and whether it was written.
    type Blocks = BTreeMap<u64, (u64, bool)>;

    fn blocks(extents: &[Extent]) -> Blocks {
        let each = |e: &Extent| {
            let e = *e;
            (0..u64::from(e.blocks))
                .map(move |i| (u64::from(e.logical) + i, (e.start + i, e.unwritten)))
        };
        extents.iter().flat_map(each).collect()
    }

    proptest! {
        /// A list of extents is a map from block to block, whatever is put in and cut out; it is
        /// sorted, and no two neighbours could be one.
        #[test]
        fn a_list_of_extents_is_a_map_of_blocks(
            steps in proptest::collection::vec(
                (0..60u32, 1..12u16, 0..3u64, any::<bool>(), any::<bool>()),
                1..60,
            ),
        ) {
            let (mut extents, mut model) = (Vec::new(), Blocks::new());
            for (logical, blocks_count, shift, unwritten, put) in steps {
                let range = u64::from(logical)..u64::from(logical) + u64::from(blocks_count);
                let removed = cut(&mut extents, &range);
                let gone: Blocks = model.extract_if(range, |_, _| true).collect();
                prop_assert_eq!(blocks(&removed), gone);
                if put {
                    let start = 1000 + 100 * shift + u64::from(logical);
                    let new = Extent { logical, blocks: blocks_count, start, unwritten };
                    model.extend(blocks(&[new]));
                    insert(&mut extents, new);
                }
                prop_assert_eq!(blocks(&extents), model.clone());
                let in_order = extents
                    .windows(2)
                    .all(|pair| pair[0].logical_end() <= u64::from(pair[1].logical));
                prop_assert!(in_order);
            }
        }
    }

    /// Extents grow up to the format's limit, and no further.
    #[test]
    fn extents_join_up_to_the_limit() {
        for (unwritten, most) in [(false, EXTENT_BLOCKS_MAX), (true, UNWRITTEN_BLOCKS_MAX)] {
            let first = Extent { logical: 0, blocks: most - 1, start: 10, unwritten };
            let mut extents = vec![first];
            for block in u64::from(most) - 1..u64::from(most) + 1 {
                let new = Extent { logical: block as u32, blocks: 1, start: 10 + block, unwritten };
                insert(&mut extents, new);
            }
            let lengths: Vec<u16> = extents.iter().map(|extent| extent.blocks).collect();
            assert_eq!(lengths, [most, 1]);
        }
    }
}
