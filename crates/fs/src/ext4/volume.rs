//! A mounted volume: what all operations share, and the metadata that belongs to no file.

pub(crate) use super::error::corrupt;
use super::file_commit::FileCommit;
use super::inode::Inode;
use super::journal::Tid;
use super::meta::Meta;
use super::meta::alloc::bits;
use super::meta::group::Bitmap;
use super::options::MountOptions;
use super::rules::OmittedRule;
use super::tx::{BufferRef, Tx};
use crate::contract::Result;
use crate::vfs::{InodeCache, VolumeEnv};
use nandscape_rt::sync::{Mutex, RwLock};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Files that have new data which a transaction must find on the device.
pub(crate) type Ordered = BTreeMap<u32, BTreeMap<u32, Rc<Inode>>>;

/// A mounted volume.
pub(crate) struct Volume {
    pub(crate) env: VolumeEnv<Inode>,
    pub(crate) options: MountOptions,
    pub(crate) meta: Meta,
    pub(crate) inodes: InodeCache<Inode>,
    /// Shared by changes of names in one directory, exclusive for renames.
    pub(crate) namespace: RwLock<()>,
    /// Inodes without a name that are still open or being freed, as the list on disk has them.
    pub(crate) orphans: Mutex<Vec<Rc<Inode>>>,
    pub(crate) ordered: RefCell<Ordered>,
    pub(crate) file_commit: FileCommit,
}

impl Volume {
    /// Whether this rule is left out.
    pub(crate) fn omits(&self, rule: OmittedRule) -> bool {
        self.meta.omits(rule)
    }

    /// The block bitmap of a group; made if there never was one.
    pub(crate) async fn block_bitmap(&self, tx: &Tx, group: u32) -> Result<BufferRef> {
        self.bitmap(tx, group, Bitmap::Blocks).await
    }

    /// The inode bitmap of a group; made if there never was one.
    pub(crate) async fn inode_bitmap(&self, tx: &Tx, group: u32) -> Result<BufferRef> {
        self.bitmap(tx, group, Bitmap::Inodes).await
    }

    pub(crate) fn group_count(&self) -> u32 {
        self.meta.alloc.groups.borrow().len() as u32
    }

    fn bitmap_block(&self, group: u32, which: Bitmap) -> u64 {
        let desc = &self.meta.alloc.groups.borrow()[group as usize].desc;
        match which {
            Bitmap::Blocks => desc.block_bitmap,
            Bitmap::Inodes => desc.inode_bitmap,
        }
    }

    async fn bitmap(&self, tx: &Tx, group: u32, which: Bitmap) -> Result<BufferRef> {
        if self.meta.alloc.groups.borrow()[group as usize].desc.has(which.flag()) {
            Box::pin(self.init_bitmap(tx, group, which)).await?;
        }
        let buffer = self.meta.read_block(self.bitmap_block(group, which)).await?;
        self.check_bitmap(group, which, &buffer)?;
        Ok(buffer)
    }

    /// Makes the bitmap of a group that never had one, unless somebody else does.
    async fn init_bitmap(&self, tx: &Tx, group: u32, which: Bitmap) -> Result<()> {
        let _alone = self.meta.alloc.making_bitmap.lock().await;
        if self.meta.alloc.groups.borrow()[group as usize].desc.has(which.flag()) {
            let bitmap = self.make_bitmap(tx, group, which)?;
            self.meta.write_group(tx, group, which, &bitmap).await?;
        }
        Ok(())
    }

    /// Makes the bitmap of a group in which only the format's own blocks, or no inodes, are in use.
    fn make_bitmap(&self, tx: &Tx, group: u32, which: Bitmap) -> Result<BufferRef> {
        let buffer = tx.fresh(self.bitmap_block(group, which))?;
        let used = match which {
            Bitmap::Blocks => self.own_blocks(group),
            Bitmap::Inodes => {
                std::iter::once(self.meta.sb.borrow().inodes_per_group..8 * 4096).collect()
            }
        };
        tx.change(&buffer, |bytes| {
            used.into_iter().for_each(|range| bits::fill(bytes, range, true));
        })?;
        let info = &mut self.meta.alloc.groups.borrow_mut()[group as usize];
        info.desc.flags &= !which.flag();
        info.checked[which as usize].set(true);
        Ok(buffer)
    }

    /// The bits of a block bitmap that stand for the format's own blocks, or for nothing.
    fn own_blocks(&self, group: u32) -> Vec<Range<u32>> {
        let sb = self.meta.sb.borrow();
        let here = sb.group_blocks(group);
        let behind = here.end..here.start + 8 * 4096;
        let bit = |block: u64| (block - here.start) as u32;
        let own = self.meta.alloc.system_zone.within(here.clone()).chain(std::iter::once(behind));
        let bits = own.map(|run| bit(run.start)..bit(run.end));
        bits.filter(|bits| !bits.is_empty()).collect()
    }

    /// Checks a bitmap's checksum until it was found sound.
    fn check_bitmap(&self, group: u32, which: Bitmap, buffer: &BufferRef) -> Result<()> {
        let groups = self.meta.alloc.groups.borrow();
        let info = &groups[group as usize];
        let sb = self.meta.sb.borrow();
        let checked = &info.checked[which as usize];
        if !checked.get() {
            buffer.with(|bytes| match which {
                Bitmap::Blocks => info.desc.check_block_bitmap(bytes, group, &sb),
                Bitmap::Inodes => info.desc.check_inode_bitmap(bytes, group, &sb),
            })?;
            checked.set(true);
        }
        Ok(())
    }

    /// Notes that a file has new data which the transaction must find on the device.
    pub(crate) fn order(&self, tid: Tid, inode: &Rc<Inode>) {
        let mut ordered = self.ordered.borrow_mut();
        ordered.entry(tid.0).or_default().insert(inode.number, Rc::clone(inode));
    }
}
