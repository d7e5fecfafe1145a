//! What a new volume holds: the root directory and lost+found, the NAT's first block, and the checkpoint
//! packs. Decided as mkfs.f2fs 1.15 does (`f2fs_create_root_dir` and `f2fs_write_check_point_pack` in
//! mkfs/f2fs_format.c).
//!
//! The first pack is the valid one: the entries of NAT and SIT stand in its journals. The second has
//! version 0.

use super::{MkfsOptions, Plan};
use crate::f2fs::format::*;

/// The directory for what fsck finds.
const LOST_FOUND: &[u8] = b"lost+found";
/// Its inode number, the first that is free.
const LOST_FOUND_INO: Nid = Nid(4);
/// Version in the footers of the first nodes.
const FIRST_NODES_VER: u64 = 1;
/// What stands in the NAT as the address of the inodes that are none, 1 and 2.
const NO_NODE: BlockAddr = BlockAddr(1);

/// The blocks of a new volume that are not zeroes, and its superblock.
pub(super) struct Contents {
    /// Blocks and their addresses, in ascending order.
    pub(super) blocks: Vec<(BlockAddr, Box<NodeBytes>)>,
    /// The block of the superblock, for both of its copies.
    pub(super) superblock: Box<NodeBytes>,
}

/// A new volume as it is put together.
struct Maker<'a> {
    plan: &'a Plan,
    options: &'a MkfsOptions,
    blocks: Vec<(BlockAddr, Box<NodeBytes>)>,
}

impl Contents {
    /// Of a volume that is planned. `trimmed` says whether what is free was discarded.
    pub(super) fn new(plan: &Plan, options: &MkfsOptions, trimmed: bool) -> Self {
        let mut maker = Maker { plan, options, blocks: Vec::new() };
        maker.packs(trimmed);
        maker.nat();
        maker.directories();
        maker.blocks.sort_by_key(|(addr, _)| *addr);
        let mut superblock = block();
        plan.superblock.encode(&mut superblock[SUPERBLOCK_AT..]);
        Self { blocks: maker.blocks, superblock }
    }
}

fn block() -> Box<NodeBytes> {
    Box::new([0; BLOCK_BYTES])
}

impl Maker<'_> {
    /// A block at the beginning of a log.
    fn in_log(&self, log: SegmentType, index: u32) -> BlockAddr {
        BlockAddr(self.plan.log_start(log).0 + index)
    }

    /// The directories: their inode numbers, in the order in which they lie in the logs.
    fn inos(&self) -> Vec<Nid> {
        let root = self.plan.superblock.root_ino;
        match self.options.features.has(Feature::LOST_FOUND) {
            true => vec![root, LOST_FOUND_INO],
            false => vec![root],
        }
    }

    /// Puts blocks of bytes at an address and those that follow.
    fn put(&mut self, addr: BlockAddr, bytes: &[u8]) {
        for (index, bytes) in (0..).zip(bytes.chunks(BLOCK_BYTES)) {
            let mut block = block();
            block[..bytes.len()].copy_from_slice(bytes);
            self.blocks.push((BlockAddr(addr.0 + index), block));
        }
    }

    fn directories(&mut self) {
        let inos = self.inos();
        let root = self.plan.superblock.root_ino;
        for (index, ino) in (0..).zip(inos.iter().copied()) {
            let inode = self.inode(ino, index, inos.len() as u32);
            self.put(self.in_log(SegmentType::HotNode, index), &inode[..]);
            let mut names = block();
            let mut dentries = Dentries::block(&mut names[..]);
            dentries.init_dots(ino, root);
            if ino == root && inos.contains(&LOST_FOUND_INO) {
                let hash = name_hash(LOST_FOUND);
                dentries.insert(2, LOST_FOUND, hash, LOST_FOUND_INO, file_type::DIR);
            }
            self.put(self.in_log(SegmentType::HotData, index), &names[..]);
        }
    }

    /// The inode of the directory `ino`, which is number `index` of so many.
    fn inode(&self, ino: Nid, index: u32, directories: u32) -> Box<NodeBytes> {
        let mut node = block();
        let (uid, gid) = self.options.root;
        let now = u64::from(self.options.now_s);
        let is_root = ino == self.plan.superblock.root_ino;
        let mut inode = Inode {
            mode: mode::DIR | if is_root { 0o755 } else { 0o700 },
            links: if is_root { 1 + directories } else { 2 },
            size: BLOCK_BYTES as u64,
            blocks: 2,
            current_depth: 1,
            ..Inode { uid, gid, atime: now, ctime: now, mtime: now, ..Inode::default() }
        };
        if !is_root {
            inode.pino = self.plan.superblock.root_ino.0;
            inode.set_name(LOST_FOUND);
        }
        let features = self.options.features;
        let extra = features.has(Feature::EXTRA_ATTR);
        let layout = InodeLayout::new(if extra { extra_bytes(features) } else { 0 }, 0, false);
        if extra {
            inode.inline = inline::EXTRA_ATTR;
        }
        inode.encode(&mut node);
        let extra_isize = layout.extra_bytes() as u16;
        let crtime = if features.has(Feature::INODE_CRTIME) { now } else { 0 };
        ExtraAttrs { extra_isize, crtime, ..ExtraAttrs::default() }.encode(&mut node, layout);
        layout.addrs().set(&mut node, 0, self.in_log(SegmentType::HotData, index));
        let next = self.in_log(SegmentType::HotNode, index + 1).0;
        let footer = NodeFooter { nid: ino.0, ino: ino.0, flag: 0, ..NodeFooter::default() };
        NodeFooter { cp_ver: FIRST_NODES_VER, next_blkaddr: next, ..footer }.encode(&mut node);
        if let Some(seed) = self.plan.superblock.checksum_seed() {
            seal_inode(&mut node, features.into(), seed.0);
        }
        node
    }

    /// The NAT's first block: the root, and the inodes that are none. lost+found stands in the journal.
    fn nat(&mut self) {
        let mut bytes = block();
        let sb = &self.plan.superblock;
        let root = (sb.root_ino, self.in_log(SegmentType::HotNode, 0));
        for (nid, block_addr) in [(sb.node_ino, NO_NODE), (sb.meta_ino, NO_NODE), root] {
            let (_, index) = self.plan.layout.nat_place(nid);
            NatEntry { version: 0, ino: nid, block_addr }.write_at(&mut bytes[..], index);
        }
        self.put(sb.nat_blkaddr, &bytes[..]);
    }

    fn packs(&mut self, trimmed: bool) {
        let layout = self.plan.layout;
        // Six blocks and a payload of at most 20 fit any pack.
        let Some(pack) = PackPlan::new(&layout, 0, Some(1), true) else { return };
        let mut checkpoint = self.checkpoint(trimmed);
        pack.note(&mut checkpoint, true);
        let bits = layout.nat_bits(0, pack.blocks()).filter(|_| self.options.nat_bits);
        if bits.is_some() {
            checkpoint.ckpt_flags |= CP_NAT_BITS;
        }
        let at = |pack: u32, index: u32| BlockAddr(layout.pack(pack).0 + index);
        let mut bytes = block();
        let crc = checkpoint.encode(&mut bytes[..]);
        self.put(at(0, 0), &bytes[..]);
        self.summaries(&pack);
        self.put(at(0, pack.last), &bytes[..]);
        if let Some(addr) = bits {
            let version = NatBits::version_of(checkpoint.checkpoint_ver, crc);
            let mut bits = NatBits::new(version, &layout);
            bits.set(0, 1);
            let bytes = bits.to_bytes(&layout);
            self.put(addr, &bytes);
        }
        let mut bytes = block();
        Checkpoint { checkpoint_ver: 0, ..checkpoint }.encode(&mut bytes[..]);
        self.put(at(1, 0), &bytes[..]);
        self.put(at(1, pack.last), &bytes[..]);
    }

    /// The checkpoint, but for what its pack's plan notes.
    fn checkpoint(&self, trimmed: bool) -> Checkpoint {
        let (plan, directories) = (self.plan, self.inos().len() as u32);
        let mut cp = Checkpoint::empty();
        cp.checkpoint_ver = self.options.checkpoint_ver;
        cp.user_block_count = plan.user_blocks();
        cp.valid_block_count = 2 * u64::from(directories);
        cp.rsvd_segment_count = plan.reserved_segments;
        cp.overprov_segment_count = plan.overprovision_segments;
        cp.free_segment_count = plan.counted_segments - SegmentType::ALL.len() as u32;
        (cp.cur_node_segno, cp.cur_data_segno) = ([SegNo::NULL; 8], [SegNo::NULL; 8]);
        for log in SegmentType::ALL {
            let blkoff = self.taken(log) as u16;
            cp.set_log(log, LogPosition { segno: plan.log(log), blkoff, ssr: false });
        }
        [cp.valid_node_count, cp.valid_inode_count] = [directories; 2];
        cp.next_free_nid = Nid(LOST_FOUND_INO.0 + directories - 1);
        cp.sit_ver_bitmap_bytesize = plan.layout.sit_blocks() / 8;
        cp.nat_ver_bitmap_bytesize = plan.layout.nat_blocks() / 8;
        cp.checksum_offset = CHECKPOINT_CRC_AT as u32;
        if trimmed {
            cp.ckpt_flags |= CP_TRIMMED;
        }
        cp
    }

    /// Blocks that a log has written.
    fn taken(&self, log: SegmentType) -> u32 {
        match log {
            SegmentType::HotNode | SegmentType::HotData => self.inos().len() as u32,
            _ => 0,
        }
    }

    /// The summaries of the first pack, and in them the journals of NAT and SIT.
    fn summaries(&mut self, pack: &PackPlan) {
        use SegmentType::*;
        let inos = self.inos();
        let entry = |ino: &Nid| SummaryEntry { nid: *ino, ..SummaryEntry::default() };
        let entries: Vec<SummaryEntry> = inos.iter().map(entry).collect();
        let node = |(index, ino): (u32, &Nid)| {
            let block_addr = self.in_log(HotNode, index);
            (*ino, NatEntry { version: 0, ino: *ino, block_addr })
        };
        let nat = NatJournal { entries: (0..).zip(&inos).map(node).collect() };
        let logs = [HotNode, WarmNode, ColdNode, HotData, WarmData, ColdData];
        let sit = SitJournal { entries: logs.map(|log| self.sit_entry(log)).to_vec() };
        let data = CompactSummaries { nat, sit, entries: [entries.clone(), vec![], vec![]] };
        let start = self.plan.layout.pack(0).0;
        let mut bytes = block();
        data.encode(&mut bytes[..]);
        self.put(BlockAddr(start + pack.data.start), &bytes[..]);
        for index in pack.nodes.clone() {
            let mut summary = SummaryBlock::new(SummaryKind::Node);
            if index == pack.nodes.start {
                summary.entries.iter_mut().zip(&entries).for_each(|(place, entry)| *place = *entry);
            }
            let mut bytes = block();
            summary.encode(&mut bytes[..]);
            self.put(BlockAddr(start + index), &bytes[..]);
        }
    }

    /// The SIT's entry of a log's first segment.
    fn sit_entry(&self, log: SegmentType) -> (SegNo, SitEntry) {
        let mut map = ValidMap::default();
        for block in 0..self.taken(log) {
            map.set(block);
        }
        let valid_blocks = map.count() as u16;
        // Of a slot the address stands in the place of the age.
        let mtime = self.plan.layout.space().map_or(0, |_| self.plan.log_start(log).0.into());
        (self.plan.log(log), SitEntry { valid_blocks, segment_type: log, map, mtime })
    }
}

/// Bytes of extra attributes that hold what the features ask for (`calc_extra_isize`).
const fn extra_bytes(features: Features) -> u32 {
    if features.has(Feature::INODE_CRTIME) {
        24
    } else if features.has(Feature::INODE_CHECKSUM) {
        12
    } else {
        4
    }
}
