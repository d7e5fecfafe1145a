//! A sector that shows the patterns of several tags, each in a piece of its own: what parts of patterns
//! written over each other leave behind.
//!
//! A byte of a piece is that byte of its tag's pattern, so pieces name tags and never one another, and
//! what was written over is forgotten. There are a few pieces at most; with more, the content is bytes.

use crate::address::{SECTOR_BYTES, SectorBytes};
use crate::tag::Tag;
use std::ops::Range;

/// Pieces that a content may have.
const PIECES_MAX: usize = 4;

/// A content of two to four pieces, of which no two neighbours have the same tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pieces {
    tags: [Tag; PIECES_MAX],
    /// Where each piece ends. The last one does with the sector, and so do those that there are not.
    ends: [u16; PIECES_MAX],
}

impl Pieces {
    /// Bytes of RAM that a shared content takes, with the two counts of its `Arc`.
    pub const BYTES: u64 = size_of::<Self>() as u64 + 16;

    /// The pieces, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Tag, Range<u16>)> {
        let mut from = 0;
        self.tags.iter().zip(self.ends).map_while(move |(&tag, end)| {
            let piece = from..end;
            from = end;
            (!piece.is_empty()).then_some((tag, piece))
        })
    }

    /// The content.
    #[must_use]
    pub fn bytes(&self) -> Box<SectorBytes> {
        let mut bytes = Box::new([0; SECTOR_BYTES as usize]);
        for (tag, piece) in self.iter() {
            let piece = usize::from(piece.start)..usize::from(piece.end);
            tag.write_pattern(&mut bytes, piece);
        }
        bytes
    }
}

/// What pieces that are put behind each other become.
pub(crate) enum Joined {
    /// One that is the whole sector.
    Tag(Tag),
    /// A few.
    Pieces(Pieces),
}

/// Joins pieces that follow each other from a sector's first byte to its last; nothing if they are
/// too many.
pub(crate) fn join(pieces: impl Iterator<Item = (Tag, Range<u16>)>) -> Option<Joined> {
    let mut joined =
        Pieces { tags: [Tag::ZERO; PIECES_MAX], ends: [SECTOR_BYTES as u16; PIECES_MAX] };
    let mut count = 0;
    for (tag, piece) in pieces.filter(|(_, piece)| !piece.is_empty()) {
        if count == 0 || joined.tags[count - 1] != tag {
            *joined.tags.get_mut(count)? = tag;
            count += 1;
        }
        joined.ends[count - 1] = piece.end;
    }
    Some(if count == 1 { Joined::Tag(joined.tags[0]) } else { Joined::Pieces(joined) })
}

/// The part of some pieces that lies within a range.
pub(crate) fn within(
    pieces: impl Iterator<Item = (Tag, Range<u16>)>,
    range: Range<u16>,
) -> impl Iterator<Item = (Tag, Range<u16>)> {
    pieces.map(move |(tag, piece)| (tag, piece.start.max(range.start)..piece.end.min(range.end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u16 = SECTOR_BYTES as u16;

    fn pieces(ends: &[(u64, u16)]) -> Option<Joined> {
        let mut from = 0;
        join(ends.iter().map(|&(tag, end)| (Tag::new(tag), std::mem::replace(&mut from, end)..end)))
    }

    /// Neighbours of one tag are one piece, empty pieces are none, and there are four at most.
    #[test]
    fn neighbours_are_joined() {
        let whole = pieces(&[(7, 10), (8, 10), (7, END)]);
        assert!(matches!(whole, Some(Joined::Tag(tag)) if tag == Tag::new(7)));
        let Some(Joined::Pieces(two)) = pieces(&[(7, 0), (1, 9), (1, 10), (0, END)]) else {
            panic!("two pieces");
        };
        let seen: Vec<(Tag, Range<u16>)> = two.iter().collect();
        assert_eq!(seen, [(Tag::new(1), 0..10), (Tag::ZERO, 10..END)]);
        assert_eq!(two.bytes()[..10], Tag::new(1).expand()[..10]);
        assert_eq!(two.bytes()[10..], [0; 4086]);
        assert!(matches!(pieces(&[(1, 1), (2, 2), (1, 3), (2, END)]), Some(Joined::Pieces(_))));
        assert!(pieces(&[(1, 1), (2, 2), (1, 3), (2, 4), (1, END)]).is_none());
    }

    /// A cut leaves what lies in the range.
    #[test]
    fn pieces_are_cut() {
        let all = [(Tag::new(1), 0..10), (Tag::new(2), 10..END)];
        let cut: Vec<_> = within(all.into_iter(), 5..20).collect();
        assert_eq!(cut, [(Tag::new(1), 5..10), (Tag::new(2), 10..20)]);
    }
}
