//! What the FTL's work costs the host's CPU: how far threads scale, against closed forms; where the time of
//! an fsync goes; and that what is acknowledged is safe all the same.

use crate::common::{Driver, GEOMETRY, config};
use nandscape_block::{
    Bio, BlockDevice, Flags, FlushScope as BioScope, Lba, Owner, Payload, Submit, Tag, Token,
};
use nandscape_ftl::pblk::config::{
    BaseRouting, CacheSize, Config, CoreChoice, FileRouting, FlushScope, MapConfig, MapKind,
    Routing,
};
use nandscape_ftl::pblk::costs::{CpuCosts, MapUpdate};
use nandscape_ftl::{CpuTrack, Ftl};
use nandscape_rt::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const TIMED: &str = "nvmevirt-970pro";
const CORES: u32 = 4;
const WRITES: u64 = 6_000;

fn single(cpu: CpuCosts) -> Config {
    Config { cpu, write_buffers: CORES, op_percent: Some(40), ..config() }
}

fn per_core(cpu: CpuCosts) -> Config {
    let base = BaseRouting::PerCore(CoreChoice::Core);
    Config { routing: Routing { base, ..Routing::default() }, ..single(cpu) }
}

fn write_of(thread: u16, lba: u64) -> Bio {
    let owner = Owner { file: u64::from(thread), generation: 0, thread, core: thread };
    Bio { owner: Some(owner), ..Bio::write(Lba(lba), 1, Payload::Run(Tag::new(lba + 1))) }
}

/// Threads that each write one sector after the other; when each write completed.
fn race(driver: &mut Driver, threads: u16) -> Vec<Nanos> {
    let begun = driver.now;
    let mut next: BinaryHeap<_> = (0..threads).map(|thread| Reverse((begun, thread))).collect();
    let (mut ends, mut done, mut lba) = (Vec::new(), Vec::new(), 0);
    while (ends.len() as u64) < WRITES {
        let event = driver.ftl.next_event();
        let free = next.peek().map(|Reverse((at, _))| *at);
        if let Some(at) = event.filter(|&at| free.is_none_or(|free| at <= free)) {
            driver.ftl.advance(at, &mut done);
            driver.now = driver.now.max(at);
        } else if let Some(Reverse((at, thread))) = next.pop() {
            driver.now = at;
            lba += 1;
            let bio = write_of(thread, lba - 1);
            if let Submit::Done(outcome) = driver.ftl.submit(at, bio, Token(u64::from(thread))) {
                next.push(Reverse((outcome.at, thread)));
                ends.push(outcome.at - begun);
            }
        }
        for completion in done.drain(..) {
            next.push(Reverse((completion.done.at, completion.token.0 as u16)));
            ends.push(completion.done.at - begun);
        }
    }
    ends
}

/// Nanoseconds from one write to the next, on a medium that costs no time and behind the writes that an empty
/// buffer takes.
fn interval_ns(config: Config, threads: u16) -> f64 {
    let ends = race(&mut Driver::new("none", config), threads);
    let first = ends.len() / 4;
    (ends[ends.len() - 1] - ends[first]).0 as f64 / (ends.len() - 1 - first) as f64
}

fn assert_near(got: f64, expected: f64, what: &str) {
    assert!((got / expected - 1.0).abs() < 0.01, "{what}: {got} ns a write, expected {expected}");
}

/// One buffer takes a write for each time that its lock is held, however many threads there are; with a
/// buffer a core they scale until the cores are taken. Threads do not wait for each other before that.
#[test]
fn one_lock_bounds_all_threads_and_a_lock_a_core_does_not() {
    let (submit, ring, copy) = (1_500, 1_000, 500);
    let cpu = CpuCosts {
        submit_ns: submit,
        ring_sector_ns: ring,
        copy_sector_ns: copy,
        ..CpuCosts::default()
    };
    let alone = (submit + ring + copy) as f64;
    for threads in 1..=8 {
        let at_once = f64::from(u32::from(threads).min(CORES));
        let bound = (alone / at_once).max(ring as f64);
        assert_near(interval_ns(single(cpu), threads), bound, &format!("{threads} on one lock"));
        let got = interval_ns(per_core(cpu), threads);
        assert_near(got, alone / at_once, &format!("{threads} on locks of their own"));
    }
}

/// A lock for the whole mapping bounds buffers of their own too; atomic entries do not.
#[test]
fn the_mappings_lock_bounds_buffers_of_their_own() {
    let cpu = CpuCosts { map_sector_ns: 1_000, copy_sector_ns: 500, ..CpuCosts::default() };
    assert_near(interval_ns(per_core(cpu), 8), 1_000.0, "locked");
    let atomic = Config { map_update: MapUpdate::Atomic, ..per_core(cpu) };
    assert_near(interval_ns(atomic, 8), 1_500.0 / f64::from(CORES), "atomic");
}

/// One writer thread makes one command after the other; a thread a core, as many at once as there are
/// cores to run on.
#[test]
fn writer_threads_bound_what_reaches_the_media() {
    let cpu = CpuCosts { writer_unit_ns: 20_000, writer_sector_ns: 500, ..CpuCosts::default() };
    let command = (20_000 + 8 * 500) as f64 / 8.0;
    assert_near(interval_ns(single(cpu), 8), command, "one writer");
    let many = interval_ns(per_core(cpu), 8);
    assert!(many < command / f64::from(CORES) * 1.1, "{many} ns a write with a writer a core");
    let crowded = interval_ns(Config { write_buffers: 1, ..single(cpu) }, 8);
    assert_near(crowded, command, "one core");
}

/// A cached map with blocks of one sector, of which so many fit, and what its thread's commands cost.
fn cached(blocks: u64) -> Config {
    let cpu = CpuCosts { map_command_ns: 20_000, map_block_sector_ns: 500, ..CpuCosts::default() };
    let cache = CacheSize::Bytes(blocks * 4_096);
    let map = MapConfig { block_bytes: 4_096, cache, loads_max: 8, ..MapConfig::default() };
    Config { map: MapKind::Cached(map), ..single(cpu) }
}

/// With room for what copying through two blocks pads.
fn cached_barely() -> Config {
    Config { op_percent: Some(60), ..cached(2) }
}

fn per_core_cached() -> Config {
    Config { routing: per_core(CpuCosts::default()).routing, ..cached_barely() }
}

/// One thread reads and writes mapping blocks: of misses at one instant, first comes a unit of victims that make
/// room for all, then one load after the other.
#[test]
fn the_mapping_thread_loads_one_block_after_the_other() {
    let mut driver = Driver::new("none", cached(8));
    let sectors = driver.sectors();
    driver.write_run(0, sectors, 1);
    driver.flush();
    driver.settle();
    let begun = driver.now;
    for block in 0..3 {
        let read = Bio { owner: write_of(0, 0).owner, ..Bio::read(Lba(block * 1_024), 1) };
        assert_eq!(driver.submit(read, block), None);
    }
    let mut ends = vec![Nanos::ZERO; 3];
    while ends.contains(&Nanos::ZERO) {
        for completion in driver.step() {
            ends[completion.token.0 as usize] = completion.done.at - begun;
        }
    }
    let write_back = 20_000 + u64::from(GEOMETRY.ws_opt) * 500;
    let expected: Vec<_> = (1..=3).map(|number| Nanos(write_back + number * 20_500)).collect();
    assert_eq!(ends, expected);
}

/// Loads and write-backs take what they cost: a command each, and every sector of it.
#[test]
fn the_mapping_thread_is_charged_for_loads_and_write_backs() {
    let mut driver = Driver::new(TIMED, cached_barely());
    let sectors = driver.sectors();
    for round in 0..40 {
        for lba in (round..sectors).step_by(1_024) {
            driver.write(lba, lba + 1, Flags::NONE);
        }
        driver.flush();
    }
    let (report, detail) = (driver.report(), driver.detail());
    let (map, cpu) = (detail.map.expect("a cached map"), detail.cpu.expect("charged"));
    assert!(map.loads > 40 && map.write_backs > 40 && map.victims == 0, "{map:?}");
    let units = report.sectors.map / u64::from(GEOMETRY.ws_opt);
    assert_eq!(cpu.mapper.jobs, map.loads + units, "{map:?}");
    let moved = map.read_sectors + report.sectors.map;
    assert_eq!(cpu.mapper.busy_ns, cpu.mapper.jobs * 20_000 + moved * 500, "{map:?}");
}

/// Where the medium is slower than all that, it alone decides.
#[test]
fn a_slow_medium_hides_the_host() {
    let cpu = CpuCosts { ring_sector_ns: 50, writer_sector_ns: 50, ..CpuCosts::default() };
    let last = |config: Config| {
        let ends = race(&mut Driver::new(TIMED, config), 8);
        ends[ends.len() - 1].0 as f64
    };
    assert_near(last(single(cpu)), last(single(CpuCosts::default())), "total");
}

/// The same run ends the same, to the nanosecond and in everything counted.
#[test]
fn the_host_is_deterministic() {
    let cpu = CpuCosts::preset("qemu").expect("a preset");
    let run = || {
        let mut driver = Driver::new(TIMED, per_core(cpu));
        let ends = race(&mut driver, 7);
        (ends, driver.report())
    };
    let (ends, stats) = run();
    assert_eq!((ends, stats), run());
}

/// The time of every fsync is explained to the nanosecond: the way in, what was ahead, building the
/// command, and the program.
#[test]
fn the_parts_of_an_fsyncs_time_add_up() {
    let cpu = CpuCosts::preset("qemu").expect("a preset");
    let routing = Routing { files: FileRouting::FsyncAware, ..per_core(cpu).routing };
    let config = Config { routing, flush_scope: FlushScope::FileRing, ..per_core(cpu) };
    let mut driver = Driver::new(TIMED, config);
    let mut lba = 0;
    for round in 0..60_u64 {
        for thread in 0..5 {
            // Left under way, so that the fsync meets others on cores, locks and units.
            for _ in 0..3 + round % 4 {
                assert_eq!(driver.submit(write_of(thread, lba), 1_000 + lba), None);
                lba += 1;
            }
        }
        let before = driver.report().flush;
        let begun = driver.now;
        let mut fsync = Bio { scope: BioScope::Owner, ..write_of(4, 0) };
        (fsync.op, fsync.sectors, fsync.payload) = (Bio::flush().op, 0, Payload::None);
        assert_eq!(driver.submit(fsync, 1), None);
        let ended = loop {
            let found = driver.step().into_iter().find(|completion| completion.token == Token(1));
            if let Some(completion) = found {
                break completion.done.at;
            }
        };
        let after = driver.report().flush;
        let parts = |flush: nandscape_ftl::FlushTime| {
            flush.cpu_ns
                + flush.queue_ns
                + flush.gc_ns
                + flush.writer_ns
                + flush.padding_ns
                + flush.program_ns
        };
        assert_eq!(after.waited, before.waited + 1);
        assert_eq!(after.total_ns - before.total_ns, (ended - begun).0);
        assert_eq!(parts(after), after.total_ns, "{after:?}");
    }
    let flush = driver.report().flush;
    assert!(flush.cpu_ns > 0 && flush.writer_ns > 0 && flush.program_ns > 0, "{flush:?}");
}

/// What a flush covered survives a power cut while commands are being built; garbage collection goes on.
#[test]
fn a_flush_covers_its_writes_through_power_cuts() {
    let cpu = CpuCosts::preset("null-block").expect("a preset");
    let mut driver = Driver::new(TIMED, single(cpu));
    let sectors = driver.sectors();
    driver.write_run(0, sectors, 1);
    let mut expected: Vec<u64> = (1..=sectors).collect();
    for round in 0..4 {
        driver.overwrite(&mut expected, 0, sectors / 2, round);
        driver.flush();
        driver.ftl.check_invariants().expect("invariants");
        assert!(round == 0 || driver.report().sectors.gc > 0, "collects");
        for lba in 0..20 {
            driver.submit(write_of(0, sectors - 1 - lba), 9_000 + lba);
        }
        driver = driver.power_cut(single(cpu));
        driver.check(&expected[..sectors as usize - 20]);
        for lba in sectors - 20..sectors {
            driver.write(lba, expected[lba as usize], Flags::NONE);
        }
    }
    let counts = driver.detail().cpu.expect("charged");
    assert!(counts.writers[0].jobs > 0 && counts.rings[0].taken > 0, "{counts:?}");
}

/// Neither a core nor a thread nor a lock does two things at the same time.
#[test]
fn spans_of_one_track_never_overlap() {
    let cpu = CpuCosts::preset("null-block").expect("a preset");
    let mut driver = Driver::new("none", Config { cpu, ..per_core_cached() });
    driver.ftl.cpu_spans(Some(1 << 20));
    race(&mut driver, 8);
    let mut ends: BTreeMap<String, Nanos> = BTreeMap::new();
    let spans = driver.ftl.cpu_spans(None);
    for span in &spans {
        let end = ends.entry(format!("{:?}", span.track)).or_default();
        assert!(span.start >= *end, "{span:?} before {end}");
        *end = span.end;
    }
    let tracks = [CpuTrack::Core(3), CpuTrack::Writer(3), CpuTrack::Ring(3)];
    let tracks = [&tracks[..], &[CpuTrack::Map, CpuTrack::Mapper]].concat();
    assert!(tracks.iter().all(|track| spans.iter().any(|span| span.track == *track)));
    assert_eq!(driver.ftl.cpu_spans(None), []);
}
