//! What holds I/O back: the process of a rate, pauses, shares in a flow.

use crate::common;

use common::{TestDevice, jobs, run};
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::engine::JobResult;

/// A device that serves every request in 10 us.
fn device() -> TestDevice {
    let mut device = TestDevice::new(1 << 16);
    device.spread_ns = 0;
    device
}

/// When the I/Os of a job were submitted, in microseconds.
fn starts(keys: &str) -> Vec<u64> {
    let mut device = device();
    let results = run(&format!("[job]\n{keys}\n"), &mut device);
    assert!(!results.failed());
    device.log.iter().map(|(at, _)| at.0 / 1_000).collect()
}

/// Mean and coefficient of variation of the gaps.
fn gaps(starts: &[u64]) -> (f64, f64) {
    let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>();
    (mean, (variance / gaps.len() as f64).sqrt() / mean)
}

/// Both processes keep the rate: one evenly, the other with exponential gaps, for I/Os and bytes.
#[test]
fn poisson_varies_where_linear_is_even() {
    let keys = "rw=randread\niodepth=64\nnumber_ios=20000\nio_size=1g";
    for rate in ["rate_iops=1000", "rate=4000k"] {
        let (mean, variation) = gaps(&starts(&format!("{keys}\n{rate}\nrate_process=linear")));
        assert!((mean - 1_000.0).abs() < 1.0 && variation < 0.001, "{mean} {variation}");
        let (mean, variation) = gaps(&starts(&format!("{keys}\n{rate}\nrate_process=poisson")));
        assert!((mean - 1_000.0).abs() < 25.0, "{mean}");
        assert!((variation - 1.0).abs() < 0.03, "{variation}");
    }
}

/// A rate in bytes counts what each I/O has, a rate in I/Os does not.
#[test]
fn rates_hold_for_different_sizes() {
    let keys = "rw=write\niodepth=8\nbssplit=4k/50:12k/50\nnumber_ios=4000";
    let mean = |rate: &str| gaps(&starts(&format!("{keys}\n{rate}"))).0;
    assert!((mean("rate=8000k") - 1_000.0).abs() < 20.0);
    assert!((mean("rate_iops=1000") - 1_000.0).abs() < 1.0);
}

/// Pauses come behind so many I/Os: completed ones, while others are in flight, or issued ones.
#[test]
fn pauses_come_behind_so_many_ios() {
    let keys = "rw=read\nthinktime=1ms\nthinktime_blocks=3";
    let alone = starts(&format!("{keys}\nnumber_ios=7"));
    assert_eq!(alone, [0, 10, 20, 1_030, 1_040, 1_050, 2_060]);
    let deep = starts(&format!("{keys}\niodepth=2\nnumber_ios=8"));
    assert_eq!(deep, [0, 0, 10, 10, 1_020, 1_020, 1_030, 1_030]);
    let issued = starts(&format!("{keys}\niodepth=8\nthinktime_blocks_type=issue\nnumber_ios=7"));
    assert_eq!(issued, [0, 0, 0, 1_010, 1_010, 1_010, 2_020]);
}

/// `thinktime_iotime` pauses when that much time has passed, whatever the count; with both, what
/// comes first counts. Spinning is a part of the pause.
#[test]
fn pauses_come_behind_so_much_time() {
    let keys = "rw=read\nthinktime=1ms\nthinktime_spin=500\nthinktime_iotime=25us\nnumber_ios=5";
    assert_eq!(starts(keys), [0, 10, 20, 1_030, 1_040]);
    assert_eq!(starts(&format!("{keys}\nthinktime_blocks=2")), [0, 10, 1_020, 1_030, 2_040]);
}

/// What a pause cost is caught up with, unless the rate ignores it.
#[test]
fn a_rate_may_ignore_pauses() {
    let keys = "rw=read\nrate_iops=10000\nthinktime=1ms\nthinktime_blocks=5\nnumber_ios=8";
    let late = starts(keys);
    assert_eq!(late[..6], [0, 100, 200, 300, 400, 1_410]);
    assert_eq!(late[6], 1_420, "catches up");
    let even = starts(&format!("{keys}\nrate_ignore_thinktime"));
    assert_eq!(even[5..], [1_500, 1_600, 1_700]);
}

fn ios(jobs: &[JobResult]) -> Vec<u64> {
    jobs.iter().map(|job| job.direction(Direction::Read).ios).collect()
}

/// Jobs of a flow issue in proportion to their weights, whatever their depth; others do not care.
#[test]
fn flows_share_by_weight() {
    let text = "[global]\nrw=randread\ntime_based\nruntime=100ms\n[a]\nflow=3\niodepth=16\n\
                [b]\nflow=2\n[c]\nflow=1\niodepth=4\n[free]\n[other]\nflow=1\nflow_id=9\n";
    let seen = ios(&run(text, &mut device()).jobs);
    assert_eq!((seen[3], seen[4]), (10_000, 10_000));
    assert_eq!(seen[1], 10_000, "the slowest for its weight sets the pace");
    assert!(seen[0].abs_diff(15_000) <= 20 && seen[2].abs_diff(5_000) <= 20, "{seen:?}");
}

/// With `flow_sleep` a job that is ahead sleeps so long before it looks again.
#[test]
fn a_job_ahead_of_its_flow_may_sleep() {
    let text = "[global]\nrw=read\nflow=1\ntime_based\nruntime=50ms\n[fast]\nflow_sleep=1ms\n\
                [slow]\nrate_iops=1000\n";
    let seen = ios(&run(text, &mut device()).jobs);
    assert_eq!(seen[1], 50);
    assert!(seen[0].abs_diff(50) <= 2, "{seen:?}");
}

/// When a job of a flow ends, the others go on without it.
#[test]
fn a_flow_outlives_its_members() {
    let text = "[global]\nrw=read\n[short]\nflow=1\nnumber_ios=10\n[long]\nflow=9\nnumber_ios=500\n\
                [late]\nflow=1\nstartdelay=1s\nnumber_ios=10\n";
    let results = run(text, &mut device());
    assert_eq!(ios(&results.jobs), [10, 500, 10]);
    assert!(results.jobs[1].runtime < Nanos::from_ms(6));
}

/// Governed jobs stop at their time limits too.
#[test]
fn time_limits_hold_for_governed_jobs() {
    for keys in ["flow=1", "thinktime=7\nthinktime_blocks_type=issue", "iodepth_low=1\niodepth=4"] {
        let text = format!("[j]\nrw=read\ntime_based\nruntime=5ms\nramp_time=1ms\n{keys}\n");
        let runtime = run(&text, &mut device()).jobs[0].runtime;
        assert!((5_000_000..5_050_000).contains(&runtime.0), "{keys}: {runtime}");
        assert!(jobs(&text).jobs[0].time_based);
    }
}
