//! Numbers of jobs against arithmetic: on a device that takes 10 us for whatever it is asked, what a job reports is known.

use crate::common;

use common::{TestDevice, jobs, run};
use nandscape_block::{Bio, BlockDevice};
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::engine::{Engine, JobResult, NoProbe, Options};
use nandscape_workload::latency::LatencyTotals;

const SECTORS: u64 = 16_384;

fn device() -> TestDevice {
    let mut device = TestDevice::new(SECTORS);
    device.spread_ns = 0;
    device
}

fn job(text: &str) -> JobResult {
    run(&format!("[job]\nbs=4k\n{text}\n"), &mut device()).jobs.remove(0)
}

fn bios(text: &str) -> Vec<Bio> {
    let mut device = device();
    run(&format!("[job]\nbs=4k\n{text}\n"), &mut device);
    device.log.into_iter().map(|(_, bio)| bio).collect()
}

/// Whether a share of so many independent draws is one of this many percent: within four standard deviations, which are less than a
/// percent.
fn is_share(hits: usize, draws: usize, percent: f64) {
    let (share, expected) = (hits as f64 / draws as f64, percent / 100.0);
    let deviation = (expected * (1.0 - expected) / draws as f64).sqrt();
    assert!(4.0 * deviation < 0.01, "{draws} draws are too few");
    assert!((share - expected).abs() < 4.0 * deviation, "{share}, not {expected}");
}

/// The share of `percentage_random` is exact, not a percent more or less.
#[test]
fn follows_have_their_share() {
    for percent in [30, 70] {
        let keys = format!(
            "rw=randread\nnorandommap\nio_size=1g\nnumber_ios=200000\npercentage_random={percent}"
        );
        let bios = bios(&keys);
        let follows = bios.windows(2).filter(|pair| pair[1].lba.0 == pair[0].lba.0 + 1).count();
        is_share(follows, bios.len() - 1, 100.0 - f64::from(percent));
    }
}

/// So are those of zones, the first and the last among them.
#[test]
fn zones_have_their_shares() {
    let keys = "rw=randread\nnorandommap\nio_size=1g\nnumber_ios=200000\nrandom_distribution=zoned:20/50:30/25:50/25";
    let bios = bios(keys);
    let within = |range: std::ops::Range<u64>| {
        let parts = range.start * SECTORS / 4..range.end * SECTORS / 4;
        bios.iter().filter(|bio| parts.contains(&bio.lba.0)).count()
    };
    for (share, parts) in [(20.0, 0..2), (30.0, 2..3), (50.0, 3..4)] {
        is_share(within(parts), bios.len(), share);
    }
}

/// The depth of an I/O is that in which it completes, itself among it: four are in flight up to the last three.
#[test]
fn depths_count_the_request_itself() {
    let job = job("rw=read\niodepth=4\nnumber_ios=1000");
    assert_eq!(job.depths, [1, 2, 997, 0, 0, 0, 0]);
}

/// A ramp is over when its time has passed, as in fio (`ramp_time_over`): with I/Os that end each 10 us, those that end at 100 us and
/// up to 200 us count.
#[test]
fn a_ramp_ends_with_its_time() {
    let job = job("rw=read\ntime_based\nruntime=100us\nramp_time=100us");
    assert_eq!((job.direction(Direction::Read).ios, job.runtime), (11, Nanos::from_us(100)));
    assert_eq!(job.began, Nanos::from_us(100));
}

/// Jobs beside each other have the time in which any of them ran, in their report and in the totals: four jobs of 100 I/Os take a
/// millisecond and make 400,000 I/Os a second.
#[test]
fn jobs_beside_each_other_share_their_time() {
    let text = "[job]\nrw=randread\nbs=4k\nnumjobs=4\nnumber_ios=100\n";
    let apart = run(text, &mut device());
    let together = run(&format!("{text}group_reporting\n"), &mut device());
    assert_eq!(together.jobs[0].iops(Direction::Read), 400_000.0);
    for results in [apart, together] {
        let totals = results.totals();
        assert_eq!(totals.times[Direction::Read as usize], Nanos::from_ms(1));
        assert_eq!(totals.iops(Direction::Read), Some(400_000.0));
        assert_eq!(totals.bytes_per_s(Direction::Read), Some(400_000.0 * 4096.0));
    }
}

/// The gap behind an I/O of a Poisson process is as long, in the mean, as the I/O takes at its rate: 4 KiB at 40 MiB/s take
/// 97.7 us, so 20,000 take 1.95 s, within four standard deviations of a sum of exponential gaps.
#[test]
fn poisson_gaps_are_as_long_as_their_bytes() {
    let job =
        job("rw=read\nrate=40m\nrate_process=poisson\niodepth=64\nio_size=1g\nnumber_ios=20000");
    let expected = 20_000.0 / (40.0 * 256.0);
    let deviation = expected / 20_000f64.sqrt();
    let took = job.runtime.as_secs_f64();
    assert!((took - expected).abs() < 4.0 * deviation, "{took} s, not {expected} s");
}

/// The median of three latencies is the second, not the shortest: ranks are rounded up. Those of a series are at most 1/32 too high.
#[test]
fn the_median_of_three_is_the_second() {
    let mut device = TestDevice::new(SECTORS);
    let file = jobs("[job]\nrw=read\nbs=4k\nnumber_ios=3\n");
    let mut engine = Engine::new(&file, device.caps(), &Options::default()).unwrap();
    engine.run_until(&mut device, &mut NoProbe, None).unwrap();
    let [reads, ..] = engine.latency_totals();
    let median = reads.since(&LatencyTotals::default()).unwrap().p50.unwrap().0;
    // One at a time: each lasts until the next one, or the end.
    let begins: Vec<u64> =
        device.log.iter().map(|(at, _)| at.0).chain([engine.finish().ended.0]).collect();
    let mut latencies: Vec<u64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    latencies.sort_unstable();
    assert!(latencies[0] * 33 / 32 < latencies[1], "{latencies:?} differ enough");
    assert!((latencies[1]..=latencies[1] * 33 / 32).contains(&median), "{median} of {latencies:?}");
}
