//! The blocks of a checkpoint pack (`do_checkpoint`).

use super::CheckpointWrite;
use crate::contract::Result;
use crate::f2fs::checkpoints::Reason;
use crate::f2fs::error::corrupt;
use crate::f2fs::format::{
    ALLOC_LFS, BLOCK_BYTES, BlockAddr, CP_CRC_RECOVERY, CP_NAT_BITS, CP_NOCRC_RECOVERY,
    CP_ORPHAN_PRESENT, CP_TRIMMED, Checkpoint, CompactSummaries, LogPosition, NatBits, Nid,
    PackPlan, SegmentType, SummaryBlock, compact_blocks, encode_orphans,
};
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::segment::{Block, Segments};

/// A pack that is to be written.
pub(super) struct Pack {
    pub(super) checkpoint: Checkpoint,
    pub(super) crc: u32,
    /// Its first block on the volume.
    pub(super) start: u32,
    /// All its blocks; the last is the checkpoint block again.
    pub(super) blocks: Vec<Box<Block>>,
    /// Blocks of its NAT bits and of its discard journal, if it has some, with their places.
    pub(super) bits: Vec<(BlockAddr, Box<Block>)>,
}

/// Logs of data, by temperature.
const DATA_LOGS: [SegmentType; 3] =
    [SegmentType::HotData, SegmentType::WarmData, SegmentType::ColdData];
/// Logs of nodes, by temperature.
const NODE_LOGS: [SegmentType; 3] =
    [SegmentType::HotNode, SegmentType::WarmNode, SegmentType::ColdNode];

impl CheckpointWrite<'_> {
    /// The pack that follows the last one. Nothing changes while it is written.
    ///
    /// # Errors
    /// [`FsError::Corrupt`](crate::contract::FsError::Corrupt) if the orphans do not fit, which are never so many.
    pub(super) fn build_pack(&self, version: u64) -> Result<Pack> {
        let segments = self.volume.segments.borrow();
        let nat = self.volume.nodes.nat.borrow();
        let orphans: Vec<Nid> = match self.volume.mount.omits(OmittedRule::CheckpointOrphans) {
            true => Vec::new(),
            false => self.volume.checkpoints.orphans.all().into_iter().map(Nid).collect(),
        };
        let orphans = encode_orphans(&orphans);
        let written: u32 = DATA_LOGS.iter().map(|log| segments.log(*log).written()).sum();
        let compact = compact_blocks(written as usize);
        let umount = self.reason == Reason::Umount;
        let plan = PackPlan::new(&self.volume.mount.layout, orphans.len() as u32, compact, umount);
        let plan =
            plan.ok_or_else(|| corrupt("checkpoint pack", "more orphans than it has room for"))?;
        let mut checkpoint = self.next_checkpoint(&segments, version);
        checkpoint.next_free_nid = Nid(self.volume.nodes.free.borrow().peek().unwrap_or(0));
        plan.note(&mut checkpoint, umount);
        if !orphans.is_empty() {
            checkpoint.ckpt_flags |= CP_ORPHAN_PRESENT;
        }
        let number = 1 - self.volume.checkpoints.pack.get();
        let has_bits = umount && nat.has_bits();
        let bits_at = self.volume.mount.layout.nat_bits(number, plan.blocks()).filter(|_| has_bits);
        if bits_at.is_some() {
            checkpoint.ckpt_flags |= CP_NAT_BITS;
        }
        let mut blocks: Vec<Box<Block>> =
            (0..plan.blocks()).map(|_| Box::new([0; BLOCK_BYTES])).collect();
        for (block, orphans) in blocks[plan.orphans.start as usize..].iter_mut().zip(&orphans) {
            **block = *orphans;
        }
        let data = plan.data.start as usize..plan.data.end as usize;
        self.encode_data_summaries(&segments, plan.compact, &mut blocks[data]);
        for (block, log) in
            blocks[plan.nodes.start as usize..plan.last as usize].iter_mut().zip(NODE_LOGS)
        {
            segments.log(log).summary.encode(&mut block[..]);
        }
        let sit_bitmap = segments.version_bitmap().as_bytes();
        put(&mut blocks, checkpoint.sit_bitmap(&self.volume.mount.layout).start, sit_bitmap);
        put(
            &mut blocks,
            checkpoint.nat_bitmap(&self.volume.mount.layout).start,
            nat.version_bitmap().as_bytes(),
        );
        let crc = checkpoint.encode(&mut blocks[0][..]);
        let first = blocks[0].clone();
        if let Some(last) = blocks.last_mut() {
            *last = first;
        }
        let bits = bits_at.zip(nat.bits_for(NatBits::version_of(version, crc)));
        let bits = bits.map_or_else(Vec::new, |(at, bits)| {
            let bytes = bits.to_bytes(&self.volume.mount.layout);
            let blocks = bytes.as_chunks::<BLOCK_BYTES>().0.iter().map(|block| Box::new(*block));
            (at.0..).map(BlockAddr).zip(blocks).collect()
        });
        let start = self.volume.mount.layout.pack(number).0;
        Ok(Pack { checkpoint, crc, start, blocks, bits })
    }

    /// The checkpoint block, but for what the plan of its pack says.
    fn next_checkpoint(&self, segments: &Segments, version: u64) -> Checkpoint {
        let mut checkpoint = self.volume.checkpoints.last.borrow().clone();
        checkpoint.checkpoint_ver = version;
        checkpoint.valid_block_count = self.volume.nodes.space.valid_blocks();
        checkpoint.valid_node_count = self.volume.nodes.space.valid_nodes();
        checkpoint.valid_inode_count = self.volume.nodes.space.valid_inodes();
        checkpoint.free_segment_count = segments.segments_without_blocks();
        checkpoint.elapsed_time = self.volume.checkpoints.mounted_time();
        let stale =
            if self.volume.mount.omits(OmittedRule::StaleNatBits) { 0 } else { CP_NAT_BITS };
        checkpoint.ckpt_flags &= !(CP_ORPHAN_PRESENT | CP_NOCRC_RECOVERY | CP_TRIMMED | stale);
        checkpoint.ckpt_flags |= CP_CRC_RECOVERY;
        checkpoint.alloc_type = [ALLOC_LFS; 16];
        for log in SegmentType::ALL {
            let curseg = segments.log(log);
            let (segno, blkoff) = (curseg.segment, curseg.next as u16);
            let position = LogPosition { segno, blkoff, ssr: curseg.ssr };
            checkpoint.set_log(log, position);
        }
        checkpoint
    }

    /// Summaries of the data logs, with the journals.
    fn encode_data_summaries(&self, segments: &Segments, compact: bool, blocks: &mut [Box<Block>]) {
        let nat = self.volume.nodes.nat.borrow();
        if compact {
            let entries = DATA_LOGS.map(|log| {
                let curseg = segments.log(log);
                curseg.summary.entries[..curseg.written() as usize].to_vec()
            });
            let summaries = CompactSummaries {
                nat: nat.journal().clone(),
                sit: segments.journal().clone(),
                entries,
            };
            let mut bytes = vec![0; blocks.len() * BLOCK_BYTES];
            summaries.encode(&mut bytes);
            for (block, bytes) in blocks.iter_mut().zip(bytes.chunks_exact(BLOCK_BYTES)) {
                block.copy_from_slice(bytes);
            }
            return;
        }
        for (block, log) in blocks.iter_mut().zip(DATA_LOGS) {
            let mut summary: SummaryBlock = segments.log(log).summary.clone();
            match log {
                SegmentType::HotData => nat.journal().encode(&mut summary.journal[..]),
                SegmentType::ColdData => segments.journal().encode(&mut summary.journal[..]),
                _ => {}
            }
            summary.encode(&mut block[..]);
        }
    }
}

/// Writes bytes over blocks that follow each other.
fn put(blocks: &mut [Box<Block>], at: usize, bytes: &[u8]) {
    for (index, byte) in (at..).zip(bytes) {
        if let Some(block) = blocks.get_mut(index / BLOCK_BYTES) {
            block[index % BLOCK_BYTES] = *byte;
        }
    }
}
