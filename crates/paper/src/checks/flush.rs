//! Flushes, fsyncs and latencies: a whole is the sum of its parts, and distributions are distributions.

use super::{Facts, Finding, holds};
use serde_json::Value;

/// Parts of a flush's time that every result has, and those of hosts whose cores cost something.
const PARTS: [&str; 4] = ["queue_ns", "gc_ns", "padding_ns", "program_ns"];
const HOST_PARTS: [&str; 2] = ["cpu_ns", "writer_ns"];
/// Parts of the time of an fsync of a file.
const FSYNC_PARTS: [&str; 4] = ["cpu_wait_ns", "data_ns", "commit_ns", "flush_ns"];
/// Relative error of means.
const ROUNDING: f64 = 1e-6;
/// Kinds of requests with the latency that fio tells of each.
const LATENCIES: [(&str, &str); 4] =
    [("read", "clat_ns"), ("write", "clat_ns"), ("trim", "clat_ns"), ("sync", "lat_ns")];

/// Where the time of flushes went adds up to it, exactly.
pub(super) fn parts(facts: &Facts<'_>) -> Finding {
    let total = facts.count("/flush/total_ns")?;
    let part = |name: &&str| facts.count(&format!("/flush/{name}"));
    let parts: u64 = PARTS.iter().map(part).sum::<Option<u64>>()?;
    let of_host = |name: &&str| facts.count(&format!("/host_cpu/flush/{name}"));
    let of_host: u64 = HOST_PARTS.iter().filter_map(of_host).sum();
    holds(parts + of_host == total, || {
        format!("flushes took {total} ns, the parts add up to {}", parts + of_host)
    })
}

/// Fsyncs of jobs, and how long they lasted in all.
fn syncs(facts: &Facts<'_>) -> (u64, f64) {
    let of_job = |job: &Value| {
        let latency = &job["sync"]["lat_ns"];
        Some((latency["N"].as_u64()?, latency["mean"].as_f64()?))
    };
    let jobs = facts.jobs().filter_map(of_job);
    jobs.fold((0, 0.0), |(all, lasted), (count, mean)| (all + count, lasted + count as f64 * mean))
}

/// An fsync lasts as long as its parts.
pub(super) fn fsyncs(facts: &Facts<'_>) -> Finding {
    match ["/fs", "/page_cache"].into_iter().find(|section| facts.at(section).is_some()) {
        Some(section) => of_cache(facts, section),
        None => of_device(facts),
    }
}

/// On a block device an fsync of direct I/O is a flush, if nothing else flushes and no core costs anything.
fn of_device(facts: &Facts<'_>) -> Finding {
    let flushes = facts.count("/flush/waited")? + facts.count("/flush/empty")?;
    let (fsyncs, lasted) = syncs(facts);
    if facts.at("/host_cpu").is_some() || fsyncs == 0 || fsyncs != flushes {
        return None;
    }
    let total = facts.count("/flush/total_ns")? as f64;
    holds((lasted - total).abs() <= ROUNDING * total, || {
        format!("{fsyncs} fsyncs lasted {lasted} ns in all, the flushes {total} ns")
    })
}

/// On files, and on a block device with a page cache, it is the wait for its thread, dirty pages, a commit and a flush. A sync of several
/// files is several calls, and other calls sync a file, too; their shares are unknown.
fn of_cache(facts: &Facts<'_>, section: &str) -> Finding {
    let (fsyncs, lasted) = syncs(facts);
    if fsyncs == 0 || fsyncs != facts.count(&format!("{section}/fsyncs"))? {
        return None;
    }
    let part = |name: &&str| facts.count(&format!("{section}/fsync_times/{name}"));
    let parts = FSYNC_PARTS.iter().map(part).sum::<Option<u64>>()? as f64;
    holds((lasted - parts).abs() <= ROUNDING * parts, || {
        format!(
            "{fsyncs} fsyncs through a page cache lasted {lasted} ns in all, their parts {parts} ns"
        )
    })
}

/// Bounds enclose the mean, and percentiles do not fall.
pub(super) fn latencies(facts: &Facts<'_>) -> Finding {
    let all = facts
        .jobs()
        .flat_map(|job| LATENCIES.iter().map(move |(kind, key)| (job, kind, &job[*kind][*key])));
    let counted = all.filter(|(.., latency)| latency["N"].as_u64().is_some_and(|count| count > 0));
    let mut counted = counted.peekable();
    counted.peek()?;
    let wrong = counted.find_map(|(job, kind, latency)| {
        let name = job["jobname"].as_str().unwrap_or_default();
        Some(format!("{kind} of {name}: {}", disorder(latency)?))
    });
    Some(wrong.map_or(Ok(()), Err))
}

fn disorder(latency: &Value) -> Option<String> {
    let of = |key: &str| latency[key].as_f64();
    let (min, mean, max) = (of("min")?, of("mean")?, of("max")?);
    if !(min <= mean * (1.0 + ROUNDING) && mean <= max * (1.0 + ROUNDING)) {
        return Some(format!("the mean {mean} is not between {min} and {max}"));
    }
    let ranks = latency["percentile"].as_object()?;
    let mut ranks: Vec<(f64, f64)> = ranks
        .iter()
        .filter_map(|(rank, value)| Some((rank.parse().ok()?, value.as_f64()?)))
        .collect();
    ranks.sort_by(|one, other| one.0.total_cmp(&other.0));
    let fall = ranks.windows(2).find(|pair| pair[1].1 < pair[0].1)?;
    Some(format!("percentile {} is above percentile {}", fall[0].0, fall[1].0))
}
