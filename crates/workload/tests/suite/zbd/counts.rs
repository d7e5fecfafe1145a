//! With one request in flight, jobs do to zones what the model says, command by command; what is counted is
//! what the device was asked for.

use crate::common::{TestDevice, jobs, run};
use crate::zbd::device::{ZonedDevice, caps};
use crate::zbd::jobs::{Job, Shape};
use crate::zbd::model::{Event, Model};
use nandscape_block::zone::ZoneLimits;
use nandscape_block::{Bio, BlockDevice, DeviceCaps, Op};
use nandscape_workload::Direction;
use nandscape_workload::engine::{Engine, NoProbe, Options, Results};
use proptest::collection::vec;
use proptest::prelude::*;

/// What each job draws, on a device without zones.
fn draws(shape: &Shape, list: &[Job]) -> Vec<Vec<(char, u64)>> {
    let text: String = list.iter().map(|job| job.drawn(shape)).collect();
    let mut device = TestDevice::new(shape.all() * shape.zone);
    assert!(!run(&text, &mut device).failed());
    let mut draws = vec![Vec::new(); list.len()];
    for (_, bio) in &device.log {
        let letter = match bio.op {
            Op::Read => 'r',
            Op::Write => 'w',
            _ => 't',
        };
        draws[bio.owner.unwrap().file as usize].push((letter, bio.lba.0));
    }
    draws
}

fn limits(shape: &Shape) -> ZoneLimits {
    ZoneLimits {
        zone_sectors: shape.zone,
        capacity: shape.capacity,
        write_sectors: 1,
        ..ZoneLimits::default()
    }
}

fn run_on<D: BlockDevice>(text: &str, device: &mut D) -> Results<()> {
    let mut engine = Engine::new(&jobs(text), device.caps(), &Options::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    engine.run_until(device, &mut NoProbe, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let results = engine.finish();
    assert!(!results.failed(), "{text}");
    results
}

/// What a bio does to the device.
fn event(shape: &Shape, bio: &Bio) -> Event {
    match bio.op {
        Op::Read => Event::Read(bio.lba.0),
        Op::Write => Event::Write(bio.lba.0),
        Op::Zone(zone, _) => Event::Reset(u64::from(zone.0) + shape.random),
        _ => Event::Trim(bio.lba.0),
    }
}

/// Zones of a job whose first sector it wrote, and those that it filled.
fn begun_and_filled(shape: &Shape, block: u64, events: &[Event]) -> (u64, u64) {
    let (mut begun, mut filled) = (0, 0);
    for event in events {
        if let Event::Write(lba) = event
            && lba / shape.zone >= shape.random
        {
            begun += u64::from(lba % shape.zone == 0);
            filled += u64::from(lba % shape.zone + 2 * block > shape.capacity);
        }
    }
    (begun, filled)
}

/// Runs jobs on zones of the device, or on thought ones, and compares each with the model.
fn agree(shape: &Shape, list: &[Job], thinks: bool) {
    let draws = draws(shape, list);
    let mut model = shape.model();
    let begins_again = |(job, draws): (&Job, &Vec<_>)| {
        model.pass(job.rules(shape), draws);
        model.begins_again
    };
    if list.iter().zip(&draws).any(begins_again) {
        return;
    }
    let text: String = list.iter().map(|job| job.drawn(shape) + &job.zoned()).collect();
    let text = format!("[global]\n{}{text}", shape.global(thinks));
    let (log, results): (Vec<Bio>, _) = if thinks {
        let mut device = TestDevice::new(shape.all() * shape.zone);
        let results = run_on(&text, &mut device);
        (device.log.into_iter().map(|(_, bio)| bio).collect(), results)
    } else {
        let mut device =
            ZonedDevice::new(caps(shape.random * shape.zone, shape.zones, limits(shape)));
        let results = run_on(&text, &mut device);
        check_zones(shape, &mut device, list, &draws);
        (device.log.into_iter().map(|served| served.bio).collect(), results)
    };
    let mut model = shape.model();
    for (number, (job, draws)) in list.iter().zip(&draws).enumerate() {
        let expected = model.pass(job.rules(shape), draws);
        let of_job = |bio: &&Bio| bio.owner.unwrap().file == number as u64;
        let mut got: Vec<Event> = log.iter().filter(of_job).map(|bio| event(shape, bio)).collect();
        let resets = |events: &[Event]| {
            events.iter().filter(|event| matches!(event, Event::Reset(_))).count() as u64
        };
        let counts = results.jobs[number].zones.as_ref().unwrap();
        assert_eq!(counts.resets, resets(&expected), "{text}{draws:?}");
        let mut expected = expected;
        if thinks {
            expected.retain(|event| !matches!(event, Event::Reset(_)));
            got.retain(|event| !matches!(event, Event::Reset(_)));
        }
        assert_eq!(got, expected, "{text}{draws:?}");
        let written = begun_and_filled(shape, job.block(shape), &expected);
        assert_eq!((counts.begun, counts.filled), written, "{text}");
        let writes =
            expected.iter().filter(|event| matches!(event, Event::Write(_))).count() as u64;
        assert_eq!(results.jobs[number].direction(Direction::Write).ios, writes);
    }
}

/// The device's write pointers are the model's at the end.
fn check_zones(shape: &Shape, device: &mut ZonedDevice, list: &[Job], draws: &[Vec<(char, u64)>]) {
    let mut model: Model = shape.model();
    for (job, draws) in list.iter().zip(draws) {
        model.pass(job.rules(shape), draws);
    }
    let expected: Vec<u64> = model.zones.iter().flatten().copied().collect();
    let got: Vec<u64> = device.report().iter().map(|zone| zone.written()).collect();
    assert_eq!(got, expected);
}

fn shape() -> impl Strategy<Value = Shape> {
    let sizes = prop_oneof![Just((16, 16)), Just((16, 12)), Just((24, 18)), Just((8, 4))];
    (sizes, 0..3_u64, 2..9_u64, 0..5_u32).prop_map(|((zone, capacity), random, zones, max_open)| {
        Shape { zone, capacity, random, zones, max_open }
    })
}

const WORDS: &[&str] =
    &["write", "read", "randwrite", "randread", "rw", "randrw", "trim", "randtrim", "randwrite"];

fn job() -> impl Strategy<Value = Job> {
    let word = prop::sample::select(WORDS);
    let resets = prop_oneof![
        3 => Just((0.0, 0.0)),
        1 => (0.0..1.0_f64, prop::sample::select(vec![1.0, 0.5, 0.3, 0.1])),
    ];
    let range = prop_oneof![2 => Just((0.0, 1.0)), 1 => (0.0..1.0_f64, 0.0..1.0_f64)];
    (word, 1..5_u64, 1..160_u64, prop::bool::weighted(0.1), resets, range).prop_map(
        |(rw, block, ios, reads_beyond, (threshold, frequency), (first, share))| {
            // The range is a share of the zones, which `fit` makes of it.
            let range = ((first * 100.0) as u64, (share * 100.0) as u64);
            Job { rw, block, ios, reads_beyond, threshold, frequency, range }
        },
    )
}

/// The job within these zones.
fn fit(mut job: Job, shape: &Shape) -> Job {
    let all = shape.all();
    let first = job.range.0 * (all - 1) / 100;
    job.range = (first, (job.range.1 * (all - first) / 100).max(1));
    // The model is one for blocks that divide what a zone holds.
    while ![shape.capacity, shape.zone].iter().all(|sectors| sectors.is_multiple_of(job.block)) {
        job.block -= 1;
    }
    job
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

    /// Any jobs, one behind the other, on zones of a device and on thought ones.
    #[test]
    fn jobs_do_what_the_model_says(shape in shape(), list in vec(job(), 1..4)) {
        let mut list: Vec<Job> = list.into_iter().map(|job| fit(job, &shape)).collect();
        // Where zones end with less than a block, jobs run out of zones to open, and begin again.
        let block = list[0].block;
        list.iter_mut().for_each(|job| job.block = block);
        agree(&shape, &list, false);
        if shape.random == 0 {
            agree(&shape, &list, true);
        }
    }
}

const SHAPE: Shape = Shape { zone: 16, capacity: 12, random: 0, zones: 6, max_open: 0 };

fn zone_counts(keys: &str, shape: &Shape) -> (u64, u64, u64) {
    let mut device = ZonedDevice::new(caps(0, shape.zones, limits(shape)));
    let text = format!("[global]\n{}[j]\n{keys}\n", shape.global(false));
    let results = run_on(&text, &mut device);
    let counts = results.jobs[0].zones.as_ref().unwrap();
    (counts.resets, counts.begun, counts.filled)
}

/// A sequence written twice over all zones resets each of them once.
#[test]
fn a_second_pass_resets_every_zone() {
    assert_eq!(zone_counts("rw=write\nloops=2", &SHAPE), (6, 12, 12));
    assert_eq!(zone_counts("rw=write\nbs=8k\nio_size=786432", &SHAPE), (10, 16, 16));
    assert_eq!(zone_counts("rw=write\niodepth=8\nloops=3", &SHAPE), (12, 18, 18));
}

/// Where blocks do not divide what a zone holds, a sequence of them resets its zone again and again, as in
/// fio 3.33.
#[test]
fn blocks_that_do_not_fit_reset_their_zone() {
    assert_eq!(zone_counts("rw=write\nbs=32k\nnumber_ios=5", &SHAPE), (4, 5, 5));
}

/// Resets above the threshold: every so many writes, from where so much is written.
#[test]
fn the_threshold_resets_every_so_many_writes() {
    let keys = |threshold: &str, frequency: &str| {
        format!(
            "rw=randwrite\nnorandommap\nio_size=72k\nzone_reset_threshold={threshold}\nzone_reset_frequency={frequency}"
        )
    };
    let resets =
        |threshold: &str, frequency: &str| zone_counts(&keys(threshold, frequency), &SHAPE).0;
    // 18 writes of one sector; from the first on, each third one resets a zone that holds something, or nothing.
    assert!((1..=6).contains(&resets("0", "0.3")));
    assert_eq!(resets("1", "0.3"), 0);
    assert_eq!(resets("0.5", "0"), 0);
}

/// Without data there is nothing to read: the job ends, also one that time alone would end.
#[test]
fn nothing_is_read_of_empty_zones() {
    let mut device = ZonedDevice::new(caps(0, 6, limits(&SHAPE)));
    let text = "[j]\ndirect=1\nzonemode=zbd\nrw=randread\ntime_based\nruntime=10s\n";
    let results = run_on(text, &mut device);
    assert_eq!(results.jobs[0].direction(Direction::Read).ios, 0);
    assert!(device.log.is_empty());
}

/// Zones that were written before are read, and filled up, from where they are.
#[test]
fn the_state_before_the_run_counts() {
    let capabilities: DeviceCaps =
        caps(0, 6, ZoneLimits { max_open: 2, max_active: 3, ..limits(&SHAPE) });
    let mut device = ZonedDevice::new(capabilities);
    run_on("[j]\ndirect=1\nzonemode=zbd\nrw=write\nnumber_ios=18\n", &mut device);
    let options = Options { zones: device.report(), ..Options::default() };
    device.log.clear();
    let text =
        "[j]\ndirect=1\nzonemode=zbd\nrw=write\n[r]\nstonewall\nrw=read\ndirect=1\nzonemode=zbd\n";
    let mut engine = Engine::new(&jobs(text), device.caps(), &options).unwrap();
    engine.run_until(&mut device, &mut NoProbe, None).unwrap();
    let results = engine.finish();
    assert!(!results.failed());
    // The full one and the half full one are met by a sequence from the beginning on: reset, and filled up.
    assert_eq!(results.jobs[0].zones.as_ref().unwrap().resets, 1);
    let first = event(&SHAPE, &device.log[0].bio);
    assert_eq!(first, Event::Reset(0));
    assert_eq!(results.jobs[1].direction(Direction::Read).ios, 6 * 12);
}
