//! Payload: bytes, or a tag that stands for 4 KiB.
//!
//! A [`Tag`] *is* a fixed pseudo-random 4 KiB pattern. Media that hold tags keep 8 bytes a sector and
//! every read is still checked for being the right data. Whoever changes part of a sector expands
//! the pattern and patches it into bytes; tags are never chained. [`Tag::ZERO`] is a sector of
//! zeroes, which is what a sector never written reads as.

use crate::address::{SECTOR_BYTES, SectorBytes};
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
}

impl SectorData {
    /// The bytes that this content reads as; `None` when it was not kept.
    #[must_use]
    pub fn expand(&self) -> Option<Box<SectorBytes>> {
        match self {
            Self::Absent => None,
            Self::Tag(tag) => Some(tag.expand()),
            Self::Bytes(bytes) => Some(Box::new(**bytes)),
        }
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
    pub fn len(&self) -> Option<usize> {
        match self {
            Self::None | Self::Run(_) => None,
            Self::Tags(tags) => Some(tags.len()),
            Self::Sectors(sectors) => Some(sectors.len()),
        }
    }
}
