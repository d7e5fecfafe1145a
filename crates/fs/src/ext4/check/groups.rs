//! Groups: their descriptors and own blocks at first, their bitmaps and counts at last.

use super::checker::Checker;
use crate::ext4::format::*;
use crate::image::BlockBytes;
use nandscape_block::BlockError;

impl Checker {
    /// Reads all descriptors, and claims the blocks that groups keep for themselves.
    pub(super) async fn read_groups(&mut self) -> Result<(), BlockError> {
        let mut block = None;
        for group in 0..self.sb.groups() {
            let (at, offset) = self.sb.desc_place(group);
            if block.as_ref().is_none_or(|(read, _): &(u64, BlockBytes)| *read != at) {
                block = Some((at, self.read(at).await?));
            }
            let bytes =
                block.as_ref().map(|(_, bytes)| &bytes[offset..offset + self.sb.desc_bytes()]);
            let bytes = bytes.unwrap_or_default();
            let place = Place::GroupDescriptor(group);
            let parsed = GroupDescriptor::parse(bytes, group, &self.sb);
            let descriptor = self.report.sound(place, parsed);
            // Without a sound descriptor there is still a guess at where its inodes are.
            let descriptor = descriptor.unwrap_or_else(|| GroupDescriptor::parse_unchecked(bytes));
            self.check_marks(group, bytes, &descriptor);
            self.claim_own_blocks(group, &descriptor);
            self.groups.push(descriptor);
        }
        let groups = 0..self.sb.groups();
        self.unkept = groups.map(|group| self.space.free(group, self.blocks_of(group))).collect();
        Ok(())
    }

    fn blocks_of(&self, group: u32) -> u32 {
        let range = self.sb.group_blocks(group);
        (range.end - range.start) as u32
    }

    /// What a descriptor says of parts that were never initialised.
    fn check_marks(&mut self, group: u32, bytes: &[u8], descriptor: &GroupDescriptor) {
        let place = Place::GroupDescriptor(group);
        let said = GroupDescriptor::parse_unchecked(bytes).has_uninitialised();
        if said && !self.sb.has_group_checksums() {
            self.report.find(place, "has marks that count with checksums only");
        }
        if descriptor.has(GROUP_BLOCK_UNINIT) && group + 1 == self.sb.groups() {
            self.report.find(place, "the last group's block bitmap was never initialised");
        }
        if descriptor.itable_unused > descriptor.free_inodes_count {
            self.report.find(place, "more inodes were never used than are free");
        }
    }

    fn claim_own_blocks(&mut self, group: u32, descriptor: &GroupDescriptor) {
        let first = self.sb.group_first_block(group);
        let blocks = u64::from(self.sb.superblock_blocks(group));
        if blocks > 0 {
            self.claim(first, blocks, Place::Superblock(group));
        }
        self.claim(descriptor.block_bitmap, 1, Place::BlockBitmap(group));
        self.claim(descriptor.inode_bitmap, 1, Place::InodeBitmap(group));
        let table = u64::from(self.sb.inode_table_blocks());
        self.claim(descriptor.inode_table, table, Place::GroupDescriptor(group));
    }

    /// Whether a group's table is where inodes can be read.
    pub(super) fn has_table(&self, group: u32) -> bool {
        let table = self.groups[group as usize].inode_table;
        let end = table.checked_add(self.sb.inode_table_blocks().into());
        table > 0 && end.is_some_and(|end| end <= self.sb.blocks_count)
    }

    /// Holds bitmaps and counts against what was found in use.
    pub(super) async fn check_bitmaps(&mut self) -> Result<(), BlockError> {
        let (mut free_blocks, mut free_inodes) = (0, 0);
        for group in 0..self.sb.groups() {
            free_blocks += u64::from(self.check_block_bitmap(group).await?);
            free_inodes += self.check_inode_bitmap(group).await?;
        }
        let place = Place::Superblock(0);
        let counts = [
            ("free blocks", self.sb.free_blocks_count, free_blocks),
            ("free inodes", self.sb.free_inodes_count.into(), free_inodes.into()),
        ];
        for (what, said, counted) in counts {
            self.compare(place, what, said, counted);
        }
        Ok(())
    }

    fn compare(&mut self, place: Place, what: &str, said: u64, counted: u64) {
        if said != counted {
            self.report.find(place, format!("{what}: {said} recorded, {counted} counted"));
        }
    }

    /// The free blocks of a group.
    async fn check_block_bitmap(&mut self, group: u32) -> Result<u32, BlockError> {
        let range = self.sb.group_blocks(group);
        let blocks = self.blocks_of(group);
        let free = self.space.free(group, blocks);
        let descriptor = self.groups[group as usize].clone();
        let said = descriptor.free_blocks_count;
        self.compare(Place::GroupDescriptor(group), "free blocks", said.into(), free.into());
        if descriptor.has(GROUP_BLOCK_UNINIT) && free != self.unkept[group as usize] {
            let what = "has no block bitmap yet, but blocks in use";
            self.report.find(Place::GroupDescriptor(group), what);
        }
        if descriptor.has(GROUP_BLOCK_UNINIT) || descriptor.block_bitmap >= self.sb.blocks_count {
            return Ok(free);
        }
        let bitmap = self.read(descriptor.block_bitmap).await?;
        let place = Place::BlockBitmap(group);
        let sealed = descriptor.check_block_bitmap(&bitmap[..], group, &self.sb);
        self.report.sound(place, sealed);
        let claimed = |bit| self.space.group(group).is_some_and(|map| bitmap::is_set(map, bit));
        let wrong = (0..blocks).filter(|bit| bitmap::is_set(&bitmap[..], *bit) != claimed(*bit));
        let wrong: Vec<u32> = wrong.collect();
        if let Some(first) = wrong.first() {
            let block = range.start + u64::from(*first);
            let is = if claimed(*first) { "is in use" } else { "is not in use" };
            let what = format!("block {block} {is}; {} bits are wrong", wrong.len());
            self.report.find(place, what);
        }
        self.check_padding(place, &bitmap, blocks);
        Ok(free)
    }

    /// The free inodes of a group.
    async fn check_inode_bitmap(&mut self, group: u32) -> Result<u32, BlockError> {
        let first = self.sb.inode_at(InodePlace { group, index: 0 });
        let count = self.sb.inodes_per_group;
        let descriptor = self.groups[group as usize].clone();
        let used = |number: u32| number < self.sb.first_ino || self.inodes.contains_key(&number);
        let free = count - (first..first + count).filter(|number| used(*number)).count() as u32;
        let dirs = self.inodes.range(first..first + count);
        let dirs = dirs.filter(|(_, seen)| seen.file_type == mode::DIR).count() as u64;
        let place = Place::GroupDescriptor(group);
        let said = [descriptor.free_inodes_count.into(), descriptor.used_dirs_count.into()];
        self.compare(place, "free inodes", said[0], free.into());
        self.compare(place, "directories", said[1], dirs);
        if descriptor.has(GROUP_INODE_UNINIT) || descriptor.inode_bitmap >= self.sb.blocks_count {
            return Ok(free);
        }
        let bitmap = self.read(descriptor.inode_bitmap).await?;
        let place = Place::InodeBitmap(group);
        let sealed = descriptor.check_inode_bitmap(&bitmap[..], group, &self.sb);
        self.report.sound(place, sealed);
        let used = |number: u32| number < self.sb.first_ino || self.inodes.contains_key(&number);
        let wrong = (0..count).filter(|bit| bitmap::is_set(&bitmap[..], *bit) != used(first + bit));
        let wrong: Vec<u32> = wrong.collect();
        if let Some(bit) = wrong.first() {
            let is = if used(first + bit) { "is in use" } else { "is not in use" };
            let what = format!("inode {} {is}; {} bits are wrong", first + bit, wrong.len());
            self.report.find(place, what);
        }
        self.check_padding(place, &bitmap, count);
        Ok(free)
    }

    /// Bits that stand for nothing are set.
    fn check_padding(&mut self, place: Place, bitmap: &BlockBytes, from: u32) {
        if bitmap::find(&bitmap[..], from..BLOCK_BYTES as u32 * 8, false).is_some() {
            self.report.find(place, "bits after the last one are clear");
        }
    }
}
