//! Several jobs, each with several requests in flight, in the same zones: no command breaks a rule, a zone
//! belongs to one job at a time, and a reset meets nothing in flight.

use crate::common::{TestDevice, jobs};
use crate::zbd::device::{Served, ZonedDevice, caps};
use nandscape_block::zone::{ZoneLimits, ZoneState};
use nandscape_block::{BlockDevice, Op};
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::engine::{Engine, EngineError, NoProbe, Options, Results};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const ZONE: u64 = 16;

#[derive(Clone, Copy, Debug)]
struct Stand {
    capacity: u64,
    random: u64,
    zones: u64,
    max_open: u32,
    /// Active zones beyond those.
    more: u32,
    spread_ns: u64,
}

fn stand() -> impl Strategy<Value = Stand> {
    let capacity = prop::sample::select(vec![16_u64, 12, 10]);
    (capacity, 0..3_u64, 2..8_u64, 0..5_u32, 0..3_u32, prop_oneof![Just(1_000_u64), Just(50_000)])
        .prop_map(|(capacity, random, zones, max_open, more, spread_ns)| Stand {
            capacity,
            random,
            zones,
            max_open,
            more,
            spread_ns,
        })
}

impl Stand {
    fn device(&self) -> ZonedDevice {
        let max_active = if self.max_open == 0 { 0 } else { self.max_open + self.more };
        let limits = ZoneLimits {
            zone_sectors: ZONE,
            capacity: self.capacity,
            max_open: self.max_open,
            max_active,
            append: false,
            write_sectors: 1,
        };
        ZonedDevice::new(caps(self.random * ZONE, self.zones, limits))
            .with_spread(Nanos(self.spread_ns))
    }
}

/// Keys of a job.
fn keys() -> impl Strategy<Value = String> {
    let words = vec!["write", "randwrite", "randwrite", "rw", "randrw", "randread", "randtrim"];
    let resets =
        prop::sample::select(vec!["", "", "zone_reset_threshold=0.2\nzone_reset_frequency=0.25\n"]);
    let more = prop::sample::select(vec![
        "",
        "",
        "norandommap\n",
        "thinktime=20us\n",
        "fsync=3\n",
        "rate_iops=20000\n",
        "iodepth_batch_complete_min=3\n",
        "iodepth_low=2\n",
        "bsrange=4k-12k\n",
        "loops=2\n",
        "io_size=300k\n",
        "runtime=300us\ntime_based\n",
        "read_beyond_wp=1\n",
        "flow=1\n",
    ]);
    let word = prop::sample::select(words);
    (word, 1..9_u32, 1..3_u32, resets, more).prop_map(|(word, depth, clones, resets, more)| {
        let (block, more) = match word {
            "randtrim" => (ZONE * 4, more.replace("bsrange=4k-12k\n", "")),
            _ => (4, more.to_owned()),
        };
        format!("rw={word}\nbs={block}k\niodepth={depth}\nnumjobs={clones}\nnumber_ios=200\n{resets}{more}")
    })
}

fn run(text: &str, device: &mut ZonedDevice) -> Result<Results<()>, EngineError> {
    let options = Options { zones: device.report(), ..Options::default() };
    let mut engine = Engine::new(&jobs(text), device.caps(), &options)?;
    engine.run_until(device, &mut NoProbe, None)?;
    Ok(engine.finish())
}

/// What is in flight when a bio is submitted: none of another job in its zone, and nothing at all in a zone
/// that is reset.
fn check_holds(stand: &Stand, device: &ZonedDevice, beyond: bool) {
    let first = stand.random * ZONE;
    let mut in_flight: BTreeMap<u64, Vec<&Served>> = BTreeMap::new();
    for served in &device.log {
        let bio = &served.bio;
        if bio.op == Op::Flush || bio.lba.0 < first || (beyond && bio.op == Op::Read) {
            continue;
        }
        let zone = in_flight.entry(bio.lba.0 / ZONE).or_default();
        zone.retain(|other| other.back > served.at);
        for other in zone.iter() {
            let own = other.bio.owner.unwrap().file == bio.owner.unwrap().file;
            assert!(own, "{bio:?} beside {:?}", other.bio);
            let resets = matches!(bio.op, Op::Zone(..));
            let trims = matches!(other.bio.op, Op::Zone(..));
            assert!(!resets || trims, "{bio:?} while {:?} is in flight", other.bio);
        }
        zone.push(served);
    }
}

/// Counts of all jobs are those of the commands that the device served.
fn check_counts(stand: &Stand, device: &ZonedDevice, results: &Results<()>) {
    let first = stand.random * ZONE;
    let sum = |of: fn(&nandscape_workload::engine::ZoneCounts) -> u64| -> u64 {
        results.jobs.iter().map(|job| of(job.zones.as_ref().unwrap())).sum()
    };
    let count = |is: &dyn Fn(&nandscape_block::Bio) -> bool| {
        device.log.iter().filter(|served| is(&served.bio)).count() as u64
    };
    assert_eq!(sum(|zones| zones.resets), count(&|bio| matches!(bio.op, Op::Zone(..))));
    let begins = |bio: &nandscape_block::Bio| {
        bio.op == Op::Write && bio.lba.0 >= first && bio.lba.0.is_multiple_of(ZONE)
    };
    assert_eq!(sum(|zones| zones.begun), count(&begins));
    let fills = |bio: &nandscape_block::Bio| {
        let end = bio.lba.0 % ZONE + u64::from(bio.sectors);
        bio.op == Op::Write && bio.lba.0 >= first && end == stand.capacity
    };
    assert_eq!(sum(|zones| zones.filled), count(&fills));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    /// Any jobs beside each other.
    #[test]
    fn jobs_share_zones(stand in stand(), list in vec(keys(), 1..4)) {
        let mut device = stand.device();
        let mut text = "[global]\ndirect=1\nzonemode=zbd\n".to_owned();
        for (number, keys) in list.iter().enumerate() {
            text += &format!("[j{number}]\n{keys}");
        }
        match run(&text, &mut device) {
            Ok(results) => {
                prop_assert!(!results.failed());
                check_holds(&stand, &device, text.contains("read_beyond_wp"));
                check_counts(&stand, &device, &results);
            }
            Err(error) => prop_assert!(false, "{error}\n{text}"),
        }
    }
}

/// Jobs that write the same zones take turns in them, and none waits for ever.
#[test]
fn jobs_take_turns_in_a_zone() {
    let stand =
        Stand { capacity: 16, random: 0, zones: 2, max_open: 1, more: 0, spread_ns: 10_000 };
    let mut device = stand.device();
    let text = "[j]\ndirect=1\nzonemode=zbd\nrw=write\nnumjobs=2\nnumber_ios=8\n";
    let results = run(text, &mut device).unwrap();
    let written = results.jobs.iter().map(|job| job.direction(Direction::Write).ios);
    assert_eq!(written.collect::<Vec<_>>(), [8, 8]);
    let turns: Vec<u64> = device.log.iter().map(|served| served.bio.owner.unwrap().file).collect();
    assert_eq!(turns, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(device.report()[0].state, ZoneState::Full);
}

/// A reset takes time, and is no part of the write's latency.
#[test]
fn resets_take_time() {
    let stand =
        Stand { capacity: 16, random: 0, zones: 2, max_open: 0, more: 0, spread_ns: 10_000 };
    let mut device = stand.device();
    let text = "[j]\ndirect=1\nzonemode=zbd\nrw=write\nloops=2\niodepth=4\n";
    let job = &run(text, &mut device).unwrap().jobs[0];
    let zones = job.zones.as_ref().unwrap();
    assert_eq!((zones.resets, zones.reset_latency.count()), (2, 2));
    assert_eq!(job.direction(Direction::Write).latency.count(), 64);
    let of = |is: fn(Op) -> bool| device.log.iter().filter(move |served| is(served.bio.op));
    let longest = of(|op| op == Op::Write).map(|served| served.back - served.at).max().unwrap();
    assert_eq!(job.direction(Direction::Write).latency.max(), longest);
    let resets: u64 = of(|op| op != Op::Write).map(|served| (served.back - served.at).0).sum();
    assert_eq!(zones.reset_latency.mean_ns() as u64, resets / 2);
}

/// What is written with verify is read again: zones are emptied first, and none is reset behind that.
#[test]
fn verify_reads_zones_again() {
    let stand =
        Stand { capacity: 12, random: 1, zones: 5, max_open: 2, more: 0, spread_ns: 10_000 };
    let mut device = stand.device();
    let text = "[global]\ndirect=1\nzonemode=zbd\n[fill]\nrw=write\n[check]\nstonewall\nrw=randwrite\niodepth=4\n\
                verify=crc32c\n";
    let results = run(text, &mut device).unwrap();
    assert!(!results.failed(), "{:?}", results.jobs[1].failures);
    let check = &results.jobs[1];
    assert_eq!(check.zones.as_ref().unwrap().resets, 5);
    // All that zones hold, and the blocks of the random region that were drawn.
    assert_eq!(check.unverified_sectors, 0);
    assert!((60..=76).contains(&check.verified_sectors), "{}", check.verified_sectors);
}

/// Without zones, a device of the same size runs the same jobs in thought zones.
#[test]
fn zones_are_thought_into_a_device() {
    let mut device = TestDevice::new(128);
    let text = "[j]\nzonemode=zbd\nzonesize=64k\nzonecapacity=48k\nrw=write\nloops=2\niodepth=4\nverify=md5\n";
    let results = crate::common::run(text, &mut device);
    assert!(!results.failed());
    assert!(device.log.iter().all(|(_, bio)| bio.lba.0 % 16 + u64::from(bio.sectors) <= 12));
    let zones = results.jobs[0].zones.as_ref().unwrap();
    assert_eq!((zones.resets, zones.filled), (8, 16));
}
