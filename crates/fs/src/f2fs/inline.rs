//! Content of short files in their inodes (fs/f2fs/inline.c). Page 0 of such a file is in the page cache like any
//! other; written back, it goes into the node page, and is durable with it.

use super::error::corrupt;
use super::format::{BlockAddr, Nid, inline};
use super::inode::{Dirty, Inode};
use super::node::Found;
use super::segment::Block;
use super::volume::{Op, Volume};
use crate::contract::{FsError, Result};
use crate::vfs::writeback::write_blocks;
use nandscape_block::SectorData;
use std::rc::Rc;
use std::sync::Arc;

impl Volume {
    /// Page 0 as the inode has it. The caller holds the file's `extent_lock`.
    pub(crate) async fn inline_page(&self, inode: &Inode) -> Result<SectorData> {
        let place = inode.layout.get().inline_data();
        if !inode.raw.borrow().has_inline(inline::DATA_EXIST) {
            return Ok(SectorData::Bytes(Arc::new([0; 4096])));
        }
        let read = |bytes: &Block| {
            let mut page: Block = [0; 4096];
            page[..place.len()].copy_from_slice(&bytes[place]);
            Arc::new(page)
        };
        Ok(SectorData::Bytes(self.nodes.read_node(Nid(inode.number), read).await?))
    }

    /// Page 0 goes into the inode (`f2fs_write_inline_data`).
    pub(crate) async fn write_inline(
        &self,
        op: &Op,
        inode: &Inode,
        content: &SectorData,
    ) -> Result<()> {
        let place = inode.layout.get().inline_data();
        let content =
            content.expand().ok_or(FsError::Unsupported("a device that keeps no content"))?;
        self.nodes
            .edit_node(op, Nid(inode.number), |bytes| {
                let length = place.len();
                bytes[place].copy_from_slice(&content[..length]);
            })
            .await?;
        let mut raw = inode.raw.borrow_mut();
        if !raw.has_inline(inline::DATA_EXIST) {
            raw.inline |= inline::DATA_EXIST;
            drop(raw);
            inode.mark(Dirty::Content);
        }
        inode.note_appended();
        Ok(())
    }

    /// Zeroes what the inode keeps of its content from `size` on.
    pub(crate) async fn cut_inline(&self, op: &Op, inode: &Inode, size: u64) -> Result<()> {
        let place = inode.layout.get().inline_data();
        let from = (place.start as u64 + size).min(place.end as u64) as usize;
        self.nodes.edit_node(op, Nid(inode.number), |bytes| bytes[from..place.end].fill(0)).await?;
        if size == 0 {
            inode.raw.borrow_mut().inline &= !inline::DATA_EXIST;
            inode.mark(Dirty::Content);
        }
        Ok(())
    }

    /// Roll-forward found a node of a file whose content was in its inode, and is in blocks now
    /// (`f2fs_recover_inline_data`).
    pub(super) async fn drop_inline(&self, op: &Op, inode: &Inode) -> Result<()> {
        self.cut_inline(op, inode, 0).await?;
        inode.raw.borrow_mut().inline &= !inline::DATA;
        inode.mark(Dirty::Content);
        Ok(())
    }

    /// Moves the content of a file out of its inode, to a block (`f2fs_convert_inline_inode`). The block is on the device
    /// before the inode forgets the content, so a checkpoint has one or the other.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]; errors of the device.
    pub(crate) async fn convert_inline(self: &Rc<Self>, inode: &Rc<Inode>) -> Result<()> {
        // A page on its way into the inode has arrived.
        inode.pages.written(0..1).await;
        let op = self.begin().await?;
        let _extents = inode.extent_lock.write().await;
        if !inode.is_inline() {
            return Ok(());
        }
        let content = match inode.pages.peek(0) {
            Some(content) => content,
            None => self.inline_page(inode).await?,
        };
        let is_empty = inode.size.get() == 0;
        let place = inode.layout.get().inline_data();
        if !is_empty {
            self.nodes.space.take_some(1)?;
        }
        self.nodes.edit_node(&op, Nid(inode.number), |bytes| bytes[place].fill(0)).await?;
        inode.raw.borrow_mut().inline &= !(inline::DATA | inline::DATA_EXIST);
        inode.mark(Dirty::Content);
        if is_empty {
            return Ok(());
        }
        inode.add_blocks(1);
        let Found::Node(dnode) = self.nodes.find_dnode(inode, 0).await? else {
            return Err(corrupt("inode without addresses", inode.number));
        };
        self.nodes.set_address(&op, dnode, BlockAddr::NEW).await?;
        let log = self.mount.data_log(inode);
        let moved = self.move_pages(&op, inode, (dnode, log), 0, 1).await?;
        let start = moved.ok_or(FsError::NoSpace)?.start;
        write_blocks(&**self, inode, start.0.into(), &[content], true).await
    }
}
