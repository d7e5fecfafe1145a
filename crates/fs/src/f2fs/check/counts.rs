//! What was reached against the NAT, the SIT and the counts of the checkpoint (`fsck_verify` of
//! fsck.f2fs).

use super::checker::Checker;
use crate::f2fs::format::*;

impl Checker {
    /// Nothing is in use that nothing leads to, and the checkpoint counts what is.
    pub(super) fn check_counts(&mut self) {
        for (nid, entry) in &self.nat {
            if !self.reached.contains(nid) {
                let what =
                    format!("is in use, block {}, but nothing refers to it", entry.block_addr.0);
                self.report.find(Place::NatEntry(*nid), what);
            }
        }
        let logs = SegmentType::ALL.map(|log| self.image.checkpoint.log(log).segno);
        let mut free = 0;
        for (segno, segment) in (0..).map(SegNo).zip(&self.segments) {
            let mut unused = segment.map;
            let mut next = segment.reached.next_set(0);
            while let Some(bit) = next {
                unused.clear(bit);
                next = segment.reached.next_set(bit + 1);
            }
            if unused.count() != 0 {
                let what = format!("{} valid blocks that nothing refers to", unused.count());
                self.report.find(Place::Segment(segno), what);
            }
            free += u64::from(segment.map.count() == 0 && !logs.contains(&segno));
        }
        let zoned = Features(self.image.sb.feature).has(Feature::BLKZONED);
        let checkpoint = &self.image.checkpoint;
        let inodes = self.inodes.len() as u64;
        let counts = [
            ("valid blocks", checkpoint.valid_block_count, self.blocks),
            ("nodes", checkpoint.valid_node_count.into(), self.reached.len() as u64),
            ("nodes of the NAT", checkpoint.valid_node_count.into(), self.nat.len() as u64),
            ("inodes", checkpoint.valid_inode_count.into(), inodes),
            ("free segments", checkpoint.free_segment_count.into(), free),
        ];
        for (what, says, counted) in counts {
            // A zone may end before its last segments, which no file tells.
            let may_end = what == "free segments" && says < counted && zoned;
            if says != counted && !may_end {
                let what = format!("{what}: {says} recorded, {counted} counted");
                self.report.find(Place::Checkpoint(self.image.pack), what);
            }
        }
    }
}
