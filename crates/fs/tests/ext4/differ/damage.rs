//! What of a volume can be damaged, how, and how checksums are mended behind it.

use crate::common::image::Image;
use nandscape_fs::ext4::format::*;
use nandscape_rt::Stream;

/// A kind of structure; each is damaged as often as the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Superblock,
    Descriptor,
    BlockBitmap,
    InodeBitmap,
    /// An inode of the format's own.
    Reserved,
    File,
    Directory,
    Link,
    Special,
    ExtentNode,
    /// A block of names, or of a directory's index.
    Names,
    Attributes,
    /// Blocks of pointers of the inode that keeps room for descriptors.
    Pointers,
    JournalSuperblock,
    OrphanFile,
}

/// A structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) kind: Kind,
    /// Where it lies on the volume.
    pub(super) at: usize,
    len: usize,
    /// Bytes at its beginning that say most.
    head: usize,
    /// The inode or the group that it belongs to.
    pub(super) owner: u32,
}

/// Bytes at a place, before and after.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: usize,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
}

/// All structures of a sound volume.
pub(super) fn targets(image: &Image) -> Vec<Target> {
    let sb = &image.sb;
    let whole = Target {
        kind: Kind::Superblock,
        at: SUPERBLOCK_AT,
        len: SUPERBLOCK_BYTES,
        head: 0x288,
        owner: 0,
    };
    let mut targets = vec![whole];
    for group in 0..sb.groups() {
        let (block, offset) = sb.desc_place(group);
        let at = block as usize * BLOCK_BYTES + offset;
        let len = sb.desc_bytes();
        targets.push(Target { kind: Kind::Descriptor, at, len, head: len, owner: group });
        let descriptor = image.descriptor(group);
        let bits = |bits: u32| bits as usize / 8 + 2;
        if !descriptor.has(GROUP_BLOCK_UNINIT) {
            let head = bits(sb.blocks_per_group.min(sb.blocks_count as u32));
            targets.push(block_at(Kind::BlockBitmap, descriptor.block_bitmap, head, group));
        }
        if !descriptor.has(GROUP_INODE_UNINIT) {
            let head = bits(sb.inodes_per_group);
            targets.push(block_at(Kind::InodeBitmap, descriptor.inode_bitmap, head, group));
        }
    }
    image.used_inodes().into_iter().for_each(|number| of_inode(image, number, &mut targets));
    targets
}

const fn block_at(kind: Kind, block: u64, head: usize, owner: u32) -> Target {
    Target { kind, at: block as usize * BLOCK_BYTES, len: BLOCK_BYTES, head, owner }
}

/// Where an inode lies on the volume.
fn inode_at(image: &Image, number: u32) -> usize {
    let place = image.sb.inode_place(number).expect("an inode");
    let table = image.descriptor(place.group).inode_table;
    (table + place.block(&image.sb)) as usize * BLOCK_BYTES + place.offset(&image.sb)
}

fn of_inode(image: &Image, number: u32, targets: &mut Vec<Target>) {
    let inode = image.inode(number);
    let kind = match inode.file_type() {
        _ if number < image.sb.first_ino && number != ROOT_INODE => Kind::Reserved,
        mode::REGULAR => Kind::File,
        mode::DIR => Kind::Directory,
        mode::SYMLINK => Kind::Link,
        _ => Kind::Special,
    };
    let (at, len) = (inode_at(image, number), image.sb.inode_bytes());
    targets.push(Target { kind, at, len, head: len.min(0xc0), owner: number });
    if inode.file_acl != 0 {
        targets.push(block_at(Kind::Attributes, inode.file_acl, 0x60, number));
    }
    if inode.has(flag::EXTENTS) {
        nodes(image, number, &inode.map, targets);
    }
    let content = match kind {
        Kind::Directory => Kind::Names,
        _ if number == JOURNAL_INODE => Kind::JournalSuperblock,
        _ if image.sb.is_orphan_file(number) => Kind::OrphanFile,
        _ if number == RESIZE_INODE => return pointers(image, number, &inode, targets),
        _ => return,
    };
    let blocks = image.data_blocks(number);
    let count = if content == Kind::JournalSuperblock { 1 } else { blocks.len() };
    targets.extend(blocks[..count].iter().map(|block| block_at(content, *block, 0x60, number)));
}

fn nodes(image: &Image, number: u32, node: &[u8], targets: &mut Vec<Target>) {
    let node = ExtentNode::parse(node, Place::Inode(number)).expect("a node");
    let ExtentEntries::Index { entries, .. } = node.entries else { return };
    for entry in entries {
        targets.push(block_at(Kind::ExtentNode, entry.node, 0x60, number));
        nodes(image, number, image.block(entry.node), targets);
    }
}

fn pointers(image: &Image, number: u32, inode: &Inode, targets: &mut Vec<Target>) {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes.as_chunks().0[at]);
    let top = u64::from(word(&inode.map, 13));
    let below = (2..4).map(|slot| u64::from(word(image.block(top), slot)));
    let blocks = std::iter::once(top).chain(below).filter(|block| *block != 0);
    targets.extend(blocks.map(|block| block_at(Kind::Pointers, block, 0x100, number)));
}

/// Changes a field of a structure; `None` if it says the same as before.
pub(super) fn damage(image: &mut Image, target: Target, rng: &mut Stream) -> Option<Change> {
    let bytes = &image.bytes[target.at..target.at + target.len];
    let used: Vec<usize> = (0..target.len).filter(|at| bytes[*at] != 0).collect();
    let at = match rng.below(8) {
        0 => rng.below(target.len as u64) as usize,
        1 | 2 if !used.is_empty() => used[rng.below(used.len() as u64) as usize],
        _ => rng.below(target.head.min(target.len) as u64) as usize,
    };
    let width = 1 << rng.below(3);
    let at = target.at + at / width * width;
    let before = image.bytes[at..at + width].to_vec();
    let mut word = [0; 4];
    word[..width].copy_from_slice(&before);
    let old = u32::from_le_bytes(word);
    let new = match rng.below(10) {
        0 => 0,
        1 => u32::MAX,
        2 => rng.below(1 << 32) as u32,
        3 => rng.below(16) as u32,
        4 => rng.below(image.sb.blocks_count) as u32,
        5 => rng.below(image.sb.inodes_count.into()) as u32,
        6 => old.wrapping_add(1),
        7 => old.wrapping_sub(1),
        _ => old ^ 1 << rng.below(8 * width as u64),
    };
    let after = new.to_le_bytes()[..width].to_vec();
    image.bytes[at..at + width].copy_from_slice(&after);
    (before != after).then_some(Change { at, before, after })
}

/// Writes the checksums that a damaged structure should have, where it still tells where they stand.
/// Gives what was changed so.
pub(super) fn mend(image: &mut Image, target: Target) -> Vec<Change> {
    let ranges = match target.kind {
        Kind::BlockBitmap | Kind::InodeBitmap | Kind::Descriptor => {
            let (block, offset) = image.sb.desc_place(target.owner);
            vec![(block as usize * BLOCK_BYTES + offset, image.sb.desc_bytes())]
        }
        _ => vec![(target.at, target.len)],
    };
    let before: Vec<_> =
        ranges.iter().map(|(at, len)| image.bytes[*at..at + len].to_vec()).collect();
    seal(image, target);
    let changes = ranges.into_iter().zip(before).map(|((at, len), before)| Change {
        at,
        before,
        after: image.bytes[at..at + len].to_vec(),
    });
    changes.filter(|change| change.before != change.after).collect()
}

fn seal(image: &mut Image, target: Target) {
    let sb = image.sb.clone();
    let range = target.at..target.at + target.len;
    let place = Place::Inode(target.owner);
    match target.kind {
        Kind::Descriptor => encode_descriptor(image, &sb, target.owner, |_, _| ()),
        Kind::BlockBitmap | Kind::InodeBitmap => {
            let bitmap = image.bytes[range].to_vec();
            encode_descriptor(image, &sb, target.owner, |descriptor, sb| match target.kind {
                Kind::BlockBitmap => descriptor.seal_block_bitmap(&bitmap[..], sb),
                _ => descriptor.seal_inode_bitmap(&bitmap[..], sb),
            });
        }
        _ if !sb.has(Feature::METADATA_CSUM) => {}
        Kind::Superblock => {
            let sum = crc32c(!0, &image.bytes[range.start..range.end - 4]);
            image.bytes[range.end - 4..range.end].copy_from_slice(&sum.to_le_bytes());
        }
        Kind::Reserved | Kind::File | Kind::Directory | Kind::Link | Kind::Special => {
            let bytes = &mut image.bytes[range];
            if let Ok(inode) = Inode::read_known(bytes, target.owner) {
                inode.encode(bytes, inode.seed(target.owner, &sb));
            }
        }
        Kind::ExtentNode | Kind::Names => {
            let seed = image.inode(target.owner).seed(target.owner, &sb);
            let bytes = &mut image.bytes[range];
            let node = IndexNode::parse_root(bytes, true, place);
            match (node.or_else(|_| IndexNode::parse_node(bytes, true, place)), target.kind) {
                (Ok(node), Kind::Names) => node.seal(bytes, seed),
                (_, Kind::Names) => seal_dir_block(bytes, seed),
                _ if ExtentNode::parse(bytes, place).is_ok() => seal_extent_block(bytes, seed),
                _ => {}
            }
        }
        Kind::Attributes => {
            let block = (target.at / BLOCK_BYTES) as u64;
            let mut bytes: [u8; BLOCK_BYTES] = image.bytes[range.clone()].try_into().expect("all");
            seal_xattr_block(&mut bytes, block, sb.csum_seed());
            image.bytes[range].copy_from_slice(&bytes);
        }
        Kind::Pointers | Kind::JournalSuperblock | Kind::OrphanFile => {}
    }
}

fn encode_descriptor(
    image: &mut Image,
    sb: &Superblock,
    group: u32,
    change: impl FnOnce(&mut GroupDescriptor, &Superblock),
) {
    let (block, offset) = sb.desc_place(group);
    let at = block as usize * BLOCK_BYTES + offset;
    let bytes = &mut image.bytes[at..at + sb.desc_bytes()];
    let mut descriptor = GroupDescriptor::parse_unchecked(bytes);
    change(&mut descriptor, sb);
    descriptor.encode(bytes, group, sb);
}
