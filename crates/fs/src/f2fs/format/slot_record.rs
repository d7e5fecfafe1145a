//! The record of an append-only address space in both copies of the superblock: where the logs may write, and what the
//! media behind it hold. It lies in bytes that are reserved, before the record of the GC journal.
//!
//! A volume with it has no main area after its metadata: SIT and SSA are indexed by slots, which are given to sections
//! that hold something ([`SlotMap`](super::SlotMap)). Kernels and f2fs-tools would take slots for segments, so both
//! copies have the mark of [`gc_mark`](super::gc_mark) from mkfs on, for ever. After the address spaces of IPLFS (Kim et
//! al., ATC '22) and D2FS (Kim et al., FAST '25).

use super::checksum::crc32;
use super::error::{FormatError, Place};
use super::{BLOCKS_PER_SEGMENT, BlockAddr, SUPERBLOCK_MAGIC};
use crate::wire::{Wire, record};

/// Magic of the record: "SLOT".
pub const SLOT_MAGIC: u32 = 0x544f_4c53;
/// Bytes of the record.
pub(super) const SLOT_RECORD_BYTES: usize = 68;
/// Where its checksum stands.
const CRC_AT: usize = 64;
/// Where it lies in the superblock.
pub(super) const SLOT_RECORD_AT: usize = 0xba0;
/// Regions of an address space at most.
pub const SPACE_REGIONS: usize = 6;

record! {
    /// An append-only address space. All 0 without one.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct SlotRecord {
        /// 0x544f4c53.
        magic: u32 = 0x0,
        /// 1: a region for each log, written once; 2: regions of data and of nodes, with those that the device moves blocks to.
        mode: u32 = 0x4,
        /// Blocks that the media hold outside of the metadata.
        capacity: u32 = 0x8,
        /// Segments of each of both discard journals.
        journal_segments: u32 = 0xc,
        /// First block and number of blocks of each region, in order of address.
        regions: [[u32; 2]; 6] = 0x10,
        /// CRC-32 of what is before it.
        crc: u32 = 0x40,
    }
}

impl Wire for SlotRecord {
    const BYTES: usize = SLOT_RECORD_BYTES;
    fn get(bytes: &[u8]) -> Self {
        Self::read(bytes)
    }
    fn put(&self, bytes: &mut [u8]) {
        self.write(bytes);
    }
}

/// How the addresses of a volume are given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendMode {
    /// Each log has a region of its own, and no address is written twice (IPLFS).
    Interval,
    /// Data and nodes have a region each, whose sections are written again once they are empty; the device moves blocks
    /// to two more (D2FS).
    Coupled,
}

impl AppendMode {
    /// Regions of its address space.
    #[must_use]
    pub const fn regions(self) -> usize {
        match self {
            Self::Interval => 6,
            Self::Coupled => 4,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interval => "iplfs",
            Self::Coupled => "d2fs",
        }
    }
}

/// A part of an address space.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SpaceRegion {
    /// Its first block.
    pub start: u32,
    /// Blocks of it that are used.
    pub blocks: u32,
}

impl SpaceRegion {
    /// Whether a block lies in it.
    #[inline]
    #[must_use]
    pub const fn has(&self, at: BlockAddr) -> bool {
        at.0.wrapping_sub(self.start) < self.blocks
    }
}

/// An append-only address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressSpace {
    /// How its addresses are given out.
    pub mode: AppendMode,
    /// Blocks that the media hold outside of the metadata.
    pub capacity: u32,
    /// Segments of each of both discard journals.
    pub journal_segments: u32,
    /// Its regions, as many as the mode has.
    pub regions: [SpaceRegion; SPACE_REGIONS],
}

impl AddressSpace {
    /// Its regions, in order of address.
    #[must_use]
    pub fn regions(&self) -> &[SpaceRegion] {
        &self.regions[..self.mode.regions()]
    }

    /// Whether the device alone writes a region.
    #[must_use]
    pub const fn is_device_owned(&self, region: usize) -> bool {
        matches!(self.mode, AppendMode::Coupled) && region % 2 == 1
    }

    /// The first block of all regions, and the one after the last.
    pub(super) fn bounds(&self) -> [BlockAddr; 2] {
        let end = |region: &SpaceRegion| region.start + region.blocks;
        let regions = self.regions();
        let first = regions.first().map_or(0, |region| region.start);
        [first, regions.last().map_or(0, end)].map(BlockAddr)
    }
}

impl SlotRecord {
    /// The record of an address space.
    #[must_use]
    pub fn of(space: &AddressSpace) -> Self {
        let mode = match space.mode {
            AppendMode::Interval => 1,
            AppendMode::Coupled => 2,
        };
        let AddressSpace { capacity, journal_segments, .. } = *space;
        let regions = space.regions.map(|region| [region.start, region.blocks]);
        let magic = SLOT_MAGIC;
        Self { magic, mode, capacity, journal_segments, regions, crc: 0 }.sealed()
    }

    /// The record with the checksum that holds for it.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.crc = self.checksum();
        self
    }

    fn checksum(&self) -> u32 {
        let mut bytes = [0; SLOT_RECORD_BYTES];
        self.write(&mut bytes);
        crc32(SUPERBLOCK_MAGIC, &bytes[..CRC_AT])
    }

    /// The address space that it describes; `None` without one. The metadata ends before block `metadata_end`, and
    /// sections have so many segments.
    ///
    /// # Errors
    /// A record that contradicts itself or the volume.
    pub(super) fn space(
        &self,
        place: Place,
        metadata_end: BlockAddr,
        per_section: u32,
    ) -> Result<Option<AddressSpace>, FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, SLOT_RECORD_AT + at, what));
        if self.magic != SLOT_MAGIC {
            return Ok(None);
        }
        FormatError::checksum(place, self.crc, self.checksum())?;
        let mode = match self.mode {
            1 => AppendMode::Interval,
            2 => AppendMode::Coupled,
            _ => return corrupt(0x4, "address space of an unknown mode"),
        };
        if self.capacity == 0 {
            return corrupt(0x8, "media that hold nothing");
        }
        let section = u64::from(per_section) * u64::from(BLOCKS_PER_SEGMENT);
        let mut end = u64::from(metadata_end.0);
        for [start, blocks] in
            self.regions.iter().take(mode.regions()).map(|one| one.map(u64::from))
        {
            if start < end || !start.is_multiple_of(BLOCKS_PER_SEGMENT.into()) {
                return corrupt(
                    0x10,
                    "region that lies over what is before it, or begins within a segment",
                );
            }
            if blocks == 0 || blocks % section != 0 {
                return corrupt(0x10, "region that is no whole number of sections");
            }
            end = start + blocks;
        }
        if end > u64::from(BlockAddr::COMPRESS.0) {
            return corrupt(0x10, "region beyond the addresses that there are");
        }
        let regions = self.regions.map(|[start, blocks]| SpaceRegion { start, blocks });
        let Self { capacity, journal_segments, .. } = *self;
        Ok(Some(AddressSpace { mode, capacity, journal_segments, regions }))
    }
}

const _: () = assert!(crate::wire::end(SlotRecord::FIELDS) == SLOT_RECORD_BYTES);
const _: () = assert!(CRC_AT + 4 == SLOT_RECORD_BYTES);
const _: () = assert!(SLOT_RECORD_AT + SLOT_RECORD_BYTES <= super::gc_record::RECORD_AT);
