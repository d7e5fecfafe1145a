//! From names in the inode to names in blocks (`f2fs_move_inline_dirents`, `f2fs_move_rehashed_dirents`).

use super::bucket;
use crate::contract::{FsError, Result};
use crate::f2fs::error::corrupt;
use crate::f2fs::format::{
    BLOCK_BYTES, DIR_LEVELS_MAX, Dentries, InodeFeatures, InodeLayout, Nid, inline, name_hash,
    slots_of,
};
use crate::f2fs::inode::{Dirty, Inode};
use crate::f2fs::nat::Nodes;
use crate::f2fs::operations::Op;
use crate::f2fs::segment::Block;
use crate::f2fs::segment_manager::SegmentManager;
use std::collections::BTreeMap;

/// Blocks of a directory by their pages, and how many levels they make.
struct Blocks {
    pages: BTreeMap<u64, Box<Block>>,
    depth: u32,
}

impl Blocks {
    /// The names of an inode in blocks. In a directory whose first level has one bucket they keep their slots.
    fn of(area: &[u8], dir_level: u8) -> Result<Self> {
        let mut blocks = Self { pages: BTreeMap::new(), depth: 1 };
        for entry in Dentries::inline(area).iter() {
            let entry = entry.map_err(|unsound| corrupt(unsound.what, "names of an inode"))?;
            let slots = slots_of(entry.name.len());
            let kept = (dir_level == 0).then_some((0, entry.slot));
            let place = kept.or_else(|| blocks.room_for(entry.name, dir_level, slots));
            let (page, slot) = place.ok_or(FsError::NoSpace)?;
            let block = blocks.pages.entry(page).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            let hash = name_hash(entry.name);
            let mut names = Dentries::block(&mut block[..]);
            names.insert(slot, entry.name, hash, entry.ino, entry.file_type);
        }
        Ok(blocks)
    }

    /// The first page and slot with room for a name.
    fn room_for(&mut self, name: &[u8], dir_level: u8, slots: usize) -> Option<(u64, usize)> {
        for level in 0..DIR_LEVELS_MAX {
            self.depth = self.depth.max(level + 1);
            for page in bucket(level, dir_level, name_hash(name)) {
                let Some(block) = self.pages.get(&page) else { return Some((page, 0)) };
                if let Some(slot) = Dentries::block(&block[..]).room_for(slots) {
                    return Some((page, slot));
                }
            }
        }
        None
    }
}

/// The layout of a directory whose names lie in blocks: without inline attributes, what was kept for them is
/// addresses now.
fn layout_without_names(dir: &Inode, features: InodeFeatures) -> InodeLayout {
    let layout = dir.layout.get();
    let has_xattr = dir.raw.borrow().has_inline(inline::XATTR);
    match has_xattr || features.flexible_inline_xattr {
        true => layout,
        false => InodeLayout::new(layout.extra_bytes(), 0, false),
    }
}

impl Nodes {
    /// Moves the names of a directory from its inode to blocks (`f2fs_convert_inline_dir`).
    ///
    /// # Errors
    /// [`FsError::NoSpace`]: the directory is as it was then. Errors of reading.
    pub(super) async fn convert_inline_dir(
        &self,
        op: &Op,
        segments: &SegmentManager,
        dir: &Inode,
    ) -> Result<()> {
        let place = dir.layout.get().inline_data();
        let area = self.read_node(Nid(dir.number), |bytes| bytes[place.clone()].to_vec()).await?;
        let Blocks { pages, depth } = Blocks::of(&area, dir.raw.borrow().dir_level)?;
        let before = (dir.layout.get(), dir.size.get());
        // The addresses of blocks lie where the names did.
        self.edit_node(op, Nid(dir.number), |bytes| bytes[place.clone()].fill(0)).await?;
        dir.raw.borrow_mut().inline &= !inline::DENTRY;
        dir.layout.set(layout_without_names(dir, self.mount.inode_features()));
        for (page, bytes) in pages {
            if let Err(error) = self.add_block(op, dir, page, bytes).await {
                self.restore_inline_dir(op, segments, dir, &area, before).await?;
                return Err(error);
            }
        }
        dir.raw.borrow_mut().current_depth = depth;
        dir.mark(Dirty::Content);
        Ok(())
    }

    /// Undoes a conversion that found no room.
    async fn restore_inline_dir(
        &self,
        op: &Op,
        segments: &SegmentManager,
        dir: &Inode,
        area: &[u8],
        (layout, size): (InodeLayout, u64),
    ) -> Result<()> {
        dir.pages.written(0..u64::MAX).await;
        dir.pages.discard(0..u64::MAX);
        let walked = {
            let _extents = dir.extent_lock.write().await;
            self.cut_from(op, segments, dir, 0).await?
        };
        self.pay_walked(walked).await;
        dir.pages.discard(0..u64::MAX);
        dir.layout.set(layout);
        dir.set_size(size);
        dir.raw.borrow_mut().inline |= inline::DENTRY;
        dir.mark(Dirty::Content);
        let place = layout.inline_data();
        self.edit_node(op, Nid(dir.number), |bytes| bytes[place].copy_from_slice(area)).await
    }
}
