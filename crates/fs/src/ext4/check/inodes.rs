//! Inodes: each for itself, and the blocks that it claims.

use super::checker::{Checker, Directory, InodeFacts};
use crate::ext4::format::*;
use nandscape_block::BlockError;

/// Flags that ask for what is not supported.
const FOREIGN: [(u32, &str); 6] = [
    (flag::INLINE_DATA, "inline data"),
    (flag::ENCRYPT, "encryption"),
    (flag::VERITY, "verity"),
    (flag::EA_INODE, "a value of an attribute"),
    (flag::CASEFOLD, "case folding"),
    (flag::IMAGIC, "a number of AFS"),
];

/// Bytes that extents of a file can map.
const EXTENT_BYTES_MAX: u64 = (1 << 32) * BLOCK_BYTES as u64;

/// Inodes of the format that are no files of the user.
pub(super) const fn is_reserved(number: u32, sb: &Superblock) -> bool {
    number < sb.first_ino && number != ROOT_INODE
}

impl Checker {
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
        self.check_deletion(number, &inode);
        match number {
            BAD_INODE => return self.check_bad_blocks(&inode).await,
            _ if !self.is_used(number, &inode) => {
                self.check_unused(place, &inode);
                return Ok(());
            }
            _ if inode.links_count == 0 => return Ok(()),
            _ => {}
        }
        self.check_in_use(number, &inode, bytes, false).await
    }

    /// Whether one of the format's inodes is a file here. That of the boot loader may be.
    fn is_used(&self, number: u32, inode: &Inode) -> bool {
        match number {
            BOOT_INODE => inode.links_count > 0,
            RESIZE_INODE => self.sb.has(Feature::RESIZE_INODE),
            JOURNAL_INODE => self.sb.has(Feature::HAS_JOURNAL),
            _ => !is_reserved(number, &self.sb),
        }
    }

    fn check_unused(&mut self, place: Place, inode: &Inode) {
        let maps = inode.map != [0; INODE_MAP_BYTES] || inode.file_acl != 0 || inode.blocks != 0;
        let is_file = inode.mode != 0 || inode.links_count != 0 || inode.flags != 0;
        if maps || is_file || inode.size != 0 {
            self.report.find(place, "reserved inode is not empty");
        }
    }

    /// What a time of deletion says. Of what waits to be deleted it is the next inode of the list of
    /// orphans, and less than any time, unless the clock was wrong.
    fn check_deletion(&mut self, number: u32, inode: &Inode) {
        let sb = &self.sb;
        let late = |time: u32| time == 0 || time >= sb.inodes_count;
        let low = (1..sb.inodes_count).contains(&inode.dtime)
            && [sb.wtime, sb.mtime, sb.mkfs_time].into_iter().all(late);
        let ordinary = !is_reserved(number, sb);
        let what = match (inode.links_count, inode.dtime) {
            (1.., 1..) if ordinary => "is in use and has a time of deletion",
            (_, _) if low => "waits to be deleted",
            (0, 0) if ordinary && inode.mode != 0 => "unreferenced inode with zero dtime",
            _ => return,
        };
        self.unexplained.push((number, what));
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
        let seen = InodeFacts {
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
            self.report.find(place, "has an unknown file type");
        }
        if inode.faddr != 0 && !is_reserved(number, &self.sb) {
            self.report.find(place, "has the address of a fragment");
        }
        if number == JOURNAL_INODE && inode.file_type() != mode::REGULAR {
            self.report.find(place, "is the journal, but not a regular file");
        }
        self.check_flags(place, inode);
        let mut blocks = self.check_xattrs(number, inode, bytes).await?;
        if number != RESIZE_INODE {
            blocks += self.check_content(number, inode).await?;
            self.check_count(number, inode, blocks);
        }
        Ok(())
    }

    /// Flags that a file of this type cannot have.
    fn check_flags(&mut self, place: Place, inode: &Inode) {
        let special = !matches!(inode.file_type(), mode::REGULAR | mode::DIR);
        if special && inode.has(flag::IMMUTABLE | flag::APPEND) {
            self.report
                .find(place, "is immutable or append-only, but neither a file nor a directory");
        }
        if special && inode.file_type() != mode::SYMLINK && inode.has(flag::EXTENTS) {
            self.report.find(place, "has extents, but no content");
        }
        if inode.has(flag::INDEX) && !(inode.is_dir() && self.sb.has(Feature::DIR_INDEX)) {
            self.report.find(place, "has an index, but is not a directory that may have one");
        }
    }

    /// How many blocks the inode says that it has, in blocks or sectors.
    pub(super) fn check_count(&mut self, number: u32, inode: &Inode, blocks: u64) {
        let huge = inode.has(flag::HUGE_FILE) && self.sb.has(Feature::HUGE_FILE);
        let (unit, counted) = if huge { ("blocks", blocks) } else { ("sectors", blocks * 8) };
        if inode.blocks != counted {
            let what = format!("block count is {} {unit}, counted {counted}", inode.blocks);
            self.report.find(Place::Inode(number), what);
        }
    }

    /// The blocks of an inode's content, map included.
    async fn check_content(&mut self, number: u32, inode: &Inode) -> Result<u64, BlockError> {
        let place = Place::Inode(number);
        let link = inode.file_type() == mode::SYMLINK;
        if link && inode.fast_symlink().is_some() {
            self.check_target(number, inode, &[], 0).await?;
            return Ok(0);
        }
        if !link && !matches!(inode.file_type(), mode::REGULAR | mode::DIR) {
            if inode.size != 0 {
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
            self.journal_bytes = inode.size;
            self.journal = extents;
        } else if self.sb.is_orphan_file(number) {
            self.check_orphan_file(number, inode, &extents).await?;
        } else if link {
            self.check_target(number, inode, &extents, blocks).await?;
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
            self.report.find(
                place,
                format!("size is {} bytes, but data begin at byte {last}", inode.size),
            );
        }
        let end = extents.last().map_or(0, Extent::logical_end);
        let mapped = extent_blocks(extents);
        let unwritten = extents.iter().any(|extent| extent.unwritten);
        if inode.is_dir() && (inode.size != end * block || mapped != end || unwritten || end == 0) {
            let what = format!("a directory of {} bytes with {mapped} blocks", inode.size);
            self.report.find(place, what);
        }
        if inode.size >= EXTENT_BYTES_MAX {
            self.report
                .find(place, format!("size of {} bytes is more than extents can map", inode.size));
        }
        let large = inode.size > i32::MAX as u64 && !self.sb.has(Feature::LARGE_FILE);
        if large && inode.file_type() == mode::REGULAR {
            self.report.find(place, "is longer than 2 GiB, which the features do not allow");
        }
    }
}
