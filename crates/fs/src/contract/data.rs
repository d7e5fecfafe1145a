//! What is read from and written to files: bytes, whole sectors of payload, or a part of one.
//!
//! A tag can travel only in an aligned 4 KiB, whole or the bytes of a part in their places; a caller
//! that needs them elsewhere expands the pattern.

use nandscape_block::{Payload, SECTOR_BYTES, SectorData};
use std::ops::Range;

/// Bytes of a page of a file, a sector of the device.
const PAGE: usize = SECTOR_BYTES as usize;

/// The content of a stretch of a file.
#[derive(Clone, Debug)]
pub enum Data {
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Whole sectors; allowed only at offsets that are multiples of 4,096.
    Sectors(Payload, u32),
    /// These bytes of a page's content; allowed only at the same place in a page of the file.
    Part(SectorData, Range<usize>),
}

impl Data {
    /// Bytes that it covers in the file.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Sectors(_, sectors) => u64::from(*sectors) * SECTOR_BYTES,
            Self::Part(_, part) => part.len() as u64,
        }
    }

    /// Whether it may go to this offset of a file.
    #[must_use]
    pub fn fits(&self, offset: u64) -> bool {
        let into = (offset % SECTOR_BYTES) as usize;
        match self {
            Self::Bytes(_) => true,
            Self::Sectors(..) => into == 0,
            Self::Part(_, part) => into == part.start && part.end <= PAGE,
        }
    }

    /// Whether it covers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is left of it behind its first bytes, of sectors behind whole ones.
    #[must_use]
    pub fn behind(&self, bytes: u64) -> Self {
        match self {
            Self::Bytes(all) => Self::Bytes(all.get(bytes as usize..).unwrap_or_default().to_vec()),
            Self::Sectors(payload, sectors) => {
                let gone = (bytes / SECTOR_BYTES).min(u64::from(*sectors)) as u32;
                let rest = (gone..*sectors).map(|sector| payload.sector(sector));
                Self::Sectors(Payload::collect(rest.collect()), sectors - gone)
            }
            Self::Part(page, part) => {
                Self::Part(page.clone(), part.end.min(part.start + bytes as usize)..part.end)
            }
        }
    }

    /// The content as bytes; what is not kept comes as zeroes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Sectors(payload, sectors) => bytes_of((0..*sectors).map(|i| payload.sector(i))),
            Self::Part(page, part) => {
                let bytes = bytes_of([page.clone()].into_iter());
                bytes.get(part.clone()).map_or_else(Vec::new, <[u8]>::to_vec)
            }
        }
    }

    /// The content of pages read, cut to `offset..offset + len` from the first page's start: whole
    /// sectors where that is possible, and a part of a page where it is one.
    #[must_use]
    pub fn from_pages(mut pages: Vec<SectorData>, offset: usize, len: usize) -> Self {
        if offset == 0 && len == pages.len() * PAGE {
            let sectors = pages.len() as u32;
            return Self::Sectors(Payload::collect(pages), sectors);
        }
        if pages.len() == 1 {
            return Self::Part(pages.pop().unwrap_or_default(), offset..offset + len);
        }
        let mut bytes = bytes_of(pages.into_iter());
        bytes.truncate(offset + len);
        bytes.drain(..offset);
        Self::Bytes(bytes)
    }
}

/// The bytes of pages; what is not kept comes as zeroes.
fn bytes_of(pages: impl Iterator<Item = SectorData>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pages.size_hint().0 * PAGE);
    for page in pages {
        match page.expand() {
            Some(page) => bytes.extend_from_slice(&*page),
            None => bytes.resize(bytes.len() + PAGE, 0),
        }
    }
    bytes
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl PartialEq for Data {
    /// Equal content, however it travels.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Sectors(a, n), Self::Sectors(b, m)) => {
                n == m && (0..*n).all(|index| a.sector(index) == b.sector(index))
            }
            _ => self.to_bytes() == other.to_bytes(),
        }
    }
}
