//! Payload: bytes, or a tag that stands for 4 KiB.
//!
//! A [`Tag`] *is* a 4 KiB pattern. Media that hold tags keep 8 bytes a sector and every read is still
//! checked for being the right data. A writer of bytes over part of a sector expands its pattern
//! and patches it; parts of patterns laid over each other stay [`Pieces`]. Tags are never chained.

use crate::address::{SECTOR_BYTES, SectorBytes};
use crate::pieces::{self, Joined, Pieces};
use crate::sparse::SparseBytes;
use crate::tag::Tag;
use std::ops::Range;
use std::sync::Arc;

/// The content of one sector, as rings and media hold it.
#[derive(Clone, Default, Debug)]
pub enum SectorData {
    /// Not kept (payload `none`).
    #[default]
    Absent,
    /// The pattern of a tag.
    Tag(Tag),
    /// Real bytes, shared between copies.
    Bytes(Arc<SectorBytes>),
    /// Real bytes, of which only what says something is kept.
    Sparse(Arc<SparseBytes>),
    /// The patterns of several tags, each in its piece.
    Pieces(Arc<Pieces>),
}

impl SectorData {
    /// The bytes that this content reads as; `None` when it was not kept.
    #[must_use]
    pub fn expand(&self) -> Option<Box<SectorBytes>> {
        match self {
            Self::Absent => None,
            Self::Tag(tag) => Some(tag.expand()),
            Self::Bytes(bytes) => Some(Box::new(**bytes)),
            Self::Sparse(bytes) => Some(bytes.bytes()),
            Self::Pieces(pieces) => Some(pieces.bytes()),
        }
    }

    /// The bytes of a content that is not the pattern of one tag; `None` of a tag, and of what was not
    /// kept.
    #[must_use]
    pub fn bytes(&self) -> Option<Arc<SectorBytes>> {
        match self {
            Self::Absent | Self::Tag(_) => None,
            Self::Bytes(bytes) => Some(Arc::clone(bytes)),
            Self::Sparse(bytes) => Some(Arc::from(bytes.bytes())),
            Self::Pieces(pieces) => Some(Arc::from(pieces.bytes())),
        }
    }

    /// Bytes of which most say nothing.
    #[must_use]
    pub fn sparse(bytes: &SectorBytes) -> Self {
        Self::Sparse(Arc::new(SparseBytes::new(bytes)))
    }

    /// This content with `patch` laid over it from byte `offset` on; always real bytes.
    /// `None` when the content was not kept or the patch does not fit.
    #[must_use]
    pub fn patched(&self, offset: usize, patch: &[u8]) -> Option<Self> {
        let mut bytes = self.expand()?;
        bytes.get_mut(offset..offset.checked_add(patch.len())?)?.copy_from_slice(patch);
        Some(Self::Bytes(Arc::from(bytes)))
    }

    /// This content with bytes `part` of another one laid over its own there. Patterns laid over
    /// patterns stay what they are, unless there are too many.
    /// `None` when either content was not kept, or the part ends beyond the sector.
    #[must_use]
    pub fn overlaid(&self, part: Range<usize>, with: &Self) -> Option<Self> {
        if let Some(joined) = self.joined(part.clone(), with) {
            return Some(match joined {
                Joined::Tag(tag) => Self::Tag(tag),
                Joined::Pieces(pieces) => Self::Pieces(Arc::new(pieces)),
            });
        }
        let over = with.expand()?;
        self.patched(part.start, over.get(part)?)
    }

    /// The pieces that [`SectorData::overlaid`] makes, if it makes some.
    fn joined(&self, part: Range<usize>, with: &Self) -> Option<Joined> {
        let (Some(below), Some(over)) = (self.pieces(), with.pieces()) else { return None };
        let end = SECTOR_BYTES as u16;
        let (from, to) = (u16::try_from(part.start).ok()?, u16::try_from(part.end).ok()?);
        if from > to || to > end {
            return None;
        }
        let behind = self.pieces()?;
        let before = pieces::within(below, 0..from);
        let covered = pieces::within(over, from..to);
        pieces::join(before.chain(covered).chain(pieces::within(behind, to..end)))
    }

    /// What it consists of, if that is patterns.
    fn pieces(&self) -> Option<impl Iterator<Item = (Tag, Range<u16>)>> {
        let (tag, pieces) = match self {
            Self::Tag(tag) => (Some((*tag, 0..SECTOR_BYTES as u16)), None),
            Self::Pieces(pieces) => (None, Some(pieces.iter())),
            _ => return None,
        };
        Some(tag.into_iter().chain(pieces.into_iter().flatten()))
    }
}

impl PartialEq for SectorData {
    /// Equal content, whether it travels as a tag or as bytes. Content not kept equals only itself.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tag(a), Self::Tag(b)) => a == b,
            (Self::Absent, Self::Absent) => true,
            (Self::Pieces(a), Self::Pieces(b)) if a == b => true,
            (Self::Bytes(a), Self::Bytes(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Absent, _) | (_, Self::Absent) => false,
            _ => self.expand() == other.expand(),
        }
    }
}

/// The data of a whole bio.
#[derive(Clone, PartialEq, Default, Debug)]
pub enum Payload {
    /// No content is kept, or the operation has none.
    #[default]
    None,
    /// Sector `i` holds the tag `first + i`.
    Run(Tag),
    /// One tag a sector.
    Tags(Box<[Tag]>),
    /// Anything, one content a sector.
    Sectors(Box<[SectorData]>),
}

impl Payload {
    /// Real bytes; the length must be a whole number of sectors.
    ///
    /// # Errors
    /// The length of `bytes`, when it is not a multiple of 4,096.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, usize> {
        let (sectors, rest) = bytes.as_chunks::<{ SECTOR_BYTES as usize }>();
        if !rest.is_empty() {
            return Err(bytes.len());
        }
        Ok(Self::Sectors(sectors.iter().map(|s| SectorData::Bytes(Arc::new(*s))).collect()))
    }

    /// The content of the bio's sector `index`.
    #[inline]
    #[must_use]
    pub fn sector(&self, index: u32) -> SectorData {
        match self {
            Self::None => SectorData::Absent,
            Self::Run(first) => SectorData::Tag(first.plus(u64::from(index))),
            Self::Tags(tags) => SectorData::Tag(tags[index as usize]),
            Self::Sectors(sectors) => sectors[index as usize].clone(),
        }
    }

    /// Collects contents in the most compact form.
    #[must_use]
    pub fn collect(sectors: Vec<SectorData>) -> Self {
        Self::of_tags(&sectors).unwrap_or_else(|| Self::Sectors(sectors.into_boxed_slice()))
    }

    /// The same of contents that stay where they are.
    #[must_use]
    pub fn of(sectors: &[SectorData]) -> Self {
        Self::of_tags(sectors).unwrap_or_else(|| Self::Sectors(sectors.into()))
    }

    /// Contents that take no more than a tag each.
    fn of_tags(sectors: &[SectorData]) -> Option<Self> {
        let tag = |sector: &SectorData| match sector {
            SectorData::Tag(tag) => Some(*tag),
            _ => None,
        };
        if let Some(first) = sectors.first().and_then(tag)
            && (0..).zip(sectors).all(|(index, sector)| tag(sector) == Some(first.plus(index)))
        {
            return Some(Self::Run(first));
        }
        if sectors.iter().any(|sector| matches!(sector, SectorData::Absent)) {
            return Some(Self::None);
        }
        sectors.iter().map(tag).collect::<Option<_>>().map(Self::Tags)
    }

    /// How many sectors it describes; `None` when it fits any number.
    #[must_use]
    pub fn sectors(&self) -> Option<usize> {
        match self {
            Self::None | Self::Run(_) => None,
            Self::Tags(tags) => Some(tags.len()),
            Self::Sectors(sectors) => Some(sectors.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag() -> impl Strategy<Value = Tag> {
        prop_oneof![Just(Tag::ZERO), any::<u64>().prop_map(Tag::new)]
    }

    fn content() -> impl Strategy<Value = SectorData> {
        prop_oneof![
            tag().prop_map(SectorData::Tag),
            tag().prop_map(|tag| SectorData::Bytes(Arc::from(tag.expand()))),
            (any::<[u8; 32]>(), any::<bool>()).prop_map(|(seed, sparse)| {
                let bytes = std::array::from_fn(|index| seed[index % 32]);
                if sparse { SectorData::sparse(&bytes) } else { SectorData::Bytes(Arc::new(bytes)) }
            }),
        ]
    }

    proptest! {
        /// Different tags are different content, also where they are compared as bytes.
        #[test]
        fn tags_are_their_patterns(a in tag(), b in tag()) {
            let bytes = SectorData::Bytes(Arc::from(b.expand()));
            prop_assert_eq!(SectorData::Tag(a) == bytes, a == b);
            prop_assert_eq!(a.expand() == b.expand(), a == b);
        }

        /// A patch changes the bytes that it covers and no others, on tags as on bytes.
        #[test]
        fn patches_change_what_they_cover(
            content in content(),
            offset in 0..5_000usize,
            patch in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            let before = content.expand().unwrap();
            match content.patched(offset, &patch) {
                Some(patched) => {
                    let after = patched.expand().unwrap();
                    let end = offset + patch.len();
                    prop_assert!(matches!(patched, SectorData::Bytes(_)));
                    prop_assert_eq!(&after[..offset], &before[..offset]);
                    prop_assert_eq!(&after[offset..end], &patch[..]);
                    prop_assert_eq!(&after[end..], &before[end..]);
                }
                None => prop_assert!(offset + patch.len() > before.len()),
            }
        }

        /// What is laid over a content is there, and nothing else changes, whatever travels how; a few
        /// patterns stay what they are.
        #[test]
        fn overlays_cover_their_part(
            first in content(),
            overlays in proptest::collection::vec((content(), 0..5_000usize, 0..5_000usize), 1..8),
        ) {
            let (mut content, mut bytes) = (first, Box::new([0; SECTOR_BYTES as usize]));
            *bytes = *content.expand().unwrap();
            for (over, from, to) in overlays {
                let Some(laid) = content.overlaid(from..to, &over) else {
                    prop_assert!(to > bytes.len() || from > to);
                    continue;
                };
                bytes[from..to].copy_from_slice(&over.expand().unwrap()[from..to]);
                let is_tag = |content| matches!(content, &SectorData::Tag(_));
                let are_tags = is_tag(&content) && is_tag(&over);
                prop_assert!(!are_tags || !matches!(laid, SectorData::Bytes(_)));
                content = laid;
                prop_assert_eq!(content.expand().unwrap(), bytes.clone());
                prop_assert_eq!(&content, &SectorData::Bytes(Arc::from(bytes.clone())));
            }
        }

        /// Patching nothing changes nothing, and a later patch lies over an earlier one.
        #[test]
        fn patches_compose(content in content(), first in any::<[u8; 9]>(), last in any::<[u8; 4]>()) {
            prop_assert_eq!(&content.patched(0, &[]).unwrap(), &content);
            let both = content.patched(100, &first).unwrap().patched(103, &last).unwrap();
            let mut merged = first;
            merged[3..7].copy_from_slice(&last);
            prop_assert_eq!(both, content.patched(100, &merged).unwrap());
        }

        /// Collecting the contents of a payload gives equal contents back, in whatever form.
        #[test]
        fn collecting_keeps_content(contents in proptest::collection::vec(content(), 1..5)) {
            let payload = Payload::collect(contents.clone());
            for (index, content) in (0..).zip(&contents) {
                prop_assert_eq!(&payload.sector(index), content);
            }
        }
    }

    /// Content that was not kept equals no content, cannot be patched, and makes a read say nothing.
    #[test]
    fn absent_content_stays_absent() {
        let zeroes = SectorData::Tag(Tag::ZERO);
        assert_ne!(SectorData::Absent, zeroes);
        assert_eq!(SectorData::Absent, SectorData::Absent);
        assert!(SectorData::Absent.patched(0, &[1]).is_none());
        assert_eq!(Payload::collect(vec![zeroes, SectorData::Absent]), Payload::None);
        assert_eq!(Payload::None.sector(7), SectorData::Absent);
    }

    /// Sectors never written and sectors of zeroes are the same.
    #[test]
    fn the_zero_tag_is_zeroes() {
        let zeroes = Payload::from_bytes(&[0; 4096]).unwrap();
        assert_eq!(zeroes.sector(0), SectorData::Tag(Tag::ZERO));
        assert_ne!(zeroes.sector(0), SectorData::Tag(Tag::new(1)));
    }

    /// Bytes make as many sectors as they fill, and nothing if one is left over.
    #[test]
    fn bytes_come_in_whole_sectors() {
        let bytes: Vec<u8> = (0..8_192u32).map(|n| (n / 4_096) as u8).collect();
        let payload = Payload::from_bytes(&bytes).unwrap();
        assert_eq!(payload.sectors(), Some(2));
        assert_eq!(*payload.sector(1).expand().unwrap(), [1; 4096]);
        assert_eq!(Payload::from_bytes(&bytes[1..]), Err(8_191));
        assert_eq!(Payload::Run(Tag::ZERO).sectors(), None);
    }

    /// A run counts on from its first tag, round the end of the tags.
    #[test]
    fn runs_count() {
        let run = Payload::Run(Tag::new(u64::MAX));
        assert_eq!(run.sector(0), SectorData::Tag(Tag::new(u64::MAX)));
        assert_eq!(run.sector(2), SectorData::Tag(Tag::new(1)));
    }
}
