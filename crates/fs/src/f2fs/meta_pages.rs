//! Pages of the metadata areas. Pages of NAT and SSA are the pages of one inode, page n being block n. NAT and SIT blocks
//! change in checkpoints only; an SSA block is written when its segment is full, at any time before the next checkpoint is
//! durable.

use super::error::corrupt;
use super::format::{BLOCK_BYTES, BlockAddr, SegNo, SummaryBlock};
use super::inode::Inode;
use super::mount_info::MountInfo;
use super::segment::Block;
use super::volume::pages::PageReader;
use crate::contract::Result;
use nandscape_block::SectorData;
use std::rc::Rc;
use std::sync::Arc;

/// Pages of the metadata areas by block address: NAT and SSA blocks.
#[derive(Clone)]
pub(crate) struct MetaPages {
    mount: Rc<MountInfo>,
    reader: PageReader,
    pub(crate) file: Rc<Inode>,
}

impl MetaPages {
    pub(crate) const fn new(mount: Rc<MountInfo>, reader: PageReader, file: Rc<Inode>) -> Self {
        Self { mount, reader, file }
    }

    /// Looks at a block of NAT or SSA.
    ///
    /// # Errors
    /// Errors of the device.
    pub(crate) async fn read<R>(&self, at: BlockAddr, look: impl FnOnce(&Block) -> R) -> Result<R> {
        let page = u64::from(at.0);
        let pages = &self.file.pages;
        if pages.with_bytes(page, |_| ()).is_none() {
            self.reader.read(pages, page..page + 1).await?;
        }
        pages.with_bytes(page, look).ok_or_else(|| corrupt("block of metadata", at.0))
    }

    /// Keeps a block of the metadata areas, to be written to its place.
    pub(crate) fn write(&self, at: BlockAddr, bytes: Box<Block>) {
        self.file.pages.write(at.0.into(), SectorData::Bytes(Arc::from(bytes)), false);
    }

    /// The summaries of a segment that is full. Hardly any are looked at before the segment is cleaned, so memory shares
    /// them with a device that is in memory as well.
    ///
    /// # Errors
    /// A defect: a segment that is none.
    pub(crate) fn keep_summaries(&self, segment: SegNo, summaries: &SummaryBlock) -> Result<()> {
        let at = self.mount.summary_block(segment)?;
        let mut bytes = [0; BLOCK_BYTES];
        summaries.encode(&mut bytes[..]);
        self.file.pages.write(at.0.into(), SectorData::sparse(&bytes), false);
        Ok(())
    }
}
