//! The SSD of IPLFS (USENIX ATC '22, "IPLFS: Log-Structured File System without Garbage Collection"): an address space much
//! larger than its media, a page-mapped region for metadata, and append-only regions that interval maps serve. Collection
//! changes places and no addresses. Everything else is a conventional SSD.
//!
//! Defaults are those of the port to NVMeVirt that comes with D2FS (FAST '25): addresses of 32 bits, of which three choose
//! the partition, and collection at ten free lines.
//!
//! Sizes hold what the regions need beside a conventional SSD:
//! - the instance of an append-only sector is chosen so that none holds more than its share of live sectors, but for
//!   the metadata region, which is counted once more;
//! - where every other live sector is discarded, there is a run of discarded sectors beside each live one, and a trim record
//!   for it: twice in what one compaction of records left and the records since, once in what the next writes.

use super::config::{Config as PagesConfig, Sizes};
use super::region::interval::MapShape;
use super::region::partitions::{Division, LOGS, Partitions};
use super::{DeviceFtl, IntervalReport, Plan, caps};
use crate::common::l2p::entry_bytes;
use crate::common::trims::TRIMS_PER_SECTOR;
use crate::error::FtlError;
use crate::kind::FtlRun;
use nandscape_block::{DeviceCaps, Region, RegionKind, SECTOR_BYTES};
use nandscape_media::{Geometry, LinkTiming, OpenChannel};
use nandscape_rt::Nanos;

/// The SSD of IPLFS.
pub type IntervalFtl<M> = DeviceFtl<M, Partitions>;

/// All choices of an SSD of IPLFS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// log2 of the sectors of a partition, from 8 to 29: 29 bits of 32-bit addresses.
    pub partition_bits: u32,
    /// Bytes of the metadata region; 0: a 32nd of the media.
    pub random_bytes: u64,
    /// log2 of the sectors of a map node (leaf), from 6 to 15.
    pub leaf_bits: u32,
    /// log2 of the leaves of a middle node, from 1 to 16.
    pub middle_bits: u32,
    /// Shortest hole, in sectors, that divides a map node in ranges when it is compacted.
    pub hole_sectors: u32,
    /// Time between two compactions of maps; at least a microsecond.
    pub compact_period_ns: u64,
    /// Bytes of maps that the firmware reads or copies per second while it compacts; 0: compaction takes no time.
    pub compact_bytes_per_s: u64,
    /// What it has of a conventional SSD. Mapping units are of 4 KiB.
    pub pages: PagesConfig,
}

impl Default for Config {
    fn default() -> Self {
        let MapShape { leaf_bits, middle_bits, hole_min } = MapShape::default();
        Self {
            partition_bits: 29,
            random_bytes: 0,
            leaf_bits,
            middle_bits,
            hole_sectors: hole_min,
            compact_period_ns: 1_000_000_000,
            compact_bytes_per_s: 1_000_000_000,
            pages: PagesConfig { gc_lines: 10, ..PagesConfig::default() },
        }
    }
}

fn refuse<T>(key: &'static str, why: String) -> Result<T, FtlError> {
    Err(FtlError::Config { key, why })
}

/// Refuses a choice outside of a range.
fn within(key: &'static str, value: u64, least: u64, most: u64) -> Result<(), FtlError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    refuse(key, format!("{value}: must be {least} to {most}"))
}

impl Config {
    const fn shape(&self) -> MapShape {
        let Self { leaf_bits, middle_bits, hole_sectors: hole_min, .. } = *self;
        MapShape { leaf_bits, middle_bits, hole_min }
    }

    fn check(&self, geometry: &Geometry) -> Result<(), FtlError> {
        within("ftl.map.partition", self.partition_bits.into(), 8, 29)?;
        within("ftl.map.node", self.leaf_bits.into(), 6, 15)?;
        within("ftl.map.middle", self.middle_bits.into(), 1, 16)?;
        within("ftl.map.hole", self.hole_sectors.into(), 1, u64::MAX)?;
        within("ftl.map.compact_period", self.compact_period_ns, 1_000, u64::MAX)?;
        if u64::from(self.pages.map_unit_bytes) != SECTOR_BYTES {
            return refuse(
                "ftl.map_unit",
                "must be 4KiB: interval maps have an entry per sector".into(),
            );
        }
        if entry_bytes(geometry.ppa_end()) != 4 {
            return refuse(
                "ftl.kind",
                "interval maps have entries of 31 bits, and media are larger".into(),
            );
        }
        Ok(())
    }

    /// Sectors of the metadata region.
    fn random_sectors(&self, physical: u64) -> Result<u64, FtlError> {
        let sectors = match self.random_bytes / SECTOR_BYTES {
            0 => physical / 32,
            sectors => sectors,
        };
        let step = u64::from(self.pages.instances);
        let sectors = sectors.div_ceil(step).max(1) * step;
        within("ftl.random.size", sectors, 1, 1 << self.partition_bits)?;
        Ok(sectors)
    }

    /// The sizes of a device of this shape, and the sectors of its metadata region.
    ///
    /// # Errors
    /// The key of the choice that does not fit, and why.
    pub fn sizes(&self, geometry: &Geometry) -> Result<(Sizes, u64), FtlError> {
        self.check(geometry)?;
        let pages = self.pages.sizes_unchecked(geometry)?;
        let random = self.random_sectors(pages.physical_sectors)?;
        let (live, instances) = (pages.logical_sectors, u64::from(self.pages.instances));
        let sizes = Sizes {
            address_sectors: (LOGS + 1) << self.partition_bits,
            run_units: (live + LOGS + 1).div_ceil(TRIMS_PER_SECTOR as u64),
            ..pages
        };
        // Instance 0, which has all records, gets as much less of the data as they take.
        let elsewhere = sizes.trim_units() * (instances - 1);
        let data_sectors = (live + random + instances).saturating_sub(elsewhere);
        let sizes = Sizes { data_sectors, ..sizes };
        self.pages.check_whole(&sizes, geometry)?;
        Ok((sizes, random))
    }

    fn regions(&self, random: u64) -> Box<[Region]> {
        let logs = (1..=LOGS).map(|log| {
            let range = log << self.partition_bits..(log + 1) << self.partition_bits;
            Region::new(range, RegionKind::Append)
        });
        std::iter::once(Region::new(0..random, RegionKind::Random)).chain(logs).collect()
    }

    fn plan(
        &self,
        geometry: &Geometry,
        run: &FtlRun,
        now: Nanos,
    ) -> Result<Plan<Partitions>, FtlError> {
        let (sizes, random_sectors) = self.sizes(geometry)?;
        let config = self.pages.clone();
        let division = Division {
            partition_bits: self.partition_bits,
            random_sectors,
            live_max: sizes.logical_sectors,
            record_sectors: sizes.trim_units(),
            instances: config.instances,
            shape: self.shape(),
            period: Nanos(self.compact_period_ns),
            bytes_per_s: self.compact_bytes_per_s,
        };
        let map = Partitions::new(division, geometry.ppa_end(), now);
        let caps = DeviceCaps {
            sectors: sizes.address_sectors,
            live_sectors_max: sizes.logical_sectors,
            regions: self.regions(random_sectors),
            ..caps(&sizes, &config, run)
        };
        Ok(Plan { config, sizes, caps, map: map.ok_or(FtlError::AddressSpace)? })
    }
}

impl<M: OpenChannel> IntervalFtl<M> {
    /// What only this kind counts.
    #[must_use]
    pub fn own_counts(&self) -> IntervalReport {
        let trim_compactions = self.flash.counts.own.trim_compactions;
        IntervalReport { trim_compactions, ..self.flash.map.counts() }
    }

    /// Makes a fresh SSD of IPLFS on `media`, below a link with this timing, beginning at time zero.
    ///
    /// # Errors
    /// The choice that does not fit the geometry, too many bad chunks, or that power went off.
    pub fn format_interval(
        media: M,
        config: &Config,
        run: FtlRun,
        link: LinkTiming,
    ) -> Result<Self, FtlError> {
        let geometry = *media.geometry();
        let plan = config.plan(&geometry, &run, Nanos::ZERO);
        Self::format_as((media, geometry), plan, (run, link))
    }

    /// Mounts what is on `media`, below a link with this timing, beginning at `now`.
    ///
    /// # Errors
    /// The media comes back with the reason: power went off again, the choices do not fit, or the media holds
    /// something else.
    pub fn recover_interval(
        media: M,
        config: &Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let geometry = *media.geometry();
        let plan = config.plan(&geometry, &run, now);
        Self::recover_as((media, geometry), plan, (run, link), now)
    }
}
