//! Jobs on a block device through its page cache, and past it.

use nandscape_lab::run::{NoObserver, Outcome, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use serde_json::Value;

/// A small device, on which every run is short.
const SMALL: [&str; 3] = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];

fn try_run(
    name: &str,
    set: &[&str],
    text: &str,
    options: RunOptions<'_>,
) -> Result<Outcome, String> {
    let stack = Stack::load(name, &[&SMALL, set].concat()).unwrap();
    let job = parse(text, "b.fio", &HostEnvironment).unwrap();
    run(&stack, &job, 1, options, &mut NoObserver).map_err(|error| error.to_string())
}

fn outcome(set: &[&str], text: &str) -> Outcome {
    let outcome = try_run("pblk", set, text, RunOptions::default()).unwrap();
    for job in &outcome.workload.jobs {
        assert!(!job.failed(), "{:?}", job.failures);
    }
    outcome
}

/// The way of each job, in words.
fn paths(outcome: &Outcome) -> Vec<String> {
    outcome.workload.jobs.iter().map(|job| outcome.io_path(job).to_string()).collect()
}

/// A job is buffered unless it says `direct=1` or the stack has no page cache; results say which.
#[test]
fn jobs_are_buffered_by_default() {
    let text = "[b]\nrw=write\nsize=1m\n[d]\nrw=write\nsize=1m\ndirect=1\n";
    let both = outcome(&["host.memory=64MiB"], text);
    assert_eq!(paths(&both), ["buffered (page cache of 64 MiB)", "direct"]);
    assert_eq!(paths(&outcome(&[], text))[0], "buffered (page cache of 4096 MiB)");
    let json = both.to_json("");
    let io = |job: usize| &json["nandscape"]["io"][job];
    assert_eq!((&io(0)["io"], &io(1)["io"]), (&"buffered".into(), &"direct".into()));
    assert_eq!(io(0)["page_cache_bytes"], 64 << 20);
    assert_eq!(json["nandscape"]["page_cache"]["written_sectors"], 512);
    let off = outcome(&["host.page_cache=false"], text);
    assert_eq!(paths(&off), ["direct", "direct"]);
    assert!(off.to_json("")["nandscape"].get("page_cache").is_none());
    assert!(both.workload.jobs[0].runtime < off.workload.jobs[0].runtime, "memory is faster");
}

/// Direct jobs are what they are on a device without a page cache, to the last digit.
#[test]
fn direct_jobs_know_no_page_cache() {
    let text =
        "[global]\nbs=4k\ndirect=1\n[w]\nrw=randrw\niodepth=8\nsize=2m\nfsync=16\nverify=md5\n";
    let json = |set: &[&str]| {
        let mut json = outcome(set, text).to_json("");
        let ours = json["nandscape"].as_object_mut().unwrap();
        ours.retain(|key, _| {
            !["wall_s", "precondition", "set"].contains(&key.as_str())
                && !key.starts_with("resolved")
        });
        json
    };
    assert_eq!(json(&[]), json(&["host.page_cache=false"]));
}

/// A small cache writes random blocks back in the order of their sectors, so that the mapping blocks of a cached map
/// are loaded a few times, not once for each write; the same job with `direct=1` loads them all the time.
#[test]
fn write_back_is_sorted() {
    let set = ["ftl.map.block=4KiB", "ftl.op_percent=45", "host.memory=16MiB", "ftl.map.cache=8%"];
    let loads = |direct: &str| {
        let text = format!("[w]\nrw=randwrite\nbs=4k\nnorandommap\nio_size=64m\n{direct}");
        let outcome = try_run("selective-lru", &set, &text, RunOptions::default()).unwrap();
        let json: Value = outcome.to_json("");
        let map = &json["nandscape"]["map"];
        assert!(outcome.ftl.host.written > 8_000, "{}", outcome.ftl.host.written);
        map["loads"].as_f64().unwrap() / outcome.ftl.host.written as f64
    };
    let (buffered, direct) = (loads(""), loads("direct=1\n"));
    assert!(buffered * 3.0 < direct, "{buffered} and {direct} loads for a written sector");
}

/// Content is what was written, whichever way: through the cache, past it, trimmed, synced.
#[test]
fn content_is_verified_both_ways() {
    let text = "[global]\nsize=2m\nbs=8k\nverify=crc32c\n\
                [w]\nrw=randwrite\nfsync=7\nend_fsync=1\n\
                [d]\nstonewall\nrw=randrw\ndirect=1\niodepth=8\nfdatasync=5\n\
                [t]\nstonewall\nrw=randtrimwrite\n\
                [s]\nstonewall\nrw=write\nbs=64k\nsync=1\nloops=2\n\
                [x]\nstonewall\nrw=randtrim\ndirect=1\nio_size=512k\n\
                [r]\nstonewall\nrw=randrw\nbsrange=4k-64k\nloops=2\n";
    for memory in ["host.memory=1MiB", "host.memory=64MiB"] {
        let outcome = outcome(&[memory], text);
        assert!(outcome.workload.jobs.iter().all(|job| job.errors == 0));
        let verified: u64 = outcome.workload.jobs.iter().map(|job| job.verified_sectors).sum();
        assert!(verified > 2_000, "{verified}");
        assert!(outcome.fs.unwrap().fsyncs > 20);
        assert_eq!(outcome.ftl.media_errors.mismatches, 0);
    }
}

/// Reads are cached, and sequential ones read ahead.
#[test]
fn reads_are_cached() {
    let text = "[w]\nrw=write\nbs=64k\nsize=2m\ndirect=1\n\
                [r]\nstonewall\nrw=read\nbs=4k\nsize=2m\nloops=2\n";
    let outcome = outcome(&["host.memory=64MiB"], text);
    let lookups = outcome.fs.unwrap().fs.lookups;
    assert_eq!(lookups.hits + lookups.misses, 1_024);
    assert!(lookups.misses < 32, "{lookups:?}");
    let read = outcome.ftl.host.read;
    assert!((512..=544).contains(&read), "{read}: each sector once, and a window after the last");
}

/// An fsync makes everything durable that was written, and takes the time for it.
#[test]
fn syncs_wait_for_write_back() {
    let text = |more: &str| format!("[w]\nrw=randwrite\nbs=4k\nsize=2m\nnumber_ios=256\n{more}");
    let lazy = outcome(&[], &text(""));
    let synced = outcome(&[], &text("fsync=16\n"));
    let durable = outcome(&[], &text("sync=1\n"));
    assert_eq!(lazy.ftl.host.written, 0, "all of it is in memory still");
    assert_eq!((synced.ftl.host.written, durable.ftl.host.written), (240, 256));
    let runtimes = [&lazy, &synced, &durable].map(|outcome| outcome.workload.jobs[0].runtime);
    assert!(runtimes.is_sorted() && runtimes[0].0 * 4 < runtimes[1].0, "{runtimes:?}");
    let json = synced.to_json("");
    assert_eq!(json["nandscape"]["page_cache"]["fsyncs"], 15);
    assert!(json["nandscape"]["page_cache"]["fsync_times"]["flush_ns"].as_u64().unwrap() > 0);
}

/// Submission of buffered I/O waits in Linux, so one request is in flight; a warning says so.
#[test]
fn buffered_jobs_have_one_request_in_flight() {
    let text = "[r]\nrw=randread\nbs=4k\niodepth=16\nsize=1m\n";
    let outcome = outcome(&[], text);
    assert_eq!(outcome.workload.jobs[0].depth, 1);
    let warned = |warning: &String| {
        warning.contains("job r is buffered: one request is in flight, not iodepth=16")
    };
    assert!(outcome.warnings.iter().any(warned), "{:?}", outcome.warnings);
}

/// Writers are held to the speed of the device once the cache holds as much as may be dirty.
#[test]
fn writers_are_throttled() {
    let text = "[w]\nrw=write\nbs=4k\nsize=16m\ntime_based\nruntime=200ms\n";
    let outcome = outcome(&["host.memory=2MiB"], text);
    let accepted = outcome.workload.jobs[0].direction(Direction::Write).bytes / 4_096;
    let dirty_max = 512 / 5 + 16;
    assert!(outcome.ftl.host.written > 5_000);
    assert!(
        accepted - outcome.ftl.host.written <= dirty_max,
        "{accepted} {}",
        outcome.ftl.host.written
    );
}

/// What does not work through a page cache is refused with its place.
#[test]
fn write_hints_are_refused() {
    let text = "[w]\nrw=write\nsize=1m\nwrite_hint=short\n";
    let error = try_run("pblk", &[], text, RunOptions::default()).unwrap_err();
    assert!(error.starts_with("b.fio:1:1: job w: write_hint: "), "{error}");
    assert!(try_run("pblk", &["host.page_cache=false"], text, RunOptions::default()).is_ok());
}

/// Rounds until steady state, and devices that keep no content, work through the cache.
#[test]
fn rounds_and_devices_without_content_work() {
    let text = "[w]\nrw=randwrite\nbs=4k\nnorandommap\nsize=100%\n";
    let options =
        RunOptions { until_steady: Some("round=5%".parse().unwrap()), ..RunOptions::default() };
    let set = ["host.memory=4MiB", "media.payload=none", "precondition.recipe=random"];
    let outcome = try_run("pblk", &set, text, options).unwrap();
    assert!(outcome.rounds.is_some() && outcome.ftl.gc.victims > 0, "{:?}", outcome.rounds);
    assert!(outcome.fs.is_some_and(|counts| counts.written_sectors > 0));
}

/// Keys of the page cache are refused where there is none, and where they belong into `[fs]`.
#[test]
fn keys_of_the_page_cache_are_checked() {
    let cases: [(&str, &[&str], &str); 6] = [
        (
            "pblk",
            &["host.page_cache=false", "host.memory_of=all"],
            "host.memory_of: needs a page cache",
        ),
        (
            "pblk",
            &["host.page_cache=false", "host.syscall_ns=1"],
            "host.syscall_ns: needs a page cache",
        ),
        (
            "pblk",
            &["host.page_cache=false", "host.read_ahead=1MiB"],
            "host.read_ahead: needs a page cache",
        ),
        (
            "pblk",
            &["host.dirty_percent=3"],
            "host.dirty_percent: must be more than dirty_background",
        ),
        ("ext4-pblk", &["host.page_cache=true"], "host.page_cache: a file system"),
        ("ext4-pblk", &["host.dirty_percent=3"], "host.dirty_percent: goes into [fs]"),
    ];
    for (name, set, expected) in cases {
        let error = Stack::load(name, set).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let given =
        ["host.dirty_background_percent=1", "host.dirty_percent=2", "host.writeback_age=1s"];
    let cache = Stack::load("pblk", &given).unwrap().host.device_cache.unwrap();
    assert_eq!((cache.background_percent, cache.dirty_percent, cache.age.0), (1, 2, 1_000_000_000));
}
