//! Payload: bytes, or a tag that stands for 4 KiB.
//!
//! A [`Tag`] *is* a fixed pseudo-random 4 KiB pattern. Media that hold tags keep 8 bytes a sector and
//! every read is still checked for being the right data. Whoever changes part of a sector expands
//! the pattern and patches it into bytes; tags are never chained. [`Tag::ZERO`] is a sector of
//! zeroes, which is what a sector never written reads as.

use crate::address::{SECTOR_BYTES, SectorBytes};
use crate::sparse::SparseBytes;
use std::sync::Arc;

/// JBD2's magic, big-endian in a block's first word; no pattern begins with it.
const JBD2_MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

/// Identity of a sector's content: 63 bits, standing for a fixed 4 KiB pattern.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Tag(u64);

impl Tag {
    /// A sector of zeroes.
    pub const ZERO: Self = Self(0);
    const MASK: u64 = u64::MAX >> 1;

    /// The tag with these low 63 bits.
    #[inline]
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits & Self::MASK)
    }

    /// The 63 bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The tag `n` further on, for runs.
    #[inline]
    #[must_use]
    pub const fn plus(self, n: u64) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// The pattern that this tag is (splitmix64 from the tag on; zeroes for [`Tag::ZERO`]).
    #[must_use]
    pub fn expand(self) -> Box<SectorBytes> {
        let mut bytes = Box::new([0; SECTOR_BYTES as usize]);
        if self == Self::ZERO {
            return bytes;
        }
        let mut state = self.0;
        for word in bytes.chunks_exact_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        }
        if bytes[..4] == JBD2_MAGIC {
            bytes[0] ^= 1;
        }
        bytes
    }
}

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
        }
    }

    /// The bytes of a content that travels as bytes; `None` of a tag, and of what was not kept.
    #[must_use]
    pub fn bytes(&self) -> Option<Arc<SectorBytes>> {
        match self {
            Self::Absent | Self::Tag(_) => None,
            Self::Bytes(bytes) => Some(Arc::clone(bytes)),
            Self::Sparse(bytes) => Some(Arc::from(bytes.bytes())),
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
}

impl PartialEq for SectorData {
    /// Equal content, whether it travels as a tag or as bytes. Content not kept equals only itself.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tag(a), Self::Tag(b)) => a == b,
            (Self::Absent, Self::Absent) => true,
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

    /// Collects the contents of a read, in the most compact form.
    #[must_use]
    pub fn collect(sectors: Vec<SectorData>) -> Self {
        if sectors.iter().any(|s| matches!(s, SectorData::Absent)) {
            return Self::None;
        }
        let tags: Option<Box<[Tag]>> = sectors
            .iter()
            .map(|s| if let SectorData::Tag(tag) = s { Some(*tag) } else { None })
            .collect();
        match tags {
            Some(tags) if tags.len() == 1 => Self::Run(tags[0]),
            Some(tags) => Self::Tags(tags),
            None => Self::Sectors(sectors.into_boxed_slice()),
        }
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

    /// Undoes `z ^ (z >> shift)`.
    fn unshift(z: u64, shift: u32) -> u64 {
        (0..64).fold(z, |guess, _| z ^ (guess >> shift))
    }

    /// The inverse of an odd number modulo 2^64, by Newton's iteration.
    fn inverse(odd: u64) -> u64 {
        let newton = |x: u64| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        (0..6).fold(odd, |x, _| newton(x))
    }

    /// The bits of the tag whose pattern would begin with `word`, were it not for the magic's rule.
    fn bits_of_pattern(word: u64) -> u64 {
        let z = unshift(word, 31).wrapping_mul(inverse(0x94d0_49bb_1331_11eb));
        let z = unshift(z, 27).wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9));
        unshift(z, 30).wrapping_sub(0x9e37_79b9_7f4a_7c15)
    }

    proptest! {
        /// No pattern begins with JBD2's magic: random tags practically never would, so the tags
        /// that would are computed.
        #[test]
        fn no_pattern_begins_with_the_magic(rest in 0..u32::MAX - 64) {
            let word = |rest| u64::from(u32::from_le_bytes(JBD2_MAGIC)) | u64::from(rest) << 32;
            let is_tag = |rest: &u32| bits_of_pattern(word(*rest)) <= Tag::MASK;
            let rest = (rest..).find(is_tag).expect("half of all patterns are tags");
            let pattern = Tag::new(bits_of_pattern(word(rest))).expand();
            prop_assert_eq!(&pattern[4..8], rest.to_le_bytes());
            prop_assert_ne!(&pattern[..4], JBD2_MAGIC);
        }

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
        assert_eq!(run.sector(0), SectorData::Tag(Tag::new(Tag::MASK)));
        assert_eq!(run.sector(2), SectorData::Tag(Tag::new(1)));
    }
}
