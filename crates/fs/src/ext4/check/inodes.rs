//! Inodes: each for itself, its attributes, and the blocks that it claims.

use super::volume::{Directory, Seen, Volume};
use crate::ext4::format::*;
use nandscape_block::BlockError;

/// Flags that ask for what is not supported.
const FOREIGN: [(u32, &str); 5] = [
    (flag::INLINE_DATA, "inline data"),
    (flag::ENCRYPT, "encryption"),
    (flag::VERITY, "verity"),
    (flag::EA_INODE, "a value of an attribute"),
    (flag::CASEFOLD, "case folding"),
];

/// Inodes of the format that are no files of the user.
const fn is_reserved(number: u32, sb: &Superblock) -> bool {
    number < sb.first_ino && number != ROOT_INODE
}

impl Volume {
    /// Reads every inode that may be in use.
    pub(super) async fn check_inodes(&mut self) -> Result<(), BlockError> {
        let bytes_each = self.sb.inode_bytes();
        for group in 0..self.sb.groups() {
            let descriptor = &self.groups[group as usize];
            let uninitialised = self.sb.has_group_checksums() && descriptor.has(GROUP_INODE_UNINIT);
            if uninitialised || !self.has_table(group) {
                continue;
            }
            let unused = if self.sb.has_group_checksums() { descriptor.itable_unused } else { 0 };
            let Some(used) = self.sb.inodes_per_group.checked_sub(unused) else {
                let what = "more inodes unused than there are";
                self.report.find(Place::GroupDescriptor(group), what);
                continue;
            };
            let blocks = (used as usize * bytes_each).div_ceil(BLOCK_BYTES) as u64;
            let (mut at, mut index) = (0, 0);
            while at < blocks {
                let bytes = self.read_table(group, at, blocks).await?;
                at += (bytes.len() / BLOCK_BYTES) as u64;
                for inode in bytes.chunks_exact(bytes_each) {
                    if index < used && inode.iter().any(|&byte| byte != 0) {
                        let number = self.sb.inode_at(InodePlace { group, index });
                        self.check_inode(number, inode).await?;
                    }
                    index += 1;
                }
            }
        }
        Ok(())
    }

    async fn check_inode(&mut self, number: u32, bytes: &[u8]) -> Result<(), BlockError> {
        let place = Place::Inode(number);
        let parsed = Inode::parse(bytes, number, &self.sb);
        let Some(inode) = self.report.sound(place, parsed) else { return Ok(()) };
        if number == BAD_INODE {
            return self.check_bad_blocks(&inode).await;
        }
        if inode.links_count == 0 && is_reserved(number, &self.sb) {
            return Ok(());
        }
        if inode.links_count == 0 {
            // It was deleted, or waits to be: the list of orphans tells.
            if inode.mode != 0 && inode.dtime == 0 {
                self.undeleted.push(number);
            }
            return Ok(());
        }
        self.check_in_use(number, &inode, bytes, false).await
    }

    /// Checks an inode in use, and remembers it.
    pub(super) async fn check_in_use(
        &mut self,
        number: u32,
        inode: &Inode,
        bytes: &[u8],
        orphan: bool,
    ) -> Result<(), BlockError> {
        let place = Place::Inode(number);
        let seen = Seen {
            file_type: inode.file_type(),
            links: inode.links_count,
            names: 0,
            parent: None,
            above: None,
            orphan,
        };
        self.inodes.insert(number, seen);
        for (flag, what) in FOREIGN {
            if inode.has(flag) {
                self.report.find(place, format!("has {what}, which is not supported"));
                return Ok(());
            }
        }
        if file_type_of(inode.mode) == 0 && !is_reserved(number, &self.sb) {
            self.report.find(place, "is of no type of file");
        }
        if inode.faddr != 0 {
            self.report.find(place, "has the address of a fragment");
        }
        let mut blocks = self.check_xattrs(number, inode, bytes).await?;
        if number != RESIZE_INODE {
            blocks += self.check_content(number, inode).await?;
            if inode.blocks_4k() != blocks {
                let what = format!("says {} blocks, has {blocks}", inode.blocks_4k());
                self.report.find(place, what);
            }
        }
        Ok(())
    }

    /// The blocks of an inode's content, map included.
    async fn check_content(&mut self, number: u32, inode: &Inode) -> Result<u64, BlockError> {
        let place = Place::Inode(number);
        let mapped = match inode.file_type() {
            mode::REGULAR | mode::DIR => true,
            mode::SYMLINK => inode.fast_symlink().is_none(),
            _ => false,
        };
        if !mapped {
            if inode.size != 0 && inode.file_type() != mode::SYMLINK {
                self.report.find(place, format!("has {} bytes and no content", inode.size));
            }
            return Ok(0);
        }
        if !inode.has(flag::EXTENTS) {
            self.report.find(place, "is mapped without extents, which is not supported");
            return Ok(inode.blocks_4k());
        }
        let (extents, blocks) = self.check_extents(number, inode).await?;
        self.check_size(number, inode, &extents);
        if number == JOURNAL_INODE {
            self.journal = extents;
        } else if inode.is_dir() {
            let (generation, indexed) = (inode.generation, inode.has(flag::INDEX));
            self.directories.push(Directory { number, generation, indexed, runs: extents });
        }
        Ok(blocks)
    }

    fn check_size(&mut self, number: u32, inode: &Inode, extents: &[Extent]) {
        let place = Place::Inode(number);
        let block = BLOCK_BYTES as u64;
        let written = extents.iter().rev().find(|extent| !extent.unwritten);
        let last = written.map_or(0, |extent| (extent.logical_end() - 1) * block);
        if inode.size < last {
            self.report.find(place, format!("{} bytes, but data from byte {last} on", inode.size));
        }
        let end = extents.last().map_or(0, Extent::logical_end);
        let mapped: u64 = extents.iter().map(|extent| u64::from(extent.blocks)).sum();
        let unwritten = extents.iter().any(|extent| extent.unwritten);
        if inode.is_dir() && (inode.size != end * block || mapped != end || unwritten || end == 0) {
            let what = format!("a directory of {} bytes with {mapped} blocks", inode.size);
            self.report.find(place, what);
        }
        if inode.file_type() == mode::SYMLINK && (end != 1 || inode.size >= block) {
            self.report.find(place, "a symbolic link of more than a block");
        }
    }

    /// Attributes in the inode and in a block; how many blocks.
    async fn check_xattrs(
        &mut self,
        number: u32,
        inode: &Inode,
        bytes: &[u8],
    ) -> Result<u64, BlockError> {
        let place = Place::Inode(number);
        let inside = parse_inode_xattrs(bytes, inode.extra_isize, place);
        self.report.sound(place, inside);
        let block = inode.file_acl;
        if block == 0 {
            return Ok(0);
        }
        let place = Place::InodeBlock { inode: number, block };
        if let Some((_, counted)) = self.shared.get_mut(&block) {
            *counted += 1;
            return Ok(1);
        }
        if self.claim(block, 1, place) {
            let bytes = self.read(block).await?;
            let sealed = check_xattr_block(&bytes, block, self.sb.csum_seed(), place);
            self.report.sound(place, sealed);
            let parsed = parse_xattr_block(&bytes[..], place);
            if let Some((refcount, _)) = self.report.sound(place, parsed) {
                self.shared.insert(block, (refcount, 1));
            }
        }
        Ok(1)
    }
}
