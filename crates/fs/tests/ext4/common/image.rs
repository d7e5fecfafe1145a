//! A whole image in memory, its structures read by our format code; every checksum must hold.

use super::{Scratch, assert_clean, debugfs_write, mke2fs, run, text};
use nandscape_fs::ext4::format::*;
use std::path::{Path, PathBuf};

/// A whole image in memory.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sb: Superblock,
}

impl Image {
    pub(crate) fn load(path: &Path) -> Self {
        Self::of(std::fs::read(path).expect("an image"))
    }

    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let sb = Superblock::parse(&bytes[SUPERBLOCK_AT..], 0).expect("a superblock");
        Self { bytes, sb }
    }

    pub(crate) fn block(&self, block: u64) -> &[u8] {
        &self.bytes[block as usize * BLOCK_BYTES..][..BLOCK_BYTES]
    }

    pub(crate) fn descriptor_bytes(&self, group: u32) -> &[u8] {
        let (block, at) = self.sb.desc_place(group);
        &self.block(block)[at..at + self.sb.desc_bytes()]
    }

    pub(crate) fn descriptor(&self, group: u32) -> GroupDescriptor {
        GroupDescriptor::parse(self.descriptor_bytes(group), group, &self.sb).expect("a descriptor")
    }

    pub(crate) fn inode_bytes(&self, inode: u32) -> &[u8] {
        let place = self.sb.inode_place(inode).expect("an inode");
        let table = self.descriptor(place.group).inode_table;
        let block = self.block(table + place.block(&self.sb));
        &block[place.offset(&self.sb)..][..self.sb.inode_bytes()]
    }

    pub(crate) fn inode(&self, inode: u32) -> Inode {
        Inode::parse(self.inode_bytes(inode), inode, &self.sb).expect("an inode")
    }

    pub(crate) fn used_inodes(&self) -> Vec<u32> {
        let groups = 0..self.sb.groups();
        let used = groups.filter(|group| !self.descriptor(*group).has(GROUP_INODE_UNINIT));
        used.flat_map(|group| {
            let bitmap = self.block(self.descriptor(group).inode_bitmap);
            let bits = 0..self.sb.inodes_per_group;
            let set = bits.filter(|bit| bitmap::is_set(bitmap, *bit));
            set.map(move |index| self.sb.inode_at(InodePlace { group, index })).collect::<Vec<_>>()
        })
        .collect()
    }

    /// The extents of an inode, in order; every node's checksum holds and round-trips.
    pub(crate) fn extents(&self, number: u32) -> Vec<Extent> {
        let inode = self.inode(number);
        let mut extents = Vec::new();
        self.follow(&inode.map, number, &inode, false, &mut extents);
        extents
    }

    pub(crate) fn follow(
        &self,
        bytes: &[u8],
        number: u32,
        inode: &Inode,
        own: bool,
        all: &mut Vec<Extent>,
    ) {
        let place = Place::Inode(number);
        let node = ExtentNode::parse(bytes, place).expect("a node");
        let seed = inode.seed(number, &self.sb);
        let mut again = bytes.to_vec();
        node.encode(&mut again);
        if own {
            check_extent_block(bytes, seed, place).expect("a checksum");
            seal_extent_block(&mut again, seed);
        }
        assert_eq!(again, bytes, "inode {number}");
        match node.entries {
            ExtentEntries::Leaf(extents) => all.extend(extents),
            ExtentEntries::Index { entries, .. } => {
                entries
                    .iter()
                    .for_each(|e| self.follow(self.block(e.node), number, inode, true, all));
            }
        }
    }

    pub(crate) fn data_blocks(&self, number: u32) -> Vec<u64> {
        let extents = self.extents(number);
        extents.iter().flat_map(|e| e.start..e.end()).collect()
    }
}

/// An image with files of all kinds, made by debugfs.
pub(crate) fn filled(scratch: &Scratch, features: &str) -> PathBuf {
    let image = scratch.image("image", 300 << 20);
    let features = if features.is_empty() { vec![] } else { vec!["-O", features] };
    mke2fs(&image, &[&features, &["-L", "a label"][..]].concat());
    let content = scratch.path("content");
    std::fs::write(&content, vec![b'x'; 50_000]).expect("a file");
    let mut script = String::from("mkdir dir\nmkdir dir/below\nsymlink short target\n");
    script += &format!("symlink long {}\n", "long/".repeat(30));
    script += "mknod pipe p\nmknod device b 8 1\n";
    for index in 0..600 {
        script +=
            &format!("write {} dir/a-name-that-fills-directories-sooner-{index}\n", text(&content));
    }
    script += "ea_set dir/below user.hello world\nea_set short trusted.x y\n";
    script += &format!("ea_set long user.{} {}\n", "n".repeat(100), "v".repeat(300));
    debugfs_write(&image, &script);
    // debugfs makes linear directories; e2fsck gives them their index.
    let _ = run("e2fsck", &["-fyD", text(&image)]);
    assert_clean(&image);
    image
}
