//! A small zoned SSD, driven one bio at a time or by hand.

use crate::common::busy;
use crate::common::driver as any;
use crate::common::ssd;

pub(crate) use any::holds;
pub(crate) use busy::keep_busy;

use nandscape_ftl::zoned::{Config, ZoneConfig};
use nandscape_ftl::{FtlError, FtlRun, ZonedFtl};
use nandscape_media::{Faults, Geometry, LinkTiming};
use nandscape_rt::Nanos;
use ssd::{Nand, Setup};

/// 8 parallel units of 24 chunks of 6 one-shot pages.
pub(crate) const GEOMETRY: Geometry = Geometry {
    groups: 4,
    units: 2,
    chunks: 24,
    sectors: 24,
    ws_min: 2,
    ws_opt: 4,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};

pub(crate) type Zns = ZonedFtl<Nand>;

pub(crate) type Driver = any::Driver<Zns, Setup<Config>>;

impl ssd::Ssd for Zns {
    type Config = Config;

    fn make(nand: Nand, config: Config, run: FtlRun, link: LinkTiming) -> Result<Self, FtlError> {
        Self::format(nand, config, run, link)
    }

    fn mount(
        nand: Nand,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, Box<(Nand, FtlError)>> {
        Self::recover(nand, config, run, link, now).map_err(Box::new)
    }
}

/// Zones of 2 dies, 3 of them open and 4 active at most.
pub(crate) fn config() -> Config {
    let zone = ZoneConfig {
        dies: 2,
        spare_chunks: 12,
        max_open: 3,
        max_active: 4,
        buffer_bytes: 12 << 12,
        ..Config::default().zone
    };
    Config { zone, ..Config::default() }
}

impl Driver {
    pub(crate) fn new(timing: &str, config: Config) -> Self {
        Self::with(timing, Faults::default(), config, FtlRun::default())
    }

    pub(crate) fn with(timing: &str, faults: Faults, config: Config, run: FtlRun) -> Self {
        Self::on(GEOMETRY, timing, faults, config, run)
    }
}
