//! Volumes that Linux's F2FS filled, with what the same kernel reads from them as manifests
//! (`tests/kernel-f2fs/MANIFEST.md`), so that reading and roll-forward are tested without a kernel.
//! `tests/kernel-f2fs/check.py --fixtures` makes them; README.md in this folder says what each holds.
//!
//! - A volume is kept as gzip of its number of blocks (u32, little-endian) and, for each block that is
//!   not zeroes, its number (u32) and its 4096 bytes.
//! - [`Volume::CLEAN`] was unmounted. [`Volume::CUT`] lost power after fsyncs: its last checkpoint is
//!   followed by nodes to roll forward.

use flate2::read::GzDecoder;
use nandscape_fs::f2fs::format::{
    BLOCK_BYTES, BlockAddr, CP_CRC_RECOVERY, CP_UMOUNT, Checkpoint, Feature, Layout, NodeFooter,
    SUPERBLOCK_AT, SUPERBLOCK_BYTES, SegmentType, Superblock, node_flag,
};
use std::collections::BTreeMap;
use std::io::Read;

/// A volume and its manifests, compressed.
pub(crate) struct Volume {
    blocks: &'static [u8],
    manifests: &'static [(&'static str, &'static [u8])],
}

impl Volume {
    /// Filled and unmounted. `manifest`: all files.
    pub(crate) const CLEAN: Self = Self {
        blocks: include_bytes!("clean.blocks.gz"),
        manifests: &[("manifest", include_bytes!("clean.manifest.gz"))],
    };
    /// Cut off, with extra attributes. `before`: all files as of the last checkpoint; `fsynced`: what
    /// must be there after recovery, the last line of a path counts; `after`: all files as the kernel
    /// recovers them, who sets the times of directories anew where it adds names.
    pub(crate) const CUT: Self = Self {
        blocks: include_bytes!("cut.blocks.gz"),
        manifests: &[
            ("before", include_bytes!("cut.before.gz")),
            ("fsynced", include_bytes!("cut.fsynced.gz")),
            ("after", include_bytes!("cut.after.gz")),
        ],
    };

    /// The number of blocks of the volume, and its blocks that are not zeroes.
    pub(crate) fn blocks(&self) -> (u32, BTreeMap<u32, [u8; BLOCK_BYTES]>) {
        let data = unpack(self.blocks);
        let (count, rest) = data.split_first_chunk().expect("a number of blocks");
        let mut blocks = BTreeMap::new();
        for entry in rest.chunks(4 + BLOCK_BYTES) {
            let (at, block) = entry.split_first_chunk().expect("a block's number");
            blocks.insert(u32::from_le_bytes(*at), block.try_into().expect("a whole block"));
        }
        (u32::from_le_bytes(*count), blocks)
    }

    /// A manifest, by its name.
    pub(crate) fn manifest(&self, name: &str) -> String {
        let found = self.manifests.iter().find(|(known, _)| *known == name);
        let (_, packed) = found.expect("a manifest of the volume");
        String::from_utf8(unpack(packed)).expect("a manifest is ASCII")
    }
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut data).expect("a whole gzip file");
    data
}

/// A volume's blocks, its layout and its last checkpoint with that checkpoint's CRC.
struct Opened {
    blocks: BTreeMap<u32, [u8; BLOCK_BYTES]>,
    superblock: Superblock,
    layout: Layout,
    checkpoint: Checkpoint,
    crc: u32,
}

impl Opened {
    fn new(volume: &Volume) -> Self {
        let (count, blocks) = volume.blocks();
        let superblock = &blocks[&0][SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES];
        let superblock = Superblock::parse(superblock, 0).expect("a sound superblock");
        let layout = Layout::of(&superblock).expect("a sound layout");
        assert!(layout.blocks() <= u64::from(count), "the volume ends before its layout");
        let (checkpoint, crc) = [0, 1]
            .into_iter()
            .filter_map(|pack| {
                let block = blocks.get(&layout.pack(pack).0)?;
                let checkpoint = Checkpoint::parse(block, pack).ok()?;
                let crc = checkpoint.stored_crc(block);
                Some((checkpoint, crc))
            })
            .max_by_key(|(checkpoint, _)| checkpoint.checkpoint_ver)
            .expect("a checkpoint");
        Self { blocks, superblock, layout, checkpoint, crc }
    }

    /// The nodes that were written to the warm node log after the last checkpoint.
    fn chain(&self) -> Vec<NodeFooter> {
        let log = self.checkpoint.log(SegmentType::WarmNode);
        let mut at = self.layout.block(log.segno, u32::from(log.blkoff));
        let mut chain = Vec::new();
        while let Some(block) = at.and_then(|at| self.blocks.get(&at.0)) {
            let footer = NodeFooter::parse(block);
            if footer.cp_ver != self.version() {
                break;
            }
            chain.push(footer);
            at = Some(BlockAddr(footer.next_blkaddr));
        }
        chain
    }

    /// What nodes after the last checkpoint carry (`cpver_of_node`).
    fn version(&self) -> u64 {
        let crc = if self.checkpoint.has(CP_CRC_RECOVERY) { u64::from(self.crc) << 32 } else { 0 };
        self.checkpoint.checkpoint_ver | crc
    }
}

/// The number of inodes of a manifest: hard links share one.
fn inodes(manifest: &str) -> usize {
    let numbers = manifest.lines().filter_map(|line| line.split(" ino=").nth(1)?.split(' ').next());
    numbers.collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn the_clean_volume_needs_no_recovery_and_counts_the_inodes_of_its_manifest() {
    let opened = Opened::new(&Volume::CLEAN);
    assert!(opened.checkpoint.has(CP_UMOUNT));
    assert!(opened.chain().is_empty());
    let listed = inodes(&Volume::CLEAN.manifest("manifest"));
    assert_eq!(opened.checkpoint.valid_inode_count as usize, listed);
}

#[test]
fn the_cut_volume_has_nodes_to_roll_forward() {
    let opened = Opened::new(&Volume::CUT);
    assert!(opened.superblock.features().has(Feature::EXTRA_ATTR));
    assert!(!opened.checkpoint.has(CP_UMOUNT));
    assert_eq!(
        opened.checkpoint.valid_inode_count as usize,
        inodes(&Volume::CUT.manifest("before"))
    );
    let chain = opened.chain();
    let marked = |flag| chain.iter().filter(|footer| footer.has(flag)).count();
    assert!(marked(node_flag::FSYNC) > 20, "fsyncs in the chain: {}", marked(node_flag::FSYNC));
    assert!(marked(node_flag::DENTRY) > 5, "new files in the chain: {}", marked(node_flag::DENTRY));
}

#[test]
fn fsynced_files_are_in_the_manifest_after_recovery_and_some_not_before() {
    let lines = |name| Volume::CUT.manifest(name).lines().map(String::from).collect::<Vec<_>>();
    let (before, after) = (lines("before"), lines("after"));
    let path = |line: &str| line.split(' ').next().map(String::from);
    let mut last = BTreeMap::new();
    for line in lines("fsynced").into_iter().filter(|line| line.contains(" mode=")) {
        last.insert(path(&line), line);
    }
    // A later fsync of data alone, whose line has fewer fields.
    let shorter: Vec<_> = lines("fsynced")
        .iter()
        .filter(|line| !line.contains(" mode="))
        .map(|line| path(line))
        .collect();
    last.retain(|path, _| !shorter.contains(path));
    assert!(last.len() > 10);
    assert!(last.values().all(|line| after.contains(line)));
    assert!(last.values().filter(|line| !before.contains(line)).count() > 5);
}
