//! A small conventional SSD, driven one bio at a time or by hand.

use crate::common::busy;
use crate::common::driver as any;
use crate::common::ssd;

pub(crate) use any::holds;

pub(crate) use busy::keep_busy;

use nandscape_ftl::device::config::{BufferConfig, Config};
use nandscape_ftl::{DeviceFtl, Ftl, FtlError, FtlRun};
use nandscape_media::{Faults, Geometry, LinkTiming};
use nandscape_rt::Nanos;
use ssd::{Nand, Setup};

pub(crate) use ssd::nand;

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

pub(crate) type Ssd = DeviceFtl<Nand>;

pub(crate) type Driver = any::Driver<Ssd, Setup<Config>>;

impl ssd::Ssd for Ssd {
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

pub(crate) fn config() -> Config {
    Config {
        op_hundredths: 20 * 100,
        buffer: BufferConfig { size_bytes: 256 << 10, ..Config::default().buffer },
        ..Config::default()
    }
}

pub(crate) fn power_safe() -> Config {
    let buffer = BufferConfig { power_safe: true, ..config().buffer };
    Config { buffer, op_hundredths: 25 * 100, ..config() }
}

pub(crate) fn large_units(map_unit_bytes: u32) -> Config {
    let buffer = BufferConfig { size_bytes: 512 << 10, ..config().buffer };
    Config { map_unit_bytes, op_hundredths: 35 * 100, buffer, ..config() }
}

impl Driver {
    pub(crate) fn new(timing: &str, config: Config) -> Self {
        Self::on(GEOMETRY, timing, Faults::default(), config, FtlRun::default())
    }

    pub(crate) fn check(&self) {
        self.ftl.check_invariants().expect("invariants");
    }

    /// Cuts power now and mounts what is left.
    pub(crate) fn power_cut(self) -> Self {
        let now = self.now;
        let driver = self.cut(now);
        driver.check();
        driver
    }
}
