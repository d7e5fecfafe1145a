//! The superblock: 3,072 bytes at byte 1,024 of block 0, and again of block 1. Follows
//! include/linux/f2fs_fs.h, and `sanity_check_raw_super` and `sanity_check_area_boundary` in
//! fs/f2fs/super.c.
//!
//! [`Superblock::parse`] takes what the kernel takes, and of that only what the rest of the code can
//! compute with: areas that follow each other and hold what belongs in them. Features and devices are
//! checked apart ([`Superblock::check_supported`]), so that a dump can show what a mount refuses.

use super::checksum::{self, ChecksumSeed};
use super::error::{FormatError, Place};
use super::features::{Feature, Features};
use super::gc_record::{GcJournalArea, GcJournalRecord, MARKED_LOG_BLOCKSIZE, RECORD_AT};
use super::slot_record::{AddressSpace, SLOT_RECORD_AT, SlotRecord};
use super::{BLOCKS_PER_SEGMENT, BlockAddr, NAT_ENTRIES_PER_BLOCK, Nid, SIT_ENTRIES_PER_BLOCK};
use crate::wire::{put_u32, record};

/// Where the superblock lies in its block.
pub const SUPERBLOCK_AT: usize = 1024;
/// Its length.
pub const SUPERBLOCK_BYTES: usize = 3072;
/// Its magic.
pub const SUPERBLOCK_MAGIC: u32 = 0xf2f5_2010;
/// Where its checksum stands.
pub const SUPERBLOCK_CRC_AT: usize = 0xbfc;
/// Segments of a volume at most (`F2FS_MAX_SEGMENT`).
pub const SEGMENTS_MAX: u32 = 8 << 20;
/// Segments of a volume, and sections, at least (`F2FS_MIN_SEGMENTS`).
pub const SEGMENTS_MIN: u32 = 9;
/// A block is 1 << this bytes.
pub(super) const LOG_BLOCKSIZE: u32 = 12;
/// File name extensions at most, hot and cold ones together.
pub const EXTENSIONS_MAX: usize = 64;

record! {
    /// The superblock. What it leaves out survives in the bytes that it is written over.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Superblock {
        /// 0xf2f52010.
        magic: u32 = 0x0,
        /// Major version.
        major_ver: u16 = 0x4,
        /// Minor version.
        minor_ver: u16 = 0x6,
        /// A sector is 1 << this bytes: 9 to 12.
        log_sectorsize: u32 = 0x8,
        /// A block is 1 << this sectors.
        log_sectors_per_block: u32 = 0xc,
        /// A block is 1 << this bytes: 12; 11 is a mark ([`Superblock::is_marked`]).
        log_blocksize: u32 = 0x10,
        /// A segment is 1 << this blocks: 9.
        log_blocks_per_seg: u32 = 0x14,
        /// Segments of a section.
        segs_per_sec: u32 = 0x18,
        /// Sections of a zone.
        secs_per_zone: u32 = 0x1c,
        /// Where `crc` stands, with `sb_checksum`; else 0.
        checksum_offset: u32 = 0x20,
        /// Blocks of the volume.
        block_count: u64 = 0x24,
        /// Sections of the main area.
        section_count: u32 = 0x2c,
        /// Segments of all areas.
        segment_count: u32 = 0x30,
        /// Segments of the checkpoint area: one for each pack.
        segment_count_ckpt: u32 = 0x34,
        /// Segments of both copies of the SIT.
        segment_count_sit: u32 = 0x38,
        /// Segments of both copies of the NAT.
        segment_count_nat: u32 = 0x3c,
        /// Segments of the SSA.
        segment_count_ssa: u32 = 0x40,
        /// Segments of the main area.
        segment_count_main: u32 = 0x44,
        /// The first block of the areas.
        segment0_blkaddr: BlockAddr = 0x48,
        /// The first block of the checkpoint area: the same.
        cp_blkaddr: BlockAddr = 0x4c,
        /// The first block of the SIT.
        sit_blkaddr: BlockAddr = 0x50,
        /// The first block of the NAT.
        nat_blkaddr: BlockAddr = 0x54,
        /// The first block of the SSA.
        ssa_blkaddr: BlockAddr = 0x58,
        /// The first block of the main area.
        main_blkaddr: BlockAddr = 0x5c,
        /// Inode number of the root: 3.
        root_ino: Nid = 0x60,
        /// Inode number that stands for node blocks: 1.
        node_ino: Nid = 0x64,
        /// Inode number that stands for metadata blocks: 2.
        meta_ino: Nid = 0x68,
        /// Identity.
        uuid: [u8; 16] = 0x6c,
        /// Label, in UTF-16, ended by a zero or full.
        volume_name: [u16; 512] = 0x7c,
        /// Extensions of cold files in `extension_list`.
        extension_count: u32 = 0x47c,
        /// File name extensions, ended by a zero or full: those of cold files, then those of hot files.
        extension_list: [[u8; 8]; 64] = 0x480,
        /// Blocks of a pack that follow its first block, and hold the SIT's version bitmap.
        cp_payload: u32 = 0x680,
        /// The kernel that mounted it last.
        version: [u8; 256] = 0x684,
        /// The kernel that it was made under.
        init_version: [u8; 256] = 0x784,
        /// Features.
        feature: u32 = 0x884,
        /// Version of encryption.
        encryption_level: u8 = 0x888,
        /// Salt of keys that come from strings.
        encrypt_pw_salt: [u8; 16] = 0x889,
        /// Eight devices: 64 bytes of path and the number of segments. All 0 with one device.
        devs: [[u8; 68]; 8] = 0x899,
        /// Inode numbers of quota files, with `quota`.
        qf_ino: [Nid; 3] = 0xab9,
        /// Extensions of hot files in `extension_list`.
        hot_ext_count: u8 = 0xac5,
        /// Encoding of names, with `casefold`.
        s_encoding: u16 = 0xac6,
        /// Its flags.
        s_encoding_flags: u16 = 0xac8,
        /// An append-only address space: ours, in bytes that are reserved.
        slots: SlotRecord = 0xba0,
        /// Where the GC journal lies: ours, in bytes that are reserved.
        gc_journal: GcJournalRecord = 0xbe8,
        /// With `sb_checksum`: CRC-32 of everything before it.
        crc: u32 = 0xbfc,
    }
}

/// The block after so many segments from `start` on.
fn after(start: BlockAddr, segments: u32) -> u64 {
    u64::from(start.0) + u64::from(segments) * u64::from(BLOCKS_PER_SEGMENT)
}

impl Superblock {
    /// A superblock of zeroes, to be filled in.
    #[must_use]
    pub fn empty() -> Self {
        Self::read(&[])
    }

    /// Reads a copy of the superblock from its 3,072 bytes.
    ///
    /// # Errors
    /// What contradicts itself, or a checksum that does not hold.
    pub fn parse(bytes: &[u8], copy: u32) -> Result<Self, FormatError> {
        let place = Place::Superblock(copy);
        let bytes = bytes.get(..SUPERBLOCK_BYTES);
        let bytes = bytes.ok_or(FormatError::corrupt(place, 0, "is cut short"))?;
        let read = Self::read(bytes);
        if read.magic != SUPERBLOCK_MAGIC {
            return Err(FormatError::corrupt(
                place,
                0,
                "bad magic number: not an F2FS file system",
            ));
        }
        if read.features().has(Feature::SB_CHECKSUM) {
            if read.checksum_offset as usize != SUPERBLOCK_CRC_AT {
                return Err(FormatError::corrupt(place, 0x20, "checksum is not at its place"));
            }
            FormatError::checksum(place, read.crc, checksum::superblock(bytes))?;
        }
        read.check(place)?;
        Ok(read)
    }

    /// Nothing, if sizes and areas agree with each other.
    pub(super) fn check(&self, place: Place) -> Result<(), FormatError> {
        self.check_units(place)?;
        self.check_counts(place)?;
        self.check_areas(place)?;
        self.check_mark(place)?;
        self.check_capacities(place)
    }

    /// Sizes of sector, block and segment; what else has one value only.
    fn check_units(&self, place: Place) -> Result<(), FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        if self.log_blocks_per_seg != 9 {
            return corrupt(0x14, "segments are not of 512 blocks");
        }
        if !(9..=12).contains(&self.log_sectorsize) {
            return corrupt(0x8, "sector size out of range");
        }
        if self.log_sectors_per_block != 12 - self.log_sectorsize {
            return corrupt(0xc, "sectors do not make up a block");
        }
        let [cold, hot] = [self.extension_count as usize, usize::from(self.hot_ext_count)];
        if cold > EXTENSIONS_MAX || cold + hot > EXTENSIONS_MAX {
            return corrupt(0x47c, "more extensions than there is room for");
        }
        if self.cp_payload > BLOCKS_PER_SEGMENT - 2 {
            return corrupt(0x680, "payload does not fit a checkpoint pack");
        }
        if [self.root_ino, self.node_ino, self.meta_ino] != [Nid(3), Nid(1), Nid(2)] {
            return corrupt(0x60, "inode numbers of root, nodes and metadata are not 3, 1, 2");
        }
        Ok(())
    }

    /// Numbers of segments, sections and zones.
    fn check_counts(&self, place: Place) -> Result<(), FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        let [segments, sections] = [self.segment_count, self.section_count];
        if !(SEGMENTS_MIN..=SEGMENTS_MAX).contains(&segments) {
            return corrupt(0x30, "number of segments out of range");
        }
        if sections > segments || sections < SEGMENTS_MIN {
            return corrupt(0x2c, "number of sections out of range");
        }
        if self.segs_per_sec == 0 || self.segs_per_sec > segments {
            return corrupt(0x18, "segments of a section out of range");
        }
        if u64::from(sections) * u64::from(self.segs_per_sec) != u64::from(self.segment_count_main)
        {
            return corrupt(0x2c, "sections do not make up the main area");
        }
        if self.secs_per_zone == 0 || self.secs_per_zone > sections {
            return corrupt(0x1c, "sections of a zone out of range");
        }
        if u64::from(segments) > self.block_count / u64::from(BLOCKS_PER_SEGMENT) {
            return corrupt(0x30, "more segments than the volume has blocks for");
        }
        let devices = self.devices().map(u64::from);
        if self.devs[0][0] != 0 && devices.sum::<u64>() != u64::from(segments) {
            return corrupt(0x899, "segments of the devices are not those of the volume");
        }
        Ok(())
    }

    /// The block after the main area.
    fn main_end(&self) -> u64 {
        after(self.main_blkaddr, self.segment_count_main)
    }

    /// Segments of each device that has a path.
    fn devices(&self) -> impl Iterator<Item = u32> {
        let named = self.devs.iter().take_while(|device| device[0] != 0);
        named.map(|device| crate::wire::u32_at(device, 64))
    }

    /// Each area begins where the one before it ends, and the last ends within the volume.
    fn check_areas(&self, place: Place) -> Result<(), FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        if self.segment0_blkaddr != self.cp_blkaddr {
            return corrupt(0x4c, "checkpoints do not begin at segment 0");
        }
        let areas = [
            (0x50, self.cp_blkaddr, self.segment_count_ckpt, self.sit_blkaddr),
            (0x54, self.sit_blkaddr, self.segment_count_sit, self.nat_blkaddr),
            (0x58, self.nat_blkaddr, self.segment_count_nat, self.ssa_blkaddr),
            (0x5c, self.ssa_blkaddr, self.segment_count_ssa, self.main_blkaddr),
        ];
        for (at, start, segments, next) in areas {
            if after(start, segments) != u64::from(next.0) {
                return corrupt(at, "does not begin where the area before it ends");
            }
        }
        let end = self.main_end();
        if end > after(self.segment0_blkaddr, self.segment_count) {
            return corrupt(0x44, "main area ends beyond the last segment");
        }
        if end > self.block_count || end >= u64::from(BlockAddr::COMPRESS.0) {
            return corrupt(0x44, "main area ends beyond the volume");
        }
        Ok(())
    }

    /// Each area has room for what belongs in it. The kernel trusts mkfs in this.
    fn check_capacities(&self, place: Place) -> Result<(), FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        if self.segment0_blkaddr.0 < 2 {
            return corrupt(0x48, "segment 0 lies over the superblocks");
        }
        let journals = self.space().map_or(0, |space| space.journal_segments);
        if self.segment_count_ckpt < 2 || (self.segment_count_ckpt - 2) / 2 < journals {
            return corrupt(0x34, "no room for two checkpoint packs");
        }
        let blocks = |segments: u32| u64::from(segments) * u64::from(BLOCKS_PER_SEGMENT);
        let main = u64::from(self.segment_count_main);
        let sit = blocks(self.segment_count_sit / 2) * SIT_ENTRIES_PER_BLOCK as u64;
        if !self.segment_count_sit.is_multiple_of(2) || sit < main {
            return corrupt(0x38, "SIT has no entry for some segment");
        }
        let nat = blocks(self.segment_count_nat / 2) * NAT_ENTRIES_PER_BLOCK as u64;
        if !self.segment_count_nat.is_multiple_of(2) || nat == 0 || nat > u64::from(u32::MAX) {
            return corrupt(0x3c, "size of the NAT out of range");
        }
        if blocks(self.segment_count_ssa) < main {
            return corrupt(0x40, "SSA has no block for some segment");
        }
        Ok(())
    }

    /// The area of the GC journal; `None` without one, and if the record is of no use
    /// ([`Superblock::check_gc_journal`]).
    #[must_use]
    pub fn gc_journal(&self) -> Option<GcJournalArea> {
        self.check_gc_journal(0).ok().flatten()
    }

    /// The area of the GC journal; `None` without one. `copy` is the copy of the superblock.
    ///
    /// # Errors
    /// A record that contradicts itself, or that has not the volume's size. Stock tools change the size of
    /// a volume without it, and what they leave is no worse than a volume without GC journal.
    pub fn check_gc_journal(&self, copy: u32) -> Result<Option<GcJournalArea>, FormatError> {
        self.gc_journal.area(Place::Superblock(copy), self.main_end(), self.block_count)
    }

    /// Whether stock tools are kept from the volume by this copy, since blocks of the GC journal may count.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        let live = self.gc_journal().and_then(GcJournalArea::live);
        self.log_blocksize == MARKED_LOG_BLOCKSIZE && live.is_some()
    }

    /// The append-only address space; `None` of a volume with a main area.
    #[must_use]
    pub fn space(&self) -> Option<AddressSpace> {
        self.check_space(Place::Superblock(0)).ok().flatten()
    }

    fn check_space(&self, place: Place) -> Result<Option<AddressSpace>, FormatError> {
        self.slots.space(place, self.main_blkaddr, self.segs_per_sec)
    }

    /// Nothing, if the size of blocks is the one that there is, or a mark; and if the record agrees.
    fn check_mark(&self, place: Place) -> Result<(), FormatError> {
        let is_live = self.gc_journal().is_some_and(|area| area.live().is_some());
        let has_slots = self.check_space(place)?.is_some();
        if has_slots && self.log_blocksize != MARKED_LOG_BLOCKSIZE {
            let what = "slots in place of segments, and the copy has no mark";
            return Err(FormatError::corrupt(place, SLOT_RECORD_AT, what));
        }
        match self.log_blocksize {
            MARKED_LOG_BLOCKSIZE if is_live || has_slots => Ok(()),
            LOG_BLOCKSIZE if is_live => {
                let what = "GC journal has blocks that count, and the copy no mark";
                Err(FormatError::corrupt(place, RECORD_AT + 0xc, what))
            }
            LOG_BLOCKSIZE => Ok(()),
            _ => Err(FormatError::corrupt(place, 0x10, "blocks are not of 4,096 bytes")),
        }
    }

    /// Nothing, if what it asks for is supported.
    ///
    /// # Errors
    /// Features that are not, by name, or several devices.
    pub fn check_supported(&self, copy: u32) -> Result<(), FormatError> {
        let place = Place::Superblock(copy);
        self.features().check(place)?;
        match self.devices().count() {
            0 => Ok(()),
            count => {
                let what = format!("a volume on several devices ({count}) is not supported");
                Err(FormatError::Incompatible { place, what })
            }
        }
    }

    /// Writes the superblock over the 3,072 bytes of a copy, checksum included.
    pub fn encode(&self, bytes: &mut [u8]) {
        self.write(bytes);
        if self.features().has(Feature::SB_CHECKSUM) {
            let computed = checksum::superblock(bytes);
            put_u32(bytes, SUPERBLOCK_CRC_AT, computed);
        }
    }

    /// The features.
    #[must_use]
    pub const fn features(&self) -> Features {
        Features(self.feature)
    }

    /// Where checksums of inodes begin; `None` without `inode_checksum`.
    #[must_use]
    pub fn checksum_seed(&self) -> Option<ChecksumSeed> {
        let on = self.features().has(Feature::INODE_CHECKSUM);
        on.then(|| ChecksumSeed::of_uuid(&self.uuid))
    }

    /// The label. What is not UTF-16 is replaced.
    #[must_use]
    pub fn label(&self) -> String {
        let units: Vec<u16> = self.volume_name.iter().copied().take_while(|u| *u != 0).collect();
        String::from_utf16_lossy(&units)
    }

    /// File name extensions of cold files, and those of hot files.
    #[must_use]
    pub fn extensions(&self) -> (Vec<&[u8]>, Vec<&[u8]>) {
        let word = |bytes: &'_ [u8; 8]| bytes.iter().position(|byte| *byte == 0).unwrap_or(8);
        let mut all = self.extension_list.iter().map(|bytes| &bytes[..word(bytes)]);
        let cold = all.by_ref().take(self.extension_count as usize).collect();
        (cold, all.take(usize::from(self.hot_ext_count)).collect())
    }
}
