//! Whether two recoveries of one volume left the same: every block in use, every inode, all counts.

use crate::common::image::Image;
use nandscape_fs::ext4::format::*;
use std::collections::BTreeSet;
use std::path::Path;

/// Differences of two images; nothing where they hold the same. Of inodes in `touched`, whose truncation
/// recovery has finished, times are not compared.
pub(super) fn differences(ours: &Path, theirs: &Path, touched: &[u32]) -> Vec<String> {
    let (ours, theirs) = (Image::load(ours), Image::load(theirs));
    let mut found = Vec::new();
    let mut sb = [known(&ours.sb), known(&theirs.sb)];
    sb[1].set_feature(Feature::ORPHAN_PRESENT, false);
    if sb[0] != sb[1] {
        let lines = sb.map(|sb| format!("{sb:#?}"));
        let differ = lines[0].lines().zip(lines[1].lines()).filter(|(a, b)| a != b);
        differ.for_each(|(a, b)| found.push(format!("superblock: {a} and {b}")));
    }
    let mut skipped: BTreeSet<u64> = ours.data_blocks(JOURNAL_INODE).into_iter().collect();
    for group in 0..ours.sb.groups() {
        let first = ours.sb.group_first_block(group);
        if ours.sb.has_superblock(group) && group > 0 {
            skipped.extend(first..first + 1 + u64::from(ours.sb.desc_blocks()));
        }
        if ours.descriptor_bytes(group) != theirs.descriptor_bytes(group) {
            let [a, b] = [ours.descriptor(group), theirs.descriptor(group)];
            found.push(format!("group {group}: {a:?} and {b:?}"));
        }
        let table = ours.descriptor(group).inode_table;
        skipped.extend(table..table + u64::from(ours.sb.inode_table_blocks()));
    }
    skipped.extend(0..=u64::from(ours.sb.desc_blocks()));
    let dropped = theirs.sb.state & STATE_ERRORS != 0;
    let left = theirs.sb.has(Feature::ORPHAN_PRESENT);
    if ours.sb.has(Feature::ORPHAN_FILE) && (dropped || left) {
        // The kernel drops what the file names, and e2fsck has seen to it: both leave the numbers.
        skipped.extend(ours.data_blocks(ours.sb.orphan_file_inum));
    }
    inodes(&ours, &theirs, touched, &mut found);
    for block in used_blocks(&theirs).filter(|block| !skipped.contains(block)) {
        if ours.block(block) != theirs.block(block) {
            let [a, b] = [ours.block(block), theirs.block(block)];
            let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
            let [a, b] = [a[at], b[at]];
            found.push(format!("block {block}, byte {at:#x}: {a:#x} and {b:#x}"));
        }
    }
    found
}

/// What a mount does not change.
fn known(sb: &Superblock) -> Superblock {
    Superblock {
        mtime: 0,
        wtime: 0,
        mnt_count: 0,
        last_mounted: [0; 64],
        kbytes_written: 0,
        lastcheck: 0,
        mtime_hi: 0,
        wtime_hi: 0,
        lastcheck_hi: 0,
        checksum: 0,
        ..sb.clone()
    }
}

fn used_blocks(image: &Image) -> impl Iterator<Item = u64> + '_ {
    (0..image.sb.groups()).flat_map(|group| {
        let descriptor = image.descriptor(group);
        let known = !descriptor.has(GROUP_BLOCK_UNINIT) || !image.sb.has_group_checksums();
        let bitmap = image.block(descriptor.block_bitmap);
        let blocks = image.sb.group_blocks(group).zip(0..).filter(move |_| known);
        blocks.filter(|(_, bit)| bitmap::is_set(bitmap, *bit)).map(|(block, _)| block)
    })
}

fn inodes(ours: &Image, theirs: &Image, touched: &[u32], found: &mut Vec<String>) {
    let [a, b] = [ours.used_inodes(), theirs.used_inodes()];
    if a != b {
        found.push(format!("inodes in use: {a:?} and {b:?}"));
        return;
    }
    for number in a {
        let (mut a, mut b) =
            (ours.inode_bytes(number).to_vec(), theirs.inode_bytes(number).to_vec());
        if touched.contains(&number) {
            blank_times(&mut a);
            blank_times(&mut b);
        }
        if number == JOURNAL_INODE || a == b {
            continue;
        }
        let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(0);
        let [a, b] = [ours.inode(number), theirs.inode(number)];
        found.push(format!("inode {number}, byte {at:#x}: {a:x?} and {b:x?}"));
    }
}

/// Takes out change times, version and checksum.
fn blank_times(bytes: &mut [u8]) {
    for place in [0xc..0x14, 0x24..0x28, 0x7c..0x7e, 0x82..0x8c, 0x98..0x9c] {
        if let Some(bytes) = bytes.get_mut(place) {
            bytes.fill(0);
        }
    }
}
