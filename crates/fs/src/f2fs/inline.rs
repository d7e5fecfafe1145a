//! Content of short files in their inodes (fs/f2fs/inline.c). Page 0 of such a file is in the page cache like any
//! other; written back, it goes into the node page, and is durable with it.

use super::format::{Nid, inline};
use super::inode::{Dirty, Inode};
use super::nat::Nodes;
use super::operations::Op;
use super::segment::Block;
use crate::contract::{FsError, Result};
use nandscape_block::SectorData;
use std::sync::Arc;

impl Nodes {
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
        Ok(SectorData::Bytes(self.read_node(Nid(inode.number), read).await?))
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
        self.edit_node(op, Nid(inode.number), |bytes| {
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
        self.edit_node(op, Nid(inode.number), |bytes| bytes[from..place.end].fill(0)).await?;
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
}
