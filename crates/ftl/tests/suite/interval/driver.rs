//! A small SSD of IPLFS, driven one bio at a time or by hand.

use crate::common::driver as any;
use crate::common::ssd;

pub(crate) use any::holds;

use nandscape_block::{BlockDevice, DeviceCaps};
use nandscape_ftl::device::IntervalReport;
use nandscape_ftl::device::config::{BufferConfig, Config as PagesConfig};
use nandscape_ftl::interval::Config;
use nandscape_ftl::{Ftl, FtlError, FtlRun, IntervalFtl};
use nandscape_media::{Faults, Geometry, LinkTiming};
use nandscape_rt::Nanos;
use ssd::{Nand, Setup};

/// 4 instances of 2 units, 40 erase units of 128 sectors each.
pub(crate) const GEOMETRY: Geometry = Geometry {
    groups: 4,
    units: 2,
    chunks: 40,
    sectors: 64,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};

pub(crate) type Ssd = IntervalFtl<Nand>;

pub(crate) type Driver = any::Driver<Ssd, Setup<Config>>;

impl ssd::Ssd for Ssd {
    type Config = Config;

    fn make(nand: Nand, config: Config, run: FtlRun, link: LinkTiming) -> Result<Self, FtlError> {
        Self::format_interval(nand, &config, run, link)
    }

    fn mount(
        nand: Nand,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, Box<(Nand, FtlError)>> {
        Self::recover_interval(nand, &config, run, link, now).map_err(Box::new)
    }
}

/// Logs of 65,536 sectors on media of 20,480, map nodes of 256.
pub(crate) fn config() -> Config {
    let plain = Config::default();
    let pages = PagesConfig {
        op_hundredths: 30 * 100,
        buffer: BufferConfig { size_bytes: 256 << 10, ..plain.pages.buffer },
        gc_lines: 3,
        ..plain.pages
    };
    Config {
        partition_bits: 16,
        leaf_bits: 8,
        middle_bits: 4,
        hole_sectors: 8,
        compact_period_ns: 1_000_000,
        pages,
        ..plain
    }
}

pub(crate) fn power_safe() -> Config {
    let plain = config();
    let buffer = BufferConfig { power_safe: true, ..plain.pages.buffer };
    Config { pages: PagesConfig { buffer, op_hundredths: 35 * 100, ..plain.pages }, ..plain }
}

impl Driver {
    pub(crate) fn new(timing: &str, config: Config) -> Self {
        Self::on(GEOMETRY, timing, Faults::default(), config, FtlRun::default())
    }

    pub(crate) fn check(&self) {
        self.ftl.check_invariants().expect("invariants");
    }

    pub(crate) fn caps(&self) -> &DeviceCaps {
        self.ftl.caps()
    }

    /// What only this kind counts.
    pub(crate) fn own(&self) -> IntervalReport {
        self.ftl.own_counts()
    }

    /// Cuts power now and mounts what is left.
    pub(crate) fn power_cut(self) -> Self {
        let now = self.now;
        let driver = self.cut(now);
        driver.check();
        driver
    }
}
