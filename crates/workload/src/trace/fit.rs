//! From the bytes of a trace to the sectors of a device.
//!
//! Reads and writes are widened to whole sectors; trims are narrowed, so that nothing is forgotten
//! that the trace did not name. What lies beyond the device is an error or, when asked for, folded:
//! addresses are taken modulo the device's size.

use super::record::{Action, Record};
use crate::direction::Direction;
use nandscape_block::{DeviceCaps, Flags, Fua, Lba, SECTOR_BYTES};

/// What had to be changed to fit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FitCounts {
    /// Reads and writes widened to whole sectors.
    pub widened: u64,
    /// Bytes that this added.
    pub widened_bytes: u64,
    /// Trims narrowed to whole sectors.
    pub narrowed: u64,
    /// Trims without a whole sector, left out.
    pub dropped: u64,
    /// Requests folded onto the device.
    pub folded: u64,
}

/// Consecutive sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) lba: Lba,
    pub(crate) sectors: u32,
}

impl Extent {
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}

/// The extents of one request: none for a flush, two where it was folded over the device's end.
pub(crate) type Extents = [Option<Extent>; 2];

/// Fits requests to a device.
#[derive(Clone, Debug)]
pub(crate) struct Fitter {
    caps: DeviceCaps,
    fold: bool,
    pub(crate) counts: FitCounts,
}

impl Fitter {
    pub(crate) fn new(caps: &DeviceCaps, fold: bool) -> Self {
        Self { caps: caps.clone(), fold, counts: FitCounts::default() }
    }

    /// Where a request goes on the device; `None` when nothing of it is left.
    pub(crate) fn fit(&mut self, record: &Record) -> Result<Option<Extents>, String> {
        let Action::Io(direction) = record.action else { return Ok(Some([None, None])) };
        self.supported(direction, record.flags)?;
        let Some((first, end)) = self.whole_sectors(direction, record) else { return Ok(None) };
        if end <= self.caps.sectors {
            return Ok(Some([Some(extent(first, end - first)?), None]));
        }
        self.fold(first, end).map(Some)
    }

    fn supported(&self, direction: Direction, flags: Flags) -> Result<(), String> {
        if direction == Direction::Trim && self.caps.discard_sectors == 0 {
            return Err("the device does not support trims".to_owned());
        }
        if flags.has(Flags::FUA) && self.caps.fua == Fua::Refused {
            return Err("the device does not honour FUA".to_owned());
        }
        Ok(())
    }

    /// The first sector, and the one behind the last.
    fn whole_sectors(&mut self, direction: Direction, record: &Record) -> Option<(u64, u64)> {
        let (from, to) = (record.offset_bytes, record.offset_bytes + record.length_bytes);
        if direction == Direction::Trim {
            let (first, end) = (from.div_ceil(SECTOR_BYTES), to / SECTOR_BYTES);
            let changed = !from.is_multiple_of(SECTOR_BYTES) || !to.is_multiple_of(SECTOR_BYTES);
            self.counts.narrowed += u64::from(changed && first < end);
            self.counts.dropped += u64::from(first >= end);
            return (first < end).then_some((first, end));
        }
        let (first, end) = record.sectors();
        let added = (end - first) * SECTOR_BYTES - record.length_bytes;
        self.counts.widened += u64::from(added > 0);
        self.counts.widened_bytes += added;
        Some((first, end))
    }

    fn fold(&mut self, first: u64, end: u64) -> Result<Extents, String> {
        let device = self.caps.sectors;
        if !self.fold {
            return Err(format!(
                "the request ends in sector {} of 4 KiB, but the device has {device}; --fold takes \
                 addresses modulo its size",
                end - 1
            ));
        }
        let sectors = end - first;
        if sectors > device {
            return Err(format!("{sectors} sectors in one request, but the device has {device}"));
        }
        self.counts.folded += 1;
        let lba = first % device;
        let before_end = sectors.min(device - lba);
        let rest = sectors - before_end;
        let wrapped = (rest > 0).then(|| extent(0, rest)).transpose()?;
        Ok([Some(extent(lba, before_end)?), wrapped])
    }
}

fn extent(lba: u64, sectors: u64) -> Result<Extent, String> {
    let sectors = u32::try_from(sectors)
        .map_err(|_| format!("{sectors} sectors in one request are more than a device can take"))?;
    Ok(Extent { lba: Lba(lba), sectors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Nanos;

    fn fitter(fold: bool) -> Fitter {
        let caps = DeviceCaps { sectors: 100, discard_sectors: 1, ..DeviceCaps::default() };
        Fitter::new(&caps, fold)
    }

    fn record(direction: Direction, offset: u64, length: u64) -> Record {
        Record::io(Nanos::ZERO, direction, offset, length).unwrap()
    }

    fn at(lba: u64, sectors: u32) -> Option<Extent> {
        Some(Extent { lba: Lba(lba), sectors })
    }

    /// A transfer covers every byte that it was asked for; a trim none that it was not.
    #[test]
    fn transfers_grow_and_trims_shrink() {
        let mut fitter = fitter(false);
        let cases = [
            (Direction::Read, 0, 4096, Some([at(0, 1), None])),
            (Direction::Read, 512, 512, Some([at(0, 1), None])),
            (Direction::Write, 4095, 2, Some([at(0, 2), None])),
            (Direction::Trim, 4095, 4098, Some([at(1, 1), None])),
            (Direction::Trim, 1, 4096, None),
        ];
        for (direction, offset, length, expected) in cases {
            let record = record(direction, offset, length);
            assert_eq!(fitter.fit(&record).unwrap(), expected, "{record:?}");
        }
        let expected = FitCounts {
            widened: 2,
            widened_bytes: 3584 + 8190,
            narrowed: 1,
            dropped: 1,
            folded: 0,
        };
        assert_eq!(fitter.counts, expected);
    }

    /// Addresses beyond the device are refused unless folding was asked for, and then every sector
    /// lands at its address modulo the size.
    #[test]
    fn folding_is_asked_for() {
        let beyond = record(Direction::Write, 398 * 4096, 4 * 4096);
        let error = fitter(false).fit(&beyond).unwrap_err();
        assert!(error.contains("sector 401") && error.contains("--fold"), "{error}");
        let mut folding = fitter(true);
        assert_eq!(folding.fit(&beyond).unwrap(), Some([at(98, 2), at(0, 2)]));
        assert_eq!(folding.counts.folded, 1);
        assert!(folding.fit(&record(Direction::Write, 0, 101 * 4096)).is_err());
    }
}
