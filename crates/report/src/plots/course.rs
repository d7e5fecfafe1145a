//! A run over time: throughput, write amplification, latency, hits of the map cache.

use super::{REQUESTS, drawn, seed_note};
use crate::case::{Case, Run};
use crate::path::number_below;
use crate::plot::{Plot, Scale, ScaleKind, lines, point, with_levels};
use crate::units::{byte_unit, time_unit};
use serde_json::Value;

const TIME: Scale<'_> = Scale::new("Time (s)", ScaleKind::Time);

/// What has a course.
pub(super) fn plots(cases: &[Case]) -> Vec<Plot> {
    let plots = throughput(cases).into_iter().chain(amplification(cases));
    let plots = plots.chain(latency(cases)).chain(hits(cases));
    let note = seed_note(cases);
    plots.map(|plot| if plot.caption.is_empty() { plot.captioned(&note) } else { plot }).collect()
}

/// The number under one of [`COURSES`](crate::COURSES) over time: points of the line of a result's block `nandscape`.
pub(crate) fn course(ours: &Value, key: &str, name: &str) -> Vec<Value> {
    line(ours, name, |interval| number_below(interval, key))
}

/// A plot of such lines, in the unit that suits them, with [levels](with_levels) in the same unit; `None` without any.
pub(crate) fn courses(
    id: &str,
    title: &str,
    key: &str,
    mut rows: Vec<Value>,
    levels: Vec<Value>,
) -> Option<Plot> {
    let points = rows.len();
    rows.extend(levels);
    let axis = if key.ends_with("_ns") {
        let (scaled, unit) = in_time_unit(rows, "y");
        rows = scaled;
        format!("{key} ({unit})")
    } else if key.contains("bytes") {
        let largest = rows.iter().filter_map(|row| row["y"].as_f64()).fold(0.0, f64::max);
        let (unit, scale) = byte_unit(largest);
        for row in &mut rows {
            row["y"] = row["y"].as_f64().map(|bytes| bytes / scale).into();
        }
        let per_second = if key.ends_with("_per_s") { "/s" } else { "" };
        format!("{key} ({unit}{per_second})")
    } else {
        format!("{key} ({})", unit_of(key))
    };
    let levels = rows.split_off(points);
    let plot = lines(id, title, rows, TIME, Scale::new(&axis, ScaleKind::FromZero), "linear")?;
    Some(with_levels(plot, levels))
}

/// What a number over time counts that is neither a time nor bytes.
fn unit_of(key: &str) -> &'static str {
    match key {
        "iops" => "requests/s",
        "waf" | "waf_gc_pad" | "waf_media" => "sectors per user sector",
        "gc_sectors_per_s" => "sectors/s",
        "fs.gc_blocks_per_s" => "blocks/s",
        "coupled.moved_per_s" => "pages/s",
        "fs.free_segments" => "segments",
        "coupled.open" => "records",
        _ if key.ends_with("_per_s") => "1/s",
        _ => "share",
    }
}

/// Intervals with their lengths in seconds. The last is left out if it is shorter than half of the one
/// before it, for what little falls into it says nothing about a rate.
fn intervals(ours: &Value) -> Vec<(f64, &Value)> {
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
fn line(ours: &Value, name: &str, of: impl Fn(&Value) -> Option<f64>) -> Vec<Value> {
    let at = |(_, interval): &(f64, &Value)| {
        let mut point = point(interval["t_s"].as_f64()?, 0.0, name);
        point["y"] = of(interval).into();
        Some(point)
    };
    let points: Vec<Value> = intervals(ours).iter().filter_map(at).collect();
    let seen = points.iter().any(|point| point["y"].is_number());
    if seen { points } else { Vec::new() }
}

/// Requests a second of one kind, if there are any.
fn rate(run: &Run, key: &str, name: &str) -> Vec<Value> {
    let ios = |interval: &Value| interval[key]["ios"].as_f64();
    let intervals = intervals(run.ours());
    let any = intervals.iter().any(|(_, interval)| ios(interval).is_some());
    let rate = |(length, interval): &(f64, &Value)| {
        Some(point(interval["t_s"].as_f64()?, ios(interval).unwrap_or(0.0) / length, name))
    };
    intervals.iter().filter(|(length, _)| any && *length > 0.0).filter_map(rate).collect()
}

fn throughput(cases: &[Case]) -> Vec<Plot> {
    let rates = Scale::new("Requests per second (1/s)", ScaleKind::FromZero);
    if let [case] = cases {
        let kinds = REQUESTS.iter().flat_map(|(key, name)| rate(case.first(), key, name));
        return lines("throughput", "Throughput", kinds.collect(), TIME, rates, "linear")
            .into_iter()
            .collect();
    }
    let plot = |(key, name): (&str, &str)| {
        let rows = drawn(cases).flat_map(|(label, run)| rate(run, key, label)).collect();
        let title = format!("{name} throughput");
        lines(&format!("throughput-{key}"), &title, rows, TIME, rates, "linear")
    };
    REQUESTS.into_iter().filter_map(plot).collect()
}

/// Three ways of write amplification: key in a series, name, what it counts.
const WAYS: [(&str, &str); 3] = [
    ("waf", "user + GC"),
    ("waf_gc_pad", "user + GC + padding"),
    ("waf_media", "all media writes"),
];

fn amplification(cases: &[Case]) -> Vec<Plot> {
    let axis = "Write amplification (sectors per user sector)";
    let scale = Scale::new(axis, ScaleKind::Free);
    let title = "Write amplification";
    if let [case] = cases {
        let of = |(key, name): (&str, &str)| line(case.first().ours(), name, |at| at[key].as_f64());
        let rows = WAYS.into_iter().flat_map(of).collect();
        return lines("waf", title, rows, TIME, scale, "linear").into_iter().collect();
    }
    let plot = |(key, name): (&str, &str)| {
        let of = |(label, run): (&str, &Run)| line(run.ours(), label, |at| at[key].as_f64());
        let rows = drawn(cases).flat_map(of).collect();
        lines(
            key.replace('_', "-").as_str(),
            &format!("{title}: {name}"),
            rows,
            TIME,
            scale,
            "linear",
        )
    };
    [WAYS[0], WAYS[2]].into_iter().filter_map(plot).collect()
}

/// Figures of a latency: key and name.
const LATENCIES: [(&str, &str); 4] = [
    ("mean_ns", "mean"),
    ("p50_ns", "median"),
    ("p99_ns", "99th percentile"),
    ("max_ns", "maximum"),
];

fn latency(cases: &[Case]) -> Vec<Plot> {
    let of_kind = |(key, name)| match cases {
        [case] => {
            let rows = |(figure, name): (&str, &str)| latencies(case.first(), key, figure, name);
            let rows = LATENCIES.into_iter().flat_map(rows).collect();
            latency_plot(&format!("latency-{key}"), &format!("{name} latency"), rows)
                .into_iter()
                .collect()
        }
        _ => compared(cases, key, name),
    };
    REQUESTS.into_iter().flat_map(of_kind).collect()
}

/// Mean and tail, each with a line a case.
fn compared(cases: &[Case], key: &str, name: &str) -> Vec<Plot> {
    let plot = |(figure, figure_name): (&str, &str)| {
        let rows =
            drawn(cases).flat_map(|(label, run)| latencies(run, key, figure, label)).collect();
        let id = format!("latency-{key}-{}", figure.trim_end_matches("_ns"));
        latency_plot(&id, &format!("{name} latency, {figure_name}"), rows)
    };
    [LATENCIES[0], LATENCIES[2]].into_iter().filter_map(plot).collect()
}

fn latencies(run: &Run, key: &str, figure: &str, name: &str) -> Vec<Value> {
    line(run.ours(), name, |at| at[key][figure].as_f64().filter(|ns| *ns > 0.0))
}

/// Latencies in a unit that suits the median of them.
fn latency_plot(id: &str, title: &str, rows: Vec<Value>) -> Option<Plot> {
    let (rows, unit) = in_time_unit(rows, "y");
    let axis = format!("Latency ({unit}, log scale)");
    lines(id, title, rows, TIME, Scale::new(&axis, ScaleKind::Log), "linear")
}

/// The nanoseconds in a field of `rows`, in the unit that suits their median; and the unit.
pub(super) fn in_time_unit(mut rows: Vec<Value>, field: &str) -> (Vec<Value>, &'static str) {
    let mut all: Vec<f64> = rows.iter().filter_map(|row| row[field].as_f64()).collect();
    all.sort_unstable_by(f64::total_cmp);
    let (unit, scale) = time_unit(all.get(all.len() / 2).copied().unwrap_or(0.0));
    for row in &mut rows {
        row[field] = row[field].as_f64().map(|ns| ns / scale).into();
    }
    (rows, unit)
}

/// Hits of the map's cache; a map that is all in memory has none to show.
fn hits(cases: &[Case]) -> Option<Plot> {
    let of =
        |(label, run): (&str, &Run)| line(run.ours(), label, |at| at["map_hit_ratio"].as_f64());
    let rows: Vec<Value> = drawn(cases).flat_map(of).collect();
    let misses = rows.iter().any(|row| row["y"].as_f64().is_some_and(|ratio| ratio < 1.0));
    let scale = Scale::new("Look-ups that hit (%)", ScaleKind::Share);
    lines("map-hits", "Map cache", rows, TIME, scale, "linear").filter(|_| misses)
}
