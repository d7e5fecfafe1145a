//! A result as JSON: fio's own keys (`fio --output-format=json`, fio 3.36), in which a run looks like
//! fio's, and one key of ours (DESIGN, "JSON of a run").
//!
//! The order of keys is fixed, and everything but `wall_s` and `commit` is the same for the same
//! stack, job and seed. What a virtual run does not have (CPU time, disk utilisation, the date) is
//! left out or zero.

use super::course::criterion;
use super::curves;
use super::outcome::Outcome;
use nandscape_workload::engine::{DirectionResult, JobResult, Latencies};
use nandscape_workload::fio::Direction;
use nandscape_workload::trace::TraceCounts;
use serde_json::{Map, Value, json};

/// The percentiles that fio prints by default.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Outcome {
    /// The whole result; `commit` is what the program was built from.
    #[must_use]
    pub fn to_json(&self, commit: &str) -> Value {
        let jobs: Vec<Value> = self.workload.jobs.iter().map(job).collect();
        json!({
            "fio version": format!("fio-3.36-nandscape-{VERSION}"),
            "timestamp": 0,
            "global options": {},
            "jobs": jobs,
            "nandscape": self.ours(commit),
        })
    }

    fn ours(&self, commit: &str) -> Value {
        let mut ours = Map::new();
        let mut put = |key: &str, value: Value| ours.insert(key.into(), value);
        put("version", VERSION.into());
        put("commit", commit.into());
        put("stack", self.stack.name.clone().into());
        put("seed", self.seed.into());
        put("virtual_s", self.virtual_time.as_secs_f64().into());
        put("wall_s", self.wall.measured_s.into());
        if let Some(counts) = &self.trace {
            put("trace", trace(counts));
        }
        put("capacity", self.capacity_json());
        put("geometry", curves::geometry(&self.stack.media.geometry));
        put("precondition", self.precondition_json());
        put("waf", self.waf_json());
        put("sectors", self.sectors_json());
        put("erases", self.ftl.erases.into());
        put("gc", self.gc_json());
        put("flush", self.flush_json());
        put("reads", self.reads_json());
        put("writes", self.writes_json());
        put("discards", json!({ "sectors": self.ftl.discarded }));
        put("lines", json!({ "valid_histogram": self.line_valid }));
        put("pad_units", self.ftl.pad_dist.clone().into());
        put("steady", self.steady.into());
        put("steady_criterion", criterion().into());
        put("warnings", self.warnings.clone().into());
        put(
            "map",
            json!({
                "bytes": self.memory.map_bytes, "hit_ratio": 1.0, "loads": 0, "writebacks": 0,
            }),
        );
        put("memory", self.memory_json());
        put("wear", self.wear_json());
        put("utilisation", curves::utilisation(&self.utilisation, self.virtual_time));
        put("latency_cdf", curves::latency_cdf(&self.workload.jobs));
        put("series", self.series.iter().map(curves::point).collect());
        put("resolved_stack", self.stack.toml.clone().into());
        put("resolved_stack_hash", format!("{:016x}", self.stack.hash()).into());
        Value::Object(ours)
    }

    fn capacity_json(&self) -> Value {
        json!({
            "physical_sectors": self.size.physical_sectors,
            "logical_sectors": self.size.logical_sectors,
            "lines": self.size.lines,
            "line_sectors": self.size.line_sectors,
        })
    }

    fn precondition_json(&self) -> Value {
        json!({
            "wall_s": self.wall.precondition_s,
            "fill_sectors": self.preconditioned.fill_sectors,
            "overwrite_sectors": self.preconditioned.overwrite_sectors,
        })
    }

    fn waf_json(&self) -> Value {
        let waf = self.write_amplification();
        json!({ "gc": waf.gc, "gc_pad": waf.gc_pad, "media": waf.media, "fs": null })
    }

    fn sectors_json(&self) -> Value {
        let sectors = &self.ftl.sectors;
        json!({
            "user": sectors.user,
            "gc": sectors.gc,
            "pad": sectors.pad,
            "line_meta": sectors.line_meta,
            "map": sectors.map,
            "trim": sectors.trim,
            "journal": sectors.journal,
        })
    }

    fn gc_json(&self) -> Value {
        json!({
            "victims": self.ftl.gc.victims,
            "valid_ratio_mean": self.victim_valid_ratio(),
            "in_use_sectors_mean": self.ftl.in_use_sectors_mean,
            "free_rides": self.ftl.gc.free_rides,
            "forced_drains": self.ftl.gc.forced_drains,
        })
    }

    fn flush_json(&self) -> Value {
        let flush = &self.ftl.flush;
        json!({
            "waited": flush.waited,
            "empty": flush.empty,
            "total_ns": flush.total_ns,
            "queue_ns": flush.queue_ns,
            "gc_ns": flush.gc_ns,
            "padding_ns": flush.padding_ns,
            "program_ns": flush.program_ns,
        })
    }

    fn reads_json(&self) -> Value {
        json!({
            "sectors": self.ftl.user_read,
            "ring_hits": self.ftl.ring_hits,
            "uncorrectable": self.ftl.uncorrectable,
            "mismatches": self.ftl.mismatches,
        })
    }

    fn writes_json(&self) -> Value {
        json!({
            "sectors": self.ftl.user_written,
            "stall_ns_max": self.ftl.stall_ns_max.0,
        })
    }

    fn memory_json(&self) -> Value {
        json!({
            "ftl_bytes": self.memory.total(),
            "buffers_bytes": self.memory.buffers_bytes,
            "bitmap_bytes": self.memory.bitmap_bytes,
            "line_bytes": self.memory.line_bytes,
            "media_bytes": self.media_bytes,
        })
    }

    fn wear_json(&self) -> Value {
        json!({
            "chunks": self.wear.chunks,
            "offline": self.wear.offline,
            "erases_total": self.wear.erases,
            "erases_min": self.wear.erases_min,
            "erases_max": self.wear.erases_max,
            "erases_histogram": {
                "first": self.erase_counts.first,
                "step": self.erase_counts.step,
                "chunks": self.erase_counts.chunks,
            },
            "program_failures": self.ftl.program_failures,
            "erase_failures": self.ftl.erase_failures,
        })
    }
}

fn trace(counts: &TraceCounts) -> Value {
    json!({
        "requests": counts.read.requests,
        "devices": counts.devices,
        "bad_lines": counts.read.bad_lines,
        "disordered": counts.read.disordered,
        "widened": counts.fit.widened,
        "widened_bytes": counts.fit.widened_bytes,
        "trims_narrowed": counts.fit.narrowed,
        "trims_dropped": counts.fit.dropped,
        "folded": counts.fit.folded,
        "late": counts.late,
        "late_max_ns": counts.late_max.0,
    })
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
