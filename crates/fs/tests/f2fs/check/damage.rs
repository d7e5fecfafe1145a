//! What of a volume can be damaged, how, and how checksums are mended after it.

use crate::common::examine::on_image;
use nandscape_fs::f2fs::format::*;
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_rt::Stream;
use std::collections::BTreeSet;
use std::path::Path;

/// A kind of structure; each is damaged as often as the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Superblock,
    Checkpoint,
    /// Summaries of the logs and journals, in the checkpoint pack.
    PackSummary,
    NatBits,
    /// Entries of segments in use, and of some that are free.
    Sit,
    /// Entries of nodes in use, and of some that are free.
    Nat,
    Ssa,
    File,
    Directory,
    Link,
    Direct,
    Indirect,
    /// A node of extended attributes.
    Xattr,
    /// A block of names.
    Names,
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
    /// The node, segment or copy.
    pub(super) owner: u32,
}

/// Bytes at a place, before and after.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: usize,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
}

/// All structures of a sound volume, and what is needed to mend it.
pub(super) struct Map {
    pub(super) targets: Vec<Target>,
    /// First and last block of the pack in use, in bytes.
    pack: [usize; 2],
    features: Features,
    seed: u32,
    /// Numbers that fields often hold.
    blocks: u64,
    nids: u64,
}

const fn block(kind: Kind, addr: u64, head: usize, owner: u32) -> Target {
    Target { kind, at: addr as usize * BLOCK_BYTES, len: BLOCK_BYTES, head, owner }
}

/// Lists the structures of a volume.
pub(super) fn map(path: &Path) -> Map {
    on_image(path, async |device| {
        let image = F2fsImage::open(&device).await.expect("a sound volume");
        let mut targets = Vec::new();
        of_tables(&image, &mut targets).await;
        of_nodes(&image, &mut targets).await;
        let pack = u64::from(image.layout.pack(image.pack).0);
        let ends = [pack, pack + u64::from(image.plan.last)];
        Map {
            targets,
            pack: ends.map(|addr| addr as usize * BLOCK_BYTES),
            features: image.sb.features(),
            seed: image.checksum_seed().unwrap_or_default(),
            blocks: image.sb.block_count,
            nids: image.checkpoint.valid_node_count.into(),
        }
    })
}

async fn of_tables(image: &F2fsImage, targets: &mut Vec<Target>) {
    let layout = &image.layout;
    for copy in 0..2 {
        let at = copy * BLOCK_BYTES + SUPERBLOCK_AT;
        let len = SUPERBLOCK_BYTES;
        targets.push(Target { kind: Kind::Superblock, at, len, head: 0x6c, owner: copy as u32 });
    }
    let pack = u64::from(layout.pack(image.pack).0);
    targets.push(block(Kind::Checkpoint, pack, 0x150, image.pack));
    for summary in image.plan.data.start..image.plan.nodes.end {
        let head = if image.plan.compact { 2 * JOURNAL_BYTES + 700 } else { 0x200 };
        targets.push(block(Kind::PackSummary, pack + u64::from(summary), head, summary));
    }
    let bits = layout.nat_bits(image.pack, image.plan.blocks()).expect("room");
    targets.push(block(Kind::NatBits, bits.0.into(), 0x60, image.pack));
    let mut segments: BTreeSet<u32> =
        SegmentType::ALL.iter().map(|log| image.checkpoint.log(*log).segno.0).collect();
    for segno in 0..layout.main_segments() {
        let entry = image.sit_entry(SegNo(segno)).await.expect("an entry");
        if entry.valid_blocks != 0 {
            segments.insert(segno);
            let at = u64::from(layout.summary_block(SegNo(segno)).expect("a block").0);
            if image.log_of(SegNo(segno)).is_none() {
                targets.push(block(Kind::Ssa, at, 0x400, segno));
            }
        }
    }
    segments.insert(layout.main_segments() - 1);
    for segno in segments {
        let (index, slot) = layout.sit_place(SegNo(segno));
        let at = image.sit_addr(index).expect("a block").0 as usize * BLOCK_BYTES;
        let (at, len) = (at + slot * SIT_ENTRY_BYTES, SIT_ENTRY_BYTES);
        targets.push(Target { kind: Kind::Sit, at, len, head: 12, owner: segno });
    }
    for nid in 0..image.checkpoint.valid_node_count + 10 {
        let (index, slot) = layout.nat_place(Nid(nid));
        let at = image.nat_addr(index).expect("a block").0 as usize * BLOCK_BYTES;
        let (at, len) = (at + slot * NAT_ENTRY_BYTES, NAT_ENTRY_BYTES);
        targets.push(Target { kind: Kind::Nat, at, len, head: len, owner: nid });
    }
}

async fn of_nodes(image: &F2fsImage, targets: &mut Vec<Target>) {
    for nid in 3..image.layout.nids() {
        let Ok(node) = image.node(Nid(nid)).await else { continue };
        let addr = node.entry.block_addr.0.into();
        let kind = match node.footer.role() {
            Some(NodeRole::Inode) => match Inode::parse(&node.bytes).file_type() {
                mode::DIR => Kind::Directory,
                mode::SYMLINK => Kind::Link,
                _ => Kind::File,
            },
            Some(NodeRole::Direct) => Kind::Direct,
            Some(NodeRole::Xattr) => Kind::Xattr,
            _ => Kind::Indirect,
        };
        targets.push(block(kind, addr, 0x1a0, nid));
        if kind == Kind::Directory {
            let inode = image.inode(Nid(nid)).await.expect("an inode");
            if inode.inode.has_inline(inline::DENTRY) {
                continue;
            }
            let addrs = inode.layout.addrs();
            let names = addrs.iter(&inode.node.bytes).filter(|addr| addr.is_block());
            targets.extend(names.map(|addr| block(Kind::Names, addr.0.into(), 0x100, nid)));
        }
    }
}

impl Map {
    /// Changes a field of a structure; `None` if it says the same as before.
    pub(super) fn damage(
        &self,
        bytes: &mut [u8],
        target: Target,
        rng: &mut Stream,
    ) -> Option<Change> {
        let old = &bytes[target.at..target.at + target.len];
        let used: Vec<usize> = (0..target.len).filter(|at| old[*at] != 0).collect();
        let is_node = matches!(target.kind, Kind::File | Kind::Directory | Kind::Link)
            || matches!(target.kind, Kind::Direct | Kind::Indirect | Kind::Xattr);
        let at = match rng.below(8) {
            0 => rng.below(target.len as u64) as usize,
            1 | 2 if !used.is_empty() => used[rng.below(used.len() as u64) as usize],
            3 if is_node => NODE_FOOTER_AT + rng.below(24) as usize,
            _ => rng.below(target.head.min(target.len) as u64) as usize,
        };
        let width = 1 << rng.below(3);
        let at = (target.at + at / width * width).min(target.at + target.len - width);
        let before = bytes[at..at + width].to_vec();
        let mut word = [0; 4];
        word[..width].copy_from_slice(&before);
        let old = u32::from_le_bytes(word);
        let new = match rng.below(10) {
            0 => 0,
            1 => u32::MAX,
            2 => rng.below(1 << 32) as u32,
            3 => rng.below(16) as u32,
            4 => rng.below(self.blocks) as u32,
            5 => rng.below(self.nids) as u32,
            6 => old.wrapping_add(1),
            7 => old.wrapping_sub(1),
            _ => old ^ 1 << rng.below(8 * width as u64),
        };
        let after = new.to_le_bytes()[..width].to_vec();
        bytes[at..at + width].copy_from_slice(&after);
        (before != after).then_some(Change { at, before, after })
    }

    /// Writes the checksums that a damaged structure should have. Gives what was changed so.
    pub(super) fn mend(&self, bytes: &mut [u8], target: Target, change: &Change) -> Vec<Change> {
        let places = match target.kind {
            Kind::Checkpoint => self.pack.map(|at| (at, BLOCK_BYTES)).to_vec(),
            _ => vec![(target.at, target.len)],
        };
        let before: Vec<_> = places.iter().map(|(at, len)| bytes[*at..at + len].to_vec()).collect();
        match target.kind {
            Kind::Superblock if self.features.has(Feature::SB_CHECKSUM) => {
                let sb = &mut bytes[target.at..target.at + target.len];
                let crc = crc32(SUPERBLOCK_MAGIC, &sb[..SUPERBLOCK_CRC_AT]);
                sb[SUPERBLOCK_CRC_AT..SUPERBLOCK_CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
            }
            Kind::Checkpoint => {
                let offset = change.at - target.at;
                for at in self.pack {
                    let block = &mut bytes[at..at + BLOCK_BYTES];
                    block[offset..offset + change.after.len()].copy_from_slice(&change.after);
                    let crc = crc32(SUPERBLOCK_MAGIC, &block[..CHECKPOINT_CRC_AT]);
                    block[CHECKPOINT_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
                }
            }
            Kind::File | Kind::Directory | Kind::Link => {
                let node: &mut [u8] = &mut bytes[target.at..target.at + target.len];
                let node: &mut NodeBytes = node.try_into().expect("a block");
                seal_inode(node, self.features.into(), self.seed);
            }
            _ => {}
        }
        let changes = places.into_iter().zip(before).map(|((at, len), before)| Change {
            at,
            before,
            after: bytes[at..at + len].to_vec(),
        });
        changes.filter(|change| change.before != change.after).collect()
    }
}
