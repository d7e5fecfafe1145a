//! The descriptors of a new file system: where bitmaps and inode tables of each group lie, as
//! libext2fs places them (`alloc_tables.c`), and what the groups hold.

use super::sizes::FIRST_INODE;
use super::space::Space;
use crate::ext4::format::*;

/// The groups.
pub(super) struct Groups {
    /// Their descriptors.
    pub(super) descriptors: Vec<GroupDescriptor>,
    /// Their block bitmaps, where they are written.
    pub(super) block_bitmaps: Vec<Option<Box<[u8; BLOCK_BYTES]>>>,
    /// Their inode bitmaps, where they are written.
    pub(super) inode_bitmaps: Vec<Option<Box<[u8; BLOCK_BYTES]>>>,
}

impl Groups {
    /// Places superblocks, descriptors, bitmaps and tables; `None` where they do not fit.
    pub(super) fn place(sb: &Superblock, space: &mut Space) -> Option<Self> {
        for group in 0..sb.groups() {
            let first = sb.group_first_block(group);
            let blocks = u64::from(sb.superblock_blocks(group));
            if blocks > 0 {
                space.take(first..first + blocks);
            }
        }
        let mut descriptors: Vec<GroupDescriptor> = Vec::new();
        for group in 0..sb.groups() {
            let placed = place_group(sb, space, group, descriptors.last())?;
            descriptors.push(placed);
        }
        Some(Self { descriptors, block_bitmaps: Vec::new(), inode_bitmaps: Vec::new() })
    }

    /// Counts what is free and in use, once everything has its place.
    pub(super) fn count_free(&mut self, sb: &mut Superblock, space: &Space) {
        let uninitialised = sb.has_group_checksums();
        let (mut free_blocks, mut free_inodes) = (0, 0);
        for group in 0..sb.groups() {
            let blocks = sb.group_blocks(group);
            let used: u64 = space.taken_in(blocks.clone()).map(|run| run.end - run.start).sum();
            let last = group + 1 == sb.groups();
            let untouched = used == untouched_blocks(sb, group) && !last;
            let bitmap = block_bitmap(sb, space, group);
            self.block_bitmaps.push((!untouched || !uninitialised).then_some(bitmap));
            let inodes = used_inodes(sb, group);
            let bitmap = inode_bitmap(sb, inodes);
            self.inode_bitmaps.push((inodes > 0 || !uninitialised).then_some(bitmap));

            let descriptor = &mut self.descriptors[group as usize];
            descriptor.free_blocks_count = (blocks.end - blocks.start - used) as u32;
            descriptor.free_inodes_count = sb.inodes_per_group - inodes;
            free_blocks += u64::from(descriptor.free_blocks_count);
            free_inodes += descriptor.free_inodes_count;
        }
        for directory in [ROOT_INODE, FIRST_INODE] {
            let group = (directory - 1) / sb.inodes_per_group;
            self.descriptors[group as usize].used_dirs_count += 1;
        }
        (sb.free_blocks_count, sb.free_inodes_count) = (free_blocks, free_inodes);
    }

    /// Sets flags and checksums. `zeroed`: what is not written reads as zeroes.
    pub(super) fn seal(&mut self, sb: &Superblock, zeroed: bool) {
        for (group, descriptor) in (0..).zip(&mut self.descriptors) {
            let blocks = &self.block_bitmaps[group as usize];
            let inodes = &self.inode_bitmaps[group as usize];
            let checksums = sb.has_group_checksums();
            if checksums {
                descriptor.itable_unused = sb.inodes_per_group - used_inodes(sb, group);
            }
            let flags = [
                (inodes.is_none(), GROUP_INODE_UNINIT),
                (blocks.is_none(), GROUP_BLOCK_UNINIT),
                (zeroed || !checksums, GROUP_INODE_ZEROED),
            ];
            descriptor.flags = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum();
            if let Some(bitmap) = blocks {
                descriptor.seal_block_bitmap(&bitmap[..], sb);
            }
            if let Some(bitmap) = inodes {
                descriptor.seal_inode_bitmap(&bitmap[..], sb);
            }
        }
    }
}

/// Blocks of a group that are in use where nothing was put there but what the format puts into every
/// group. Bitmaps and tables of flex groups count as put there.
fn untouched_blocks(sb: &Superblock, group: u32) -> u64 {
    let own = if sb.flex_groups() == 1 { 2 + sb.inode_table_blocks() } else { 0 };
    u64::from(sb.superblock_blocks(group) + own)
}

/// Inodes of a group that are in use: the first ones of the file system, lost+found the last.
fn used_inodes(sb: &Superblock, group: u32) -> u32 {
    let before = group.saturating_mul(sb.inodes_per_group);
    FIRST_INODE.saturating_sub(before).min(sb.inodes_per_group)
}

fn block_bitmap(sb: &Superblock, space: &Space, group: u32) -> Box<[u8; BLOCK_BYTES]> {
    let mut bitmap = Box::new([0; BLOCK_BYTES]);
    let blocks = sb.group_blocks(group);
    let bit = |block: u64| (block - blocks.start) as u32;
    for run in space.taken_in(blocks.clone()) {
        bitmap::set(&mut bitmap[..], bit(run.start)..bit(run.end), true);
    }
    bitmap::set(&mut bitmap[..], bit(blocks.end)..BLOCK_BYTES as u32 * 8, true);
    bitmap
}

fn inode_bitmap(sb: &Superblock, used: u32) -> Box<[u8; BLOCK_BYTES]> {
    let mut bitmap = Box::new([0; BLOCK_BYTES]);
    bitmap::set(&mut bitmap[..], 0..used, true);
    bitmap::set(&mut bitmap[..], sb.inodes_per_group..BLOCK_BYTES as u32 * 8, true);
    bitmap
}

/// The flex group of a group, as far as placing goes.
struct Flex {
    /// The first group.
    first: u32,
    /// The last group, of this flex group or of the volume.
    last: u32,
    /// How far tables lie behind bitmaps.
    offset: u64,
}

impl Flex {
    fn of(sb: &Superblock, group: u32) -> Option<Self> {
        let size = sb.flex_groups();
        if size == 1 {
            return None;
        }
        let first = group & !(size - 1);
        let last = (group | (size - 1)).min(sb.groups() - 1);
        let in_last = last & (size - 1);
        let is_end = last == sb.groups() - 1 && in_last != 0;
        Some(Self { first, last, offset: u64::from(if is_end { in_last + 1 } else { size }) })
    }

    /// Where to look for `each` blocks of a group, and of all groups behind it: from `near` on if that
    /// is free, else where there is room for all, else anywhere.
    fn start(&self, sb: &Superblock, space: &Space, near: u64, group: u32, each: u64) -> u64 {
        let all = (u64::from(self.last - group + 1) * each).min(u64::from(sb.blocks_per_group / 4));
        if near > 0
            && near < sb.blocks_count
            && let Some(start) = space.find(near, near + all, each)
        {
            return start;
        }
        let first = sb.group_first_block(self.first);
        let last = sb.group_blocks(self.last).end - 1;
        let room = space.find(first, last, all).or_else(|| space.find(first, last, each));
        room.or_else(|| space.find(0, last, each)).unwrap_or(0)
    }
}

/// Places bitmaps and table of a group, behind those of the group before.
fn place_group(
    sb: &Superblock,
    space: &mut Space,
    group: u32,
    before: Option<&GroupDescriptor>,
) -> Option<GroupDescriptor> {
    let blocks = sb.group_blocks(group);
    let table_blocks = u64::from(sb.inode_table_blocks());
    let flex = Flex::of(sb, group);
    let before = before.filter(|_| flex.as_ref().is_some_and(|flex| group != flex.first));
    let end = flex.as_ref().map_or(blocks.end, |flex| sb.group_blocks(flex.last).end) - 1;
    let mut place = |near: u64, each: u64, alone: u64| {
        let start = flex.as_ref().map_or(alone, |flex| flex.start(sb, space, near, group, each));
        let found = space.find(start, end, each);
        let found = found.or_else(|| (each == 1).then(|| space.find(blocks.start, end, 1))?)?;
        space.take(found..found + each);
        Some(found)
    };
    let offset = flex.as_ref().map_or(0, |flex| flex.offset);
    // The last flex group is kept close; in all others the first search is a fresh one.
    let block_bitmap = place(before.map_or(0, |g| g.block_bitmap + 1), 1, blocks.start)?;
    let near = before.map_or(block_bitmap + offset, |g| g.inode_bitmap + 1);
    let inode_bitmap = place(near, 1, blocks.start)?;
    let near = before.map_or(inode_bitmap + offset, |g| g.inode_table + table_blocks);
    let inode_table = place(near, table_blocks, blocks.start)?;
    Some(GroupDescriptor { block_bitmap, inode_bitmap, inode_table, ..GroupDescriptor::default() })
}
