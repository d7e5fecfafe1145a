//! A small pblk with everything between it and the media that tests look at: commands are counted,
//! faults can be scripted.

pub(crate) mod busy;
pub(crate) mod driver;
pub(crate) mod ssd;

pub(crate) use driver::holds;

use nandscape_block::Flags;
use nandscape_ftl::pblk::config::Config;
use nandscape_ftl::pblk::stats::PblkReport;
use nandscape_ftl::{Attach, Ftl, FtlReport, FtlRun, Pblk};
use nandscape_media::{
    DeviceTiming, FaultInjector, Faults, Geometry, Layer, Linked, Media, MediaConfig, PayloadMode,
    Tracer,
};
use nandscape_rt::{Host, Stream};

/// 4 parallel units, 40 lines of 512 sectors.
pub(crate) const GEOMETRY: Geometry = Geometry {
    groups: 2,
    units: 2,
    chunks: 40,
    sectors: 128,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 24,
    maxoc: 0,
    maxocpu: 0,
};

/// Media whose commands are counted and may fail.
pub(crate) type Watched = Tracer<FaultInjector<Media>>;

/// A pblk on such media; its timing.
pub(crate) type Driver = driver::Driver<Pblk<Watched>, DeviceTiming>;

pub(crate) fn config() -> Config {
    Config { op_percent: Some(20), ..Config::default() }
}

impl Driver {
    /// A fresh device on media of this timing, counted from zero.
    pub(crate) fn new(timing: &str, config: Config) -> Self {
        Self::on(GEOMETRY, timing, config)
    }

    /// A fresh device of this shape.
    pub(crate) fn on(geometry: Geometry, timing: &str, config: Config) -> Self {
        Self::with_faults(geometry, timing, config, Faults::default())
    }

    /// A fresh device of this shape, in which something goes wrong.
    pub(crate) fn with_faults(
        geometry: Geometry,
        timing: &str,
        config: Config,
        faults: Faults,
    ) -> Self {
        let timing = DeviceTiming::preset(timing).expect("a preset");
        let media = MediaConfig {
            timing: timing.nand,
            payload: PayloadMode::Tags,
            ..MediaConfig::new(geometry)
        };
        let media = Media::new(media).expect("a device");
        let media = Tracer::new(FaultInjector::new(media, faults, 1));
        let media = Linked::new(media, timing.link);
        let mut pblk = Pblk::format(media, config.clone(), FtlRun::default()).expect("fits");
        pblk.attach(attach(&config, &timing));
        pblk.media_mut().take_counters();
        Self::of(pblk, timing)
    }

    /// Cuts power and mounts what is left.
    pub(crate) fn power_cut(self, config: Config) -> Self {
        let Self { ftl, setup: timing, now } = self;
        let mut media = ftl.power_off();
        media.inner_mut().inner_mut().power_cut(now, &mut Stream::new(1, "cut"));
        let media = Linked::new(media, timing.link);
        let recovered = Pblk::recover(media, config.clone(), FtlRun::default(), now);
        let mut pblk = recovered.map_err(|(_, error)| error).expect("recovers");
        pblk.attach(attach(&config, &timing));
        pblk.check_invariants().expect("invariants after recovery");
        Self::of(pblk, timing)
    }

    /// What was counted since the device was made.
    pub(crate) fn report(&self) -> FtlReport {
        self.ftl.report()
    }

    /// What only pblk counts of it.
    pub(crate) fn detail(&self) -> PblkReport {
        self.ftl.own_counts()
    }

    /// Writes `sectors` sectors from `lba` on, one by one; sector `i` gets the tag `tag + i`.
    pub(crate) fn write_run(&mut self, lba: u64, sectors: u64, tag: u64) {
        for i in 0..sectors {
            self.write(lba + i, tag + i, Flags::NONE);
        }
    }

    /// Every sector from `lba` 0 on reads as expected.
    pub(crate) fn check(&mut self, expected: &[u64]) {
        for (lba, &tag) in (0..).zip(expected) {
            assert_eq!(self.read(lba), holds(tag), "lba {lba}");
        }
    }

    /// Overwrites random sectors of all that `expected` describes, but for the first `spared`.
    pub(crate) fn overwrite(&mut self, expected: &mut [u64], spared: u64, writes: u64, seed: u64) {
        let mut rng = Stream::new(seed, "overwrite");
        for tag in ((seed + 1) << 32..).take(writes as usize) {
            let lba = rng.within(spared..expected.len() as u64);
            self.write(lba, tag, Flags::NONE);
            expected[lba as usize] = tag;
        }
    }
}

/// A host with a core for each write buffer of the configuration, and the link to the device.
fn attach(config: &Config, timing: &DeviceTiming) -> Attach {
    Attach::new(
        Some(Host::with_cores(config.write_buffers as u16)),
        timing,
        Attach::COPY_NS_PER_SECTOR,
    )
}
