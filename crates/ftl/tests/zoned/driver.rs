//! A small zoned SSD, driven one bio at a time or by hand.

#[path = "../common/driver.rs"]
mod any;
#[path = "../common/busy.rs"]
mod busy;

pub(crate) use any::holds;
pub(crate) use busy::keep_busy;

use nandscape_ftl::zoned::{Config, ZoneConfig};
use nandscape_ftl::{Ftl, FtlRun, ZonedFtl};
use nandscape_media::{
    DeviceTiming, FaultInjector, Faults, Geometry, LinkTiming, Media, MediaConfig, PayloadMode,
};
use nandscape_rt::{Nanos, Stream};

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

pub(crate) type Zns = ZonedFtl<FaultInjector<Media>>;

/// What mounts one again after a power cut.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) run: FtlRun,
    pub(crate) link: LinkTiming,
    cuts: Stream,
}

pub(crate) type Driver = any::Driver<Zns, Setup>;

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

pub(crate) fn media(geometry: Geometry, timing: &str, faults: Faults) -> FaultInjector<Media> {
    let timing = DeviceTiming::preset(timing).expect("a preset").nand;
    let media = MediaConfig { timing, payload: PayloadMode::Tags, ..MediaConfig::new(geometry) };
    FaultInjector::new(Media::new(media).expect("a device"), faults, 1)
}

impl Driver {
    pub(crate) fn new(timing: &str, config: Config) -> Self {
        Self::with(timing, Faults::default(), config, FtlRun::default())
    }

    pub(crate) fn with(timing: &str, faults: Faults, config: Config, run: FtlRun) -> Self {
        Self::on(GEOMETRY, timing, faults, config, run)
    }

    pub(crate) fn on(
        geometry: Geometry,
        timing: &str,
        faults: Faults,
        config: Config,
        run: FtlRun,
    ) -> Self {
        let link = DeviceTiming::preset(timing).expect("a preset").link;
        let media = media(geometry, timing, faults);
        let ftl = ZonedFtl::format(media, config.clone(), run, link).expect("fits");
        Self::of(ftl, Setup { config, run, link, cuts: Stream::new(5, "cuts") })
    }

    /// Cuts power at `at`, and mounts what that left.
    pub(crate) fn cut(self, at: Nanos) -> Self {
        let Self { mut ftl, mut setup, .. } = self;
        let injector = ftl.media_mut();
        injector.restore_power();
        nandscape_media::Layer::inner_mut(injector).power_cut(at, &mut setup.cuts);
        let media = ftl.power_off();
        let (config, run, link) = (setup.config.clone(), setup.run, setup.link);
        let mounted = ZonedFtl::recover(media, config, run, link, at);
        Self::of(mounted.map_err(|(_, error)| error).expect("mounts"), setup)
    }
}
