//! What the flowops of a Filebench workload did, as part of a result (docs/formats/wml.md).

use nandscape_rt::Nanos;
use nandscape_workload::engine::Latencies;
use nandscape_workload::wml::engine::{FilesetMade, Report, Snapshot, Sums, TableRow};
use serde_json::{Map, Value, json};

/// Percentiles of each flowop.
const PERCENTILES: [(&str, f64); 4] = [("50", 0.5), ("90", 0.9), ("99", 0.99), ("99.9", 0.999)];

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
    let rank = latency.ranks();
    let at = |(name, share): (&str, f64)| (name.to_owned(), rank(share).0.into());
    let percentiles: Map<String, Value> = PERCENTILES.into_iter().map(at).collect();
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
