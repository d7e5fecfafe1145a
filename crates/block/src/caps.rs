//! What a device can do. Whatever it lacks it refuses with [`crate::BlockError::Unsupported`].
//!
//! A device that leaves a field at its default lacks what the field names, or has no such limit.

use crate::address::Lba;
use crate::region::{self, Region, RegionError, RegionKind};
use crate::zone::{ZoneId, ZoneLimits};
use nandscape_rt::Nanos;
use std::ops::Range;

/// Whether completed writes with FUA are durable by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fua {
    /// The device refuses the flag.
    #[default]
    Refused,
    /// The device honours the flag.
    Honoured,
}

/// How the host learns that migrations wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UpcallSignal {
    /// A flag on completions of other bios ([`DeviceCaps::raises_attention`]); without I/O the host learns nothing.
    #[default]
    Piggyback,
    /// The device answers [`crate::Op::AwaitUpcall`].
    Interrupt,
    /// The host asks with [`crate::Op::FetchUpcall`] once in so much time.
    Poll(Nanos),
}

/// How append-only and device-owned regions are written whose map has an entry per superblock (D2FS, FAST '25, "Coupled
/// Garbage Collection").
///
/// Each such region is divided into superblocks, from its first sector on. A superblock is written in order, from its
/// first sector on. It is written again when everything in it was discarded and no migration names it; the write of its
/// first sector begins it anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Superblocks {
    /// Sectors of a superblock.
    pub sectors: u32,
    /// Superblocks of a region that can be partly written at once. One more closes the one that was written least
    /// recently, which takes no more writes, as does everything after a power cut.
    pub open_max: u32,
}

/// Capabilities and limits of a device. Sizes in sectors of 4 KiB.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DeviceCaps {
    /// End of the address space: addresses are below it.
    pub sectors: u64,
    /// Sectors that may hold data at once; 0: as many as there are addresses. Less with virtual
    /// overprovisioning, where the address space is larger than the media. A region that is written at random counts as
    /// a whole, whatever it holds.
    pub live_sectors_max: u64,
    /// Parts of the address space in order of address, disjoint; empty: all of it is
    /// [`RegionKind::Random`].
    pub regions: Box<[Region]>,
    /// Number of placement handles; 0 means hints are ignored.
    pub placement_handles: u16,
    /// Sectors of an aligned write that survive a power cut whole or not at all.
    pub atomic_sectors: u32,
    /// Treatment of FUA.
    pub fua: Fua,
    /// Whether acknowledged writes may be lost without a flush.
    pub volatile_cache: bool,
    /// Discard granularity in sectors; 0 means discards are refused.
    pub discard_sectors: u32,
    /// Whether discarded sectors read as zeroes.
    pub discard_zeroes: bool,
    /// Whether narrower flush scopes than [`crate::FlushScope::All`] are honoured (else widened).
    pub scoped_flush: bool,
    /// Largest bio, in sectors.
    pub max_sectors: u32,
    /// Whether content is kept at all.
    pub keeps_content: bool,
    /// Whether [`crate::BlockDevice::attention`] may report anything but none.
    pub raises_attention: bool,
    /// How the host learns of migrations. Means something where [`DeviceCaps::has_upcalls`].
    pub upcall_signal: UpcallSignal,
    /// Superblocks of append-only and device-owned regions; none: sectors are written in any order.
    pub superblocks: Option<Superblocks>,
}

impl DeviceCaps {
    /// A conventional drive of this many sectors: writable at random behind a volatile cache, it
    /// honours FUA, discards single sectors, which then read as zeroes, keeps content, and bounds no bio.
    #[must_use]
    pub fn conventional(sectors: u64) -> Self {
        Self {
            sectors,
            atomic_sectors: 1,
            fua: Fua::Honoured,
            volatile_cache: true,
            discard_sectors: 1,
            discard_zeroes: true,
            keeps_content: true,
            ..Self::default()
        }
    }

    /// Sectors that may hold data at once.
    #[inline]
    #[must_use]
    pub const fn live_sectors(&self) -> u64 {
        match self.live_sectors_max {
            0 => self.sectors,
            most if most < self.sectors => most,
            _ => self.sectors,
        }
    }

    /// The regions in order of address; one [`RegionKind::Random`] where none are named.
    pub fn regions(&self) -> impl Iterator<Item = Region> + '_ {
        let whole = Region::new(0..self.sectors, RegionKind::Random);
        let whole = self.regions.is_empty().then_some(whole);
        whole.into_iter().chain(self.regions.iter().cloned())
    }

    /// The region that holds an address; none for an address that does not exist.
    #[must_use]
    pub fn region_of(&self, lba: Lba) -> Option<Region> {
        if self.regions.is_empty() {
            let whole = Region::new(0..self.sectors, RegionKind::Random);
            return (lba.0 < self.sectors).then_some(whole);
        }
        let next = self.regions.partition_point(|region| region.range.end <= lba.0);
        self.regions.get(next).filter(|region| region.range.contains(&lba.0)).cloned()
    }

    /// The sectors of the first region that is writable at random; empty without such a region.
    #[must_use]
    pub fn random_range(&self) -> Range<u64> {
        let random = self.regions().find(|region| region.kind == RegionKind::Random);
        random.map_or(0..0, |region| region.range)
    }

    /// Whether any region is append-only.
    #[must_use]
    pub fn has_append_only(&self) -> bool {
        self.regions.iter().any(|region| region.kind == RegionKind::Append)
    }

    /// First sector and limits of a zone; none if there is no such zone.
    #[must_use]
    pub fn zone(&self, zone: ZoneId) -> Option<(Lba, ZoneLimits)> {
        let mut index = u64::from(zone.0);
        for region in &self.regions {
            let zones = region.zones();
            match region.kind {
                RegionKind::Zones(limits) if index < zones => {
                    return Some((Lba(region.range.start + index * limits.zone_sectors), limits));
                }
                _ => index -= zones,
            }
        }
        None
    }

    /// The limits of each zoned region.
    pub fn zone_limits(&self) -> impl Iterator<Item = ZoneLimits> + '_ {
        self.regions.iter().filter_map(|region| match region.kind {
            RegionKind::Zones(limits) => Some(limits),
            _ => None,
        })
    }

    /// Whether any region is zoned.
    #[must_use]
    pub fn has_zones(&self) -> bool {
        self.zone_limits().next().is_some()
    }

    /// Whether the device moves data by itself, and reports it with upcalls.
    #[must_use]
    pub fn has_upcalls(&self) -> bool {
        self.regions.iter().any(|region| !region.kind.is_host_written())
    }

    /// Whether the regions are those of a device: in order, disjoint, within the address space,
    /// zones whole, and each device-owned region naming one that the host writes.
    ///
    /// # Errors
    /// The first region that breaks a rule.
    pub fn check_regions(&self) -> Result<(), RegionError> {
        region::check(&self.regions, self.sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONES: RegionKind = RegionKind::Zones(ZoneLimits {
        zone_sectors: 8,
        capacity: 6,
        max_open: 0,
        max_active: 0,
        append: false,
        write_sectors: 1,
    });

    fn with(regions: &[(Range<u64>, RegionKind)]) -> DeviceCaps {
        let regions = regions.iter().map(|(range, kind)| Region::new(range.clone(), *kind));
        DeviceCaps { sectors: 64, regions: regions.collect(), ..DeviceCaps::default() }
    }

    /// A device that names no regions has one, and all of it may hold data.
    #[test]
    fn no_regions_are_one() {
        let caps = DeviceCaps::conventional(64);
        let whole = Region::new(0..64, RegionKind::Random);
        assert_eq!(caps.regions().collect::<Vec<_>>(), std::slice::from_ref(&whole));
        assert_eq!((caps.region_of(Lba(63)), caps.region_of(Lba(64))), (Some(whole), None));
        assert_eq!((caps.random_range(), caps.live_sectors()), (0..64, 64));
        assert_eq!(caps.check_regions(), Ok(()));
    }

    /// An address belongs to the region around it, and to none in a gap.
    #[test]
    fn addresses_have_regions() {
        let caps = with(&[(0..8, RegionKind::Append), (16..24, RegionKind::Random)]);
        let index = |lba| {
            let region = caps.region_of(Lba(lba));
            region.and_then(|region| caps.regions().position(|other| other == region))
        };
        let found = [0, 7, 8, 15, 16, 23, 24].map(index);
        assert_eq!(found, [Some(0), Some(0), None, None, Some(1), Some(1), None]);
        assert_eq!(caps.random_range(), 16..24);
    }

    /// Zones are numbered across regions.
    #[test]
    fn zones_are_numbered_across_regions() {
        let caps = with(&[(0..16, ZONES), (16..20, RegionKind::Random), (24..40, ZONES)]);
        let starts: Vec<_> =
            (0..5).map(|zone| caps.zone(ZoneId(zone)).map(|(lba, _)| lba.0)).collect();
        assert_eq!(starts, [Some(0), Some(8), Some(24), Some(32), None]);
        assert_eq!(caps.zone(ZoneId(u32::MAX)), None);
    }

    /// The bound on live sectors never exceeds the addresses.
    #[test]
    fn live_sectors_are_bound_by_addresses() {
        let of = |live_sectors_max| {
            DeviceCaps { live_sectors_max, ..DeviceCaps::conventional(64) }.live_sectors()
        };
        assert_eq!([0, 40, 64, 65].map(of), [64, 40, 64, 64]);
    }

    /// Regions that cannot be those of a device are refused, each for its reason.
    #[test]
    fn wrong_regions_are_errors() {
        use RegionKind::{Append, DeviceOwned, Random};
        let broken = |of: u64, zone_sectors, capacity| {
            let limits = ZoneLimits { zone_sectors, capacity, ..ZoneLimits::default() };
            with(&[(0..of, RegionKind::Zones(limits))]).check_regions()
        };
        let refused = |regions: &[(Range<u64>, RegionKind)]| with(regions).check_regions();
        assert_eq!(refused(&[(0..8, Append), (8..16, DeviceOwned { of: 0 })]), Ok(()));
        assert_eq!(refused(&[(8..8, Random)]), Err(RegionError::Empty { index: 0 }));
        let order = Err(RegionError::Order { index: 1 });
        assert_eq!(refused(&[(0..8, Random), (7..16, Random)]), order);
        assert_eq!(refused(&[(8..16, Random), (0..8, Random)]), order);
        let beyond = Err(RegionError::Beyond { index: 0, end: 65, sectors: 64 });
        assert_eq!(refused(&[(0..65, Random)]), beyond);
        for (index, of) in [(0, 0), (0, 1), (0, 255)] {
            let source = Err(RegionError::Source { index, of });
            assert_eq!(refused(&[(0..8, DeviceOwned { of })]), source);
        }
        assert_eq!(broken(16, 8, 8), Ok(()));
        for (of, zone_sectors, capacity) in [(16, 0, 0), (15, 8, 8), (16, 8, 9), (16, 8, 0)] {
            let zones = Err(RegionError::Zones { index: 0 });
            assert_eq!(broken(of, zone_sectors, capacity), zones);
        }
    }
}
