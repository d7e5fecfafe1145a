//! A small conventional SSD, driven one bio at a time or by hand.

#[path = "../common/driver.rs"]
mod any;
#[path = "../common/busy.rs"]
mod busy;

pub(crate) use any::holds;

pub(crate) use busy::keep_busy;

use nandscape_ftl::device::config::{BufferConfig, Config};
use nandscape_ftl::{DeviceFtl, Ftl, FtlRun};
use nandscape_media::{
    DeviceTiming, FaultInjector, Faults, Geometry, Layer, LinkTiming, Media, MediaConfig,
    PayloadMode,
};
use nandscape_rt::Stream;

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

pub(crate) type Ssd = DeviceFtl<FaultInjector<Media>>;

/// What mounts one again after a power cut.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) run: FtlRun,
    pub(crate) link: LinkTiming,
    cuts: Stream,
}

pub(crate) type Driver = any::Driver<Ssd, Setup>;

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

pub(crate) fn media(geometry: Geometry, timing: &str, faults: Faults) -> FaultInjector<Media> {
    let timing = DeviceTiming::preset(timing).expect("a preset").nand;
    let media = MediaConfig { timing, payload: PayloadMode::Tags, ..MediaConfig::new(geometry) };
    FaultInjector::new(Media::new(media).expect("a device"), faults, 1)
}

impl Driver {
    pub(crate) fn new(timing: &str, config: Config) -> Self {
        Self::with(GEOMETRY, timing, Faults::default(), config, FtlRun::default())
    }

    pub(crate) fn with(
        geometry: Geometry,
        timing: &str,
        faults: Faults,
        config: Config,
        run: FtlRun,
    ) -> Self {
        let link = DeviceTiming::preset(timing).expect("a preset").link;
        let media = media(geometry, timing, faults);
        let ssd = DeviceFtl::format(media, config.clone(), run, link).expect("fits");
        Self::of(ssd, Setup { config, run, link, cuts: Stream::new(1, "cut") })
    }

    pub(crate) fn check(&self) {
        self.ftl.check_invariants().expect("invariants");
    }

    /// Cuts power now and mounts what is left.
    pub(crate) fn power_cut(self) -> Self {
        let Self { ftl, now, mut setup } = self;
        let mut media = ftl.power_off();
        media.inner_mut().power_cut(now, &mut setup.cuts);
        let mounted = DeviceFtl::recover(media, setup.config.clone(), setup.run, setup.link, now);
        let driver = Self::of(mounted.map_err(|(_, error)| error).expect("mounts"), setup);
        driver.check();
        driver
    }
}
