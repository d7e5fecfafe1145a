//! The series of a result: its intervals, and what its numbers over time are called.

use super::{REQUESTS, drawn};
use crate::case::{Case, Run};
use crate::plot::{Plot, Scale, ScaleKind, lines, point};
use serde_json::Value;

pub(super) const TIME: Scale<'_> = Scale::new("Time (s)", ScaleKind::Time);

/// Bytes of a MiB.
pub(super) const MIB: f64 = 1_048_576.0;

/// What a number over time is.
pub(crate) fn name_of(key: &str) -> String {
    let known = [
        ("iops", "IOPS"),
        ("waf", "Write amplification: user + GC"),
        ("waf_gc_pad", "Write amplification: user + GC + padding"),
        ("waf_media", "Write amplification: all media writes"),
        ("map_hit_ratio", "Map cache hit ratio"),
        ("gc_sectors_per_s", "GC copies"),
        ("free_lines", "Free lines"),
        ("in_flight", "I/Os in flight"),
        ("fs.gc_blocks_per_s", "Blocks moved by cleaning"),
        ("fs.gc_share", "Time in foreground cleaning"),
        ("fs.checkpoints_per_s", "Checkpoints"),
        ("fs.free_segments", "Free segments"),
        ("coupled.moved_per_s", "Pages moved by the device"),
        ("coupled.upcalls_per_s", "Upcalls"),
        ("coupled.open", "Open migration records"),
        ("coupled.record_bytes", "Memory of migration records"),
        ("coupled.region_use", "Region in use"),
    ];
    if let Some((_, name)) = known.into_iter().find(|(other, _)| *other == key) {
        return name.to_owned();
    }
    let of_request = key.split_once('.').and_then(|(kind, rest)| {
        let (_, name) = REQUESTS.into_iter().find(|(other, _)| *other == kind)?;
        Some(match rest {
            "bytes_per_s" => format!("{name} bandwidth"),
            "mean_ns" => format!("{name} latency: mean"),
            "p99_ns" => format!("{name} latency: 99th percentile"),
            _ => return None,
        })
    });
    of_request.unwrap_or_else(|| key.to_owned())
}

/// What a number over time counts that is neither a time nor bytes.
pub(super) fn unit_of(key: &str) -> &'static str {
    match key {
        "iops" => "1/s",
        "waf" | "waf_gc_pad" | "waf_media" => "sectors per user sector",
        "gc_sectors_per_s" => "sectors/s",
        "fs.gc_blocks_per_s" => "blocks/s",
        "coupled.moved_per_s" => "pages/s",
        "fs.free_segments" => "segments",
        "coupled.open" => "records",
        "free_lines" => "lines",
        "in_flight" => "I/Os",
        _ if key.ends_with("_per_s") => "1/s",
        _ => "share",
    }
}

/// Intervals with their lengths in seconds. The last is left out if it is shorter than half of the one
/// before it, for what little falls into it says nothing about a rate.
pub(super) fn intervals(ours: &Value) -> Vec<(f64, &Value)> {
    let mut last = 0.0;
    let mut length_of = |interval: &Value| {
        let now = interval["t_s"].as_f64()?;
        Some(now - std::mem::replace(&mut last, now))
    };
    let all = ours["series"].as_array().into_iter().flatten();
    let mut all: Vec<(f64, &Value)> = all.filter_map(|at| Some((length_of(at)?, at))).collect();
    if let [.., (before, _), (length, _)] = all[..] {
        all.truncate(all.len() - usize::from(length < before / 2.0));
    }
    all
}

/// What `of` sees in each interval, as points of a line that breaks where there is nothing to see;
/// nothing if it sees nothing at all.
pub(super) fn line(ours: &Value, name: &str, of: impl Fn(&Value) -> Option<f64>) -> Vec<Value> {
    let at = |(_, interval): &(f64, &Value)| {
        let mut point = point(interval["t_s"].as_f64()?, 0.0, name);
        point["y"] = of(interval).into();
        Some(point)
    };
    let points: Vec<Value> = intervals(ours).iter().filter_map(at).collect();
    let seen = points.iter().any(|point| point["y"].is_number());
    if seen { points } else { Vec::new() }
}

/// A level at the ends of intervals, with a line per case.
pub(super) fn levels(cases: &[Case], id: &str, key: &str) -> Option<Plot> {
    let of = |(label, run): (&str, &Run)| line(run.ours(), label, |at| at[key].as_f64());
    let rows = drawn(cases).flat_map(of).collect();
    let axis = format!("{} ({})", name_of(key), unit_of(key));
    lines(id, &name_of(key), rows, TIME, Scale::new(&axis, ScaleKind::FromZero), "linear")
}
