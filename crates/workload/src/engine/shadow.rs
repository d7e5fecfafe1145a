//! What every sector ought to read as, for jobs with `verify`.
//!
//! A write of version `v` to sector `s` carries the tag `v << 34 | s`, so a tag says whose data it
//! is and which writing of it. The shadow remembers the version that each sector was last given.
//! A sector is not judged while that is uncertain: before this run wrote it, while a write to it is
//! under way, or after two writes to it were under way at once. Versions run on over all jobs and
//! wrap after 2^29 writes, never to 0.

use nandscape_block::{Lba, Tag};
use std::fmt;
use std::ops::Range;

/// Bits of a tag that name the sector.
const LBA_BITS: u32 = 34;
/// Bits of a tag that name the version.
const VERSION_BITS: u32 = 63 - LBA_BITS;
/// Devices up to this size are compared sector by sector.
pub(crate) const SECTORS_MAX: u64 = 1 << LBA_BITS;

/// The version of a write.
pub(crate) type Version = u32;

/// The version behind `version`.
#[inline]
pub(crate) fn next_version(version: Version) -> Version {
    (version + 1) & ((1 << VERSION_BITS) - 1) | Version::from(version + 1 == 1 << VERSION_BITS)
}

/// The tag of version `version` of the sector at `lba`; a run's further tags are its neighbours'.
#[inline]
pub(crate) fn tag(lba: Lba, version: Version) -> Tag {
    Tag::new(u64::from(version) << LBA_BITS | lba.0)
}

/// What a sector holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Zeroes: never written, or discarded.
    Zeroes,
    /// What this run wrote: the sector it was meant for, and which of the run's writes it was.
    Written {
        /// The sector that this content was written to.
        lba: Lba,
        /// Number of the write, from 1; 0 for what others wrote.
        version: u32,
    },
    /// Nothing that this run wrote.
    Foreign,
    /// The device replied without content.
    Missing,
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeroes => f.write_str("zeroes"),
            Self::Written { lba, version } => write!(f, "version {version} of {lba}"),
            Self::Foreign => f.write_str("foreign bytes"),
            Self::Missing => f.write_str("no content"),
        }
    }
}

/// What a tag says that it is.
pub(super) fn content(tag: Tag) -> Content {
    match tag.bits() {
        0 => Content::Zeroes,
        bits => Content::Written {
            lba: Lba(bits & (SECTORS_MAX - 1)),
            version: (bits >> LBA_BITS) as Version,
        },
    }
}

/// How sure a sector's content is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Certainty {
    /// No job of this run wrote it.
    #[default]
    Unknown,
    /// It holds its version.
    Written,
    /// It was discarded and reads as zeroes.
    Discarded,
    /// Two changes were under way at once, or a change failed: either content may be there.
    Torn,
}

#[derive(Clone, Copy, Default, Debug)]
struct Cell {
    version: Version,
    /// Changes under way.
    open: u16,
    certainty: Certainty,
}

/// One cell, of eight bytes, a sector of the device.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    cells: Box<[Cell]>,
    discard_zeroes: bool,
}

impl Shadow {
    pub(super) fn new(sectors: u64, discard_zeroes: bool) -> Self {
        Self { cells: vec![Cell::default(); sectors as usize].into(), discard_zeroes }
    }

    fn range(&mut self, lba: Lba, sectors: u32) -> &mut [Cell] {
        &mut self.cells[lba.0 as usize..][..sectors as usize]
    }

    /// A write or a discard was submitted; it makes `version`.
    pub(super) fn begin(&mut self, lba: Lba, sectors: u32, version: Version, discard: bool) {
        let certain = match (discard, self.discard_zeroes) {
            (false, _) => Certainty::Written,
            (true, true) => Certainty::Discarded,
            (true, false) => Certainty::Unknown,
        };
        for cell in self.range(lba, sectors) {
            cell.certainty = if cell.open > 0 { Certainty::Torn } else { certain };
            cell.open = cell.open.saturating_add(1);
            cell.version = version;
        }
    }

    /// That write or discard completed.
    pub(super) fn end(&mut self, lba: Lba, sectors: u32, failed: bool) {
        for cell in self.range(lba, sectors) {
            cell.open -= 1;
            if failed {
                cell.certainty = Certainty::Torn;
            }
        }
    }

    /// Whether any of the sectors is being changed.
    pub(super) fn is_busy(&mut self, lba: Lba, sectors: u32) -> bool {
        self.range(lba, sectors).iter().any(|cell| cell.open > 0)
    }

    /// What a read of `lba` must have brought, when it was submitted while nothing was under way
    /// there and `since` was the latest version; `None` when that cannot be said.
    pub(super) fn expected(&self, lba: Lba, since: Version) -> Option<Tag> {
        let cell = self.cells[lba.0 as usize];
        let newer = since.wrapping_sub(cell.version) & ((1 << VERSION_BITS) - 1);
        if cell.open > 0 || newer >= 1 << (VERSION_BITS - 1) {
            return None;
        }
        match cell.certainty {
            Certainty::Written => Some(tag(lba, cell.version)),
            Certainty::Discarded => Some(Tag::ZERO),
            Certainty::Unknown | Certainty::Torn => None,
        }
    }

    /// The first sectors within `range` that this run wrote, as far as one write did, and `most` of them: the
    /// first of them and how many.
    pub(super) fn next_written(&self, range: Range<u64>, most: u32) -> Option<(Lba, u32)> {
        let cells = &self.cells[range.start as usize..range.end as usize];
        let first = cells.iter().position(|cell| cell.certainty == Certainty::Written)?;
        let by_one_write = |cell: &&Cell| {
            (cell.certainty, cell.version) == (Certainty::Written, cells[first].version)
        };
        let sectors = cells[first..].iter().take(most as usize).take_while(by_one_write).count();
        Some((Lba(range.start + first as u64), sectors as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tag tells sector and version apart, also within a run, and is never the tag of zeroes.
    #[test]
    fn tags_name_sector_and_version() {
        let run = tag(Lba(100), 7);
        assert_eq!(content(run.plus(3)), Content::Written { lba: Lba(103), version: 7 });
        assert_eq!(content(Tag::ZERO), Content::Zeroes);
        assert_eq!(next_version((1 << VERSION_BITS) - 1), 1);
        assert_ne!(tag(Lba(0), next_version(0)), Tag::ZERO);
    }

    /// What one write left is found as a whole, and what others left of it.
    #[test]
    fn writes_are_found_as_they_were() {
        let mut shadow = Shadow::new(9, true);
        for (lba, sectors, version) in [(1, 4, 1), (3, 1, 2), (5, 2, 3)] {
            shadow.begin(Lba(lba), sectors, version, false);
            shadow.end(Lba(lba), sectors, false);
        }
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some((lba, sectors)) = shadow.next_written(from..9, 8) {
            found.push((lba.0, sectors));
            from = lba.0 + u64::from(sectors);
        }
        assert_eq!(found, [(1, 2), (3, 1), (4, 1), (5, 2)]);
        assert_eq!(shadow.next_written(0..9, 1), Some((Lba(1), 1)));
        assert_eq!(shadow.next_written(0..2, 8), Some((Lba(1), 1)));
        assert_eq!(shadow.next_written(7..9, 8), None);
    }

    /// Only what is certain is expected.
    #[test]
    fn uncertain_sectors_are_not_judged() {
        let mut shadow = Shadow::new(4, true);
        assert_eq!(shadow.expected(Lba(0), 9), None, "never written");
        shadow.begin(Lba(0), 2, 1, false);
        assert_eq!(shadow.expected(Lba(0), 1), None, "under way");
        shadow.end(Lba(0), 2, false);
        assert_eq!(shadow.expected(Lba(1), 1), Some(tag(Lba(1), 1)));
        shadow.begin(Lba(1), 1, 2, false);
        shadow.end(Lba(1), 1, false);
        assert_eq!(shadow.expected(Lba(1), 1), None, "written since the read was submitted");
        shadow.begin(Lba(1), 1, 3, false);
        shadow.begin(Lba(1), 1, 4, false);
        shadow.end(Lba(1), 1, false);
        shadow.end(Lba(1), 1, false);
        assert_eq!(shadow.expected(Lba(1), 4), None, "two at once");
        shadow.begin(Lba(0), 1, 5, true);
        shadow.end(Lba(0), 1, false);
        assert_eq!(shadow.expected(Lba(0), 5), Some(Tag::ZERO), "discarded");
    }
}
