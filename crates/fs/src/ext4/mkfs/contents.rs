//! What a new file system holds: root, lost+found, the inode that keeps room for descriptors, and the
//! journal; in the order in which mke2fs makes them, which decides where they lie.

use super::MkfsOptions;
use super::sizes::{FIRST_INODE, journal_blocks_by_default};
use super::space::Space;
use crate::ext4::format::*;
use crate::ext4::journal::disk::Superblock as LogSuperblock;
use nandscape_rt::invariant;
use std::ops::Range;

/// Blocks of lost+found.
const LOST_AND_FOUND_BLOCKS: u64 = 4;

/// Inodes, and blocks with content.
pub(super) struct Contents {
    /// The inodes in use, in order.
    pub(super) inodes: Vec<(u32, Inode)>,
    /// Blocks by address, in order.
    pub(super) blocks: Vec<(u64, Box<[u8; BLOCK_BYTES]>)>,
    /// The runs of the journal.
    pub(super) journal: Vec<Range<u64>>,
}

impl Contents {
    /// Makes everything; `None` where it does not fit.
    pub(super) fn place(
        sb: &mut Superblock,
        options: &MkfsOptions,
        space: &mut Space,
    ) -> Option<Self> {
        let mut contents = Self { inodes: Vec::new(), blocks: Vec::new(), journal: Vec::new() };
        contents.directories(sb, options, space)?;
        if sb.has(Feature::RESIZE_INODE) {
            contents.resize_inode(sb, options, space)?;
        }
        if sb.has(Feature::HAS_JOURNAL) {
            contents.add_journal(sb, options, space)?;
        }
        contents.add_reserved_inodes(options);
        contents.blocks.sort_by_key(|(block, _)| *block);
        contents.inodes.sort_by_key(|(inode, _)| *inode);
        Some(contents)
    }

    fn add_block(&mut self, block: u64) -> &mut [u8; BLOCK_BYTES] {
        self.blocks.push((block, Box::new([0; BLOCK_BYTES])));
        &mut self.blocks.last_mut().expect("just pushed").1
    }

    /// Reserved inodes that hold nothing. That of bad blocks, of which there are none, has times.
    fn add_reserved_inodes(&mut self, options: &MkfsOptions) {
        let mut bad_blocks = Inode::default();
        set_times(&mut bad_blocks, options);
        self.inodes.push((1, bad_blocks));
        for number in 2..FIRST_INODE {
            if self.inodes.iter().all(|(used, _)| *used != number) {
                self.inodes.push((number, Inode::default()));
            }
        }
    }

    fn directories(
        &mut self,
        sb: &Superblock,
        options: &MkfsOptions,
        space: &mut Space,
    ) -> Option<()> {
        let mut root = new_inode(options, mode::DIR | 0o755, 3);
        let mut found = new_inode(options, mode::DIR | 0o700, 2);
        let root_at = space.take_one(0)?;
        let found_at: Option<Vec<_>> =
            (0..LOST_AND_FOUND_BLOCKS).map(|_| space.take_one(0)).collect();
        let found_at = found_at?;
        map_runs(&mut root, &runs(&[root_at]), None);
        map_runs(&mut found, &runs(&found_at), None);
        let has_tail = sb.has(Feature::METADATA_CSUM);

        let block = self.add_block(root_at);
        init_first_dir_block(block, ROOT_INODE, ROOT_INODE, has_tail);
        let fits =
            insert_name(block, b"lost+found", FIRST_INODE, file_type_of(mode::DIR), has_tail);
        invariant!(fits, "an empty directory has room");
        seal_dir_block(block, root.seed(ROOT_INODE, sb));
        for (index, &at) in found_at.iter().enumerate() {
            let block = self.add_block(at);
            match index {
                0 => init_first_dir_block(block, FIRST_INODE, ROOT_INODE, has_tail),
                _ => init_dir_block(block, has_tail),
            }
            seal_dir_block(block, found.seed(FIRST_INODE, sb));
        }
        self.inodes.push((ROOT_INODE, root));
        self.inodes.push((FIRST_INODE, found));
        Some(())
    }

    /// Room for descriptors is kept by an inode whose blocks of pointers are the reserved blocks of
    /// group 0, each pointing to those at the same place of the groups with backups. It is as long as
    /// it could become, which makes it a large file.
    fn resize_inode(
        &mut self,
        sb: &mut Superblock,
        options: &MkfsOptions,
        space: &mut Space,
    ) -> Option<()> {
        let mut inode = new_inode(options, mode::REGULAR | 0o600, 1);
        let goal = sb.superblock_blocks(0) + 1 + sb.inode_table_blocks();
        let top = space.take_one(goal.into())?;
        let backups: Vec<u32> =
            (1..sb.groups()).filter(|group| sb.has_superblock(*group)).collect();
        inode.map[4 * DOUBLE_INDIRECT..][..4].copy_from_slice(&(top as u32).to_le_bytes());
        let pointers = BLOCK_POINTERS * BLOCK_POINTERS + BLOCK_POINTERS + DIRECT_POINTERS;
        inode.size = (pointers * BLOCK_BYTES) as u64;
        sb.set_feature(Feature::LARGE_FILE, true);
        let reserved = u64::from(sb.reserved_gdt_blocks);
        inode.set_blocks_4k(1 + reserved * (1 + backups.len() as u64));
        let first = u64::from(1 + sb.desc_blocks());
        let slot =
            |index: u64| ((u64::from(sb.desc_blocks()) + index) % BLOCK_POINTERS as u64) as usize;
        for index in 0..reserved {
            let block = first + index;
            let pointers = backups.iter().map(|group| sb.group_first_block(*group) + block);
            write_pointers(self.add_block(block), pointers);
        }
        let block = self.add_block(top);
        for index in 0..reserved {
            block[4 * slot(index)..][..4].copy_from_slice(&((first + index) as u32).to_le_bytes());
        }
        self.inodes.push((RESIZE_INODE, inode));
        Some(())
    }

    fn add_journal(
        &mut self,
        sb: &mut Superblock,
        options: &MkfsOptions,
        space: &mut Space,
    ) -> Option<()> {
        let default = journal_blocks_by_default(sb.blocks_count);
        let blocks = options.journal_blocks.unwrap_or(default);
        let goal = sb.group_first_block(journal_group(sb, space));
        let (journal, leaf) = take_journal(space, goal, blocks.into())?;
        let mut inode = new_inode(options, mode::REGULAR | 0o600, 1);
        let node = map_runs(&mut inode, &journal, leaf);
        if let (Some(leaf), Some(node)) = (leaf, node) {
            let block = self.add_block(leaf);
            node.encode(block);
            seal_extent_block(block, inode.seed(JOURNAL_INODE, sb));
        }
        *self.add_block(journal.first()?.start) = *LogSuperblock::fresh(blocks, sb.uuid).bytes();
        sb.journal_inum = JOURNAL_INODE;
        sb.jnl_backup_type = 1;
        for (word, bytes) in sb.jnl_blocks.iter_mut().zip(inode.map.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        sb.jnl_blocks[15] = (inode.size >> 32) as u32;
        sb.jnl_blocks[16] = inode.size as u32;
        sb.overhead_clusters += blocks;
        self.inodes.push((JOURNAL_INODE, inode));
        self.journal = journal;
        Some(())
    }
}

/// A new inode, all times now.
fn new_inode(options: &MkfsOptions, mode: u16, links: u16) -> Inode {
    let mut inode = Inode { mode, links_count: links, ..Inode::default() };
    if usize::from(options.inode_bytes) > INODE_BYTES_OLD {
        inode.extra_isize = (INODE_BYTES_KNOWN - INODE_BYTES_OLD) as u16;
    }
    set_times(&mut inode, options);
    inode.set_crtime(inode.ctime());
    inode
}

fn set_times(inode: &mut Inode, options: &MkfsOptions) {
    let seconds = Timestamp { nanos: 0, ..options.now };
    inode.set_atime(seconds);
    inode.set_ctime(seconds);
    inode.set_mtime(seconds);
}

/// Blocks that follow each other, as runs.
fn runs(blocks: &[u64]) -> Vec<Range<u64>> {
    let chunks = blocks.chunk_by(|a, b| a + 1 == *b);
    chunks.map(|chunk| chunk[0]..chunk[chunk.len() - 1] + 1).collect()
}

/// Maps a file's blocks to these runs. More than the root has room for go to a leaf, which is
/// returned.
fn map_runs(inode: &mut Inode, runs: &[Range<u64>], leaf: Option<u64>) -> Option<ExtentNode> {
    let mut logical = 0;
    let extents: Vec<Extent> = runs
        .iter()
        .map(|run| {
            let blocks = (run.end - run.start) as u16;
            let extent = Extent { logical, blocks, start: run.start, unwritten: false };
            logical += u32::from(blocks);
            extent
        })
        .collect();
    inode.flags |= flag::EXTENTS;
    inode.size = u64::from(logical) * BLOCK_BYTES as u64;
    inode.set_blocks_4k(u64::from(logical) + u64::from(leaf.is_some()));
    let mut root = ExtentNode::empty_root();
    let below = leaf.map(|node| {
        let entries = vec![ExtentIndex { logical: 0, node }];
        root.entries = ExtentEntries::Index { depth: 1, entries };
        ExtentNode::block_of(ExtentEntries::Leaf(extents.clone()))
    });
    if below.is_none() {
        root.entries = ExtentEntries::Leaf(extents);
    }
    root.encode(&mut inode.map);
    below
}

fn write_pointers(block: &mut [u8; BLOCK_BYTES], pointers: impl Iterator<Item = u64>) {
    for (place, pointer) in block.chunks_exact_mut(4).zip(pointers) {
        place.copy_from_slice(&(pointer as u32).to_le_bytes());
    }
}

/// The group that the journal begins in: the middle one, or the first of its flex group.
fn journal_group(sb: &Superblock, space: &Space) -> u32 {
    let free = |group: u32| {
        let blocks = sb.group_blocks(group);
        let taken = space.taken_in(blocks.clone()).map(|run| run.end - run.start);
        blocks.end - blocks.start - taken.sum::<u64>()
    };
    let count = sb.groups();
    let middle = sb.group_of(sb.blocks_count / 2);
    let flex = sb.flex_groups();
    let (start, group) = if flex > 1 && middle > flex {
        let aligned = middle & !(flex - 1);
        let group = (aligned..count).find(|group| free(*group) > 0).unwrap_or(0);
        (group, group)
    } else {
        (middle.saturating_sub(1), middle)
    };
    let end = (group + 1).min(count - 1);
    // The first of those with the most room.
    (start..=end).fold(start, |best, group| if free(group) > free(best) { group } else { best })
}

/// Takes the runs of the journal, and the block of its extents if there are more than a root holds.
fn take_journal(
    space: &mut Space,
    goal: u64,
    blocks: u64,
) -> Option<(Vec<Range<u64>>, Option<u64>)> {
    let (mut runs, mut leaf) = (Vec::<Range<u64>>::new(), None);
    let (mut left, mut goal) = (blocks, goal);
    while left > 0 {
        let run = space.take_up_to(goal, left.min(EXTENT_BLOCKS_MAX.into()))?;
        if leaf.is_none() && runs.len() == usize::from(ROOT_ENTRIES) {
            leaf = Some(space.take_one(runs[0].start - 1)?);
        }
        left -= run.end - run.start;
        goal = run.end;
        runs.push(run);
    }
    (runs.len() <= usize::from(NODE_ENTRIES)).then_some((runs, leaf))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs are what follows each other.
    #[test]
    fn blocks_make_runs() {
        assert_eq!(runs(&[4, 5, 6, 9, 11, 12]), [4..7, 9..10, 11..13]);
    }
}
