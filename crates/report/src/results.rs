//! The numbers of one run as tables: each job and direction with its rates and latencies, and the flowops of a Filebench
//! workload.

use crate::case::Run;
use crate::path::{ALL, number_below};
use crate::table::grid;
use crate::units::{bytes, grouped, number, time};
use serde_json::Value;

/// Rows of a table at most; the JSON has them all.
const ROWS_MAX: usize = 64;

/// Directions by their key in the JSON, the key of their latency, and their name.
const WAYS: [(&str, &str, &str); 4] = [
    ("read", "clat_ns", "read"),
    ("write", "clat_ns", "write"),
    ("trim", "clat_ns", "trim"),
    ("sync", "lat_ns", "fsync"),
];

/// Percentiles of the table.
const RANKS: [&str; 5] = ["50", "95", "99", "99.9", "99.99"];

const HEADERS: [&str; 12] = [
    "job",
    "I/O",
    "I/Os",
    "IOPS",
    "bandwidth",
    "mean",
    "p50",
    "p95",
    "p99",
    "p99.9",
    "p99.99",
    "max",
];

/// The tables of a run; nothing if its result has no jobs.
pub(crate) fn tables(run: &Run) -> String {
    let jobs: Vec<&Value> = run.result["jobs"].as_array().into_iter().flatten().collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    if jobs.len() > 1 {
        rows.extend(WAYS.iter().filter_map(|way| of_all(run, &jobs, way)));
    }
    for job in &jobs {
        rows.extend(WAYS.iter().filter_map(|way| of_job(job, way)));
    }
    let mut out = match rows.is_empty() {
        true => String::new(),
        false => {
            let note = "Latency is from submission to completion, of fsync the time of the call. A percentile of which there are \
                        too few I/Os is left out.";
            table(&HEADERS, &rows, 2, note)
        }
    };
    let flowops = flowops(run);
    if !flowops.is_empty() {
        let note = "Per flowop as in Filebench; latency is per call.";
        out.push_str(&format!("<h3>Flowops</h3>{}", table(&FLOWOP, &flowops, 2, note)));
    }
    out
}

fn table(headers: &[&str], rows: &[Vec<String>], heads: usize, note: &str) -> String {
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    let more = match rows.len() - shown.len() {
        0 => String::new(),
        more => format!(" The JSON has {more} more rows."),
    };
    format!("{}<p class=\"note\">{note}{more}</p>", grid(headers, shown, heads))
}

fn or_dash(shown: Option<String>) -> String {
    shown.unwrap_or_else(|| "–".to_owned())
}

/// One direction of a job, if it had any.
fn of_job(job: &Value, (key, latency, name): &(&str, &str, &str)) -> Option<Vec<String>> {
    let of = |rest: &str| number_below(job, &format!("{key}.{rest}"));
    let ios = of("total_ios").filter(|ios| *ios > 0.0)?;
    let time_of = |rest: &str| of(&format!("{latency}.{rest}")).map(time);
    let percentiles = RANKS.map(|rank| or_dash(time_of(&format!("p{rank}"))));
    let iops = of("iops").or_else(|| per_second(ios, job));
    let row = [
        job["jobname"].as_str().unwrap_or_default().to_owned(),
        (*name).to_owned(),
        grouped(ios as u64),
        or_dash(iops.map(number)),
        or_dash(of("bw_bytes").map(|rate| format!("{}/s", bytes(rate)))),
        or_dash(time_of("mean")),
    ];
    Some(row.into_iter().chain(percentiles).chain([or_dash(time_of("max"))]).collect())
}

/// Calls over the time of a job, in milliseconds in the JSON.
fn per_second(count: f64, job: &Value) -> Option<f64> {
    let seconds = job["job_runtime"].as_f64()? / 1e3;
    Some(count / seconds).filter(|rate| rate.is_finite())
}

/// One direction of all jobs: rates over the time of all, percentiles over all I/Os.
fn of_all(
    run: &Run,
    jobs: &[&Value],
    (key, latency, name): &(&str, &str, &str),
) -> Option<Vec<String>> {
    let all =
        |rest: &str| crate::path::look_up(&run.result, &format!("{ALL}{key}.{rest}")).flatten();
    let of = |job: &Value, rest: &str| number_below(job, &format!("{key}.{rest}"));
    let counts: Vec<f64> = jobs.iter().map(|job| of(job, "total_ios").unwrap_or(0.0)).collect();
    let ios = Some(counts.iter().sum::<f64>()).filter(|ios| *ios > 0.0)?;
    let mean = |(job, count): (&&Value, &f64)| Some(of(job, &format!("{latency}.mean"))? * count);
    let sum: f64 = jobs.iter().zip(&counts).filter_map(mean).sum();
    let max = jobs.iter().filter_map(|job| of(job, &format!("{latency}.max"))).reduce(f64::max);
    let percentile = |rank: &str| all(&format!("{latency}.p{rank}")).map(time);
    let row = [
        "all jobs".to_owned(),
        (*name).to_owned(),
        grouped(ios as u64),
        or_dash(all("iops").map(number)),
        or_dash(all("bw_bytes").map(|rate| format!("{}/s", bytes(rate)))),
        time(sum / ios),
    ];
    Some(
        row.into_iter()
            .chain(RANKS.map(|rank| or_dash(percentile(rank))))
            .chain([or_dash(max.map(time))])
            .collect(),
    )
}

const FLOWOP: [&str; 9] =
    ["flowop", "type", "ops", "ops/s", "bandwidth", "mean", "p50", "p99", "max"];

/// What Filebench prints of each flowop.
fn flowops(run: &Run) -> Vec<Vec<String>> {
    let row = |flowop: &Value| {
        let of = |path: &str| number_below(flowop, path);
        let time_of = |path: &str| or_dash(of(&format!("latency_ns.{path}")).map(time));
        let text = |key: &str| flowop[key].as_str().unwrap_or_default().to_owned();
        let bandwidth = of("bytes_per_s").filter(|rate| *rate > 0.0);
        vec![
            text("name"),
            text("type"),
            or_dash(of("ops").map(|ops| grouped(ops as u64))),
            or_dash(of("ops_per_s").map(number)),
            or_dash(bandwidth.map(|rate| format!("{}/s", bytes(rate)))),
            time_of("mean"),
            time_of("percentile.50"),
            time_of("percentile.99"),
            time_of("max"),
        ]
    };
    run.ours()["wml"]["flowops"].as_array().into_iter().flatten().map(row).collect()
}
