//! The sections of our key in a result (docs/formats/result.md): totals, the course of a run, distributions and
//! utilisation, which are there to be drawn; file system and page cache; the host; and flowops (docs/formats/wml.md).

use crate::run::queue::{QueueCounts, share};
use crate::run::sense::Busy;
use crate::run::series::{Point, written_parts};
use crate::stack::FsStack;
use nandscape_block::SECTOR_BYTES;
use nandscape_fs::FsSpace;
use nandscape_ftl::{CpuCounts, FlushTime, LockCounts, ThreadCounts};
use nandscape_media::{Geometry, LinkUse, Utilisation};
use nandscape_rt::Nanos;
use nandscape_rt::host::CoreTimes;
use nandscape_workload::Direction;
use nandscape_workload::engine::{GroupTotals, JobResult, ZoneCounts};
use nandscape_workload::latency::{IntervalLatency, Latencies};
use nandscape_workload::target::FileCounts;
use nandscape_workload::wml::engine::{FilesetMade, Report, Snapshot, Sums, TableRow};
use serde_json::{Map, Value, json};

/// What flushes are called, as in fio's JSON.
const SYNC: &str = "sync";

/// What all jobs did together, by direction; rates are null where no time passed.
pub(super) fn totals(totals: &GroupTotals) -> Value {
    let mut out = json!({ "seconds": totals.length.as_secs_f64() });
    for direction in Direction::ALL {
        out[direction.name()] = json!({
            "seconds": totals.times[direction as usize].as_secs_f64(),
            "total_ios": totals.ios[direction as usize],
            "io_bytes": totals.bytes[direction as usize],
            "iops": totals.iops(direction),
            "bw_bytes": totals.bytes_per_s(direction),
        });
    }
    if let Some(zones) = &totals.zones {
        let ZoneCounts { resets, begun, filled, .. } = zones;
        out["zones"] = json!({ "resets": resets, "begun": begun, "filled": filled });
    }
    out
}

/// Size and write rules of the device.
pub(super) fn geometry(geometry: &Geometry) -> Value {
    json!({
        "groups": geometry.groups,
        "units": geometry.units,
        "chunks": geometry.chunks,
        "sectors": geometry.sectors,
        "ws_min": geometry.ws_min,
        "ws_opt": geometry.ws_opt,
        "mw_cunits": geometry.mw_cunits,
    })
}

/// One interval of the course; directions that had no I/O in it are left out.
pub(super) fn point(point: &Point) -> Value {
    let sectors =
        written_parts(&point.sectors).map(|(part, count)| (part.to_owned(), count.into()));
    let mut out = json!({
        "t_s": point.t_s,
        "iops": point.iops,
        "waf": point.waf.gc,
        "waf_gc_pad": point.waf.gc_pad,
        "waf_media": point.waf.media,
    });
    out["gc_sectors_per_s"] = point.garbage.sectors_per_s.into();
    out["sectors"] = Map::from_iter(sectors).into();
    out["free_lines"] = point.free_lines.into();
    if let Some(in_flight) = point.in_flight {
        out["in_flight"] = in_flight.into();
    }
    if let Some(of) = &point.garbage.cleaning {
        out["fs"] = json!(of);
    }
    if let Some(of) = &point.garbage.migrations {
        out["coupled"] = json!(of);
    }
    let [directions @ .., sync] = &point.latency;
    for (at, direction) in Direction::ALL.into_iter().enumerate() {
        if let Some(latency) = &directions[at] {
            out[direction.name()] = interval(latency);
            out[direction.name()]["bytes_per_s"] = (point.bytes_per_s[at] as u64).into();
        }
    }
    if let Some(latency) = sync {
        out[SYNC] = interval(latency);
    }
    out
}

fn interval(latency: &IntervalLatency) -> Value {
    let (first, octaves) = latency.octaves();
    json!({
        "ios": latency.count,
        "mean_ns": latency.mean_ns as u64,
        "p50_ns": latency.p50.map(|p50| p50.0),
        "p99_ns": latency.p99.map(|p99| p99.0),
        "max_ns": latency.max.0,
        "histogram": { "first_ns": first.0, "ios": octaves },
    })
}

/// Shares of `length` in which resources were taken. What was in progress at the end counts whole, so
/// the share of a busy unit is cut off at one.
pub(super) fn utilisation(utilisation: &Utilisation, link: &LinkUse, length: Nanos) -> Value {
    let share = |busy: &Nanos| share(*busy, length);
    let busy = Busy::of(utilisation, length);
    let both_ways = link.to_device_busy.saturating_add(link.to_host_busy);
    json!({
        "units": utilisation.units.iter().map(share).collect::<Vec<_>>(),
        "units_mean": busy.mean,
        "units_least": busy.least,
        "units_most": busy.most,
        "channels": utilisation.channels.iter().map(share).collect::<Vec<_>>(),
        "pcie": share(&both_ways),
        "programmed_sectors": utilisation.programmed_sectors,
    })
}

/// Requests in the device during `length`.
pub(super) fn queue(queue: &QueueCounts, length: Nanos) -> Value {
    json!({
        "requests": queue.requests,
        "mean": queue.mean(length),
        "occupied": queue.occupied_share(length),
    })
}

/// What crossed the link in `length`, and the share of it for which either direction was taken.
pub(super) fn link(link: &LinkUse, length: Nanos) -> Value {
    json!({
        "to_device_bytes": link.to_device_bytes,
        "to_host_bytes": link.to_host_bytes,
        "to_device": share(link.to_device_busy, length),
        "to_host": share(link.to_host_busy, length),
    })
}

/// The distribution of latencies over all jobs, by direction, and of flushes.
pub(super) fn latency_cdf(jobs: &[JobResult]) -> Value {
    let mut out = Map::new();
    for one in Direction::ALL {
        let of_job = |job: &JobResult| job.direction(one).latency.clone();
        put_cdf(&mut out, one.name(), jobs.iter().map(of_job));
    }
    put_cdf(&mut out, SYNC, jobs.iter().map(|job| job.sync.clone()));
    Value::Object(out)
}

fn put_cdf(out: &mut Map<String, Value>, name: &str, parts: impl Iterator<Item = Latencies>) {
    let mut all = Latencies::default();
    parts.for_each(|part| all.merge(&part));
    if all.count() > 0 {
        out.insert(name.into(), cdf(&all));
    }
}

/// Points of the distribution function, each latency with the share that is no longer: every percent,
/// then every tenth of what is left, down to single I/Os.
fn cdf(latencies: &Latencies) -> Value {
    let rank = latencies.ranks();
    let (mut ns, mut shares) = (vec![latencies.min().0], vec![1.0 / latencies.count() as f64]);
    let mut put = |value: u64, share: f64| {
        if ns.last().is_some_and(|last| *last < value) {
            ns.push(value);
            shares.push(share);
        } else if let Some(last) = shares.last_mut() {
            *last = share;
        }
    };
    for share in shares_of(latencies.count()) {
        put(rank(share).0, share);
    }
    put(latencies.max().0, 1.0);
    json!({ "ns": ns, "share": shares })
}

/// The shares at which a distribution of so many is asked, in ascending order; at most 171.
fn shares_of(count: u64) -> impl Iterator<Item = f64> {
    let percents = (1..=99).map(|percent| f64::from(percent) / 100.0);
    let tails = (3..=10).map(|digits| 10_u64.pow(digits));
    let tails = tails.take_while(move |whole| *whole <= count);
    let of_tail = |whole: u64| (1..=9).map(move |part| (whole - 10 + part) as f64 / whole as f64);
    percents.chain(tails.flat_map(of_tail))
}

/// What a file system did.
pub(super) fn fs(stack: &FsStack, counts: &FileCounts) -> Value {
    let mut object = Map::new();
    object.insert("kind".to_owned(), stack.config.kind().name().into());
    for (key, value) in stack.config.choices() {
        object.insert(key.to_owned(), value.into());
    }
    put_counts(&mut object, counts);
    if let Some(space) = counts.space {
        object.insert("space".to_owned(), self::space(&space));
    }
    Value::Object(object)
}

fn space(space: &FsSpace) -> Value {
    json!({
        "main_segments": space.main_segments,
        "free_segments": space.free_segments,
        "prefree_segments": space.prefree_segments,
        "user_blocks": space.user_blocks,
        "valid_blocks": space.valid_blocks,
    })
}

/// What the page cache of a block device did.
pub(super) fn page_cache(counts: &FileCounts) -> Value {
    let mut object = Map::new();
    put_counts(&mut object, counts);
    Value::Object(object)
}

fn put_counts(object: &mut Map<String, Value>, counts: &FileCounts) {
    let times = &counts.fs.fsync_times;
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("read_sectors", counts.read_sectors.into());
    put("written_sectors", counts.written_sectors.into());
    put("fsyncs", counts.fsyncs.into());
    put(
        "fsync_times",
        json!({
            "cpu_wait_ns": counts.fsync_thread_ns,
            "data_ns": times.data_ns,
            "commit_ns": times.commit_ns,
            "flush_ns": times.flush_ns,
        }),
    );
    for group in counts.fs.detail.groups() {
        let counts = group.counts.into_iter();
        let mut counts: Map<_, _> = counts.map(|(key, n)| (key.to_owned(), n.into())).collect();
        counts.extend(group.means.into_iter().map(|(key, mean)| (key.to_owned(), mean.into())));
        put(group.name, Value::Object(counts));
    }
    let barriers = counts.fs.barriers;
    put(
        "barriers",
        json!({
            "flushes": barriers.flushes,
            "preflush_writes": barriers.preflush_writes,
            "fua_writes": barriers.fua_writes,
        }),
    );
    let lookups = counts.fs.lookups;
    put("cache", json!({ "hits": lookups.hits, "misses": lookups.misses }));
    put("cache_bytes", (counts.cached_pages * SECTOR_BYTES).into());
}

/// Shares of the measured phase, for each core.
pub(super) fn host_cores(cores: &[CoreTimes]) -> Value {
    let core = |times: &CoreTimes| {
        let all = (times.threads + times.ftl + times.idle).0.max(1) as f64;
        let share = |time: Nanos| time.0 as f64 / all;
        json!({
            "threads": share(times.threads),
            "ftl": share(times.ftl),
            "idle": share(times.idle),
        })
    };
    json!({ "cores": cores.iter().map(core).collect::<Vec<_>>() })
}

/// Bytes of host memory: the limit, and what each part reserved.
pub(super) fn host_memory(limit: Option<u64>, parts: &[(&'static str, u64)]) -> Value {
    let parts = parts.iter().map(|(name, bytes)| (format!("{name}_bytes"), Value::from(*bytes)));
    let limit = ("limit_bytes".to_owned(), Value::from(limit));
    Value::Object(std::iter::once(limit).chain(parts).collect())
}

/// Shares are of `length`. What was in progress at the end counts whole, so they are cut off at one.
pub(super) fn host_cpu(counts: &CpuCounts, flush: &FlushTime, length: Nanos) -> Value {
    let share = |busy_ns: u64| (busy_ns as f64 / length.0.max(1) as f64).min(1.0);
    let lock = |lock: &LockCounts| {
        json!({
            "busy": share(lock.held_ns),
            "acquisitions": lock.taken,
            "wait_ns": lock.wait_ns,
            "wait_ns_max": lock.wait_ns_max,
        })
    };
    let thread = |thread: &ThreadCounts| {
        json!({
            "busy": share(thread.busy_ns),
            "jobs": thread.jobs,
            "wait_ns": thread.wait_ns,
        })
    };
    json!({
        "cores": counts.cores_busy_ns.iter().map(|busy| share(*busy)).collect::<Vec<_>>(),
        "requests": counts.requests,
        "core_wait_ns": counts.core_wait_ns,
        "ring_locks": counts.rings.iter().map(lock).collect::<Vec<_>>(),
        "map_lock": lock(&counts.map),
        "writers": counts.writers.iter().map(thread).collect::<Vec<_>>(),
        "gc_thread": thread(&counts.collector),
        "map_thread": thread(&counts.mapper),
        "flush": { "cpu_ns": flush.cpu_ns, "writer_ns": flush.writer_ns },
    })
}

/// Percentiles of each flowop.
const FLOWOP_PERCENTILES: [(&str, f64); 4] =
    [("50", 0.5), ("90", 0.9), ("99", 0.99), ("99.9", 0.999)];

pub(super) fn wml(report: &Report) -> Value {
    let threads = report.threads.iter();
    json!({
        "seconds": report.length.as_secs_f64(),
        "failure": report.failure(),
        "summary": summary(&report.sums(), report.length),
        "flowops": report.table().iter().map(|row| flowop(row, report.length)).collect::<Vec<_>>(),
        "threads": threads.map(|(name, n)| json!({ "name": name, "instances": n })).collect::<Vec<_>>(),
        "filesets": report.filesets.iter().map(fileset).collect::<Vec<_>>(),
        "periods": report.snapshots.iter().map(period).collect::<Vec<_>>(),
        "messages": report.messages,
    })
}

/// A rate; none where no time passed.
fn per(number: f64, length: Nanos) -> Option<f64> {
    let seconds = length.as_secs_f64();
    (seconds > 0.0).then(|| number / seconds)
}

fn summary(sums: &Sums, length: Nanos) -> Value {
    json!({
        "ops": sums.ops,
        "ops_per_s": per(sums.ops as f64, length),
        "reads_per_s": per(sums.reads as f64, length),
        "writes_per_s": per(sums.writes as f64, length),
        "bytes": sums.bytes(),
        "bytes_per_s": per(sums.bytes() as f64, length),
        "latency_mean_ns": (sums.ops > 0).then(|| sums.mean_ns()),
    })
}

fn flowop(row: &TableRow, length: Nanos) -> Value {
    json!({
        "name": row.name,
        "type": row.op.name(),
        "ops": row.count,
        "ops_per_s": per(row.count as f64, length),
        "bytes": row.bytes,
        "bytes_per_s": per(row.bytes as f64, length),
        "latency_ns": latency(&row.latency),
    })
}

fn latency(latency: &Latencies) -> Value {
    if latency.count() == 0 {
        return Value::Null;
    }
    let rank = latency.percentiles();
    let at = |(name, share): (&str, f64)| (name.to_owned(), rank(share).map(|ns| ns.0).into());
    let percentiles: Map<String, Value> = FLOWOP_PERCENTILES.into_iter().map(at).collect();
    json!({
        "min": latency.min().0,
        "mean": latency.mean_ns(),
        "max": latency.max().0,
        "percentile": percentiles,
    })
}

fn fileset(made: &FilesetMade) -> Value {
    json!({
        "name": made.name,
        "files": made.files,
        "preallocated": made.preallocated,
        "directories": made.directories,
        "leafdirs": made.leafdirs,
        "bytes": made.bytes,
        "mean_depth": made.mean_depth,
    })
}

fn period(snapshot: &Snapshot) -> Value {
    json!({
        "t_s": snapshot.at.as_secs_f64(),
        "of_s": snapshot.length.as_secs_f64(),
        "summary": summary(&snapshot.sums, snapshot.length),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    }

    /// A distribution function rises from the shortest to the longest, and few points describe it.
    #[test]
    fn distributions_rise_and_end_at_one() {
        let mut latencies = Latencies::default();
        (0..200_000_u64).for_each(|n| latencies.record(Nanos(1_000 + n * n % 1_000_003)));
        let cdf = cdf(&latencies);
        let (ns, shares) = (numbers(&cdf["ns"]), numbers(&cdf["share"]));
        assert!(ns.len() == shares.len() && (100..=200).contains(&ns.len()), "{}", ns.len());
        assert!(ns.is_sorted_by(|a, b| a < b) && shares.is_sorted_by(|a, b| a <= b));
        assert_eq!((ns[0], shares[shares.len() - 1]), (1_000.0, 1.0));
        assert_eq!(ns[ns.len() - 1], latencies.max().0 as f64);
    }

    /// However many I/Os there are, a distribution has at most 200 points; one I/O is enough for one.
    #[test]
    fn distributions_are_small() {
        assert!(shares_of(u64::MAX).count() < 198);
        assert!(shares_of(u64::MAX).collect::<Vec<_>>().is_sorted());
        let mut one = Latencies::default();
        one.record(Nanos(5));
        assert_eq!(cdf(&one), json!({ "ns": [5], "share": [1.0] }));
    }

    /// Where several took equally long, the share is that of all of them: three of four took 5 ns.
    #[test]
    fn equal_latencies_are_one_step() {
        let mut latencies = Latencies::default();
        [5, 5, 5, 9].into_iter().for_each(|ns| latencies.record(Nanos(ns)));
        assert_eq!(cdf(&latencies), json!({ "ns": [5, 9], "share": [0.75, 1.0] }));
    }

    /// The time of a core is that of threads, of the FTL and idle.
    #[test]
    fn shares_of_a_core_are_of_all_its_time() {
        let [threads, ftl, idle] = [20, 30, 50].map(Nanos);
        let cores = host_cores(&[CoreTimes { threads, ftl, idle }]);
        assert_eq!(cores["cores"], json!([{ "threads": 0.2, "ftl": 0.3, "idle": 0.5 }]));
    }

    /// Each rate of a Filebench workload is its own amount over the time.
    #[test]
    fn rates_of_flowops_are_their_amounts_over_time() {
        let sums = Sums {
            ops: 90,
            reads: 30,
            writes: 40,
            read_bytes: 3_000,
            written_bytes: 5_000,
            listed_bytes: 1_000,
            busy_ns: 180,
        };
        let json = summary(&sums, Nanos::from_secs(10));
        let rates = ["ops_per_s", "reads_per_s", "writes_per_s", "bytes_per_s", "latency_mean_ns"];
        assert_eq!(rates.map(|rate| json[rate].as_f64().unwrap()), [9.0, 3.0, 4.0, 900.0, 2.0]);
    }

    /// A unit that was taken half of the time is busy by a half; nothing is busier than always.
    #[test]
    fn utilisation_is_a_share() {
        let busy = |units: &[u64]| Utilisation {
            units: units.iter().copied().map(Nanos).collect(),
            ..Utilisation::default()
        };
        let shares = utilisation(&busy(&[0, 50, 130]), &LinkUse::default(), Nanos(100));
        assert_eq!(shares["units"], json!([0.0, 0.5, 1.0]));
        let link = LinkUse {
            to_device_bytes: 4_096,
            to_host_bytes: 8_192,
            to_device_busy: Nanos(10),
            to_host_busy: Nanos(15),
        };
        assert_eq!(utilisation(&busy(&[7]), &link, Nanos(100))["pcie"], json!(0.25));
        assert_eq!(utilisation(&busy(&[7]), &link, Nanos::ZERO)["units"], json!([0.0]));
        let expected = json!({
            "to_device_bytes": 4_096, "to_host_bytes": 8_192, "to_device": 0.1, "to_host": 0.15,
        });
        assert_eq!(super::link(&link, Nanos(100)), expected);
    }
}
