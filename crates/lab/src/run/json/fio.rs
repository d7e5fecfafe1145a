//! fio's part of a result, key for key as fio 3.36 writes it. What a virtual run does not have (CPU
//! time, disk utilisation, the date) is left out or zero.

use super::VERSION;
use crate::run::outcome::Outcome;
use nandscape_workload::engine::{DirectionResult, JobResult, Latencies};
use nandscape_workload::fio::Direction;
use serde_json::{Map, Value, json};

/// The percentiles that fio prints by default.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Outcome {
    pub(super) fn fio(&self) -> Value {
        let jobs: Vec<Value> = self.workload.jobs.iter().map(job).collect();
        json!({
            "fio version": format!("fio-3.36-nandscape-{VERSION}"),
            "timestamp": 0,
            "global options": {},
            "jobs": jobs,
        })
    }
}

fn job(job: &JobResult) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.into(), value);
    put("jobname", job.name.clone().into());
    if !job.description.is_empty() {
        put("desc", job.description.clone().into());
    }
    put("groupid", job.group.into());
    put("error", u32::from(job.failed()).into());
    put("eta", 0.into());
    put("elapsed", job.runtime.0.div_ceil(1_000_000_000).into());
    put("job options", json!({ "name": job.name, "numjobs": job.jobs.to_string() }));
    for one in Direction::ALL {
        put(one.name(), direction(job, one, job.direction(one)));
    }
    put("sync", json!({ "total_ios": job.sync.count(), "lat_ns": latency(&job.sync, true) }));
    put("job_runtime", milliseconds(job).into());
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

fn direction(job: &JobResult, direction: Direction, result: &DirectionResult) -> Value {
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
        "slat_ns": latency(&Latencies::default(), false),
        "clat_ns": latency(&result.latency, true),
        "lat_ns": latency(&result.latency, true),
    })
}

/// fio's latency block, with percentiles where there is something to rank.
fn latency(latencies: &Latencies, with_percentiles: bool) -> Value {
    let histogram = latencies.histogram();
    let mut out = json!({
        "min": latencies.min().0,
        "max": latencies.max().0,
        "mean": latencies.mean_ns(),
        "stddev": histogram.stdev(),
        "N": latencies.count(),
    });
    if with_percentiles && latencies.count() > 0 {
        let at = |percent: f64| histogram.value_at_quantile(percent / 100.0);
        let rank = |percent: f64| (format!("{percent:.6}"), at(percent).into());
        out["percentile"] = Value::Object(PERCENTILES.into_iter().map(rank).collect());
    }
    out
}
