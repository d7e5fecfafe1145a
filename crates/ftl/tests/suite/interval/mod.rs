//! The SSD of IPLFS: an address space larger than its media, append-only regions that refuse overwrites and nothing else,
//! discards of any length, promises that survive power cuts, and maps whose memory follows what is live.

pub(crate) mod driver;
mod log;

use driver::{Driver, GEOMETRY, config, holds, power_safe};
use log::Log;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Done, Flags, Lba, Payload, RegionKind, Reply, Tag,
};
use nandscape_ftl::device::{Config as PagesConfig, Schedule};
use nandscape_ftl::interval::Config;
use nandscape_ftl::{Ftl, FtlError, FtlRun, OmittedRule};
use nandscape_media::{Faults, Geometry};
use nandscape_rt::{Nanos, Stream};

const PARTITION: u64 = 1 << 16;

fn region_error(result: Result<Reply, BlockError>) -> (u64, &'static str) {
    let Err(BlockError::Region { lba, what }) = result else { panic!("{result:?}") };
    (lba.0, what)
}

fn write(driver: &mut Driver, lba: u64, sectors: u32) -> Result<Reply, BlockError> {
    driver.run(Bio::write(Lba(lba), sectors, Payload::Run(Tag::new(7)))).result
}

/// The regions are those of the port to NVMeVirt at its default size: 2 TiB for each log, and no address whose
/// out-of-band key means something else.
#[test]
fn the_address_space_is_that_of_32_bits() {
    let wide = Config { pages: config().pages, ..Config::default() };
    let driver = Driver::new("none", wide);
    let caps = driver.caps();
    assert_eq!(caps.check_regions(), Ok(()));
    assert_eq!((driver.sectors(), caps.live_sectors()), (7 << 29, 20_480 * 7 / 10));
    let regions: Vec<_> = caps.regions().map(|region| (region.range, region.kind)).collect();
    assert_eq!(regions[0], (0..20_480 / 32, RegionKind::Random));
    for (log, region) in (1_u64..).zip(&regions[1..]) {
        assert_eq!(*region, (log << 29..(log + 1) << 29, RegionKind::Append));
    }
    assert_eq!(regions.len(), 7);
    assert_eq!(caps.superblocks, None);
    let mut driver = driver;
    let last = (7 << 29) - 1;
    driver.write(last, 5, Flags::FUA);
    let mut driver = driver.power_cut();
    assert_eq!(driver.read(last), holds(5));
    assert!(driver.run(Bio::read(Lba(20_480 / 32), 1)).result.is_err(), "a gap");
}

/// An overwrite in a log is refused as a whole and changes nothing; the metadata region takes it.
#[test]
fn overwrites_of_logs_are_refused() {
    let mut driver = Driver::new("none", config());
    let log = PARTITION;
    assert!(write(&mut driver, log + 4, 4).is_ok());
    let what = "an overwrite in an append-only region";
    assert_eq!(region_error(write(&mut driver, log, 6)), (log + 4, what));
    assert_eq!(driver.read(log), holds(0));
    driver.run(Bio::discard(Lba(log + 5), 1));
    assert_eq!(region_error(write(&mut driver, log + 4, 2)), (log + 4, what));
    assert!(write(&mut driver, log + 5, 1).is_ok());
    for _ in 0..2 {
        assert!(write(&mut driver, 0, 8).is_ok());
    }
    driver.check();
}

/// As many sectors hold data as the media hold, in whatever regions; a discard makes room at once.
#[test]
fn live_sectors_are_bounded() {
    let mut driver = Driver::new("none", config());
    let most = driver.caps().live_sectors();
    for first in (0..most).step_by(16) {
        let sectors = 16.min(most - first) as u32;
        assert!(write(&mut driver, PARTITION * (1 + first % 6) + first, sectors).is_ok());
    }
    let what = "more live sectors than the device holds";
    assert_eq!(region_error(write(&mut driver, 3, 1)), (3, what));
    assert_eq!(region_error(write(&mut driver, 2 * PARTITION - 1, 1)), (2 * PARTITION - 1, what));
    driver.run(Bio::discard(Lba(PARTITION), 1));
    assert!(write(&mut driver, 3, 1).is_ok() && write(&mut driver, 3, 1).is_ok());
    assert_eq!(driver.ftl.mapped_sectors(), most);
    driver.check();
}

/// What a power cut brings back has room beside what was written since: writes wait for the discards that made it.
#[test]
fn discards_make_room_when_they_are_durable() {
    let mut driver = Driver::new("nvmevirt-970pro", config());
    let most = driver.caps().live_sectors();
    for first in (0..most).step_by(16) {
        assert!(write(&mut driver, PARTITION + first, 16).is_ok());
    }
    driver.flush();
    for first in (0..1_600).step_by(16) {
        driver.run(Bio::discard(Lba(PARTITION + first), 16));
        assert!(write(&mut driver, 2 * PARTITION + first, 16).is_ok());
    }
    let mapped = driver.power_cut().ftl.mapped_sectors();
    assert!(mapped <= most, "{mapped} of {most}");
}

/// What a full device shows after a power cut some time after a discard and a write that needs its room. Instance 0, which the
/// record goes to, has other pages to program first; instance 1, which the write fills a page of, has not.
fn mapped_after_a_late_record(cut_after: Nanos) -> (u64, u64) {
    let mut driver = Driver::new("nvmevirt-970pro", config());
    let most = driver.caps().live_sectors();
    let metadata = 40;
    let of_instance_0 = |index: u64| 4 * index;
    (0..metadata).for_each(|index| driver.write(of_instance_0(index), 1, Flags::NONE));
    for first in (metadata..most).step_by(8) {
        assert!(write(&mut driver, PARTITION + first, 8).is_ok());
    }
    driver.flush();
    (0..metadata).for_each(|index| driver.write(of_instance_0(index), 2, Flags::NONE));
    driver.run(Bio::discard(Lba(PARTITION + metadata), 64));
    for index in 0..16 {
        let of_instance_1 = Lba(2 * PARTITION + 1 + 4 * index);
        driver.submit(Bio::write(of_instance_1, 1, Payload::Run(Tag::new(3))), 2 + index);
    }
    let cut = driver.now + cut_after;
    while driver.ftl.next_event().is_some_and(|at| at <= cut) {
        driver.step();
    }
    (driver.cut(cut).ftl.mapped_sectors(), most)
}

/// A write waits for the record of the discard that makes room for it, however long that takes.
#[test]
fn room_comes_with_the_record_of_a_discard() {
    for cut_after in (0..100).map(|step| Nanos::from_us(100 * step)) {
        let (mapped, most) = mapped_after_a_late_record(cut_after);
        assert!(mapped <= most, "{cut_after} later: {mapped} of {most}");
    }
}

/// All live sectors where addresses of one instance are: others take them, and collection goes on.
#[test]
fn addresses_of_one_instance_fill_all() {
    let mut driver = Driver::new("none", config());
    let most = driver.caps().live_sectors();
    let at = |index: u64| PARTITION * (1 + index % 6) + index / 6 * 4;
    for index in 0..most + 30_000 {
        if index >= most {
            driver.run(Bio::discard(Lba(at(index - most)), 1));
        }
        driver.write(at(index), index, Flags::NONE);
    }
    let gc = driver.ftl.report().gc;
    assert!(gc.victims + gc.empty_victims > 200, "{gc:?}");
    driver.check();
    let driver = driver.power_cut();
    let mapped = driver.ftl.mapped_sectors();
    assert!(mapped <= most, "a power cut brought discarded sectors back: {mapped}");
}

/// A host that has as many live sectors as there may be and discards them one by one, in no order, where erase units are
/// small beside the records of one compaction. What it has, and how its last command ended.
fn discard_at_random(
    timing: &str,
    schedule: Schedule,
    omit: Option<OmittedRule>,
) -> (Driver, Vec<u64>, Done) {
    let short = Geometry { chunks: 400, sectors: 16, ..GEOMETRY };
    let pages = PagesConfig { op_hundredths: 35 * 100, schedule, ..config().pages };
    let wide = Config { partition_bits: 20, pages, ..config() };
    let run = FtlRun { omit, ..FtlRun::default() };
    let mut driver = Driver::on(short, timing, Faults::default(), wide, run);
    let most = driver.caps().live_sectors();
    let mut rng = Stream::new(1, "discards");
    let mut live = Vec::new();
    for at in (1 << 20..).take(5 * most as usize / 2) {
        if live.len() as u64 == most {
            let gone = live.swap_remove(rng.below(most) as usize);
            driver.run(Bio::discard(Lba(gone), 1));
        }
        let done = driver.run(Bio::write(Lba(at), 1, Payload::Run(Tag::new(at))));
        if done.result.is_err() {
            return (driver, live, done);
        }
        live.push(at);
    }
    let done = driver.flush();
    (driver, live, done)
}

/// The records of a compaction find places, and collection goes on. Without the rule they take what collection needs, unless
/// it has collected so far ahead that enough is left.
#[test]
fn compacted_records_find_places() {
    let timings = ["none", "nvmevirt-970pro"];
    let schedules = [Schedule::Nvmevirt, Schedule::Femu, Schedule::Pipelined];
    for (timing, schedule) in timings.into_iter().flat_map(|t| schedules.map(|s| (t, s))) {
        let (driver, live, done) = discard_at_random(timing, schedule, None);
        assert_eq!(done.result, Ok(Reply::None), "{timing}");
        let own = driver.own();
        assert!(own.trim_compactions > 5, "{timing}: {own:?}");
        let mut driver = driver.power_cut();
        assert_eq!(driver.ftl.mapped_sectors(), live.len() as u64);
        for at in live {
            assert_eq!(driver.read(at), holds(at), "lba {at}");
        }
    }
    for timing in timings {
        let omitted = Some(OmittedRule::RecordPlaces);
        let (_, _, done) = discard_at_random(timing, Schedule::Nvmevirt, omitted);
        let what = "no free erase unit, and nothing to collect";
        assert_eq!(done.result, Err(BlockError::ReadOnly(what.into())), "{timing}");
    }
}

/// A discard of a whole log costs as little as one of a sector, and its record is one.
#[test]
fn a_discard_of_everything_is_one_record() {
    let wide = Config { pages: config().pages, ..Config::default() };
    let mut driver = Driver::new("none", wide);
    for log in 1..=6_u64 {
        assert!(write(&mut driver, (log << 29) + 1_000_000 * log, 64).is_ok());
    }
    driver.flush();
    driver.run(Bio::discard(Lba(1 << 29), (6 << 29) as u32));
    driver.flush();
    assert_eq!((driver.ftl.mapped_sectors(), driver.ftl.report().sectors.trim), (0, 1));
    let mut driver = driver.power_cut();
    for log in 1..=6_u64 {
        assert_eq!(driver.read((log << 29) + 1_000_000 * log), holds(0));
    }
    assert!(write(&mut driver, (1 << 29) + 1_000_000, 64).is_ok());
    driver.check();
}

/// Logs that go on and on, discards of what was superseded, power cuts: everything that was flushed is there, and
/// nothing that was discarded.
#[test]
fn logs_survive() {
    for (timing, config) in
        [("none", config()), ("nvmevirt-970pro", config()), ("nvmevirt-970pro", power_safe())]
    {
        let mut log = Log::new(Driver::new(timing, config), 3);
        for _ in 0..4 {
            log.run(12_000);
            log.driver.check();
            log = log.power_cut();
            log.check();
        }
        assert!(log.collected > 40, "{timing}: {} victims", log.collected);
        assert!(log.own.trim_compactions > 0, "{timing}: {:?}", log.own);
        // Without timing no virtual time passes, and nothing is due.
        assert_eq!(log.own.compacted > 0, timing != "none", "{timing}: {:?}", log.own);
    }
}

/// The map's memory is that of what is live: after the logs have moved on by many times the media it is what it was.
#[test]
fn memory_follows_what_is_live() {
    let mut log = Log::new(Driver::new("nvmevirt-970pro", config()), 4);
    log.run(100_000);
    let entries = |log: &Log| {
        let memory = log.driver.ftl.memory();
        let sum: u64 = memory.map.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(memory.part("map"), sum, "parts are all there is");
        memory.map.iter().find(|(part, _)| *part == "entries").map_or(0, |(_, bytes)| *bytes)
    };
    let before = entries(&log);
    log.run(100_000);
    let after = entries(&log);
    assert!(after < before + before / 4, "{before} bytes of entries became {after}");
}

/// While maps are compacted nothing else is done: a command that comes meanwhile waits, one after it does not.
#[test]
fn compaction_delays_commands() {
    let slow = Config { compact_bytes_per_s: 1 << 20, ..config() };
    let mut driver = Driver::new("nvmevirt-970pro", slow);
    driver.write_sectors(PARTITION, 256, 1, Flags::NONE);
    driver.flush();
    let read = |driver: &mut Driver| {
        let began = driver.now;
        driver.read(PARTITION + 250).expect("there");
        driver.now - began
    };
    let next_period = |now: Nanos| Nanos((now.0 / 1_000_000 + 1) * 1_000_000);
    driver.now = next_period(driver.now);
    driver.run(Bio::discard(Lba(PARTITION), 200));
    let usual = read(&mut driver);
    driver.now = next_period(driver.now);
    let delayed = read(&mut driver);
    let own = driver.own();
    // 32 bytes of bitmap, and a directory and 56 entries, at a MiB per second.
    assert_eq!((own.compacted, own.read_bytes, own.copied_bytes), (1, 32, 2 + 56 * 4));
    assert_eq!(own.busy_ns, (32 + 2 + 224) * 1_000_000_000 / (1 << 20));
    assert!(delayed > usual && delayed - usual <= Nanos(own.busy_ns), "{usual} {delayed}");
    assert_eq!(read(&mut driver), usual);
}

/// What does not fit is refused with its key.
#[test]
fn choices_that_do_not_fit_are_refused() {
    let key = |config: Config| match config.sizes(&GEOMETRY) {
        Err(FtlError::Config { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    let pages = |map_unit_bytes, op_hundredths| {
        let pages = config().pages;
        nandscape_ftl::device::Config { map_unit_bytes, op_hundredths, ..pages }
    };
    let plain = config();
    assert_eq!(key(Config { partition_bits: 30, ..plain.clone() }), "ftl.map.partition");
    assert_eq!(key(Config { leaf_bits: 16, ..plain.clone() }), "ftl.map.node");
    assert_eq!(key(Config { random_bytes: 1 << 30, ..plain.clone() }), "ftl.random.size");
    assert_eq!(key(Config { pages: pages(8192, 3_000), ..plain.clone() }), "ftl.map_unit");
    assert_eq!(key(Config { pages: pages(4096, 100), ..plain }), "ftl.op_percent");
}

/// The overprovisioning of a conventional SSD is enough at the sizes that ship, 8 GiB, and at 256 GiB.
#[test]
fn usual_overprovisioning_is_enough() {
    for (chunks, sectors) in [(512, 256), (8192, 512)] {
        let geometry = nandscape_media::Geometry {
            groups: 8,
            units: 2,
            chunks,
            sectors,
            ws_min: 8,
            ..GEOMETRY
        };
        let fits = Config::default().sizes(&geometry);
        assert!(fits.is_ok(), "{fits:?}");
    }
}
