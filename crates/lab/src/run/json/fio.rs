//! fio's part of a result, key for key as fio 3.36 writes it (stat.c, `show_thread_status_json`).
//!
//! Submission takes no virtual time: `slat_ns` is zero, and `lat_ns` equals `clat_ns`. I/Os are
//! submitted and completed one by one, so `iodepth_submit` and `iodepth_complete` have one class. What
//! a virtual run does not have (CPU time, disks of the host, the date) is zero or empty.

use super::VERSION;
use crate::run::outcome::Outcome;
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::engine::{DEPTH_CLASSES, JobResult, SteadyResult, SteadySample};
use nandscape_workload::fio::{JobOption, SteadyCriterion};
use nandscape_workload::latency::Latencies;
use nandscape_workload::log::bins;
use serde_json::{Map, Value, json};

/// The percentiles that fio prints by default.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Ends of fio's latency classes below a thousand, of nanoseconds and of microseconds.
const CLASS_ENDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// The smallest share of a latency class that is not empty, in percent; fio rounds up to it.
const CLASS_SHARE_MIN: f64 = 0.01;
/// Likewise of a class of depth.
const DEPTH_SHARE_MIN: f64 = 0.1;

/// How much of latencies is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LatencyDetail {
    /// `--output-format=json`.
    Percentiles,
    /// `--output-format=json+`: latencies by bin, too.
    Bins,
}

impl Outcome {
    pub(super) fn fio(&self, detail: LatencyDetail) -> Value {
        let jobs = &self.workload.jobs;
        let results = jobs.iter().map(|job| self::job(job, jobs, detail)).collect::<Vec<_>>();
        json!({
            "fio version": format!("fio-3.36-nandscape-{VERSION}"),
            "timestamp": 0,
            "timestamp_ms": 0,
            "time": "Thu Jan  1 00:00:00 1970",
            "global options": options(&self.workload.global_options),
            "jobs": results,
            "disk_util": [],
        })
    }
}

/// Keys as they stand in the job file; the last of several counts, as in fio.
fn options(options: &[JobOption]) -> Value {
    let text = |value: &Option<String>| value.clone().unwrap_or_default().into();
    Value::Object(options.iter().map(|(key, value)| (key.clone(), text(value))).collect())
}

fn job(job: &JobResult, all: &[JobResult], detail: LatencyDetail) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.into(), value);
    put("jobname", job.name.clone().into());
    put("groupid", job.group.into());
    put("error", u32::from(job.failed()).into());
    put("eta", 0.into());
    put("elapsed", job.runtime.0.div_ceil(1_000_000_000).into());
    put("job options", options(&job.options));
    if !job.description.is_empty() {
        put("desc", job.description.clone().into());
    }
    for one in Direction::ALL {
        put(one.name(), direction(job, all, one, detail));
    }
    if job.unaligned.iter().any(|ios| *ios > 0) {
        let ios =
            Direction::ALL.map(|one| (one.name().to_owned(), job.unaligned[one as usize].into()));
        put("unaligned_ios", Value::Object(ios.into_iter().collect()));
    }
    put("sync", json!({ "total_ios": job.sync.count(), "lat_ns": ranked(&job.sync, detail) }));
    if let Some(zones) = &job.zones {
        // The first one is fio's, from 3.42 on.
        put("zone_resets", zones.resets.into());
        put("zones_begun", zones.begun.into());
        put("zones_filled", zones.filled.into());
        put("zone_reset_lat_ns", ranked(&zones.reset_latency, LatencyDetail::Percentiles));
    }
    if let Some(steady) = &job.steady {
        put("steadystate", steady_state(steady));
    }
    put("job_runtime", milliseconds(job).into());
    put("usr_cpu", 0.0.into());
    put("sys_cpu", 0.0.into());
    put("ctx", 0.into());
    put("majf", 0.into());
    put("minf", 0.into());
    put("iodepth_level", depths(&job.depths));
    put("iodepth_submit", one_by_one());
    put("iodepth_complete", one_by_one());
    for (key, classes) in latency_classes(job) {
        put(key, classes);
    }
    put("latency_depth", job.latency_depth.unwrap_or(job.depth).into());
    put("latency_target", 0.into());
    put("latency_percentile", 100.0.into());
    put("latency_window", 0.into());
    put("total_err", job.errors.into());
    put(
        "verify",
        json!({
            "verified_sectors": job.verified_sectors,
            "unverified_sectors": job.unverified_sectors,
        }),
    );
    Value::Object(out)
}

fn milliseconds(job: &JobResult) -> u64 {
    job.runtime.0 / 1_000_000
}

fn direction(
    job: &JobResult,
    all: &[JobResult],
    direction: Direction,
    detail: LatencyDetail,
) -> Value {
    let result = job.direction(direction);
    let (bw, iops) = (&result.bandwidth_kib, &result.iops);
    let bytes_per_s = job.bytes_per_s(direction);
    json!({
        "io_bytes": result.bytes,
        "io_kbytes": result.bytes >> 10,
        "bw_bytes": bytes_per_s as u64,
        "bw": (bytes_per_s / 1024.0) as u64,
        "iops": job.iops(direction),
        "runtime": if result.ios > 0 { milliseconds(job) } else { 0 },
        "total_ios": result.ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": { "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": result.ios },
        "clat_ns": ranked(&result.latency, detail),
        "lat_ns": ranked(&result.latency, LatencyDetail::Percentiles),
        "bw_min": bw.min,
        "bw_max": bw.max,
        "bw_agg": share_of_group(job, all, direction),
        "bw_mean": bw.mean,
        "bw_dev": bw.deviation(),
        "bw_samples": bw.samples,
        "iops_min": iops.min,
        "iops_max": iops.max,
        "iops_mean": iops.mean,
        "iops_stddev": iops.deviation(),
        "iops_samples": iops.samples,
    })
}

/// The mean bandwidth in percent of that of the job's group, at most 100.
fn share_of_group(job: &JobResult, all: &[JobResult], direction: Direction) -> f64 {
    let group = || all.iter().filter(|other| other.group == job.group);
    let bytes = group().map(|job| job.direction(direction).bytes).sum::<u64>() as f64;
    let seconds = group().map(|job| job.runtime).max().unwrap_or_default().as_secs_f64();
    let mean_bytes = job.direction(direction).bandwidth_kib.mean * 1024.0;
    if bytes > 0.0 { (100.0 * mean_bytes * seconds / bytes).min(100.0) } else { 0.0 }
}

/// fio's latency block, with percentiles where there is something to rank.
fn ranked(latencies: &Latencies, detail: LatencyDetail) -> Value {
    let histogram = latencies.histogram();
    let mut out = json!({
        "min": latencies.min().0,
        "max": latencies.max().0,
        "mean": latencies.mean_ns(),
        "stddev": histogram.stdev(),
        "N": latencies.count(),
    });
    if latencies.count() > 0 {
        let at = latencies.ranks();
        let rank = |percent: f64| (format!("{percent:.6}"), at(percent / 100.0).0.into());
        out["percentile"] = Value::Object(PERCENTILES.into_iter().map(rank).collect());
        if detail == LatencyDetail::Bins {
            let bins = bins(latencies).into_iter();
            let bins = bins.map(|(ns, count)| (ns.to_string(), count.into()));
            out["bins"] = Value::Object(bins.collect());
        }
    }
    out
}

/// fio's block of `steadystate` (stat.c): rates are per second, of the window that was judged last.
fn steady_state(steady: &SteadyResult) -> Value {
    let SteadyCriterion { percent, limit, .. } = steady.criterion;
    let unit = if percent { "%" } else { "" };
    let mean = |of: fn(&SteadySample) -> f64| {
        let sum: f64 = steady.window.iter().map(of).sum();
        (sum / steady.window.len().max(1) as f64) as u64
    };
    let samples = |of: fn(&SteadySample) -> f64| {
        steady.window.iter().map(|s| of(s) as u64).collect::<Vec<_>>()
    };
    json!({
        "ss": format!("{}:{limit:.6}{unit}", steady.criterion.name()),
        "duration": in_seconds(steady.duration),
        "attained": u32::from(steady.attained),
        "criterion": format!("{:.6}{unit}", steady.value),
        "max_deviation": steady.deviation,
        "slope": steady.slope,
        "data": {
            "bw_mean": mean(|sample| sample.bandwidth),
            "iops_mean": mean(|sample| sample.iops),
            "iops": samples(|sample| sample.iops),
            "bw": samples(|sample| sample.bandwidth),
        },
    })
}

/// Seconds, which fio writes as a whole number.
fn in_seconds(time: Nanos) -> Value {
    match time.0 % 1_000_000_000 {
        0 => (time.0 / 1_000_000_000).into(),
        _ => time.as_secs_f64().into(),
    }
}

/// Shares of the depths at which I/Os were in flight, in percent.
fn depths(depths: &[u64; DEPTH_CLASSES]) -> Value {
    let all = depths.iter().sum();
    let name = |class: usize| {
        if class + 1 < DEPTH_CLASSES { (1 << class).to_string() } else { ">=64".into() }
    };
    let share = |(class, count): (usize, &u64)| (name(class), share(*count, all, DEPTH_SHARE_MIN));
    Value::Object(depths.iter().enumerate().map(share).collect())
}

/// I/Os go out, and come back, one by one: all of them are in fio's class of up to four.
fn one_by_one() -> Value {
    json!({
        "0": 0.0, "4": 100.0, "8": 0.0, "16": 0.0, "32": 0.0, "64": 0.0, ">=64": 0.0,
    })
}

fn share(count: u64, all: u64, min: f64) -> Value {
    let share = 100.0 * count as f64 / all.max(1) as f64;
    if count > 0 { share.max(min).into() } else { 0.0.into() }
}

/// Shares of the latencies of all directions in fio's classes, under their keys.
fn latency_classes(job: &JobResult) -> [(&'static str, Value); 3] {
    let mut all = Latencies::default();
    job.directions.iter().for_each(|direction| all.merge(&direction.latency));
    let scales = [("latency_ns", 1, 1_000), ("latency_us", 1_000, 1_000_000)];
    let [ns, us] = scales.map(|(key, unit_ns, end_ns)| {
        let from_ns = if unit_ns == 1 { 0 } else { unit_ns };
        (key, classes(&all, unit_ns, from_ns..end_ns, &CLASS_ENDS))
    });
    let ends: Vec<u64> = CLASS_ENDS.into_iter().chain([2_000]).collect();
    let mut ms = classes(&all, 1_000_000, 1_000_000..2_000_000_000, &ends);
    let beyond = starts(&all).filter(|(ns, _)| *ns >= 2_000_000_000).map(|(_, count)| count);
    ms[">=2000"] = share(beyond.sum(), all.count(), CLASS_SHARE_MIN);
    [ns, us, ("latency_ms", ms)]
}

/// How many there are from which latency on. The shortest is exact, though its bucket may begin below it, and below the class
/// that begins with it: a device that takes 100 us each time has no latency below 100 us.
fn starts(all: &Latencies) -> impl Iterator<Item = (u64, u64)> {
    let shortest = all.min().0;
    all.buckets().map(move |(ns, count)| (ns.max(shortest), count))
}

/// Shares of those within `range_ns`, in classes that end at so many units.
fn classes(all: &Latencies, unit_ns: u64, range_ns: std::ops::Range<u64>, ends: &[u64]) -> Value {
    let mut counts = vec![0; ends.len()];
    for (ns, count) in starts(all).filter(|(ns, _)| range_ns.contains(ns)) {
        let class = ends.partition_point(|end| ns / unit_ns >= *end);
        counts[class.min(ends.len() - 1)] += count;
    }
    let name =
        |(end, count): (&u64, &u64)| (end.to_string(), share(*count, all.count(), CLASS_SHARE_MIN));
    Value::Object(ends.iter().zip(&counts).map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_workload::engine::DirectionResult;

    /// A job of a group that wrote so many bytes in its time, at this mean bandwidth of its windows.
    fn wrote(bytes: u64, seconds: u64, kib_per_s: u64) -> JobResult {
        let mut write = DirectionResult { ios: 4, bytes, ..DirectionResult::default() };
        write.bandwidth_kib.add(kib_per_s);
        let directions = [DirectionResult::default(), write, DirectionResult::default()];
        JobResult { runtime: Nanos::from_secs(seconds), directions, ..JobResult::default() }
    }

    fn written(job: &JobResult, all: &[JobResult]) -> Value {
        direction(job, all, Direction::Write, LatencyDetail::Percentiles)
    }

    /// fio's kilobytes are KiB: 3,072,000 bytes are 3,000 of them, and 1,500 a second in two.
    #[test]
    fn kilobytes_are_kib() {
        let job = wrote(3_072_000, 2, 1_500);
        let json = written(&job, std::slice::from_ref(&job));
        assert_eq!((&json["io_kbytes"], &json["bw"]), (&json!(3_000), &json!(1_500)));
        assert_eq!((&json["bw_bytes"], &json["iops"]), (&json!(1_536_000), &json!(2.0)));
        assert_eq!(json["runtime"], 2_000);
    }

    /// Shares of a group are of what it transferred over the time of its longest job: 4,000 KiB in two seconds are
    /// 2,000 KiB/s, of which 1,500 are three quarters and 1,000 a half, also of a job that ended after one.
    #[test]
    fn shares_are_of_the_whole_group() {
        let all = [wrote(3_072_000, 2, 1_500), wrote(1_024_000, 1, 1_000)];
        let shares = all.each_ref().map(|job| written(job, &all)["bw_agg"].as_f64().unwrap());
        assert_eq!(shares, [75.0, 50.0]);
    }

    /// A class ends below its name: 10 us are in that of 20, and 999 ns in the last of nanoseconds.
    #[test]
    fn classes_end_below_their_names() {
        let mut job = wrote(4_096, 1, 4);
        let latencies = [2, 999, 1_000, 9_992, 10_000, 2_100_000, 2_500_000_000, 3_000_000_000];
        latencies.into_iter().for_each(|ns| job.directions[1].latency.record(Nanos(ns)));
        let [(_, ns), (_, us), (_, ms)] = latency_classes(&job);
        let filled = |classes: &Value| {
            let filled = classes.as_object().unwrap().iter();
            let filled = filled.filter(|(_, share)| share.as_f64() > Some(0.0));
            filled.map(|(end, share)| format!("{end} {share}")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(filled(&ns), "4 12.5, 1000 12.5");
        assert_eq!(filled(&us), "2 12.5, 10 12.5, 20 12.5");
        assert_eq!(filled(&ms), "4 12.5, >=2000 25.0");
        // What always takes as long is where that is, whatever its bucket begins with.
        let mut constant = wrote(4_096, 1, 4);
        (0..9).for_each(|_| constant.directions[1].latency.record(Nanos::from_us(100)));
        let [_, (_, us), _] = latency_classes(&constant);
        assert_eq!(filled(&us), "250 100.0");
    }
}
