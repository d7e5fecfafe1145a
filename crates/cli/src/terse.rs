//! fio's terse output, version 3 (fio's manual, "Terse output"): one line per job, for scripts that read fio's.
//! Times are in microseconds, rates in KiB per second; trims have no fields in this version.

use serde_json::Value;

/// Percentiles that fio shows by default, by its keys, and for how many it has room.
const PERCENTILES: [&str; 17] = [
    "1.000000",
    "5.000000",
    "10.000000",
    "20.000000",
    "30.000000",
    "40.000000",
    "50.000000",
    "60.000000",
    "70.000000",
    "80.000000",
    "90.000000",
    "95.000000",
    "99.000000",
    "99.500000",
    "99.900000",
    "99.950000",
    "99.990000",
];
const ROOM: usize = 20;
/// Classes of latencies: microseconds, then milliseconds.
const CLASSES: [(&str, &[&str]); 2] = [
    ("latency_us", &["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"]),
    (
        "latency_ms",
        &["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"],
    ),
];
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

/// A line per job of a result.
pub(crate) fn terse(result: &Value) -> String {
    let version = text(&result["fio version"]);
    let jobs = result["jobs"].as_array().into_iter().flatten();
    jobs.map(|job| line(&version, job)).collect()
}

fn line(version: &str, job: &Value) -> String {
    let mut fields: Vec<String> = vec!["3".to_owned(), version.to_owned()];
    fields.extend(["jobname", "groupid", "error"].map(|key| text(&job[key])));
    fields.extend(["read", "write"].iter().flat_map(|name| direction(&job[name])));
    fields.extend(["usr_cpu", "sys_cpu"].map(|key| format!("{:.6}%", number(&job[key]))));
    fields.extend(["ctx", "majf", "minf"].map(|key| text(&job[key])));
    fields.extend(DEPTHS.map(|class| format!("{:.1}%", number(&job["iodepth_level"][class]))));
    for (key, classes) in CLASSES {
        let share = |class: &&str| number(&job[key][class]) + below(job, key, class);
        fields.extend(classes.iter().map(|class| format!("{:.2}%", share(class))));
    }
    fields.extend(job.get("desc").map(text));
    fields.join(";") + "\n"
}

/// What fio counts in its first class of microseconds: all that took less than one.
fn below(job: &Value, key: &str, class: &str) -> f64 {
    let nanoseconds = job["latency_ns"].as_object().filter(|_| (key, class) == ("latency_us", "2"));
    nanoseconds.into_iter().flat_map(|classes| classes.values()).map(number).sum()
}

fn direction(one: &Value) -> Vec<String> {
    let mut fields: Vec<String> = ["io_kbytes", "bw", "iops", "runtime"]
        .map(|key| format!("{:.0}", number(&one[key]).floor()))
        .into();
    fields.extend(times(&one["slat_ns"]));
    fields.extend(times(&one["clat_ns"]));
    fields.extend(percentiles(&one["clat_ns"]["percentile"]));
    fields.extend(times(&one["lat_ns"]));
    fields.extend(["bw_min", "bw_max"].map(|key| text(&one[key])));
    fields.push(format!("{:.6}%", number(&one["bw_agg"])));
    fields.extend(["bw_mean", "bw_dev"].map(|key| format!("{:.6}", number(&one[key]))));
    fields
}

/// Least, most, mean, and deviation.
fn times(latencies: &Value) -> [String; 4] {
    let us = |key: &str| number(&latencies[key]) / 1e3;
    let whole = |key: &str| format!("{:.0}", us(key).floor());
    [whole("min"), whole("max"), format!("{:.6}", us("mean")), format!("{:.6}", us("stddev"))]
}

/// With empty fields for those that it does not show.
fn percentiles(ranks: &Value) -> impl Iterator<Item = String> {
    let shown = |key: &str| format!("{key}%={:.0}", (number(&ranks[key]) / 1e3).floor());
    PERCENTILES.map(shown).into_iter().chain(std::iter::repeat("0%=0".to_owned())).take(ROOM)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
