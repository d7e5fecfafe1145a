//! The bitmaps of groups: read and checked, or made where a group never had one.

use super::{Allocator, bits};
use crate::contract::Result;
use crate::ext4::format::Superblock;
use crate::ext4::meta::Meta;
use crate::ext4::meta::group::Bitmap;
use crate::ext4::tx::{BufferRef, Tx};
use std::ops::Range;

impl Allocator {
    /// The block bitmap of a group; made if there never was one.
    pub(super) async fn block_bitmap(&self, meta: &Meta, tx: &Tx, group: u32) -> Result<BufferRef> {
        self.bitmap(meta, tx, group, Bitmap::Blocks).await
    }

    /// The inode bitmap of a group; made if there never was one.
    pub(super) async fn inode_bitmap(&self, meta: &Meta, tx: &Tx, group: u32) -> Result<BufferRef> {
        self.bitmap(meta, tx, group, Bitmap::Inodes).await
    }

    fn bitmap_block(&self, group: u32, which: Bitmap) -> u64 {
        let desc = &self.groups.borrow()[group as usize].desc;
        match which {
            Bitmap::Blocks => desc.block_bitmap,
            Bitmap::Inodes => desc.inode_bitmap,
        }
    }

    async fn bitmap(&self, meta: &Meta, tx: &Tx, group: u32, which: Bitmap) -> Result<BufferRef> {
        if self.groups.borrow()[group as usize].desc.has(which.flag()) {
            Box::pin(self.init_bitmap(meta, tx, group, which)).await?;
        }
        let buffer = meta.read_block(self.bitmap_block(group, which)).await?;
        self.check_bitmap(&meta.sb.borrow(), group, which, &buffer)?;
        Ok(buffer)
    }

    /// Makes the bitmap of a group that never had one, unless another operation does.
    async fn init_bitmap(&self, meta: &Meta, tx: &Tx, group: u32, which: Bitmap) -> Result<()> {
        let _turn = self.making_bitmap.lock().await;
        if self.groups.borrow()[group as usize].desc.has(which.flag()) {
            let bitmap = self.make_bitmap(meta, tx, group, which)?;
            meta.write_group(tx, group, which, &bitmap).await?;
        }
        Ok(())
    }

    /// Makes the bitmap of a group in which only blocks of the system zone, or no inodes, are in use.
    fn make_bitmap(&self, meta: &Meta, tx: &Tx, group: u32, which: Bitmap) -> Result<BufferRef> {
        let buffer = tx.fresh(self.bitmap_block(group, which))?;
        let used = match which {
            Bitmap::Blocks => self.system_blocks(&meta.sb.borrow(), group),
            Bitmap::Inodes => {
                std::iter::once(meta.sb.borrow().inodes_per_group..8 * 4096).collect()
            }
        };
        tx.change(&buffer, |bytes| {
            used.into_iter().for_each(|range| bits::fill(bytes, range, true));
        })?;
        let info = &mut self.groups.borrow_mut()[group as usize];
        info.desc.flags &= !which.flag();
        info.checked[which as usize].set(true);
        Ok(buffer)
    }

    /// The bits of a block bitmap that stand for blocks of the system zone, or for nothing.
    fn system_blocks(&self, sb: &Superblock, group: u32) -> Vec<Range<u32>> {
        let here = sb.group_blocks(group);
        let behind = here.end..here.start + 8 * 4096;
        let bit = |block: u64| (block - here.start) as u32;
        let own = self.system_zone.within(here.clone()).chain(std::iter::once(behind));
        let bits = own.map(|run| bit(run.start)..bit(run.end));
        bits.filter(|bits| !bits.is_empty()).collect()
    }

    /// Checks a bitmap's checksum until it was found correct.
    fn check_bitmap(
        &self,
        sb: &Superblock,
        group: u32,
        which: Bitmap,
        buffer: &BufferRef,
    ) -> Result<()> {
        let groups = self.groups.borrow();
        let info = &groups[group as usize];
        let checked = &info.checked[which as usize];
        if !checked.get() {
            buffer.with(|bytes| match which {
                Bitmap::Blocks => info.desc.check_block_bitmap(bytes, group, sb),
                Bitmap::Inodes => info.desc.check_inode_bitmap(bytes, group, sb),
            })?;
            checked.set(true);
        }
        Ok(())
    }
}
