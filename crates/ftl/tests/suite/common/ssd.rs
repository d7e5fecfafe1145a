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
    ) -> Result<Self, Box<(Nand, FtlError)>>;
}

/// What mounts one again after a power cut.
pub(crate) struct Setup<C> {
    pub(crate) config: C,
    pub(crate) run: FtlRun,
    pub(crate) link: LinkTiming,
    pub(crate) cuts: Stream,
}

impl<C: Clone> Setup<C> {
    /// Mounts what is on `nand`, from `at` on.
    fn mount<F: Ssd<Config = C>>(&self, nand: Nand, at: Nanos) -> Result<F, Box<(Nand, FtlError)>> {
        F::mount(nand, self.config.clone(), self.run, self.link, at)
    }
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
        // Commands of any size: what is larger than the buffer must enter it piece by piece.
        let link = LinkTiming { mdts_bytes: 0, ..link };
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
        Self::of(setup.mount(nand, at).map_err(|failed| failed.1).expect("mounts"), setup)
    }

    /// Cuts power now, and again when the mount of what that left has sent so many commands, if it sends more.
    pub(crate) fn cut_in_mount(self, commands: u64) -> Self {
        let Self { mut ftl, mut setup, now } = self;
        ftl.media_mut().inner_mut().power_cut(now, &mut setup.cuts);
        let mut nand = ftl.power_off();
        nand.faults_mut().cut_after_commands = Some(nand.commands() + commands);
        let mounted = match setup.mount::<F>(nand, now) {
            Err(failed) if matches!(failed.1, FtlError::PowerLost) => {
                let (mut nand, _) = *failed;
                // What was sent is done by then.
                let later = now + Nanos::from_ms(1_000);
                nand.restore_power();
                nand.inner_mut().power_cut(later, &mut setup.cuts);
                setup.mount(nand, later)
            }
            mounted => mounted,
        };
        let mut driver = Self::of(mounted.map_err(|failed| failed.1).expect("mounts"), setup);
        driver.ftl.media_mut().restore_power();
        driver
    }
}
