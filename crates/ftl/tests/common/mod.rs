//! A small pblk with everything between it and the media that tests look at: commands are counted,
//! faults can be scripted. Driven one bio at a time, or by hand.

use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, Done, Flags, Lba, Payload, Reply, Submit, Tag, Token,
};
use nandscape_ftl::pblk::config::Config;
use nandscape_ftl::pblk::stats::PblkReport;
use nandscape_ftl::{Attach, Detail, Ftl, FtlReport, FtlRun, Pblk};
use nandscape_media::{
    DeviceTiming, FaultInjector, Faults, Geometry, Layer, Linked, Media, MediaConfig, PayloadMode,
    Tracer,
};
use nandscape_rt::{Host, Nanos, Stream};

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

/// A device and the time that its host has reached.
pub(crate) struct Driver {
    pub(crate) pblk: Pblk<Watched>,
    timing: DeviceTiming,
    pub(crate) now: Nanos,
}

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
        let now = pblk.now();
        pblk.media_mut().take_counters();
        Self { pblk, timing, now }
    }

    /// Cuts power and mounts what is left.
    pub(crate) fn power_cut(self, config: Config) -> Self {
        let Self { pblk, timing, now } = self;
        let mut media = pblk.power_off();
        media.inner_mut().inner_mut().power_cut(now, &mut Stream::new(1, "cut"));
        let media = Linked::new(media, timing.link);
        let recovered = Pblk::recover(media, config.clone(), FtlRun::default(), now);
        let mut pblk = recovered.map_err(|(_, error)| error).expect("recovers");
        pblk.attach(attach(&config, &timing));
        pblk.check_invariants().expect("invariants after recovery");
        Self { now: pblk.now(), timing, pblk }
    }

    /// What was counted since the device was made.
    pub(crate) fn report(&self) -> FtlReport {
        self.pblk.report()
    }

    /// What only pblk counts of it.
    pub(crate) fn detail(&self) -> PblkReport {
        let Detail::Pblk(detail) = self.report().detail else { panic!("a pblk") };
        *detail
    }

    /// Submits a bio now; the outcome if it is known.
    pub(crate) fn submit(&mut self, bio: Bio, token: u64) -> Option<Done> {
        match self.pblk.submit(self.now, bio, Token(token)) {
            Submit::Done(done) => Some(done),
            Submit::Pending => None,
        }
    }

    /// Goes on to the device's next event; what completed.
    pub(crate) fn step(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        self.now = self.pblk.next_event().expect("something is under way");
        self.pblk.advance(self.now, &mut done);
        done
    }

    /// Serves one bio; the device is left at its completion.
    pub(crate) fn run(&mut self, bio: Bio) -> Done {
        let mut outcome = self.submit(bio, 1);
        while outcome.is_none() {
            outcome = self.step().pop().map(|completion| completion.done);
        }
        let outcome = outcome.expect("just looked");
        self.now = self.now.max(outcome.at);
        let mut rest = Vec::new();
        self.pblk.advance(self.now, &mut rest);
        assert!(rest.is_empty(), "completed twice: {rest:?}");
        outcome
    }

    pub(crate) fn write(&mut self, lba: u64, tag: u64, flags: Flags) {
        let bio = Bio::write(Lba(lba), 1, Payload::Run(Tag::new(tag))).with(flags);
        assert_eq!(self.run(bio).result, Ok(Reply::None));
    }

    /// Writes `sectors` sectors from `lba` on; sector `i` gets the tag `tag + i`.
    pub(crate) fn write_run(&mut self, lba: u64, sectors: u64, tag: u64) {
        for i in 0..sectors {
            self.write(lba + i, tag + i, Flags::NONE);
        }
    }

    pub(crate) fn flush(&mut self) -> Done {
        let done = self.run(Bio::flush());
        assert_eq!(done.result, Ok(Reply::None));
        done
    }

    pub(crate) fn read(&mut self, lba: u64) -> Result<Reply, BlockError> {
        self.run(Bio::read(Lba(lba), 1)).result
    }

    /// Every sector from `lba` 0 on reads as expected.
    pub(crate) fn check(&mut self, expected: &[u64]) {
        for (lba, &tag) in (0..).zip(expected) {
            assert_eq!(self.read(lba), holds(tag), "lba {lba}");
        }
    }

    /// Sectors that the host can address.
    pub(crate) fn sectors(&self) -> u64 {
        self.pblk.capacity().logical_sectors
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

/// What a read of one sector with this tag replies.
pub(crate) fn holds(tag: u64) -> Result<Reply, BlockError> {
    Ok(Reply::Data(Payload::Run(Tag::new(tag))))
}
