//! The journal's superblock: how long the log is, and where what it holds begins.
//!
//! What we do not know in it is kept as it was.

use super::features::{Checksums, Features};
use super::{BLOCK_BYTES, Codec, Header, Kind, be32, put32};
use crate::ext4::format::crc32c;
use crate::ext4::journal::error::{JournalError, LogPlace};
use crate::ext4::journal::tid::Tid;
use nandscape_block::SectorBytes;

/// Bytes of the block that are the superblock.
const BYTES: usize = 1024;
/// Where each field lies.
mod at {
    pub(super) const BLOCK_BYTES: usize = 0x0c;
    pub(super) const BLOCKS: usize = 0x10;
    pub(super) const FIRST: usize = 0x14;
    pub(super) const SEQUENCE: usize = 0x18;
    pub(super) const START: usize = 0x1c;
    pub(super) const ERRNO: usize = 0x20;
    pub(super) const COMPAT: usize = 0x24;
    pub(super) const INCOMPAT: usize = 0x28;
    pub(super) const RO_COMPAT: usize = 0x2c;
    pub(super) const UUID: usize = 0x30;
    pub(super) const USERS: usize = 0x40;
    pub(super) const CHECKSUM_TYPE: usize = 0x50;
    /// Ours alone, in what the kernel leaves free: the area of file-level records.
    pub(super) const FILES_FIRST: usize = 0xe0;
    pub(super) const FILES_SLOTS: usize = 0xe4;
    pub(super) const FILES_SLOT_BLOCKS: usize = 0xe8;
    pub(super) const FILES_EPOCH: usize = 0xec;
    pub(super) const FILES_APPLYING: usize = 0xf0;
    pub(super) const FILES_TID: usize = 0xf4;
    pub(super) const CHECKSUM: usize = 0xfc;
}
/// The fields: name, place, bytes.
#[cfg(test)]
pub(super) const FIELDS: [(&str, usize, usize); 19] = [
    ("block_bytes", at::BLOCK_BYTES, 4),
    ("blocks", at::BLOCKS, 4),
    ("first", at::FIRST, 4),
    ("sequence", at::SEQUENCE, 4),
    ("start", at::START, 4),
    ("errno", at::ERRNO, 4),
    ("compat", at::COMPAT, 4),
    ("incompat", at::INCOMPAT, 4),
    ("ro_compat", at::RO_COMPAT, 4),
    ("uuid", at::UUID, 16),
    ("users", at::USERS, 4),
    ("checksum_type", at::CHECKSUM_TYPE, 1),
    ("files_first", at::FILES_FIRST, 4),
    ("files_slots", at::FILES_SLOTS, 4),
    ("files_slot_blocks", at::FILES_SLOT_BLOCKS, 4),
    ("files_epoch", at::FILES_EPOCH, 4),
    ("files_applying", at::FILES_APPLYING, 4),
    ("files_tid", at::FILES_TID, 4),
    ("checksum", at::CHECKSUM, 4),
];
/// The number of CRC-32C among the checksum types.
const CRC32C: u8 = 4;

/// The journal's superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    raw: Box<SectorBytes>,
}

/// Where what the log holds begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The first transaction; where the log is empty, the next one to come less one or two.
    pub tid: Tid,
    /// Its first block in the log; 0 if the log is empty.
    pub block: u32,
}

/// Where the area of file-level records lies, and which use of it this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ext4::journal) struct FileArea {
    /// Its first block, counted as the log's are.
    pub(in crate::ext4::journal) first: u32,
    /// Rings of records.
    pub(in crate::ext4::journal) slots: u32,
    /// Blocks of each.
    pub(in crate::ext4::journal) slot_blocks: u32,
    /// Distinguishes records of this use from leftovers.
    pub(in crate::ext4::journal) epoch: u32,
    /// Set while recovered records are applied: those count whose transaction is this or a later one.
    pub(in crate::ext4::journal) applying: Option<Tid>,
}

impl FileArea {
    /// Blocks in all; none where that is beyond what a log can have.
    pub(in crate::ext4::journal) fn blocks(&self) -> Option<u32> {
        self.slots.checked_mul(self.slot_blocks)
    }
}

impl Superblock {
    /// A superblock of a log of `blocks` blocks, this one among them, empty and without features,
    /// as mke2fs makes it.
    #[must_use]
    pub fn fresh(blocks: u32, uuid: [u8; 16]) -> Self {
        let mut raw = Box::new([0; BLOCK_BYTES]);
        Header { kind: Kind::SuperblockV2, tid: Tid(0) }.put(&mut raw);
        put32(&mut raw[..], at::BLOCK_BYTES, BLOCK_BYTES as u32);
        put32(&mut raw[..], at::BLOCKS, blocks);
        put32(&mut raw[..], at::FIRST, 1);
        put32(&mut raw[..], at::SEQUENCE, 1);
        put32(&mut raw[..], at::USERS, 1);
        raw[at::UUID..at::UUID + 16].copy_from_slice(&uuid);
        Self { raw }
    }

    /// Reads and checks a superblock; `available` blocks lie where the journal lies.
    ///
    /// # Errors
    /// What is wrong or not supported.
    pub fn parse(raw: Box<SectorBytes>, available: u64) -> Result<Self, JournalError> {
        let superblock = Self { raw };
        superblock.check(available)?;
        Ok(superblock)
    }

    fn check(&self, available: u64) -> Result<(), JournalError> {
        let kind = Header::parse(&self.raw).map(|header| header.kind);
        if !matches!(kind, Some(Kind::SuperblockV1 | Kind::SuperblockV2)) {
            return Err(corrupt("no journal superblock"));
        }
        if self.word(at::BLOCK_BYTES) != BLOCK_BYTES as u32 {
            let bytes = self.word(at::BLOCK_BYTES);
            return Err(JournalError::Incompatible(format!("blocks of {bytes} bytes, not 4096")));
        }
        if let Some(what) = self.features().refused() {
            return Err(JournalError::Incompatible(what));
        }
        self.check_checksum()?;
        if u64::from(self.blocks()) > available {
            return Err(corrupt("the log is longer than the journal's file"));
        }
        if self.first() == 0 || self.first() >= self.blocks() {
            return Err(corrupt("the log has no first block"));
        }
        if let Some(layout) = self.files() {
            let end = layout.blocks().and_then(|blocks| layout.first.checked_add(blocks));
            let sound = layout.first == self.blocks() && layout.slots > 0 && layout.slot_blocks > 0;
            if !sound || end.is_none_or(|end| u64::from(end) > available) {
                return Err(corrupt("the area of file records lies elsewhere"));
            }
        }
        let start = self.start().block;
        if start != 0 && !(self.first()..self.blocks()).contains(&start) {
            return Err(corrupt("the log starts outside itself"));
        }
        Ok(())
    }

    fn check_checksum(&self) -> Result<(), JournalError> {
        if self.features().checksums() == Checksums::None {
            return Ok(());
        }
        if self.raw[at::CHECKSUM_TYPE] != CRC32C {
            let kind = self.raw[at::CHECKSUM_TYPE];
            return Err(JournalError::Incompatible(format!(
                "checksums of type {kind}, not crc32c"
            )));
        }
        if self.word(at::CHECKSUM) != self.checksum() {
            return Err(corrupt("wrong checksum"));
        }
        Ok(())
    }

    fn checksum(&self) -> u32 {
        let sum = crc32c(!0, &self.raw[..at::CHECKSUM]);
        crc32c(crc32c(sum, &[0; 4]), &self.raw[at::CHECKSUM + 4..BYTES])
    }

    /// The block, as it is to be written.
    #[must_use]
    pub fn bytes(&self) -> &SectorBytes {
        &self.raw
    }

    /// Blocks of the log, the superblock among them.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.word(at::BLOCKS)
    }

    /// First block that transactions may use.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.word(at::FIRST)
    }

    /// Where what the log holds begins.
    #[must_use]
    pub fn start(&self) -> Position {
        Position { tid: Tid(self.word(at::SEQUENCE)), block: self.word(at::START) }
    }

    /// The error that aborted the journal, as Linux's negative number; 0 for none.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.word(at::ERRNO) as i32
    }

    /// The feature sets; of the old kind of superblock, none.
    #[must_use]
    pub fn features(&self) -> Features {
        match Header::parse(&self.raw).map(|header| header.kind) {
            Some(Kind::SuperblockV2) => Features {
                compat: self.word(at::COMPAT),
                incompat: self.word(at::INCOMPAT),
                ro_compat: self.word(at::RO_COMPAT),
            },
            _ => Features::default(),
        }
    }

    /// Whether it has what its kind has not: features in the old kind, or other users in the new one.
    #[must_use]
    pub fn has_foreign_fields(&self) -> bool {
        let kind = Header::parse(&self.raw).map(|header| header.kind);
        let features = [at::COMPAT, at::INCOMPAT, at::RO_COMPAT];
        let old = kind == Some(Kind::SuperblockV1);
        let marked = old && features.into_iter().any(|at| self.word(at) != 0);
        marked || self.word(at::USERS) > u32::from(!old)
    }

    /// The journal's UUID, the seed of its checksums.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        std::array::from_fn(|index| self.raw[at::UUID + index])
    }

    /// How the log's blocks are laid out.
    #[must_use]
    pub fn codec(&self) -> Codec {
        Codec::new(self.features(), &self.uuid())
    }

    /// The area of file-level records, if one is in use.
    pub(in crate::ext4::journal) fn files(&self) -> Option<FileArea> {
        let applying = self.word(at::FILES_APPLYING) != 0;
        self.features().has_ijournal().then(|| FileArea {
            first: self.word(at::FILES_FIRST),
            slots: self.word(at::FILES_SLOTS),
            slot_blocks: self.word(at::FILES_SLOT_BLOCKS),
            epoch: self.word(at::FILES_EPOCH),
            applying: applying.then(|| Tid(self.word(at::FILES_TID))),
        })
    }

    /// Gives the end of the log to an area of file-level records; to be used while the log is empty.
    pub(in crate::ext4::journal) fn set_files(&mut self, layout: FileArea) {
        put32(&mut self.raw[..], at::BLOCKS, layout.first);
        put32(&mut self.raw[..], at::FILES_FIRST, layout.first);
        put32(&mut self.raw[..], at::FILES_SLOTS, layout.slots);
        put32(&mut self.raw[..], at::FILES_SLOT_BLOCKS, layout.slot_blocks);
        put32(&mut self.raw[..], at::FILES_EPOCH, layout.epoch);
        put32(&mut self.raw[..], at::FILES_APPLYING, layout.applying.is_some().into());
        put32(&mut self.raw[..], at::FILES_TID, layout.applying.unwrap_or_default().0);
        self.set_mark(true);
    }

    /// Gives the area back to the log; the superblock is the kernel's again.
    pub(in crate::ext4::journal) fn clear_files(&mut self) {
        let area = self.files().and_then(|layout| layout.blocks()).unwrap_or(0);
        let blocks = self.blocks() + area;
        put32(&mut self.raw[..], at::BLOCKS, blocks);
        self.raw[at::FILES_FIRST..at::FILES_TID + 4].fill(0);
        self.set_mark(false);
    }

    fn set_mark(&mut self, mark: bool) {
        let Features { compat, incompat, ro_compat } = self.features();
        let others = incompat & !Features::IJOURNAL;
        let incompat = others | if mark { Features::IJOURNAL } else { 0 };
        self.set_features(Features { compat, incompat, ro_compat });
    }

    /// Says where what the log holds begins.
    pub fn set_start(&mut self, start: Position) {
        put32(&mut self.raw[..], at::SEQUENCE, start.tid.0);
        put32(&mut self.raw[..], at::START, start.block);
        self.seal();
    }

    /// Sets the features; the old kind of superblock becomes the new one.
    pub fn set_features(&mut self, features: Features) {
        Header { kind: Kind::SuperblockV2, tid: Tid(be32(&self.raw[..], 8)) }.put(&mut self.raw);
        put32(&mut self.raw[..], at::COMPAT, features.compat);
        put32(&mut self.raw[..], at::INCOMPAT, features.incompat);
        put32(&mut self.raw[..], at::RO_COMPAT, features.ro_compat);
        self.raw[at::CHECKSUM_TYPE] =
            if features.checksums() == Checksums::None { 0 } else { CRC32C };
        self.seal();
    }

    /// Notes the error that aborted the journal, as Linux's negative number; 0 clears it.
    pub fn set_errno(&mut self, errno: i32) {
        put32(&mut self.raw[..], at::ERRNO, errno as u32);
        self.seal();
    }

    fn seal(&mut self) {
        let checksum =
            if self.features().checksums() == Checksums::None { 0 } else { self.checksum() };
        put32(&mut self.raw[..], at::CHECKSUM, checksum);
    }

    fn word(&self, at: usize) -> u32 {
        be32(&self.raw[..], at)
    }
}

const fn corrupt(what: &'static str) -> JournalError {
    JournalError::Corrupt { place: LogPlace::Superblock, what }
}
