//! A small conventional SSD, driven one bio at a time or by hand.

use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, Done, Flags, Lba, Payload, Reply, Submit, Tag, Token,
};
use nandscape_ftl::device::config::{BufferConfig, Config};
use nandscape_ftl::{DeviceFtl, Ftl, FtlRun};
use nandscape_media::{
    DeviceTiming, FaultInjector, Faults, Geometry, Layer, LinkTiming, Media, MediaConfig,
    PayloadMode,
};
use nandscape_rt::{Nanos, Stream};

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

/// A device and the time that its host has reached.
pub(crate) struct Driver {
    pub(crate) ssd: Ssd,
    pub(crate) config: Config,
    pub(crate) run: FtlRun,
    pub(crate) link: LinkTiming,
    pub(crate) now: Nanos,
    pub(crate) cuts: Stream,
}

pub(crate) fn config() -> Config {
    Config {
        op_percent: 20,
        buffer: BufferConfig { size_bytes: 256 << 10, ..Config::default().buffer },
        ..Config::default()
    }
}

pub(crate) fn power_safe() -> Config {
    let buffer = BufferConfig { power_safe: true, ..config().buffer };
    Config { buffer, op_percent: 25, ..config() }
}

pub(crate) fn large_units(map_unit_bytes: u32) -> Config {
    let buffer = BufferConfig { size_bytes: 512 << 10, ..config().buffer };
    Config { map_unit_bytes, op_percent: 35, buffer, ..config() }
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
        let now = ssd.now();
        Self { ssd, config, run, link, now, cuts: Stream::new(1, "cut") }
    }

    pub(crate) fn sectors(&self) -> u64 {
        self.ssd.size().logical_sectors
    }

    pub(crate) fn check(&self) {
        self.ssd.check_invariants().expect("invariants");
    }

    /// Cuts power now and mounts what is left.
    pub(crate) fn power_cut(mut self) -> Self {
        let mut media = self.ssd.power_off();
        media.inner_mut().power_cut(self.now, &mut self.cuts);
        let mounted = DeviceFtl::recover(media, self.config.clone(), self.run, self.link, self.now);
        self.ssd = mounted.map_err(|(_, error)| error).expect("mounts");
        self.check();
        self.now = self.ssd.now();
        self
    }

    pub(crate) fn submit(&mut self, bio: Bio, token: u64) -> Option<Done> {
        match self.ssd.submit(self.now, bio, Token(token)) {
            Submit::Done(done) => Some(done),
            Submit::Pending => None,
        }
    }

    pub(crate) fn step(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        self.now = self.now.max(self.ssd.next_event().expect("something is in flight"));
        self.ssd.advance(self.now, &mut done);
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
        self.ssd.advance(self.now, &mut rest);
        assert!(rest.is_empty(), "completed twice: {rest:?}");
        outcome
    }

    pub(crate) fn write(&mut self, lba: u64, sectors: u32, tag: u64, flags: Flags) {
        let bio = Bio::write(Lba(lba), sectors, Payload::Run(Tag::new(tag))).with(flags);
        assert_eq!(self.run(bio).result, Ok(Reply::None));
    }

    pub(crate) fn flush(&mut self) -> Done {
        let done = self.run(Bio::flush());
        assert_eq!(done.result, Ok(Reply::None));
        done
    }

    pub(crate) fn read(&mut self, lba: u64) -> Result<Reply, BlockError> {
        self.run(Bio::read(Lba(lba), 1)).result
    }
}

/// What a read of one sector with this tag replies.
pub(crate) fn holds(tag: u64) -> Result<Reply, BlockError> {
    Ok(Reply::Data(Payload::Run(Tag::new(tag))))
}
