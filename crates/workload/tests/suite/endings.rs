//! How jobs end with others, begin after them, end when they are steady, or fail because they are slow.

use crate::common;

use common::{Defect, TestDevice, jobs};
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::engine::{Engine, FailureKind, JobResult, NoProbe, Options, Results};

/// 10 us an I/O.
fn device() -> TestDevice {
    let mut device = TestDevice::new(4_096);
    device.spread_ns = 0;
    device
}

/// A device that is broken.
fn broken(defect: Option<Defect>) -> TestDevice {
    let mut device = device();
    device.defect = defect;
    device
}

fn run(text: &str) -> Results<()> {
    common::run(text, &mut device())
}

fn ios(job: &JobResult) -> u64 {
    job.directions.iter().map(|direction| direction.ios).sum()
}

/// `exitall` ends the jobs of the group, or those that run, or all; those that have not begun do nothing.
#[test]
fn the_first_to_end_ends_the_others() {
    let short = "[short]\nnumber_ios=100\nexitall\n";
    let long = "[long]\nrw=randwrite\nend_fsync=1\n[late]\nstartdelay=1s\n[paused]\nthinktime=1s\n";
    let results = run(&format!("{short}{long}"));
    let counts: Vec<u64> = results.jobs.iter().map(ios).collect();
    assert!(counts[0] == 100 && (100..=101).contains(&counts[1]), "{counts:?}");
    assert_eq!(counts[2..], [0, 1]);
    assert_eq!(results.jobs[1].sync.count(), 1, "end_fsync");
    assert!(results.ended < Nanos::from_ms(2), "{}", results.ended);
    let after = "[after]\nstonewall\nnumber_ios=7\n";
    for (what, others, then) in [("group", 4_096, 7), ("stonewall", 100, 7), ("all", 100, 0)] {
        let text = format!("{short}exit_what={what}\n[other]\nnew_group\n{after}");
        let results = run(&text);
        let counts: Vec<u64> = results.jobs.iter().map(ios).collect();
        assert!(counts[1].abs_diff(others) <= 1 && counts[2] == then, "{what}: {counts:?}");
    }
}

/// `exitall_on_error` ends them where one fails, and not where it ends well.
#[test]
fn a_failure_ends_the_others() {
    for (defect, others) in [(Some(Defect::Fails(50)), 50..60), (None, 4_096..4_097)] {
        let mut device = broken(defect);
        let text = "[a]\nnumber_ios=100\nexitall_on_error\n[b]\nrw=read:-8k\n";
        let text = text.replace("rw=read:-8k", "rw=randwrite\ncontinue_on_error=all");
        let results = common::run(&text, &mut device);
        assert_eq!(results.jobs[0].failed(), others.end == 60);
        assert!(others.contains(&(ios(&results.jobs[1]) + results.jobs[1].errors)));
    }
}

/// `ignore_error` tolerates what it names, by what failed.
#[test]
fn named_errors_are_ignored() {
    for (keys, failed) in [
        ("", true),
        ("ignore_error=EIO", false),
        ("ignore_error=5", false),
        ("ignore_error=,EIO", true),
    ] {
        let mut device = broken(Some(Defect::Fails(5)));
        let results = common::run(&format!("[j]\nsize=64k\n{keys}\n"), &mut device);
        assert_eq!(results.failed(), failed, "{keys}");
        assert_eq!(results.jobs[0].errors, 1);
    }
}

/// A job begins when all clones of the one that it waits for have ended, and its delay has passed.
#[test]
fn a_job_waits_for_another() {
    let text = "[a]\nnumber_ios=10\nnumjobs=2\n[b]\nnumber_ios=30\n[c]\nwait_for=a\nnumber_ios=5\n\
                startdelay=50us\n[d]\nwait_for=c\nnumber_ios=1\n[e]\nstonewall\nwait_for=a\nnumber_ios=2\n";
    let results = run(text);
    let began: Vec<u64> = results.jobs.iter().map(|job| job.began.0 / 1_000).collect();
    assert_eq!(began, [0, 0, 0, 150, 200, 300]);
    assert_eq!(results.jobs.iter().map(ios).collect::<Vec<_>>(), [10, 10, 30, 5, 1, 2]);
}

/// A job that waited for others of its flow and was ended by time is not ended twice.
#[test]
fn a_flow_goes_on_without_those_that_ended() {
    let text = "[a]\nflow=1\nruntime=2ms\ntime_based\nthinktime=300\n[b]\nflow=1\nruntime=1ms\ntime_based\n\
                [c]\nflow=1\nruntime=4ms\ntime_based\nthinktime=200\n";
    let results = run(text);
    assert!(results.jobs.iter().all(|job| ios(job) > 1));
    assert!(results.ended >= Nanos::from_ms(4), "{}", results.ended);
}

/// A job with `steadystate` ends when its rate has been steady for the window, or with its time.
#[test]
fn a_steady_job_ends() {
    let steady =
        "rw=randread\ntime_based\nruntime=30\nsteadystate=iops:1%\nsteadystate_duration=3\n";
    let results =
        run(&format!("[j]\n{steady}steadystate_ramp_time=2\n[k]\n{steady}thinktime=1ms\n"));
    let [j, k] = &results.jobs[..] else { panic!() };
    for (job, ended) in [(j, 5), (k, 3)] {
        let found = job.steady.as_ref().unwrap();
        assert!(found.attained && found.value < 1.0, "{found:?}");
        let late = job.runtime.saturating_sub(Nanos::from_secs(ended));
        assert!(late < Nanos::from_ms(2), "{}", job.runtime);
        assert_eq!(found.window.len(), 3);
    }
    assert!((j.steady.as_ref().unwrap().window[0].iops - 100_000.0).abs() < 2.0);
    // Steps of the rate that are larger than the limit.
    let results = run(
        "[j]\ntime_based\nruntime=8\nss=bw:1%\nss_dur=3\nthinktime=600ms\nthinktime_blocks=9000\n",
    );
    let found = results.jobs[0].steady.as_ref().unwrap();
    assert!(!found.attained && results.jobs[0].runtime == Nanos::from_secs(8), "{found:?}");
}

/// Jobs of a reporting group are judged by what they do together.
#[test]
fn a_group_is_steady_together() {
    let group = "group_reporting\ntime_based\nruntime=20\nss=iops:3%\nss_dur=4\n";
    let alternate = "thinktime=1s\nthinktime_iotime=1s\nthinktime_blocks=1000000\n";
    let alone = run(&format!("[a]\n{group}{alternate}"));
    assert!(!alone.jobs[0].steady.as_ref().unwrap().attained);
    let results = run(&format!("[a]\n{group}{alternate}[b]\nstartdelay=1s\n{group}{alternate}"));
    let found = results.jobs[0].steady.as_ref().unwrap();
    assert!(results.jobs.len() == 1 && found.attained, "{found:?}");
}

/// Below the least rate a job fails, after the time that fio leaves it.
#[test]
fn a_slow_job_fails() {
    // 1 ms an I/O.
    let slow = |keys: &str| {
        let mut device = device();
        device.base_ns = 1_000_000;
        common::run(&format!("[j]\nrw=randread\nruntime=5\ntime_based\n{keys}\n"), &mut device)
    };
    for (keys, fails) in [
        ("rate_iops_min=990", false),
        ("rate_iops_min=1010", true),
        ("rate_min=4000k", false),
        ("rate_min=4200k", true),
        ("rate_min=,4200k", false),
        ("rate_iops_min=1010\nrate_cycle=4000", false),
    ] {
        let results = slow(keys);
        let job = &results.jobs[0];
        assert_eq!(job.failed(), fails, "{keys}");
        if fails {
            let at = job.failures[0].at;
            assert!(at >= Nanos::from_secs(3) && at < Nanos::from_ms(3_010), "{at}");
            let is_rate =
                matches!(job.failures[0].what, FailureKind::TooSlowRate { got: 990..=1000, .. });
            assert!(is_rate || keys.starts_with("rate_min"), "{:?}", job.failures);
            assert!(job.failures[0].to_string().contains("not met, got"), "{:?}", job.failures);
        }
    }
}

/// `bs_is_seq_rand` makes the first size that of sequential I/Os, and the second that of random ones.
#[test]
fn sizes_go_by_order() {
    for (rw, bytes) in [("rw", 4_096), ("randrw", 8_192)] {
        let results = run(&format!("[j]\nrw={rw}\nbs=4k,8k\nbs_is_seq_rand\nnumber_ios=40\n"));
        for direction in [Direction::Read, Direction::Write] {
            let result = results.jobs[0].direction(direction);
            assert_eq!(result.bytes, result.ios * bytes, "{rw}");
        }
    }
}

/// Engines that pause and go on end the same jobs at the same instants.
#[test]
fn endings_do_not_depend_on_pauses() {
    let text = "[a]\nnumber_ios=100\nexitall\n[b]\nrw=randwrite\nwait_for=a\n[c]\nrw=randwrite\n";
    let whole = run(text);
    let mut device = device();
    let mut engine = Engine::new(&jobs(text), &device.caps, &Options::default()).unwrap();
    for ms in 0..10 {
        engine.run_until(&mut device, &mut NoProbe, Some(Nanos(ms * 123_456))).unwrap();
    }
    engine.run_until(&mut device, &mut NoProbe, None).unwrap();
    assert_eq!(engine.finish().jobs, whole.jobs);
}
