//! An FTL of an SSD on NAND in which something may go wrong, and what mounts it again after a power cut.

use super::driver::Driver;
use nandscape_ftl::{Ftl, FtlError, FtlRun};
use nandscape_media::{
    DeviceTiming, FaultInjector, Faults, Geometry, Layer, LinkTiming, Media, MediaConfig,
    PayloadMode,
};
use nandscape_rt::{Nanos, Stream};

/// The NAND.
pub(crate) type Nand = FaultInjector<Media>;

/// An FTL that is made and mounted in the way of those in SSDs.
pub(crate) trait Ssd: Ftl<Media = Nand> + Sized {
    /// Its choices.
    type Config: Clone;

    fn make(
        nand: Nand,
        config: Self::Config,
        run: FtlRun,
        link: LinkTiming,
    ) -> Result<Self, FtlError>;

    fn mount(
        nand: Nand,
        config: Self::Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, FtlError>;
}

/// What mounts one again after a power cut.
pub(crate) struct Setup<C> {
    pub(crate) config: C,
    pub(crate) run: FtlRun,
    pub(crate) link: LinkTiming,
    pub(crate) cuts: Stream,
}

/// NAND of this shape and timing that keeps tags.
pub(crate) fn nand(geometry: Geometry, timing: &str, faults: Faults) -> Nand {
    let timing = DeviceTiming::preset(timing).expect("a preset").nand;
    let media = MediaConfig { timing, payload: PayloadMode::Tags, ..MediaConfig::new(geometry) };
    FaultInjector::new(Media::new(media).expect("a device"), faults, 1)
}

impl<F: Ssd> Driver<F, Setup<F::Config>> {
    /// A fresh device of this shape.
    pub(crate) fn on(
        geometry: Geometry,
        timing: &str,
        faults: Faults,
        config: F::Config,
        run: FtlRun,
    ) -> Self {
        let link = DeviceTiming::preset(timing).expect("a preset").link;
        let nand = nand(geometry, timing, faults);
        let ftl = F::make(nand, config.clone(), run, link).expect("fits");
        Self::of(ftl, Setup { config, run, link, cuts: Stream::new(5, "cuts") })
    }

    /// Cuts power at `at`, and mounts what that left.
    pub(crate) fn cut(self, at: Nanos) -> Self {
        let Self { mut ftl, mut setup, .. } = self;
        let injector = ftl.media_mut();
        injector.restore_power();
        injector.inner_mut().power_cut(at, &mut setup.cuts);
        let nand = ftl.power_off();
        let (config, run, link) = (setup.config.clone(), setup.run, setup.link);
        let ftl = F::mount(nand, config, run, link, at).expect("mounts");
        Self::of(ftl, setup)
    }
}
