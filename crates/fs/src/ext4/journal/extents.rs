//! Where the log lies on the device: the extents of the journal's file.

use super::error::{JournalError, LogPlace};
use nandscape_block::Lba;
use std::ops::Range;

/// The log's blocks in order, as ranges of device blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogExtents {
    /// First log block and device blocks of each extent, by log block.
    extents: Vec<(u64, Range<u64>)>,
    blocks: u64,
}

impl LogExtents {
    /// The log that lies in these ranges of device blocks, one after the other.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`] when a range is empty, or there is none.
    pub fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Result<Self, JournalError> {
        let mut log = Self { extents: Vec::new(), blocks: 0 };
        for range in ranges {
            let length = range.end.checked_sub(range.start).filter(|&length| length > 0);
            let end = length.and_then(|length| log.blocks.checked_add(length));
            let end = end.ok_or(corrupt("an empty extent"))?;
            log.extents.push((log.blocks, range));
            log.blocks = end;
        }
        if log.blocks == 0 { Err(corrupt("none")) } else { Ok(log) }
    }

    /// Blocks in all.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The device blocks of all extents, in the order of the log.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.extents.iter().map(|(_, range)| range.clone())
    }

    /// The device's address of a log block, and how many blocks from it on lie there in one piece.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`] when the log has no such block.
    pub fn locate(&self, block: u32) -> Result<(Lba, u64), JournalError> {
        let block = u64::from(block);
        if block >= self.blocks {
            return Err(corrupt("a log block beyond them"));
        }
        let index = self.extents.partition_point(|(first, _)| *first <= block) - 1;
        let (first, range) = &self.extents[index];
        let lba = range.start + (block - first);
        Ok((Lba(lba), range.end - lba))
    }
}

const fn corrupt(what: &'static str) -> JournalError {
    JournalError::Corrupt { place: LogPlace::Extents, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log blocks follow the extents in their order, and end with them.
    #[test]
    fn blocks_follow_extents() {
        let log = LogExtents::new([100..110, 50..51, 200..300]).unwrap();
        assert_eq!(log.blocks(), 111);
        assert_eq!(log.locate(0), Ok((Lba(100), 10)));
        assert_eq!(log.locate(9), Ok((Lba(109), 1)));
        assert_eq!(log.locate(10), Ok((Lba(50), 1)));
        assert_eq!(log.locate(12), Ok((Lba(201), 99)));
        assert!(log.locate(111).is_err());
    }

    /// Extents that contradict themselves are no log.
    #[test]
    fn bad_extents_are_refused() {
        let empty = 5..5;
        assert!(LogExtents::new([]).is_err());
        assert!(LogExtents::new([1..2, empty]).is_err());
        assert!(LogExtents::new([Range { start: 7, end: 5 }]).is_err());
        assert!(LogExtents::new([0..u64::MAX, 0..u64::MAX]).is_err());
    }
}
