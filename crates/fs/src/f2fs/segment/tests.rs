//! Segments beside a model of single blocks.

use super::*;
use crate::f2fs::format::{
    BLOCKS_PER_SEGMENT, Nid, SIT_ENTRIES_PER_BLOCK, SUPERBLOCK_MAGIC, SummaryBlock, SummaryEntry,
    SummaryKind, Superblock,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SEGMENTS: u32 = 48;

/// A volume with a main area of [`SEGMENTS`] segments.
pub(in crate::f2fs) fn layout(per_section: u32) -> Layout {
    let mut sb = Superblock::empty();
    [sb.log_sectorsize, sb.log_sectors_per_block, sb.log_blocksize] = [9, 3, 12];
    [sb.log_blocks_per_seg, sb.segs_per_sec, sb.secs_per_zone] = [9, per_section, 1];
    [sb.root_ino, sb.node_ino, sb.meta_ino] = [3, 1, 2].map(Nid);
    sb.section_count = SEGMENTS / per_section;
    sb.segment_count_ckpt = 2;
    sb.segment_count_sit = 2;
    sb.segment_count_nat = 2;
    sb.segment_count_ssa = 1;
    sb.segment_count_main = SEGMENTS;
    sb.segment0_blkaddr = BlockAddr(512);
    sb.cp_blkaddr = BlockAddr(512);
    sb.sit_blkaddr = BlockAddr(512 * 3);
    sb.nat_blkaddr = BlockAddr(512 * 5);
    sb.ssa_blkaddr = BlockAddr(512 * 7);
    sb.main_blkaddr = BlockAddr(512 * 8);
    sb.segment_count = 7 + SEGMENTS;
    sb.magic = SUPERBLOCK_MAGIC;
    sb.block_count = u64::from(8 + SEGMENTS) * u64::from(BLOCKS_PER_SEGMENT);
    Layout::of(&sb).expect("a sound layout")
}

/// An empty main area, whose logs begin in the first section each.
fn empty(per_section: u32) -> Segments {
    let logs = SegmentType::ALL.map(|log| CurSeg {
        segment: SegNo(log.number() as u32 * per_section),
        next: 0,
        ssr: false,
        stale: false,
        summary: SummaryBlock::new(if log.is_node() {
            SummaryKind::Node
        } else {
            SummaryKind::Data
        }),
    });
    let mut entries = vec![SitEntry::default(); SEGMENTS as usize];
    for log in SegmentType::ALL {
        entries[log.number() * per_section as usize].segment_type = log;
    }
    let found = SegmentsAtMount {
        entries,
        logs,
        journal: SitJournal::default(),
        version_bitmap: VersionBitmap::from_bytes(&[0; 64]),
        slots: None,
    };
    Segments::new(layout(per_section), Capacity::whole(per_section), found)
}

/// Blocks that hold something, with what their summaries must say, and SIT blocks as they are on the device.
#[derive(Default)]
struct Model {
    valid: BTreeMap<BlockAddr, SummaryEntry>,
    /// Valid at the last checkpoint, or written since: they may not be written over.
    kept: BTreeSet<BlockAddr>,
    sit: BTreeMap<BlockAddr, Box<Block>>,
    /// Summaries of segments that were filled.
    ssa: BTreeMap<SegNo, SummaryBlock>,
    /// Whether logs fill holes of dirty segments, and how many blocks they did.
    threads: bool,
    threaded: u64,
    next: u32,
}

impl Model {
    fn write(&mut self, segments: &mut Segments, log: SegmentType, old: Option<usize>) {
        let old = old.filter(|_| !self.valid.is_empty()).map_or(BlockAddr::NULL, |choice| {
            *self.valid.keys().nth(choice % self.valid.len()).expect("one of them")
        });
        self.next += 1;
        let summary = SummaryEntry { nid: Nid(self.next), version: 0, ofs_in_node: 7 };
        if self.threads {
            self.prepare(segments, log);
        }
        let expected = segments.next_block(log);
        let was_ssr = segments.log(log).ssr;
        let Ok(allocated) = segments.allocate(log, old, summary, 5) else {
            assert_eq!(segments.free_segments(), 0, "space is left");
            return;
        };
        assert_eq!(allocated.at, expected);
        assert!(!self.kept.contains(&allocated.at), "a block of the last checkpoint");
        self.kept.insert(allocated.at);
        self.threaded += u64::from(was_ssr);
        assert_eq!(segments.threaded(), self.threaded);
        self.valid.remove(&old);
        assert!(self.valid.insert(allocated.at, summary).is_none(), "a valid block");
        let (at, next) = (allocated.at, allocated.next);
        for (segment, summaries) in allocated.into_full() {
            let (last, offset) = segments.layout.segment_of(at).expect("a block of the main area");
            assert_eq!((segment, summaries.entries[offset as usize]), (last, summary));
            self.ssa.insert(segment, summaries);
        }
        assert_eq!(next, segments.next_block(log));
    }

    /// As a volume does when few sections are free.
    fn prepare(&mut self, segments: &mut Segments, log: SegmentType) {
        let is_due = segments.is_filled_by(log, 1) && !segments.follows_in_section(log);
        if is_due && let Some(segment) = segments.choose_dirty(log, |_| false) {
            let summaries = self.ssa.get(&segment).expect("a segment that was filled").clone();
            segments.note_prepared(log, Some(summaries));
        }
    }

    fn checkpoint(&mut self, segments: &mut Segments) {
        for (at, bytes) in segments.flush_entries(false).unwrap() {
            self.sit.insert(at, bytes);
        }
        segments.release_prefree();
        self.kept = self.valid.keys().copied().collect();
    }

    /// What a mount would find of each segment.
    fn on_device(&self, segments: &Segments, segment: u32) -> SitEntry {
        let journal = segments.journal().entries.iter().find(|(known, _)| known.0 == segment);
        if let Some((_, entry)) = journal {
            return *entry;
        }
        let block = segment / SIT_ENTRIES_PER_BLOCK as u32;
        let at =
            segments.layout.current_sit_addr(block, segments.version_bitmap()).expect("a block");
        let index = segment as usize % SIT_ENTRIES_PER_BLOCK;
        let never_written = || empty(segments.layout.segments_per_section());
        self.sit.get(&at).map_or_else(
            || never_written().segments[segment as usize].entry(),
            |bytes| SitEntry::read_at(&bytes[..], index, SegNo(segment)).expect("a sound entry"),
        )
    }

    /// Blocks of one class in use, counted.
    fn in_use(&self, segments: &Segments, nodes: bool) -> Blocks {
        let mut blocks = Blocks::default();
        for (number, segment) in (0..).zip(&segments.segments) {
            let open = segments.logs.iter().find(|log| log.segment.0 == number);
            let written = open.map_or(BLOCKS_PER_SEGMENT, CurSeg::written);
            if segment.kind.is_node() == nodes && !segments.free.is_free(number) {
                blocks.in_use += u64::from(written);
                let of_segment = segments.layout.segment_blocks(SegNo(number));
                blocks.valid += self.valid.range(of_segment).count() as u64;
            }
        }
        blocks
    }

    fn check(&self, segments: &Segments) {
        let per_section = segments.layout.segments_per_section();
        let mut free = 0;
        for number in 0..SEGMENTS {
            let segment = segments.segment(SegNo(number)).expect("a segment");
            let blocks = segments.layout.segment_blocks(SegNo(number));
            let valid = self.valid.range(blocks).count();
            assert_eq!((segment.valid as usize, segment.map.count() as usize), (valid, valid));
            let is_free = segments.free.is_free(number);
            free += u32::from(is_free);
            let is_waiting = segments.prefree.contains(&number);
            assert_eq!(
                is_free || is_waiting,
                valid == 0 && !segments.is_open(SegNo(number)),
                "{number}"
            );
            assert!(!(is_free && is_waiting));
        }
        assert_eq!(segments.free_segments(), free);
        assert_eq!(segments.in_use(), [false, true].map(|nodes| self.in_use(segments, nodes)));
        for section in 0..SEGMENTS / per_section {
            let of = section * per_section..(section + 1) * per_section;
            let valid: u32 =
                of.map(|number| u32::from(segments.segments[number as usize].valid)).sum();
            assert_eq!(segments.section_valid(section), valid);
        }
        for log in SegmentType::ALL {
            let curseg = segments.log(log);
            for offset in 0..curseg.written() {
                let at = segments.layout.block(curseg.segment, offset).expect("a block");
                if let Some(summary) = self.valid.get(&at) {
                    assert_eq!(curseg.summary.entries[offset as usize], *summary);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Blocks are valid as they were written; no block that the last checkpoint has is written over; what a checkpoint
    /// writes is what memory has.
    #[test]
    fn segments_follow_their_blocks(
        per_section in prop_oneof![Just(1_u32), Just(2), Just(4)],
        threads: bool,
        steps in proptest::collection::vec((0..10_u8, 0..6_usize, any::<usize>(), 1..700_usize), 1..40),
    ) {
        let mut segments = empty(per_section);
        let mut model = Model { threads, ..Model::default() };
        for (what, log, choice, count) in steps {
            match what {
                0 => {
                    model.checkpoint(&mut segments);
                    for number in 0..SEGMENTS {
                        prop_assert_eq!(
                            model.on_device(&segments, number),
                            segments.segments[number as usize].entry()
                        );
                    }
                }
                1 | 2 => {
                    for _ in 0..count.min(model.valid.len()) {
                        let at = *model.valid.keys().nth(choice % model.valid.len()).expect("one");
                        segments.invalidate(at).expect("a valid block");
                        model.valid.remove(&at);
                    }
                }
                _ => {
                    for step in 0..count {
                        let old = (what > 5).then_some(choice.wrapping_add(step * 31));
                        model.write(&mut segments, SegmentType::ALL[log], old);
                    }
                }
            }
            model.check(&segments);
        }
    }
}
