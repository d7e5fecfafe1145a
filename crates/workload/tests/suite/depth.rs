//! How many requests are in flight: batches, the low mark, the search for a latency, its limits.

use crate::common;

use common::{TestDevice, jobs, run};
use nandscape_block::{Bio, BlockDevice, Completion, DeviceCaps, Done, Submit, Token};
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::engine::{Engine, FailureKind, JobResult, NoProbe, Options};

/// Serves one request after the other, in 100 us each: latency grows with the depth.
struct Single {
    caps: DeviceCaps,
    free_at: Nanos,
    log: Vec<Nanos>,
}

impl BlockDevice for Single {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, _: Bio, _: Token) -> Submit {
        self.free_at = self.free_at.max(now) + Nanos::from_us(100);
        self.log.push(now);
        Submit::Done(Done::ok(self.free_at))
    }

    fn next_event(&self) -> Option<Nanos> {
        None
    }

    fn advance(&mut self, _: Nanos, _: &mut Vec<Completion>) {}
}

/// Runs a job that reads at random from a device that serves one request after the other.
fn single(keys: &str) -> (JobResult, Vec<u64>) {
    let caps = DeviceCaps { sectors: 1 << 20, ..DeviceCaps::default() };
    let mut device = Single { caps, free_at: Nanos::ZERO, log: Vec::new() };
    let file = jobs(&format!("[job]\nrw=randread\n{keys}\n"));
    let mut engine = Engine::<()>::new(&file, device.caps(), &Options::default()).unwrap();
    engine.run_until(&mut device, &mut NoProbe, None).unwrap();
    let result = engine.finish().jobs.remove(0);
    (result, device.log.iter().map(|at| at.0 / 1_000).collect())
}

/// A full queue drains to `iodepth_low` before it is filled again.
#[test]
fn the_queue_drains_to_its_low_mark() {
    let (_, log) = single("iodepth=4\niodepth_low=2\nnumber_ios=8");
    assert_eq!(log, [0, 0, 0, 0, 200, 200, 400, 400]);
    let (_, plain) = single("iodepth=4\niodepth_low=4\nnumber_ios=6");
    assert_eq!(plain, [0, 0, 0, 0, 100, 200]);
}

/// Completions are taken back so many at once, and count from then; at the end one by one.
#[test]
fn completions_are_taken_in_batches() {
    let (job, log) = single("iodepth=4\niodepth_batch_complete_min=3\nnumber_ios=7");
    assert_eq!(log, [0, 0, 0, 0, 300, 300, 300]);
    let latency = &job.direction(Direction::Read).latency;
    assert_eq!((latency.min(), latency.count()), (Nanos::from_us(300), 7));
    let (_, both) = single("iodepth=8\niodepth_low=2\niodepth_batch_complete=4\nnumber_ios=16");
    assert_eq!(both, [[0; 8], [800; 8]].concat());
}

/// With both bounds 0 fio waits behind each submission; with the greater one set it does not.
#[test]
fn polling_keeps_one_request_in_flight() {
    let keys = "iodepth=4\nnumber_ios=3\niodepth_batch_complete_max";
    let (_, polls) = single(&format!("iodepth_batch_complete_min=0\n{keys}=0"));
    assert_eq!(polls, [0, 100, 200]);
    let (_, full) = single(&format!("iodepth_batch_complete_min=0\n{keys}=4"));
    assert_eq!(full, [0, 0, 0]);
}

/// Submission takes no time, so batches of it change nothing; a notice says so.
#[test]
fn batches_of_submissions_change_nothing() {
    let keys = "iodepth=4\nnumber_ios=9";
    for key in ["iodepth_batch", "iodepth_batch_submit"] {
        let (mut batched, issued) = single(&format!("{keys}\n{key}=3"));
        let (plain, expected) = single(keys);
        batched.options.clone_from(&plain.options);
        assert_eq!((batched, issued), (plain, expected));
        assert_eq!(jobs(&format!("[j]\n{key}=3\n")).notices[0].key, key);
    }
}

/// Batches with errors, flushes, trims and writes end like any other job.
#[test]
fn batches_go_with_everything_else() {
    let text = "[a]\nrw=randtrimwrite\niodepth=8\niodepth_low=2\niodepth_batch_complete=3\n\
                fsync=7\nend_fsync\nverify=md5\nloops=2\n";
    let mut device = TestDevice::new(1_000);
    let results = run(text, &mut device);
    let job = &results.jobs[0];
    assert!(!job.failed());
    assert_eq!(job.direction(Direction::Write).ios, 2_000);
    assert_eq!(job.direction(Direction::Trim).ios, 2_000);
    assert_eq!(job.sync.count(), 2_000 / 7 + 2);
    assert_eq!(job.verified_sectors, 2_000);
}

/// The search ends at the greatest depth that keeps the target, measured alone.
#[test]
fn the_search_finds_the_depth() {
    for (target_us, depth) in [(350, 3), (1_250, 12), (150, 1)] {
        let keys = format!(
            "iodepth=64\ntime_based\nruntime=10m\nlatency_target={target_us}\nlatency_window=50ms"
        );
        let (job, _) = single(&keys);
        assert!(!job.failed() && job.runtime < Nanos::from_secs(1), "{}", job.runtime);
        assert_eq!(job.latency_depth, Some(depth), "{target_us} us");
        let latency = &job.direction(Direction::Read).latency;
        assert!(latency.max() <= Nanos::from_us(target_us), "measured alone: {}", latency.max());
    }
    let (job, _) = single("iodepth=4\nlatency_target=1s\nlatency_window=1ms\nio_size=1g");
    assert_eq!(job.latency_depth, Some(4), "never more than iodepth");
}

/// A percentile lets some I/Os be slow; `latency_run` goes on to the job's own end.
#[test]
fn the_percentile_and_the_run_are_kept() {
    let keys = "iodepth=32\nlatency_target=450\nlatency_window=20ms\ntime_based\nruntime=1s";
    let (kept, _) = single(&format!("{keys}\nlatency_run=1\nlatency_percentile=95"));
    assert_eq!(kept.runtime.0 / 100_000_000, 10);
    assert!(kept.latency_depth.is_some_and(|depth| (4..=5).contains(&depth)));
    let (any, _) = single(&format!("{keys}\nlatency_percentile=0"));
    assert_eq!(any.latency_depth, Some(32));
}

/// What one request at a time cannot keep ends the job as a failure, and so does `max_latency`, by
/// direction.
#[test]
fn latencies_beyond_the_limit_end_the_job() {
    let (hopeless, _) = single("iodepth=8\nlatency_target=50\nlatency_window=1ms");
    assert!(hopeless.failed());
    assert!(matches!(hopeless.failures[0].what, FailureKind::TooSlow { op: "read", .. }));
    let (slow, _) = single("iodepth=4\nmax_latency=350\ncontinue_on_error=all");
    assert!(slow.failed(), "no error to be tolerated, as in fio");
    assert_eq!(slow.direction(Direction::Read).ios, 7);
    let (writes, _) = single("iodepth=4\nmax_latency=,350\nnumber_ios=20");
    assert!(!writes.failed());
}

/// With `serialize_overlap`, no two I/Os in flight share bytes, and all are issued.
#[test]
fn overlapping_requests_wait() {
    let keys = "rw=randrw\nnorandommap\nbsrange=2k-16k\nblockalign=2k\nsize=64k\niodepth=8\nio_size=1g\nnumber_ios=300\n";
    let overlaps = |keys: &str| {
        let mut device = TestDevice::new(64);
        (device.pending, device.spread_ns) = (true, 20_000);
        let results = common::run(&format!("[j]\n{keys}"), &mut device);
        let ios: u64 = results.jobs[0].directions.iter().map(|direction| direction.ios).sum();
        assert_eq!(ios, 300);
        // With one size of sector, requests for parts of a sector may meet there.
        results.jobs[0].depths[1..].iter().sum::<u64>()
    };
    let (free, serialized) = (overlaps(keys), overlaps(&format!("{keys}serialize_overlap=1\n")));
    assert!(serialized > 0 && serialized < free, "{serialized} of {free} beside others");
    let mut device = TestDevice::new(64);
    (device.pending, device.spread_ns) = (true, 20_000);
    let whole = keys.replace("2k-16k", "4k-16k").replace("blockalign=2k", "blockalign=4k");
    common::run(&format!("[j]\n{whole}serialize_overlap=1\n"), &mut device);
    let time = |bio: &nandscape_block::Bio| {
        device.base_ns + bio.lba.0.wrapping_mul(0x9e37_79b9) % (device.spread_ns + 1)
    };
    for (index, (at, bio)) in device.log.iter().enumerate() {
        let end = bio.lba.0 + u64::from(bio.sectors);
        for (before, other) in &device.log[..index] {
            let shares = other.lba.0 < end && bio.lba.0 < other.lba.0 + u64::from(other.sectors);
            assert!(!shares || before.0 + time(other) <= at.0, "{bio:?} at {at}");
        }
    }
}
