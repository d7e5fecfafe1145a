//! Reading structures straight from a device, for those who examine a volume instead of mounting it.
//!
//! - [`F2fsImage::open`] chooses what a mount chooses: the first sound superblock, and of two sound
//!   checkpoint packs the newer one (`get_valid_checkpoint` in fs/f2fs/checkpoint.c). Everything is read
//!   through the version bitmaps and the journals of that pack. Nothing is rolled forward.
//! - What is unsound beside that is noted in [`F2fsImage::problems`], and passed over.
//! - No tree is followed in a circle: a node that was seen once in a file is not read a second time.

mod files;
mod gc_journal;
mod open;

pub use files::{Dnode, FileNodes, RawDentryOf, RawInode, RawNode};
pub use gc_journal::GcJournalBlock;

use super::format::*;
use crate::image::{ImageError, ImageReader, Probe};
use nandscape_block::{AsyncDevice, BlockError};
use thiserror::Error;

/// Why something cannot be examined.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum RawError {
    /// There is no volume, or none that is supported, or a structure that cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
}

impl From<RawError> for ImageError {
    fn from(error: RawError) -> Self {
        match error {
            RawError::Format(error) => Self::Format(error.to_string()),
            RawError::Device(error) => Self::Device(error),
        }
    }
}

/// Logs, each with its summary.
const LOGS: usize = SegmentType::ALL.len();

/// A device with a volume that no other task changes.
pub struct F2fsImage {
    reader: ImageReader,
    /// The superblock in use.
    pub sb: Superblock,
    /// The copy that it is, 0 or 1.
    pub sb_copy: u32,
    /// The format of GC journal blocks that may count: every sound copy of the superblock is marked.
    pub gc_journal_live: Option<GcJournalFormat>,
    /// The geometry that follows from it.
    pub layout: Layout,
    /// The checkpoint in use.
    pub checkpoint: Checkpoint,
    /// The pack that it lies in, 0 or 1.
    pub pack: u32,
    /// The checksum that stands in it.
    pub checkpoint_crc: u32,
    /// Which block of the pack is what.
    pub plan: PackPlan,
    /// The summaries of the logs, by the number of their type; `None` of one that cannot be read.
    pub summaries: [Option<SummaryBlock>; LOGS],
    /// NAT entries that are newer than the table's.
    pub nat_journal: NatJournal,
    /// SIT entries that are newer than the table's.
    pub sit_journal: SitJournal,
    /// Where segments lie, in an append-only address space.
    pub slots: Option<SlotMap>,
    /// What is unsound and was passed over.
    pub problems: Vec<FormatError>,
    sit_bitmap: VersionBitmap,
    nat_bitmap: VersionBitmap,
}

/// Whether a device carries F2FS's magic number, in either copy of the superblock.
///
/// # Errors
/// Errors of the device.
pub async fn has_magic(device: &AsyncDevice) -> Result<bool, BlockError> {
    let reader = ImageReader::new(device);
    for copy in 0..reader.sectors().min(2) {
        let magic = crate::wire::u32_at(&reader.block(copy).await?[..], SUPERBLOCK_AT);
        if magic == SUPERBLOCK_MAGIC {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What superblock, checkpoint and root say. The format keeps no time of the last mount or write: the
/// newest time of the root directory stands for it, 0 if it cannot be read.
///
/// # Errors
/// Those of [`F2fsImage::open`].
pub async fn identify(device: &AsyncDevice) -> Result<Probe, ImageError> {
    let image = F2fsImage::open(device).await?;
    let root = image.inode(image.sb.root_ino).await;
    let newest = |inode: &Inode| inode.atime.max(inode.ctime).max(inode.mtime);
    Ok(Probe {
        label: image.sb.label(),
        sectors: image.sb.block_count,
        clean: image.checkpoint.has(CP_UMOUNT),
        has_errors: image.checkpoint.has(CP_ERROR | CP_FSCK),
        last_write_s: root.map_or(0, |root| newest(&root.inode) as i64),
    })
}

impl F2fsImage {
    /// The reader of its blocks.
    #[must_use]
    pub const fn reader(&self) -> &ImageReader {
        &self.reader
    }

    /// The features that decide how inodes are read.
    #[must_use]
    pub fn inode_features(&self) -> InodeFeatures {
        self.sb.features().into()
    }

    /// Where checksums of inodes begin; `None` without them.
    #[must_use]
    pub fn checksum_seed(&self) -> Option<u32> {
        self.sb.checksum_seed().map(|seed| seed.0)
    }

    /// The log whose segment this is.
    #[must_use]
    pub fn log_of(&self, segno: SegNo) -> Option<SegmentType> {
        SegmentType::ALL.into_iter().find(|log| self.checkpoint.log(*log).segno == segno)
    }

    /// The segment of a block and its offset there; `None` of one that is no segment's.
    #[must_use]
    pub fn segment_of(&self, addr: BlockAddr) -> Option<(SegNo, u32)> {
        match &self.slots {
            None => self.layout.segment_of(addr),
            Some(slots) => slots.segment_of(addr),
        }
    }

    /// The first block of a segment; `None` of a slot without one.
    #[must_use]
    pub fn segment_start(&self, segno: SegNo) -> Option<BlockAddr> {
        match &self.slots {
            None => self.layout.block(segno, 0),
            Some(slots) => slots.block(segno, 0),
        }
    }

    /// Where the current copy of a NAT block lies.
    #[must_use]
    pub fn nat_addr(&self, block: u32) -> Option<BlockAddr> {
        self.layout.current_nat_addr(block, &self.nat_bitmap)
    }

    /// Where the current copy of a SIT block lies.
    #[must_use]
    pub fn sit_addr(&self, block: u32) -> Option<BlockAddr> {
        self.layout.current_sit_addr(block, &self.sit_bitmap)
    }

    /// The current copy of a NAT block, counted in one copy.
    ///
    /// # Errors
    /// No such block; errors of the device.
    pub async fn nat_block(&self, block: u32) -> Result<crate::image::BlockBytes, RawError> {
        let place = Place::NatBlock(block);
        let at = self.nat_addr(block);
        let at = at.ok_or(FormatError::corrupt(place, 0, "no such block"))?;
        Ok(self.reader.block(at.0.into()).await?)
    }

    /// The NAT entry of a node, from the journal if it is there.
    ///
    /// # Errors
    /// No such node number; errors of the device.
    pub async fn nat_entry(&self, nid: Nid) -> Result<NatEntry, RawError> {
        if let Some((_, entry)) = self.nat_journal.entries.iter().find(|(known, _)| *known == nid) {
            return Ok(*entry);
        }
        let (block, index) = self.layout.nat_place(nid);
        Ok(NatEntry::read_at(&self.nat_block(block).await?[..], index))
    }

    /// The current copy of a SIT block, counted in one copy.
    ///
    /// # Errors
    /// No such block; errors of the device.
    pub async fn sit_block(&self, block: u32) -> Result<crate::image::BlockBytes, RawError> {
        let place = Place::SitBlock(block);
        let at = self.sit_addr(block);
        let at = at.ok_or(FormatError::corrupt(place, 0, "no such block"))?;
        Ok(self.reader.block(at.0.into()).await?)
    }

    /// The SIT entry of a segment, from the journal if it is there.
    ///
    /// # Errors
    /// No such segment, an unsound entry; errors of the device.
    pub async fn sit_entry(&self, segno: SegNo) -> Result<SitEntry, RawError> {
        if let Some((_, entry)) = self.sit_journal.entries.iter().find(|(known, _)| *known == segno)
        {
            return Ok(*entry);
        }
        if !self.layout.has_segment(segno) {
            let place = Place::Segment(segno);
            return Err(FormatError::corrupt(place, 0, "no such segment").into());
        }
        let (block, index) = self.layout.sit_place(segno);
        Ok(SitEntry::read_at(&self.sit_block(block).await?[..], index, segno)?)
    }

    /// The summary of a segment: of a log, what the checkpoint pack holds, and otherwise the SSA's.
    ///
    /// # Errors
    /// No such segment, an unsound summary; errors of the device.
    pub async fn summary(&self, segno: SegNo) -> Result<SummaryBlock, RawError> {
        let place = Place::Summary(segno);
        if let Some(log) = self.log_of(segno) {
            let none = FormatError::corrupt(place, 0, "the checkpoint's summary cannot be read");
            return Ok(self.summaries[log.number()].clone().ok_or(none)?);
        }
        let at = self.layout.summary_block(segno);
        let at = at.ok_or(FormatError::corrupt(place, 0, "no such segment"))?;
        Ok(SummaryBlock::parse(&self.reader.block(at.0.into()).await?[..], place)?)
    }

    /// The orphans that the checkpoint lists.
    ///
    /// # Errors
    /// An unsound block of orphans; errors of the device.
    pub async fn orphans(&self) -> Result<Vec<Nid>, RawError> {
        let mut orphans = Vec::new();
        if self.checkpoint.has(CP_ORPHAN_PRESENT) {
            for block in self.plan.orphans.clone() {
                let at = u64::from(self.layout.pack(self.pack).0) + u64::from(block);
                orphans.extend(parse_orphans(&self.reader.block(at).await?[..], self.pack)?);
            }
        }
        Ok(orphans)
    }
}
