//! Regions: parts of a device's address space, each with one rule for writes.
//!
//! Regions are in order of address and disjoint, lie within the device, and may leave gaps: an
//! address in a gap does not exist. Zones are numbered over all zoned regions, in order of address.

use crate::zone::ZoneLimits;
use std::ops::Range;
use thiserror::Error;

/// How the sectors of a region may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionKind {
    /// Anywhere, again and again.
    Random,
    /// At the write pointers of zones (NVMe ZNS).
    Zones(ZoneLimits),
    /// Anywhere, but only sectors without data: an address is discarded before it is written again
    /// (append-only space of a log-structured file system, as in IPLFS).
    Append,
    /// By the device alone, which moves data here and reports each move with an upcall (D2FS).
    DeviceOwned {
        /// Index of the region whose data the device moves here.
        of: u8,
    },
}

impl RegionKind {
    /// Whether the host may write.
    #[must_use]
    pub const fn is_host_written(self) -> bool {
        !matches!(self, Self::DeviceOwned { .. })
    }
}

/// A part of a device's address space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its sectors.
    pub range: Range<u64>,
    /// How they may be written.
    pub kind: RegionKind,
}

impl Region {
    /// A region.
    #[must_use]
    pub const fn new(range: Range<u64>, kind: RegionKind) -> Self {
        Self { range, kind }
    }

    /// Its zones: 0 for a region that is not zoned.
    #[must_use]
    pub fn zones(&self) -> u64 {
        match self.kind {
            RegionKind::Zones(limits) => {
                self.sectors().checked_div(limits.zone_sectors).unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Its length in sectors.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// Why regions cannot be those of a device.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum RegionError {
    /// A region without sectors.
    #[error("region {index} is empty")]
    Empty {
        /// Index of the region.
        index: usize,
    },
    /// Regions that overlap, or are not in order of address.
    #[error("region {index} begins before the end of the region that precedes it")]
    Order {
        /// Index of the later region.
        index: usize,
    },
    /// A region that the device does not hold.
    #[error("region {index} ends at sector {end}, but the device at sector {sectors}")]
    Beyond {
        /// Index of the region.
        index: usize,
        /// End of the region.
        end: u64,
        /// End of the device.
        sectors: u64,
    },
    /// Zones that do not fill their region, or have no capacity, or one larger than themselves, or
    /// are more than a [`crate::zone::ZoneId`] can number.
    #[error("region {index} is not a whole number of zones with a capacity within the zone")]
    Zones {
        /// Index of the region.
        index: usize,
    },
    /// A region of a kind that the device does not have.
    #[error("region {index} is of a kind that the device does not have")]
    Kind {
        /// Index of the region.
        index: usize,
    },
    /// A device-owned region without a region that it takes data of.
    #[error("region {index} takes data of region {of}, which the host does not write")]
    Source {
        /// Index of the device-owned region.
        index: usize,
        /// The region that it names.
        of: u8,
    },
}

/// Whether these can be the regions of a device of this many sectors.
pub(crate) fn check(regions: &[Region], sectors: u64) -> Result<(), RegionError> {
    let (mut end, mut zones) = (0, 0_u64);
    for (index, region) in regions.iter().enumerate() {
        if region.range.is_empty() {
            return Err(RegionError::Empty { index });
        }
        if region.range.start < end {
            return Err(RegionError::Order { index });
        }
        end = region.range.end;
        if end > sectors {
            return Err(RegionError::Beyond { index, end, sectors });
        }
        zones = zones.saturating_add(region.zones());
        check_kind(regions, index, zones)?;
    }
    Ok(())
}

/// Whether a region's kind fits the region; `zones` counts the zones up to its end.
fn check_kind(regions: &[Region], index: usize, zones: u64) -> Result<(), RegionError> {
    let region = &regions[index];
    match region.kind {
        RegionKind::Random | RegionKind::Append => Ok(()),
        RegionKind::Zones(limits) => {
            let whole = region.sectors().checked_rem(limits.zone_sectors) == Some(0);
            let holds = (1..=limits.zone_sectors).contains(&limits.capacity);
            let numbered = zones <= u64::from(u32::MAX);
            if whole && holds && numbered { Ok(()) } else { Err(RegionError::Zones { index }) }
        }
        RegionKind::DeviceOwned { of } => match regions.get(usize::from(of)) {
            Some(source) if source.kind.is_host_written() => Ok(()),
            _ => Err(RegionError::Source { index, of }),
        },
    }
}
