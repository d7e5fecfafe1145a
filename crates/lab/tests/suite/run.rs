//! Runs as a whole: faults of the media that a stack asks for, progress, and remarks.

use crate::common;

use common::Fractions;
use nandscape_block::BlockError;
use nandscape_lab::run::{NoObserver, Outcome, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::engine::FailureKind;
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse};

const MEDIA: &str = "[media]
groups = 2
units = 4
chunks = 48
sectors = 128
ws_min = 4
ws_opt = 8
mw_cunits = 24
timing = \"nvmevirt-970pro\"
[ftl]
op_percent = 35
";

fn stack(set: &[&str]) -> Stack {
    Stack::parse("run.toml", MEDIA, set).unwrap()
}

fn job(text: &str) -> JobFile {
    parse(text, "run.fio", &HostEnvironment).unwrap()
}

fn outcome(set: &[&str], text: &str, seed: u64) -> Outcome {
    run(&stack(set), &job(text), seed, RunOptions::default(), &mut NoObserver).unwrap()
}

/// A sector that the media cannot correct is an I/O error at its address when it is read, and never
/// old data: what else is read compares equal.
#[test]
fn unreadable_sectors_are_errors_and_never_old_data() {
    let text = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=8\nnorandommap\nrandrepeat=0\nsize=2m\nloops=3\n\
                verify=crc32c\ncontinue_on_error=read\nend_fsync=1\n";
    let faulty = outcome(&["media.faults.unreadable_rate=0.05"], text, 1);
    let job = &faulty.workload.jobs[0];
    assert!(faulty.ftl.media_errors.uncorrectable > 0 && faulty.ftl.media_errors.mismatches == 0);
    assert!(job.errors > 0 && !job.failures.is_empty());
    for failure in &job.failures {
        let FailureKind::Io("read", BlockError::Io { lba, what }) = failure.what else {
            panic!("{failure}")
        };
        assert_eq!((lba, what), (failure.lba, "uncorrectable sector"));
    }
    assert!(job.verified_sectors > 0 && !job.failed(), "all that was read is the newest");
    assert!(faulty.warnings.iter().any(|warning| warning.contains("could not be read")));
    assert_eq!(outcome(&[], text, 1).workload.jobs[0].errors, 0);
}

/// Bad chunks come off the capacity, as the seed draws them.
#[test]
fn bad_chunks_reduce_capacity() {
    let write = "[w]\nrw=write\ndirect=1\nbs=64k\nsize=1m\n";
    let sound = outcome(&[], write, 1);
    let bad = ["media.faults.bad_chunk_rate=0.05"];
    let (one, again, other) =
        (outcome(&bad, write, 1), outcome(&bad, write, 1), outcome(&bad, write, 2));
    assert_eq!(sound.wear.offline, 0);
    assert!((5..50).contains(&one.wear.offline), "{:?}", one.wear);
    assert!(one.size.logical_sectors < sound.size.logical_sectors);
    assert_eq!(
        one.size.physical_sectors,
        sound.size.physical_sectors - u64::from(one.wear.offline) * 128
    );
    assert_eq!(one.stack.media.config(1), again.stack.media.config(1));
    assert_ne!(one.stack.media.config(1).bad_chunks, other.stack.media.config(2).bad_chunks);
    assert!(!one.workload.failed() && one.ftl.media_errors.program_failures == 0);
}

/// Lines span all units, so one slow unit holds everything up, in virtual time.
#[test]
fn a_slow_unit_lowers_throughput() {
    let write = "[w]\nrw=write\ndirect=1\nbs=64k\niodepth=8\nsize=8m\nend_fsync=1\n";
    let iops = |set: &[&str]| outcome(set, write, 1).workload.jobs[0].iops(Direction::Write);
    let slow = iops(&["media.faults.slow_unit=3", "media.faults.slow_percent=400"]);
    assert!(slow < 0.7 * iops(&[]), "{slow} of {}", iops(&[]));
}

/// Progress never falls, a ramp or none, and is about the share of the bytes that were transferred,
/// whatever the block size and direction.
#[test]
fn progress_rises_with_the_bytes() {
    let jobs = [
        "[w]\nrw=write\ndirect=1\nbs=64k\niodepth=4\nsize=8m\n",
        "[v]\nrw=write\ndirect=1\nbs=32k\nsize=8m\nverify=crc32c\n",
        "[t]\nrw=trimwrite\ndirect=1\nbs=16k\nsize=8m\n",
        "[r]\nrw=randread\ndirect=1\nbs=128k\nsize=8m\nloops=4\n",
        "[w]\nrw=randwrite\ndirect=1\nbs=16k\niodepth=4\nsize=8m\nloops=2\nramp_time=10ms\n",
        "[a]\nrw=write\ndirect=1\nbs=4k\nruntime=20ms\ntime_based\n[b]\nstonewall\nrw=read\ndirect=1\nbs=4k\nruntime=20ms\ntime_based\nramp_time=10ms\n",
    ];
    for text in jobs {
        let mut observer = Fractions::default();
        run(&stack(&["precondition.fill=1"]), &job(text), 1, RunOptions::default(), &mut observer)
            .unwrap();
        let Fractions(fractions) = observer;
        assert!(fractions.is_sorted(), "{text}: {fractions:?}");
        assert!((0.95..=1.0).contains(fractions.last().unwrap()), "{text}: {fractions:?}");
        let middle = fractions[fractions.len() / 2];
        assert!((0.25..=0.75).contains(&middle), "{text}: {middle} of {}", fractions.len());
    }
}

/// Host resources that have no effect are reported if the stack sets them.
#[test]
fn host_resources_are_remarked_upon_when_set() {
    let write = "[w]\nrw=write\ndirect=1\nbs=64k\nsize=1m\n";
    let remarks = |set: &[&str]| {
        let warnings = outcome(set, write, 1).warnings;
        warnings.iter().filter(|warning| warning.contains("[host]")).count()
    };
    assert_eq!(remarks(&[]), 0);
    assert_eq!(remarks(&["host.cores=4"]), 1);
    assert_eq!(remarks(&["host.memory=1GiB"]), 1);
    assert_eq!(remarks(&["host.cores=4", "ftl.cpu=null-block"]), 0);
}

/// What costs nothing changes nothing: a result differs from one without `ftl.cpu` in the stack's own
/// text only. What costs something is reported with where it went.
#[test]
fn a_host_that_costs_nothing_changes_nothing() {
    let load = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=4\nsize=2m\nfsync=8\nnumjobs=3\n";
    let result = |set: &[&str]| {
        let mut json = outcome(set, load, 1).to_json("test");
        let ours = json["nandscape"].as_object_mut().unwrap();
        for key in ["set", "resolved_stack", "resolved_stack_hash", "wall_s", "precondition"] {
            ours.remove(key);
        }
        json
    };
    let free = result(&["ftl.cpu=none"]);
    assert_eq!(free, result(&[]));
    assert_eq!(free["nandscape"].get("host_cpu"), None);
    let charged = result(&["ftl.cpu=null-block"]);
    let cpu = &charged["nandscape"]["host_cpu"];
    assert_eq!(cpu["cores"].as_array().unwrap().len(), 4);
    assert_eq!(cpu["writers"].as_array().unwrap().len(), 1);
    let flush = &charged["nandscape"]["flush"];
    let ns = |value: &serde_json::Value| value.as_u64().unwrap();
    let parts: u64 = ["queue_ns", "gc_ns", "padding_ns", "program_ns"]
        .into_iter()
        .map(|key| ns(&flush[key]))
        .sum();
    let host = ns(&cpu["flush"]["cpu_ns"]) + ns(&cpu["flush"]["writer_ns"]);
    assert_eq!(parts + host, ns(&flush["total_ns"]));
    assert!(host > 0 && ns(&cpu["ring_locks"][0]["acquisitions"]) > 0, "{cpu}");
}

/// Every full line is in one class, and a device filled in order has them in the last, but for the one
/// that the mount padded.
#[test]
fn valid_counts_of_lines_are_shown() {
    let read = "[r]\nrw=read\ndirect=1\nbs=4k\nsize=4k\n";
    let filled = outcome(&["precondition.fill=1"], read, 1);
    let (last, others) = filled.line_valid.split_last().unwrap();
    assert!(*last > 10 && others.iter().sum::<u64>() <= 1, "{:?}", filled.line_valid);
    let random = ["precondition.fill=1", "precondition.random_overwrite=2"];
    let worn = outcome(&random, read, 1).line_valid;
    assert!(worn.iter().filter(|lines| **lines > 0).count() > 3, "{worn:?}");
}

/// Jobs for a larger device are refused, with their place and a way out; scaled, they run, with a warning.
#[test]
fn jobs_of_a_larger_device_fit_when_scaled() {
    let text = "[w]\nrw=write\nbs=64k\nsize=40g\nnumber_ios=20\n[r]\nrw=randread\noffset=40g\nsize=40g\nnumber_ios=20\n";
    let run = |job: &JobFile| run(&stack(&[]), job, 1, RunOptions::default(), &mut NoObserver);
    let refused = run(&job(text)).unwrap_err();
    assert!(refused.is_bad_input(), "{refused}");
    assert!(refused.to_string().contains(": job w: offset 0 and size"), "{refused}");
    assert!(refused.to_string().ends_with("(--fit scales all sizes down)"), "{refused}");
    let outcome = run(&job(text).fit()).unwrap();
    assert!(!outcome.workload.failed());
    let is_scaled =
        |warning: &String| warning.starts_with("sizes and offsets of all jobs scaled by 0.0");
    assert!(outcome.warnings.iter().any(is_scaled), "{:?}", outcome.warnings);
    let fits = run(&job("[w]\nrw=write\nsize=1m\n").fit()).unwrap();
    assert!(!fits.warnings.iter().any(|warning| warning.contains("scaled")), "{:?}", fits.warnings);
}
