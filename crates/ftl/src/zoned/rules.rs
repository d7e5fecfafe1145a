//! What never changes after a zoned SSD was put together: configuration, sizes, and what follows from them.

use super::config::{Config, Sizes};
use crate::kind::FtlRun;
use nandscape_block::{DeviceCaps, Fua, Region, RegionKind};
use nandscape_media::{Geometry, LinkTiming};

/// Configuration and sizes.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) geometry: Geometry,
    pub(super) config: Config,
    pub(super) run: FtlRun,
    pub(super) sizes: Sizes,
    pub(super) caps: DeviceCaps,
    /// Erased chunks of each unit that are kept for what a power-safe buffer holds when power fails.
    pub(super) kept: u32,
}

impl Rules {
    pub(super) fn new(
        geometry: Geometry,
        config: Config,
        (run, link): (FtlRun, LinkTiming),
        sizes: Sizes,
    ) -> Self {
        let caps = caps(&geometry, &sizes, &config, &run);
        let caps = DeviceCaps { max_sectors: link.max_sectors(), ..caps };
        let kept = config.residual_chunks(&geometry, &sizes);
        Self { geometry, config, run, sizes, caps, kept }
    }
}

/// What the device can do.
fn caps(geometry: &Geometry, sizes: &Sizes, config: &Config, run: &FtlRun) -> DeviceCaps {
    let random = sizes.random_sectors;
    let zones = RegionKind::Zones(config.limits(geometry, sizes));
    let random_region = (random > 0).then(|| Region::new(0..random, RegionKind::Random));
    let zoned_region = Region::new(random..sizes.address_sectors(), zones);
    DeviceCaps {
        sectors: sizes.address_sectors(),
        atomic_sectors: 1,
        fua: Fua::Honoured,
        volatile_cache: !config.pages.buffer.power_safe || config.zone.buffer_bytes == 0,
        discard_sectors: u32::from(random > 0),
        discard_zeroes: true,
        keeps_content: run.keep_content,
        live_sectors_max: random + u64::from(sizes.zones) * sizes.capacity,
        regions: random_region.into_iter().chain([zoned_region]).collect(),
        ..DeviceCaps::default()
    }
}
