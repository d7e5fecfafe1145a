//! Choosing what leaves: from the member used least recently towards the most recent one. Plain LRU
//! takes the first that may leave; hotness takes the coldest, where members that do not differ in
//! hotness leave in LRU order; DFTL walks its two segments one after the other.

use super::list::{Link, List, NIL};

/// What a member is to somebody who seeks a victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// May leave; zero is coldest.
    May(u64),
    /// May not leave for a short while, and keeps its place.
    Busy,
    /// Is needed, which counts as being used: it moves to the front, so that the next walk does not
    /// meet it again.
    Pinned,
}

/// The coldest member that may leave, the one used least recently among equals.
pub(super) fn coldest(
    list: &mut List,
    links: &mut [Link],
    standing: impl Fn(u32) -> Standing,
) -> Option<u32> {
    let mut best = None;
    let mut member = list.back();
    for _ in 0..list.len() {
        let before = links[member as usize].prev;
        match standing(member) {
            Standing::May(0) => return Some(member),
            Standing::May(heat) if best.is_none_or(|(least, _)| heat < least) => {
                best = Some((heat, member));
            }
            Standing::May(_) | Standing::Busy => {}
            Standing::Pinned => list.move_to_front(links, member),
        }
        member = before;
    }
    best.map(|(_, member)| member)
}

/// The members of a list, least recently used first.
pub(super) fn from_back<'a>(list: &List, links: &'a [Link]) -> impl Iterator<Item = u32> + use<'a> {
    let some = |member: u32| (member != NIL).then_some(member);
    std::iter::successors(some(list.back()), move |&member| some(links[member as usize].prev))
}
