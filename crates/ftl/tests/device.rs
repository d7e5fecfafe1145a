//! A conventional SSD on virtual NAND: what it stores can be read, what it promised survives power cuts and
//! faults, its invariants hold under load, and its collection writes as much as theory says.

use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, Done, Flags, Lba, Payload, Reply, Submit, Tag, Token,
};
use nandscape_ftl::device::config::{BufferConfig, Config, Victim};
use nandscape_ftl::{DeviceFtl, Ftl, FtlRun};
use nandscape_media::{
    FaultInjector, Faults, Geometry, Layer, Media, MediaConfig, PayloadMode, Timing,
};
use nandscape_rt::{Nanos, Stream};

/// 4 instances of 2 units, 40 erase units of 128 sectors each.
const GEOMETRY: Geometry = Geometry {
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

type Ssd = DeviceFtl<FaultInjector<Media>>;

/// A device and the time that its host has reached.
struct Driver {
    ssd: Ssd,
    config: Config,
    run: FtlRun,
    now: Nanos,
    cuts: Stream,
}

fn config() -> Config {
    Config {
        op_percent: 20,
        buffer: BufferConfig { size_bytes: 256 << 10, ..Config::default().buffer },
        ..Config::default()
    }
}

fn power_safe() -> Config {
    let buffer = BufferConfig { power_safe: true, ..config().buffer };
    Config { buffer, op_percent: 25, ..config() }
}

fn large_units(map_unit_bytes: u32) -> Config {
    let buffer = BufferConfig { size_bytes: 512 << 10, ..config().buffer };
    Config { map_unit_bytes, op_percent: 35, buffer, ..config() }
}

fn media(geometry: Geometry, timing: &str, faults: Faults) -> FaultInjector<Media> {
    let timing = Timing::preset(timing).expect("a preset");
    let media = MediaConfig { timing, payload: PayloadMode::Tags, ..MediaConfig::new(geometry) };
    FaultInjector::new(Media::new(media).expect("a device"), faults, 1)
}

impl Driver {
    fn new(timing: &str, config: Config) -> Self {
        Self::with(media(GEOMETRY, timing, Faults::default()), config, FtlRun::default())
    }

    fn with(media: FaultInjector<Media>, config: Config, run: FtlRun) -> Self {
        let ssd = DeviceFtl::format(media, config.clone(), run).expect("fits");
        let now = ssd.now();
        Self { ssd, config, run, now, cuts: Stream::new(1, "cut") }
    }

    fn sectors(&self) -> u64 {
        self.ssd.size().logical_sectors
    }

    fn check(&self) {
        self.ssd.check_invariants().expect("invariants");
    }

    /// Cuts power now and mounts what is left.
    fn power_cut(mut self) -> Self {
        let mut media = self.ssd.power_off();
        media.inner_mut().power_cut(self.now, &mut self.cuts);
        let mounted = DeviceFtl::recover(media, self.config.clone(), self.run, self.now);
        self.ssd = mounted.map_err(|(_, error)| error).expect("mounts");
        self.check();
        self.now = self.ssd.now();
        self
    }

    fn submit(&mut self, bio: Bio, token: u64) -> Option<Done> {
        match self.ssd.submit(self.now, bio, Token(token)) {
            Submit::Done(done) => Some(done),
            Submit::Pending => None,
        }
    }

    fn step(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        self.now = self.now.max(self.ssd.next_event().expect("something is in flight"));
        self.ssd.advance(self.now, &mut done);
        done
    }

    /// Serves one bio; the device is left at its completion.
    fn run(&mut self, bio: Bio) -> Done {
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

    fn write(&mut self, lba: u64, sectors: u32, tag: u64, flags: Flags) {
        let bio = Bio::write(Lba(lba), sectors, Payload::Run(Tag::new(tag))).with(flags);
        assert_eq!(self.run(bio).result, Ok(Reply::None));
    }

    fn flush(&mut self) -> Done {
        let done = self.run(Bio::flush());
        assert_eq!(done.result, Ok(Reply::None));
        done
    }

    fn read(&mut self, lba: u64) -> Result<Reply, BlockError> {
        self.run(Bio::read(Lba(lba), 1)).result
    }
}

/// What a read of one sector with this tag replies.
fn holds(tag: u64) -> Result<Reply, BlockError> {
    Ok(Reply::Data(Payload::Run(Tag::new(tag))))
}

/// What a sector may hold after a power cut: its version at the last flush, or any later one.
#[derive(Clone, Default)]
struct History(Vec<u64>);

impl History {
    fn push(&mut self, tag: u64) {
        if self.0.is_empty() {
            self.0.push(0);
        }
        self.0.push(tag);
    }

    fn cover(&mut self) {
        if let Some(&last) = self.0.last() {
            self.0 = vec![last];
        }
    }

    fn last(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    fn permits(&self, seen: &Result<Reply, BlockError>) -> Option<u64> {
        let versions = if self.0.is_empty() { &[0][..] } else { &self.0 };
        versions.iter().copied().find(|&tag| *seen == holds(tag))
    }
}

/// A device under random operations, and what each sector may hold.
struct Load {
    driver: Driver,
    histories: Vec<History>,
    rng: Stream,
    tag: u64,
}

impl Load {
    fn new(driver: Driver, seed: u64) -> Self {
        let histories = vec![History::default(); driver.sectors() as usize];
        Self { driver, histories, rng: Stream::new(seed, "load"), tag: 0 }
    }

    /// Where the next bio goes, and how many sectors.
    fn range(&mut self) -> (u64, u32) {
        let most = if self.rng.chance(0.2) { 24 } else { 2 };
        let sectors = 1 + self.rng.below(most);
        let end = self.histories.len() as u64;
        // Few sectors are hot, so that copies and overwrites meet.
        let end = if self.rng.chance(0.5) { end } else { end / 16 };
        let lba = self.rng.below(end - sectors);
        (lba, sectors as u32)
    }

    fn operate(&mut self) {
        let (lba, sectors) = self.range();
        let range = lba as usize..lba as usize + sectors as usize;
        match self.rng.below(100) {
            0..3 => {
                self.driver.flush();
                self.histories.iter_mut().for_each(History::cover);
            }
            3..8 => {
                let unit = u64::from(self.driver.config.map_unit_bytes / 4096);
                let lba = lba / unit * unit;
                let sectors = (u64::from(sectors).div_ceil(unit) * unit) as u32;
                assert_eq!(
                    self.driver.run(Bio::discard(Lba(lba), sectors)).result,
                    Ok(Reply::None)
                );
                let range = lba as usize..lba as usize + sectors as usize;
                self.histories[range].iter_mut().for_each(|history| history.push(0));
            }
            8..20 => {
                let (lba, sectors) = self.range();
                let seen = self.driver.run(Bio::read(Lba(lba), sectors)).result;
                let expected = (lba..lba + u64::from(sectors))
                    .map(|lba| Tag::new(self.histories[lba as usize].last()));
                let expected = expected.map(nandscape_block::SectorData::Tag).collect::<Vec<_>>();
                assert_eq!(seen, Ok(Reply::Data(Payload::collect(expected))), "{lba}+{sectors}");
            }
            kind => {
                let flags = match kind {
                    20..23 => Flags::FUA,
                    23..25 => Flags::PREFLUSH | Flags::FUA,
                    25 => Flags::PREFLUSH,
                    _ => Flags::NONE,
                };
                self.driver.write(lba, sectors, self.tag + 1, flags);
                if flags.has(Flags::PREFLUSH) {
                    self.histories.iter_mut().for_each(History::cover);
                }
                for history in &mut self.histories[range] {
                    self.tag += 1;
                    history.push(self.tag);
                    if flags.has(Flags::FUA) {
                        history.cover();
                    }
                }
            }
        }
    }

    fn run(mut self, operations: u64) -> Self {
        for number in 1..=operations {
            self.operate();
            if number % 1_000 == 0 {
                self.driver.check();
            }
        }
        self
    }

    /// Every sector reads as its last version.
    fn check(&mut self) {
        self.driver.check();
        for lba in 0..self.histories.len() {
            let seen = self.driver.read(lba as u64);
            assert_eq!(seen, holds(self.histories[lba].last()), "lba {lba}");
        }
    }

    /// Cuts power; every sector then holds a version that it may, for good.
    fn cut(mut self) -> Self {
        self.driver = self.driver.power_cut();
        for lba in 0..self.histories.len() {
            let seen = self.driver.read(lba as u64);
            let history = &mut self.histories[lba];
            let Some(tag) = history.permits(&seen) else {
                panic!("lba {lba}: {seen:?}, may hold {:?}", history.0)
            };
            history.0 = vec![tag];
        }
        self
    }
}

fn survives(timing: &str, config: Config) -> Load {
    let mut load = Load::new(Driver::new(timing, config), 7).run(30_000);
    load.check();
    let report = load.driver.ssd.report();
    assert!(report.gc.victims > 20, "garbage was collected: {report:?}");
    load
}

#[test]
fn a_load_survives_without_timing() {
    survives("none", config());
}

#[test]
fn a_load_survives_with_timing() {
    survives("nvmevirt-970pro", config());
}

#[test]
fn a_load_survives_with_every_victim_policy() {
    for victim in
        [Victim::CostBenefit, Victim::Fifo, Victim::Random, Victim::DChoices(4), Victim::PblkLists]
    {
        survives("qemu-ocssd", Config { victim, ..config() });
    }
}

#[test]
fn a_load_survives_with_little_overprovisioning() {
    for op_percent in [19, 30, 50] {
        survives("none", Config { op_percent, ..config() });
    }
}

#[test]
fn a_load_survives_on_one_instance() {
    for instances in [1, 2] {
        survives("none", Config { instances, ..config() });
    }
}

#[test]
fn a_load_survives_with_large_mapping_units() {
    for map_unit_bytes in [8 << 10, 16 << 10, 64 << 10] {
        let config = large_units(map_unit_bytes);
        survives("none", config.clone());
        survives("nvmevirt-970pro", config);
    }
}

#[test]
fn a_load_survives_in_a_power_safe_buffer() {
    survives("nvmevirt-970pro", power_safe());
}

#[test]
fn a_load_survives_without_early_completion() {
    let buffer = BufferConfig { early_completion: false, ..config().buffer };
    survives("qemu-ocssd", Config { buffer, ..config() });
}

/// Rounds of load and power cuts at random instants: nothing that was promised is lost, whatever was in flight.
fn cuts(timing: &str, config: Config, rounds: u64) {
    let mut load = Load::new(Driver::new(timing, config), 3).run(4_000);
    for round in 0..rounds {
        let operations = 1 + load.rng.below(300);
        load = load.run(operations);
        // Somewhere between events: programs are in flight.
        load.driver.now = Nanos(load.driver.now.0 + load.rng.below(200_000));
        let mut done = Vec::new();
        load.driver.ssd.advance(load.driver.now, &mut done);
        load = load.cut();
        if round % 8 == 0 {
            load = load.cut();
        }
    }
    load.run(4_000).check();
}

#[test]
fn power_cuts_lose_nothing_that_was_flushed() {
    cuts("nvmevirt-970pro", config(), 40);
    cuts("qemu-ocssd", config(), 40);
    cuts("none", config(), 20);
}

#[test]
fn power_cuts_spare_large_mapping_units() {
    cuts("qemu-ocssd", large_units(16 << 10), 40);
    cuts("qemu-ocssd", large_units(64 << 10), 20);
}
