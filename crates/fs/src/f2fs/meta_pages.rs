//! Pages of the metadata areas. Pages of NAT and SSA are the pages of one inode, page n being block n. NAT and SIT blocks
//! change in checkpoints only; an SSA block is written when its segment is full, at any time before the next checkpoint is
//! durable.

use super::error::corrupt;
use super::format::{BLOCK_BYTES, BlockAddr, SegNo, SummaryBlock};
use super::inode::Inode;
use super::mount_info::MountInfo;
use super::segment::Block;
use crate::cache::{Backing, PageLocation, read_pages};
use crate::contract::Result;
use nandscape_block::{AsyncDevice, Bio, BlockError, Lba, Reply, SectorData};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

/// Pages of the metadata areas by block address: NAT and SSA blocks.
#[derive(Clone)]
pub(crate) struct MetaPages {
    mount: Rc<MountInfo>,
    pub(crate) file: Rc<Inode>,
}

impl MetaPages {
    pub(crate) const fn new(mount: Rc<MountInfo>, file: Rc<Inode>) -> Self {
        Self { mount, file }
    }

    /// Looks at a block of NAT or SSA.
    ///
    /// # Errors
    /// Errors of the device.
    pub(crate) async fn read<R>(&self, at: BlockAddr, look: impl FnOnce(&Block) -> R) -> Result<R> {
        let page = u64::from(at.0);
        let pages = &self.file.pages;
        if pages.with_bytes(page, |_| ()).is_none() {
            let backing = MetaBacking(Rc::clone(&self.mount));
            // On the heap: few reads wait for the device, and each future that looks at a block would be as large.
            Box::pin(read_pages(&backing, pages, u16::MAX, page..page + 1)).await?;
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

/// The metadata areas as the page cache sees them: page n is block n.
#[derive(Clone)]
struct MetaBacking(Rc<MountInfo>);

impl Backing for MetaBacking {
    type File = Inode;

    fn device(&self) -> &AsyncDevice {
        &self.0.env.device
    }

    async fn locate(&self, _inode: &Rc<Inode>, page: u64, _pages: u64) -> Result<PageLocation> {
        Ok(PageLocation::At(Lba(page), 1))
    }

    fn submit_read(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<> {
        self.0.submit_read(bio)
    }

    fn is_metadata(&self, _inode: &Rc<Inode>) -> bool {
        true
    }
}
