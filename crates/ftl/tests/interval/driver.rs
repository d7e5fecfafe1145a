//! A small SSD of IPLFS, driven one bio at a time or by hand.

#[path = "../common/driver.rs"]
mod any;

pub(crate) use any::holds;

use nandscape_block::{BlockDevice, DeviceCaps};
use nandscape_ftl::device::IntervalReport;
use nandscape_ftl::device::config::{BufferConfig, Config as PagesConfig};
use nandscape_ftl::interval::Config;
use nandscape_ftl::{Detail, Ftl, FtlRun, IntervalFtl};
use nandscape_media::{DeviceTiming, Geometry, LinkTiming, Media, MediaConfig, PayloadMode};
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

pub(crate) type Ssd = IntervalFtl<Media>;

/// What mounts one again after a power cut.
pub(crate) struct Setup {
    config: Config,
    run: FtlRun,
    link: LinkTiming,
    cuts: Stream,
}

pub(crate) type Driver = any::Driver<Ssd, Setup>;

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
        let DeviceTiming { nand: timing, link } = DeviceTiming::preset(timing).expect("a preset");
        let media =
            MediaConfig { timing, payload: PayloadMode::Tags, ..MediaConfig::new(GEOMETRY) };
        let (media, run) = (Media::new(media).expect("a device"), FtlRun::default());
        let ssd = Ssd::format_interval(media, &config, run, link).expect("fits");
        Self::of(ssd, Setup { config, run, link, cuts: Stream::new(1, "cut") })
    }

    pub(crate) fn check(&self) {
        self.ftl.check_invariants().expect("invariants");
    }

    pub(crate) fn caps(&self) -> &DeviceCaps {
        self.ftl.caps()
    }

    /// What only this kind counts.
    pub(crate) fn own(&self) -> IntervalReport {
        let Detail::Interval(own) = self.ftl.report().detail else { panic!("interval maps") };
        own
    }

    /// Cuts power now and mounts what is left.
    pub(crate) fn power_cut(self) -> Self {
        let Self { ftl, now, mut setup } = self;
        let mut media = ftl.power_off();
        media.power_cut(now, &mut setup.cuts);
        let Setup { run, link, .. } = setup;
        let mounted = Ssd::recover_interval(media, &setup.config, run, link, now);
        let driver = Self::of(mounted.map_err(|(_, error)| error).expect("mounts"), setup);
        driver.check();
        driver
    }
}
