//! Numbers of a result by their path, such as `waf.gc`, `write.iops`, `jobs.1.read.clat_ns.p99`,
//! `all.write.iops`.

use serde_json::{Map, Value};
use std::ops::Range;

/// What a path begins with that is of all jobs together.
pub(crate) const ALL: &str = "all.";

/// Amounts of a request, which add up over jobs.
const AMOUNTS: [&str; 2] = ["io_bytes", "total_ios"];

/// Rates of a request, each with the amount that it is of. Over jobs they are totals over the time of all jobs.
const RATES: [(&str, &str); 2] = [("bw_bytes", "io_bytes"), ("iops", "total_ios")];

/// Figures of latencies that say nothing of none.
const OF_SAMPLES: [&str; 4] = ["max", "mean", "min", "stddev"];

/// Times of a request that `latency_cdf` is of: submission takes none.
const LATENCIES: [&str; 2] = ["clat_ns", "lat_ns"];

/// Parts of the measured phase that paths are of, and the shares of it between which each lies.
const PARTS: [(&str, Range<f64>); 3] =
    [("first_tenth.", 0.0..0.1), ("second_half.", 0.5..1.0), ("last_tenth.", 0.9..1.0)];

/// Numbers of a point of the series: a figure over time is of one of them, and one of a part of the phase of a rate.
pub const COURSES: [&str; 26] = [
    "iops",
    "waf",
    "waf_gc_pad",
    "waf_media",
    "read.bytes_per_s",
    "read.mean_ns",
    "read.p99_ns",
    "write.bytes_per_s",
    "write.mean_ns",
    "write.p99_ns",
    "trim.bytes_per_s",
    "sync.mean_ns",
    "sync.p99_ns",
    "map_hit_ratio",
    "gc_sectors_per_s",
    "free_lines",
    "in_flight",
    "fs.gc_blocks_per_s",
    "fs.gc_share",
    "fs.checkpoints_per_s",
    "fs.free_segments",
    "coupled.moved_per_s",
    "coupled.upcalls_per_s",
    "coupled.open",
    "coupled.record_bytes",
    "coupled.region_use",
];

/// Shares are quotients, and may be off by their last digit.
const SHARE_EPSILON: f64 = 1e-12;

/// The number at `path` of a result: of all jobs after `all.`, of an end of the measured phase after the name of that, or a
/// path below `nandscape`, or of the first job, or from the top. A number in a path counts list entries from 0, `pN` is the N-th
/// percentile; true is 1, false 0.
///
/// `None` if there is nothing at all under this path; `Some(None)` if there is, and it is no number.
pub(crate) fn look_up(result: &Value, path: &str) -> Option<Option<f64>> {
    if let Some(of_all) = path.strip_prefix(ALL) {
        return over_jobs(result, of_all);
    }
    let of_part =
        |(name, part): &(&str, Range<f64>)| Some((part.clone(), path.strip_prefix(name)?));
    if let Some((part, rate)) = PARTS.iter().find_map(of_part) {
        return over_part(result, part, rate);
    }
    let first_job = result.get("jobs").and_then(|jobs| jobs.get(0));
    let roots = [result.get("nandscape"), first_job, Some(result)];
    roots.into_iter().flatten().find_map(|root| below(root, path)).map(number)
}

/// Of all jobs: the sum of amounts, total amounts over the time in which jobs of that direction ran, the mean over all requests, and
/// percentiles of the distribution over all requests, for those of single jobs cannot be merged.
fn over_jobs(result: &Value, path: &str) -> Option<Option<f64>> {
    let jobs = result.get("jobs")?.as_array()?;
    let (request, figure) = path.split_once('.')?;
    let amount = |figure: &str| {
        let path = format!("{request}.{figure}");
        let numbers = jobs.iter().filter_map(|job| number_below(job, &path));
        numbers.reduce(|sum, more| sum + more)
    };
    if AMOUNTS.contains(&figure) {
        return amount(figure).map(Some);
    }
    if let Some((_, of)) = RATES.iter().find(|(rate, _)| *rate == figure) {
        let seconds = group_seconds(result, request);
        return amount(of).map(|amount| Some(amount / seconds?).filter(|rate| rate.is_finite()));
    }
    let (latency, rank) = figure.split_once('.').filter(|(key, _)| LATENCIES.contains(key))?;
    below(jobs.first()?, &format!("{request}.{latency}"))?;
    if rank == "mean" {
        let of_job = |job| {
            let count = number_below(job, &format!("{request}.total_ios"))?;
            Some((number_below(job, &format!("{request}.{latency}.mean"))? * count, count))
        };
        let sums = jobs.iter().filter_map(of_job);
        let (sum, count) = sums.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        return Some(Some(sum / count).filter(|mean| mean.is_finite()));
    }
    let share = rank.strip_prefix('p')?.parse::<f64>().ok()? / 100.0;
    let samples = amount("total_ios").unwrap_or(0.0);
    let cdf = result.get("nandscape")?.get("latency_cdf")?.get(request);
    Some(cdf.filter(|_| has_rank(samples, share)).and_then(|cdf| quantile(cdf, share)))
}

/// A rate over a part of the measured phase, between two shares of it: the mean over the intervals of the series, by the
/// time of each that lies there.
fn over_part(result: &Value, part: Range<f64>, rate: &str) -> Option<Option<f64>> {
    let is_rate = rate == "iops" || rate.ends_with(".bytes_per_s");
    let series = result.get("nandscape")?.get("series");
    let series = series.filter(|_| is_rate && COURSES.contains(&rate))?;
    let intervals = series.as_array()?;
    let end = |interval: &Value| interval["t_s"].as_f64();
    let whole = intervals.last().and_then(end).unwrap_or(0.0);
    let (begin, finish) = (part.start * whole, part.end * whole);
    let (mut last, mut seconds, mut sum) = (0.0_f64, 0.0, 0.0);
    for interval in intervals {
        let until = end(interval)?;
        let length = (until.min(finish) - last.max(begin)).max(0.0);
        seconds += length;
        sum += length * number_below(interval, rate).unwrap_or(0.0);
        last = until;
    }
    Some(Some(sum / seconds).filter(|mean| mean.is_finite()))
}

/// The time in which a job ran that had such requests. Results of earlier versions have the time of all jobs alone, or the length
/// of the measured phase.
fn group_seconds(result: &Value, request: &str) -> Option<f64> {
    let ours = result.get("nandscape")?;
    let totals = ours.get("totals");
    let own = totals.and_then(|totals| totals.get(request)?.get("seconds")?.as_f64());
    // Without such requests their rate is zero over the time of all.
    own.filter(|seconds| *seconds > 0.0).or_else(|| {
        let all = totals.and_then(|totals| totals.get("seconds"));
        all.or_else(|| ours.get("virtual_s"))?.as_f64()
    })
}

/// Whether so many samples have a percentile of this share: at least one is expected beyond it (docs/formats/result.md).
fn has_rank(samples: f64, share: f64) -> bool {
    samples * (1.0 - share) >= 1.0 - 1e-6
}

/// The shortest latency of a distribution function that this share of requests does not exceed.
pub(crate) fn quantile(cdf: &Value, share: f64) -> Option<f64> {
    let shares = cdf["share"].as_array()?.iter();
    let reached = |reached: f64| reached >= share - SHARE_EPSILON;
    let at = shares.map(Value::as_f64).position(|one| one.is_some_and(reached))?;
    cdf["ns"][at].as_f64()
}

/// The number at a path below a value.
pub(crate) fn number_below(value: &Value, path: &str) -> Option<f64> {
    below(value, path).and_then(number)
}

/// Keys may hold dots themselves, so a step may end at any of them.
fn below<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let deeper = |at: usize| below(step(value, &path[..at])?, &path[at + 1..]);
    step(value, path).or_else(|| path.match_indices('.').find_map(|(at, _)| deeper(at)))
}

fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(keys) if says_nothing(keys, key) => Some(&Value::Null),
        Value::Object(keys) => keys.get(key).or_else(|| percentile(keys, key)),
        Value::Array(entries) => entries.get(key.parse::<usize>().ok()?),
        _ => None,
    }
}

/// fio writes a mean of 0 where there were no samples, and a rate of 0 where there were I/Os and no time passed.
fn says_nothing(keys: &Map<String, Value>, key: &str) -> bool {
    let of = |key: &str| keys.get(key).and_then(Value::as_f64);
    let no_samples = OF_SAMPLES.contains(&key) && of("N") == Some(0.0);
    let no_time = RATES.iter().any(|(rate, amount)| {
        *rate == key && of(rate) == Some(0.0) && of(amount).is_some_and(|amount| amount > 0.0)
    });
    no_samples || no_time
}

/// Without I/Os there are no percentiles, and with too few not all that fio writes; and yet asking for one is no mistake.
fn percentile<'a>(latency: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let rank = key.strip_prefix("percentile.").or_else(|| key.strip_prefix('p'))?;
    let rank: f64 = rank.parse().ok()?;
    let Some(ranks) = latency.get("percentile") else {
        return latency.contains_key("stddev").then_some(&Value::Null);
    };
    let samples = latency.get("N").and_then(Value::as_f64);
    let known = samples.is_none_or(|samples| has_rank(samples, rank / 100.0));
    let found = ranks.get(format!("{rank:.6}"))?;
    Some(if known { found } else { &Value::Null })
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|truth| if truth { 1.0 } else { 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A path finds what a reader of the JSON would point at, and tells "no number" from "no such key".
    #[test]
    fn paths_find_numbers() {
        let result = json!({
            "jobs": [
                { "write": { "iops": 10.5, "clat_ns": { "stddev": 0.0, "percentile": { "99.900000": 7 } } },
                  "read": { "clat_ns": { "stddev": 0.0 } } },
                { "write": { "iops": 20.5 } },
            ],
            "nandscape": { "waf": { "gc": 1.5, "fs": null }, "steady": true, "series": [{ "t_s": 2 }] },
        });
        let cases = [
            ("waf.gc", Some(Some(1.5))),
            ("nandscape.waf.gc", Some(Some(1.5))),
            ("waf.fs", Some(None)),
            ("waf.gv", None),
            ("steady", Some(Some(1.0))),
            ("series.0.t_s", Some(Some(2.0))),
            ("write.iops", Some(Some(10.5))),
            ("jobs.1.write.iops", Some(Some(20.5))),
            ("jobs.2.write.iops", None),
            ("write.clat_ns.p99.9", Some(Some(7.0))),
            ("write.clat_ns.percentile.99.900000", Some(Some(7.0))),
            ("write.clat_ns.p98", None),
            ("read.clat_ns.p99", Some(None)),
            ("", None),
            ("..", None),
        ];
        for (path, expected) in cases {
            assert_eq!(look_up(&result, path), expected, "{path}");
        }
    }

    /// Rates of a part of a run are means over its time: an interval counts as far as it lies there.
    #[test]
    fn parts_of_runs_have_rates() {
        let point = |t_s: f64, iops: f64| json!({ "t_s": t_s, "iops": iops, "write": { "bytes_per_s": 10.0 * iops } });
        let of = |series: Value| json!({ "jobs": [{}], "nandscape": { "series": series } });
        let result = of(json!([point(2.0, 100.0), point(6.0, 10.0), point(10.0, 20.0)]));
        let cases = [
            ("first_tenth.iops", Some(Some(100.0))),
            ("second_half.iops", Some(Some(18.0))),
            ("second_half.write.bytes_per_s", Some(Some(180.0))),
            ("last_tenth.iops", Some(Some(20.0))),
            ("last_tenth.read.bytes_per_s", Some(Some(0.0))),
            ("last_tenth.write.p99_ns", None),
            ("last_tenth.waf", None),
        ];
        for (path, expected) in cases {
            assert_eq!(look_up(&result, path), expected, "{path}");
        }
        assert_eq!(look_up(&of(json!([])), "second_half.iops"), Some(None));
    }

    /// A percentile of which there are too few samples is none, however it is named; of results that do not say how many there
    /// are it is what fio wrote.
    #[test]
    fn percentiles_of_too_few_are_none() {
        let of = |samples: u64| json!({ "jobs": [{ "write": { "clat_ns": { "N": samples, "stddev": 1.0, "percentile": { "99.000000": 7 } } } }] });
        for path in
            ["write.clat_ns.p99", "write.clat_ns.percentile.99.000000", "jobs.0.write.clat_ns.p99"]
        {
            assert_eq!(look_up(&of(99), path), Some(None), "{path}");
            assert_eq!(look_up(&of(100), path), Some(Some(7.0)), "{path}");
        }
    }

    /// A mean of no samples is none, nor is a rate where no time passed.
    #[test]
    fn nothing_is_no_zero() {
        let result = json!({
            "jobs": [{
                "read": { "iops": 0.0, "bw_bytes": 0, "total_ios": 5, "io_bytes": 20_480 },
                "write": { "iops": 0.0, "bw_bytes": 0, "total_ios": 0, "io_bytes": 0 },
                "sync": { "lat_ns": { "N": 0, "mean": 0.0, "max": 0, "stddev": 0.0 } },
            }],
            "nandscape": { "totals": { "seconds": 0.0 } },
        });
        for path in
            ["sync.lat_ns.mean", "sync.lat_ns.max", "read.iops", "read.bw_bytes", "all.read.iops"]
        {
            assert_eq!(look_up(&result, path), Some(None), "{path}");
        }
        for path in ["write.iops", "write.bw_bytes", "sync.lat_ns.N"] {
            assert_eq!(look_up(&result, path), Some(Some(0.0)), "{path}");
        }
    }

    /// What is of all jobs is the same whichever comes first: amounts add up, and percentiles are of all
    /// requests, also where the first job has none. What does neither is nowhere.
    #[test]
    fn paths_are_of_all_jobs() {
        let none = || json!({ "stddev": 0.0 });
        let some =
            |mean: u64| json!({ "mean": mean, "stddev": 1.0, "percentile": { "99.000000": 1 } });
        let writes = |ios: u64| json!({ "write": { "iops": 1e6, "total_ios": ios, "io_bytes": 4096 * ios, "clat_ns": some(ios), "slat_ns": none() }, "sync": { "lat_ns": none() } });
        let result = json!({
            "jobs": [{ "write": { "iops": 0, "total_ios": 0, "io_bytes": 0, "clat_ns": none(), "slat_ns": none() }, "sync": { "lat_ns": none() } }, writes(1_000), writes(2_000)],
            "nandscape": {
                "totals": { "seconds": 9.0, "write": { "seconds": 2.0 } },
                "latency_cdf": { "write": { "ns": [1, 5, 9], "share": [0.5, 0.999, 1.0] } },
            },
        });
        let mut turned = result.clone();
        turned["jobs"].as_array_mut().unwrap().reverse();
        let cases = [
            ("all.write.iops", Some(Some(1_500.0))),
            ("all.write.bw_bytes", Some(Some(1_500.0 * 4096.0))),
            ("all.write.total_ios", Some(Some(3_000.0))),
            ("all.write.clat_ns.p50", Some(Some(1.0))),
            ("all.write.clat_ns.p99.9", Some(Some(5.0))),
            ("all.write.clat_ns.p99.99", Some(None)),
            ("all.write.clat_ns.mean", Some(Some(5_000.0 / 3.0))),
            ("all.sync.lat_ns.mean", Some(None)),
            ("all.sync.lat_ns.p99", Some(None)),
            ("all.write.clat_ns.max", None),
            ("all.write.slat_ns.p99", None),
            ("all.sync.clat_ns.p99", None),
            ("all.write.runtime", None),
            ("all.sync.iops", None),
            ("all.wrote.iops", None),
            ("all.wrote.clat_ns.p99", None),
            ("all.waf.gc", None),
        ];
        for (path, expected) in cases {
            assert_eq!(look_up(&result, path), expected, "{path}");
            assert_eq!(look_up(&turned, path), expected, "{path}, the other way round");
        }
    }
}
