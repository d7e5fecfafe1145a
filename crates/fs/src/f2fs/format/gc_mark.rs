//! The mark: while blocks of the GC journal may count, both copies of the superblock keep kernels and
//! fsck.f2fs from the volume, which only a replay makes whole.
//!
//! - It is a block size that none of them takes ([`MARKED_LOG_BLOCKSIZE`]); docs/formats/f2fs.md has what
//!   else was tried, and the order in which the copies are written. The record's state says the same: a
//!   copy that has one and not the other was cut in the midst of its write, and is not sound.
//! - [`mark`] and [`unmark`] are functions of the bytes of one copy, and each undoes the other.

use super::error::{FormatError, Place};
use super::gc_record::{GcJournalFormat, GcJournalRecord, MARKED_LOG_BLOCKSIZE};
use super::superblock::{LOG_BLOCKSIZE, Superblock};

impl Superblock {
    /// Whether two copies say the same, but for a mark that one of them may have, and the checksum over it.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let plain = |sb: &Self| Self { crc: 0, ..sb.with_mark(None) };
        match (self.is_marked(), other.is_marked()) {
            (true, false) => plain(self) == Self { crc: 0, ..other.clone() },
            (false, true) => plain(other) == Self { crc: 0, ..self.clone() },
            _ => self == other,
        }
    }

    /// The superblock with this mark, or with none. It has a GC journal.
    fn with_mark(&self, live: Option<GcJournalFormat>) -> Self {
        let mut sb = self.clone();
        sb.log_blocksize = if live.is_some() { MARKED_LOG_BLOCKSIZE } else { LOG_BLOCKSIZE };
        let state = live.map_or(0, GcJournalFormat::state);
        sb.gc_journal = GcJournalRecord { state, ..self.gc_journal }.sealed();
        sb
    }
}

/// Changes the mark of a copy, whose checksum goes with it.
fn change(bytes: &mut [u8], copy: u32, live: Option<GcJournalFormat>) -> Result<(), FormatError> {
    let sb = Superblock::parse(bytes, copy)?;
    if sb.check_gc_journal(copy)?.is_none() {
        let what = "volume without a GC journal".to_owned();
        return Err(FormatError::Incompatible { place: Place::Superblock(copy), what });
    }
    sb.with_mark(live).encode(bytes);
    Ok(())
}

/// Marks a copy of the superblock, 3,072 bytes: blocks of this format may count from now on. A copy that is
/// marked names the format then.
///
/// # Errors
/// A copy that is not sound, or of a volume without a GC journal; nothing is changed.
pub fn mark(bytes: &mut [u8], copy: u32, format: GcJournalFormat) -> Result<(), FormatError> {
    change(bytes, copy, Some(format))
}

/// Takes the mark off a copy of the superblock, 3,072 bytes: no block counts any more. Nothing happens to a
/// copy without a mark.
///
/// # Errors
/// A copy that is not sound, or of a volume without a GC journal; nothing is changed.
pub fn unmark(bytes: &mut [u8], copy: u32) -> Result<(), FormatError> {
    change(bytes, copy, None)
}

/// Whether the 3,072 bytes are a sound copy of the superblock with a mark.
#[must_use]
pub fn is_marked(bytes: &[u8]) -> bool {
    Superblock::parse(bytes, 0).is_ok_and(|sb| sb.is_marked())
}

#[cfg(test)]
mod tests {
    use super::super::gc_record::{RECORD_AT, RECORD_BYTES};
    use super::super::{
        BlockAddr, Feature, Features, GC_JOURNAL_MAGIC, Nid, SUPERBLOCK_BYTES, SUPERBLOCK_CRC_AT,
        SUPERBLOCK_MAGIC,
    };
    use super::*;
    use crate::f2fs::format::GC_JOURNAL_BLOCKS;
    use proptest::prelude::*;

    /// Where segments of the volume under test end, and the area begins.
    const START: u32 = 5120 + 100 * 512;

    /// A volume of 100 main segments, one for the GC journal, and 7 blocks more.
    fn superblock(checksum: bool) -> Superblock {
        let mut sb = Superblock::empty();
        sb.magic = SUPERBLOCK_MAGIC;
        [sb.log_sectorsize, sb.log_sectors_per_block, sb.log_blocksize] = [9, 3, 12];
        [sb.log_blocks_per_seg, sb.segs_per_sec, sb.secs_per_zone] = [9, 1, 1];
        sb.block_count = u64::from(START + 512 + 7);
        [sb.section_count, sb.segment_count, sb.segment_count_main] = [100, 109, 100];
        [sb.segment_count_ckpt, sb.segment_count_sit] = [2, 2];
        [sb.segment_count_nat, sb.segment_count_ssa] = [4, 1];
        [sb.segment0_blkaddr, sb.cp_blkaddr, sb.sit_blkaddr] = [512, 512, 1536].map(BlockAddr);
        [sb.nat_blkaddr, sb.ssa_blkaddr, sb.main_blkaddr] = [2560, 4608, 5120].map(BlockAddr);
        [sb.root_ino, sb.node_ino, sb.meta_ino] = [3, 1, 2].map(Nid);
        sb.gc_journal = GcJournalRecord::new(BlockAddr(START), GC_JOURNAL_BLOCKS);
        if checksum {
            sb.feature = Features::of(&[Feature::SB_CHECKSUM]).0;
            sb.checksum_offset = SUPERBLOCK_CRC_AT as u32;
        }
        sb
    }

    fn bytes(sb: &Superblock) -> Vec<u8> {
        let mut bytes = vec![0; SUPERBLOCK_BYTES];
        sb.encode(&mut bytes);
        bytes
    }

    /// A mark is read back, with and without `sb_checksum`, leaves everything else as it was, and is taken
    /// off without a trace; marking twice changes the format only.
    #[test]
    fn marks_are_undone() {
        use GcJournalFormat::{Paper, Safe};
        for checksum in [false, true] {
            let before = bytes(&superblock(checksum));
            let mut copy = before.clone();
            assert!(!is_marked(&copy));
            for format in [Paper, Safe] {
                mark(&mut copy, 0, format).expect("a mark");
                assert!(is_marked(&copy));
                let sb = Superblock::parse(&copy, 0).expect("sound for us");
                let area = sb.gc_journal().expect("an area");
                assert_eq!(area.live(), Some(format));
                assert_eq!(area.blocks(), BlockAddr(START)..BlockAddr(START + 512));
                assert_eq!(area.block(511), Some(BlockAddr(START + 511)));
                assert_eq!(area.block(512), None);
                let plain = Superblock::parse(&before, 0).expect("sound");
                assert!(sb.is_like(&plain) && plain.is_like(&sb) && sb.is_like(&sb));
                let other = Superblock { minor_ver: 9, ..plain.clone() };
                assert!(![&sb, &plain].iter().any(|sb| sb.is_like(&other) || other.is_like(sb)));
                assert_eq!(copy[0x10], 11);
                let differ = (0..SUPERBLOCK_BYTES).filter(|at| copy[*at] != before[*at]);
                let may = |at: usize| at == 0x10 || at == 0xbf4 || (0xbf8..0xc00).contains(&at);
                assert!(differ.clone().all(may) && differ.count() > 2);
            }
            unmark(&mut copy, 0).expect("no mark");
            assert_eq!(copy, before);
            unmark(&mut copy, 0).expect("no mark");
            assert_eq!(copy, before);
        }
    }

    /// Half a mark is no sound copy: neither the block size alone nor the state alone.
    #[test]
    fn torn_marks_are_refused() {
        let marked = superblock(false).with_mark(Some(GcJournalFormat::Safe));
        let no_size = Superblock { log_blocksize: 12, ..marked.clone() };
        let no_state = Superblock { gc_journal: superblock(false).gc_journal, ..marked };
        for (torn, at) in [(no_size, RECORD_AT + 0xc), (no_state, 0x10)] {
            let error = Superblock::parse(&bytes(&torn), 1).expect_err("refused");
            let expected = matches!(error, FormatError::Corrupt { place: Place::Superblock(1), byte, .. } if byte == at);
            assert!(expected, "{error}");
        }
    }

    /// A record that has not the volume's size, or contradicts itself, is no area, and the volume stays
    /// one; without an area there is no mark.
    #[test]
    fn records_that_do_not_fit_are_no_area() {
        type Change = fn(&mut Superblock);
        let changes: [(usize, Change); 6] = [
            (0x4, |sb| sb.gc_journal.start.0 -= 1),
            (0x4, |sb| sb.gc_journal.start.0 += 8),
            (0x4, |sb| sb.gc_journal.start.0 = u32::MAX),
            (0x4, |sb| sb.block_count -= 8),
            (0x8, |sb| sb.gc_journal.blocks = 511),
            (0xc, |sb| sb.gc_journal.state = 3),
        ];
        for (at, change) in changes {
            let mut sb = superblock(false);
            change(&mut sb);
            sb.gc_journal = sb.gc_journal.sealed();
            let mut copy = bytes(&sb);
            assert!(Superblock::parse(&copy, 0).is_ok_and(|read| read == sb));
            assert_eq!(sb.gc_journal(), None);
            let error = sb.check_gc_journal(1).expect_err("a reason");
            let expected =
                matches!(error, FormatError::Corrupt { byte, .. } if byte == RECORD_AT + at);
            assert!(expected, "{at:#x}: {error}");
            assert!(mark(&mut copy, 0, GcJournalFormat::Safe).is_err() && copy == bytes(&sb));
        }
        let mut sb = superblock(false);
        sb.gc_journal.start.0 += 1;
        assert!(matches!(sb.check_gc_journal(0), Err(FormatError::Checksum { .. })));
        let mut sb = superblock(false);
        // The last place that the volume has.
        sb.gc_journal = GcJournalRecord::new(BlockAddr(START + 7), GC_JOURNAL_BLOCKS);
        assert!(sb.gc_journal().is_some());
        sb.gc_journal = GcJournalRecord::default();
        assert_eq!(sb.check_gc_journal(0), Ok(None));
        let refused = mark(&mut bytes(&sb), 1, GcJournalFormat::Paper).expect_err("no area");
        assert_eq!(refused.to_string(), "superblock 1: volume without a GC journal");
    }

    proptest! {
        /// Whatever stands in the record and as size of blocks, the copy ends in a value or in an error,
        /// and is marked only if both say so.
        #[test]
        fn no_record_panics(
            record in any::<[u8; RECORD_BYTES]>(),
            magic in any::<bool>(),
            seal in any::<bool>(),
            small in proptest::option::of((0..40_u32, 511..514_u32, 0..4_u32)),
            log_blocksize in prop_oneof![Just(11), Just(12), any::<u32>()],
        ) {
            let mut sb = superblock(false);
            sb.log_blocksize = log_blocksize;
            sb.gc_journal = GcJournalRecord::read(&record);
            if let Some((start, blocks, state)) = small {
                let start = BlockAddr(START - 16 + start);
                sb.gc_journal = GcJournalRecord { start, blocks, state, ..sb.gc_journal };
            }
            if magic {
                sb.gc_journal.magic = GC_JOURNAL_MAGIC;
            }
            if seal {
                sb.gc_journal = sb.gc_journal.sealed();
            }
            let mut copy = bytes(&sb);
            let marked = is_marked(&copy);
            prop_assert!(!marked || log_blocksize == 11 && (1..3).contains(&sb.gc_journal.state));
            if marked {
                prop_assert!(unmark(&mut copy, 0).is_ok() && !is_marked(&copy) && copy[0x10] == 12);
            } else if Superblock::parse(&copy, 0).is_ok() {
                prop_assert_eq!(log_blocksize, 12);
            }
        }
    }
}
