//! The result of a run as comma-separated values.

use crate::output::{Failure, comma_separated};
use nandscape_lab::workload::latency::has_rank;
use serde_json::Value;

/// Percentiles of a row, by fio's keys.
const PERCENTILES: [(&str, &str); 6] = [
    ("p50_ns", "50.000000"),
    ("p90_ns", "90.000000"),
    ("p95_ns", "95.000000"),
    ("p99_ns", "99.000000"),
    ("p99.9_ns", "99.900000"),
    ("p99.99_ns", "99.990000"),
];

/// Metrics of a direction, with the paths in its JSON.
const RATES: [(&str, &str); 5] = [
    ("runtime_ms", "/runtime"),
    ("total_ios", "/total_ios"),
    ("io_bytes", "/io_bytes"),
    ("iops", "/iops"),
    ("bw_bytes_per_s", "/bw_bytes"),
];

/// Metrics of latencies.
const LATENCIES: [(&str, &str); 4] =
    [("min_ns", "/min"), ("mean_ns", "/mean"), ("stddev_ns", "/stddev"), ("max_ns", "/max")];

/// A result as a header and one line per job and direction; flushes are the direction `sync`.
pub(crate) fn run_csv(result: &Value) -> Result<String, Failure> {
    let names = RATES.iter().chain(&LATENCIES).chain(&PERCENTILES).map(|(name, _)| *name);
    let names = ["job", "groupid", "direction"].into_iter().chain(names).map(str::to_owned);
    let mut rows: Vec<Vec<String>> = vec![names.collect()];
    for job in result["jobs"].as_array().into_iter().flatten() {
        for direction in ["read", "write", "trim", "sync"] {
            let one = &job[direction];
            if one["total_ios"].as_u64().is_some_and(|ios| ios > 0) {
                rows.push(row(job, direction, one));
            }
        }
    }
    comma_separated(rows)
}

fn row(job: &Value, direction: &str, one: &Value) -> Vec<String> {
    let latencies = one.get("clat_ns").unwrap_or(&one["lat_ns"]);
    let at = |value: Option<&Value>| value.map(cell).unwrap_or_default();
    let head = [cell(&job["jobname"]), cell(&job["groupid"]), direction.to_owned()];
    let rates = RATES.iter().map(|(_, path)| at(one.pointer(path)));
    let times = LATENCIES.iter().map(|(_, path)| at(latencies.pointer(path)));
    let samples = one["total_ios"].as_u64().unwrap_or(0);
    let rank = |(_, key): &(&str, &str)| {
        let share = key.parse::<f64>().unwrap_or(0.0) / 100.0;
        at(latencies["percentile"].get(key).filter(|_| has_rank(samples, share)))
    };
    let ranks = PERCENTILES.iter().map(rank);
    head.into_iter().chain(rates).chain(times).chain(ranks).collect()
}

fn cell(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A line per direction that has I/Os, with as many cells as the header; what a direction lacks is empty, and so are
    /// percentiles of too few I/Os.
    #[test]
    fn a_line_per_direction() {
        let write = json!({ "total_ios": 100, "io_bytes": 12288, "clat_ns": { "min": 7,
            "percentile": { "99.000000": 9, "99.900000": 9 } } });
        let sync = json!({ "total_ios": 1, "lat_ns": { "max": 5 } });
        let job = json!({ "jobname": "a,b", "groupid": 0, "read": { "total_ios": 0 }, "write": write, "sync": sync });
        let text = run_csv(&json!({ "jobs": [job] })).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[1], "\"a,b\",0,write,,100,12288,,,7,,,,,,,9,,");
        let after_name = lines[2].strip_prefix("\"a,b\"").unwrap();
        assert_eq!(after_name.matches(',').count(), lines[0].matches(',').count());
    }
}
