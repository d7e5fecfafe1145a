//! SIT and NAT as they stand, the logs, and the NAT bits.

use super::checker::Checker;
use crate::f2fs::format::*;
use crate::f2fs::raw::RawError;
use std::collections::BTreeMap;

/// Entries 1 and 2 of the NAT stand for the inodes of nodes and of metadata, which have no block of their
/// own: they say block 1.
const NO_BLOCK_OF_OWN: BlockAddr = BlockAddr(1);

impl Checker {
    /// Reads the entries of all segments: the table's, then those of the journal over them.
    pub(super) async fn load_sit(&mut self) -> Result<(), RawError> {
        let segments = self.image.layout.main_segments();
        let per_block = SIT_ENTRIES_PER_BLOCK as u32;
        for block in 0..segments.div_ceil(per_block) {
            let read = self.image.sit_block(block).await;
            let Some(bytes) = self.passed(read)? else { continue };
            let first = block * per_block;
            for (index, segno) in (first..segments.min(first + per_block)).enumerate() {
                let bytes = bytes.get(index * SIT_ENTRY_BYTES..).unwrap_or_default();
                self.note_segment(SegNo(segno), bytes);
            }
        }
        for (segno, entry) in self.image.sit_journal.entries.clone() {
            let mut bytes = [0; SIT_ENTRY_BYTES];
            entry.encode(&mut bytes);
            match self.image.layout.has_segment(segno) {
                true => self.note_segment(segno, &bytes),
                false => {
                    self.report.find(Place::Segment(segno), "is in the journal, and not there")
                }
            }
        }
        Ok(())
    }

    fn note_segment(&mut self, segno: SegNo, bytes: &[u8]) {
        if let Err(error) = SitEntry::parse(bytes, segno) {
            self.report.unsound(&error);
        }
        let raw = RawSitEntry::read(bytes);
        if let Some(segment) = self.segments.get_mut(segno.0 as usize) {
            segment.map = ValidMap::from_bytes(&raw.valid_map);
            segment.log = SegmentType::of(u32::from(raw.vblocks) >> 10);
        }
    }

    /// Reads the entries of all nodes: the table's, then those of the journal over them.
    pub(super) async fn load_nat(&mut self) -> Result<(), RawError> {
        for block in 0..self.image.layout.nat_blocks() {
            let read = self.image.nat_block(block).await;
            let Some(bytes) = self.passed(read)? else { continue };
            let first = block * NAT_ENTRIES_PER_BLOCK as u32;
            if *bytes == [0; BLOCK_BYTES] && block != 0 {
                continue;
            }
            for index in 0..NAT_ENTRIES_PER_BLOCK {
                let entry = NatEntry::read_at(&bytes[..], index);
                self.note_node(Nid(first + index as u32), entry);
            }
        }
        // Of two entries of a node in the journal the first one counts.
        for (nid, entry) in self.image.nat_journal.entries.clone().into_iter().rev() {
            self.nat.remove(&nid);
            match nid.0 < self.image.layout.nids() {
                true => self.note_node(nid, entry),
                false => self.report.find(Place::NatEntry(nid), "is in the journal, and not there"),
            }
        }
        Ok(())
    }

    fn note_node(&mut self, nid: Nid, entry: NatEntry) {
        let place = Place::NatEntry(nid);
        let sb = &self.image.sb;
        if nid == sb.node_ino || nid == sb.meta_ino {
            if entry.block_addr != NO_BLOCK_OF_OWN {
                self.report.find(place, "reserved node is not at block address 1");
            }
            return;
        }
        if entry.block_addr == BlockAddr::NULL {
            return;
        }
        if nid.0 == 0 {
            self.report.find(place, "is of no node, and has a block");
            return;
        }
        if entry.ino.0 == 0 {
            self.report.find(place, "has a block and no inode");
        }
        self.nat.insert(nid, entry);
    }

    /// Each log writes to a segment of its type, whose summary is of its kind, and at a place that is free;
    /// of one that appends, what follows is free, too.
    pub(super) fn check_logs(&mut self) {
        for log in SegmentType::ALL {
            let LogPosition { segno, blkoff, ssr } = self.image.checkpoint.log(log);
            let place = Place::Segment(segno);
            let kind = if log.is_node() { SummaryKind::Node } else { SummaryKind::Data };
            let summary = self.image.summaries.get(log.number()).and_then(Option::as_ref);
            if summary.is_some_and(|summary| summary.kind != kind) {
                self.report.find(place, "is written by a log, whose summary is of the other kind");
            }
            let Some(segment) = self.segments.get(segno.0 as usize).copied() else { continue };
            if segment.log != Some(log) {
                self.report.find(place, "is written by a log, and of another type");
            }
            let next = u32::from(blkoff);
            if segment.map.get(next) {
                self.report.find(place, "is written by a log, whose next block is not free");
            } else if !ssr && segment.map.next_set(next).is_some() {
                self.report
                    .find(place, "is written by a log that appends, and has blocks beyond it");
            }
        }
    }

    /// NAT bits that the kernel would believe say what the NAT says.
    pub(super) async fn check_nat_bits(&mut self) -> Result<(), RawError> {
        let image = &self.image;
        // With entries in the journal, f2fs-tools does not look at them; neither does the kernel need them.
        if !image.checkpoint.has(CP_NAT_BITS) || !image.nat_journal.entries.is_empty() {
            return Ok(());
        }
        let place = Place::NatBits(image.pack);
        let Some(first) = image.layout.nat_bits(image.pack, image.plan.blocks()) else {
            self.report.find(place, "have no room in their pack");
            return Ok(());
        };
        let blocks = image.layout.nat_bits_blocks();
        let bytes = image.reader().blocks(first.0.into(), blocks).await?;
        let parsed = NatBits::parse(&bytes, &image.layout, image.pack).map_err(RawError::from);
        let Some(bits) = self.passed(parsed)? else { return Ok(()) };
        let checkpoint_ver = self.image.checkpoint.checkpoint_ver;
        let version = NatBits::version_of(checkpoint_ver, self.image.checkpoint_crc);
        // Bits of another checkpoint are not believed.
        if bits.version != version {
            return Ok(());
        }
        let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
        // Numbers 0, 1 and 2 are no node's, and taken.
        *taken.entry(0).or_default() += 3;
        for nid in self.nat.keys() {
            *taken.entry(self.image.layout.nat_place(*nid).0).or_default() += 1;
        }
        for block in 0..self.image.layout.nat_blocks() {
            let taken = taken.get(&block).copied().unwrap_or_default();
            let (empty, full) = (taken == 0, taken >= NAT_ENTRIES_PER_BLOCK);
            if (bits.is_empty(block), bits.is_full(block)) != (empty, full) {
                self.report.find(place, format!("do not say what NAT block {block} holds"));
            }
        }
        Ok(())
    }
}
