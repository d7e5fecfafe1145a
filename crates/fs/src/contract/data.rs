//! What is read from and written to files: bytes, or whole sectors of payload.
//!
//! A tag can travel only in a whole, aligned 4 KiB; whoever needs a part of it expands the pattern.

use nandscape_block::{Payload, SECTOR_BYTES, SectorData};

/// Bytes of a page of a file, a sector of the device.
const PAGE: usize = SECTOR_BYTES as usize;

/// The content of a stretch of a file.
#[derive(Clone, Debug)]
pub enum Data {
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Whole sectors; allowed only at offsets that are multiples of 4,096.
    Sectors(Payload, u32),
}

impl Data {
    /// Bytes that it covers in the file.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Sectors(_, sectors) => u64::from(*sectors) * SECTOR_BYTES,
        }
    }

    /// Whether it covers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The content of whole sectors; content that is not kept comes as zeroes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Sectors(payload, sectors) => {
                let mut bytes = Vec::with_capacity(*sectors as usize * PAGE);
                for index in 0..*sectors {
                    match payload.sector(index).expand() {
                        Some(sector) => bytes.extend_from_slice(&*sector),
                        None => bytes.resize(bytes.len() + PAGE, 0),
                    }
                }
                bytes
            }
        }
    }

    /// The content of pages read, cut to `offset..offset + len` from the first page's start: whole
    /// sectors where that is possible.
    #[must_use]
    pub fn from_pages(pages: Vec<SectorData>, offset: usize, len: usize) -> Self {
        if offset == 0 && len == pages.len() * PAGE {
            let sectors = pages.len() as u32;
            return Self::Sectors(Payload::collect(pages), sectors);
        }
        let mut bytes = Vec::with_capacity(pages.len() * PAGE);
        for page in &pages {
            match page.expand() {
                Some(sector) => bytes.extend_from_slice(&*sector),
                None => bytes.resize(bytes.len() + PAGE, 0),
            }
        }
        bytes.truncate(offset + len);
        bytes.drain(..offset);
        Self::Bytes(bytes)
    }
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
