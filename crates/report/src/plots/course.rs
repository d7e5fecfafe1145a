//! A run over time: IOPS, bandwidth, I/Os in flight, latency, hits of the map cache.

use super::series::{MIB, TIME, intervals, levels, line, name_of, unit_of};
use super::{REQUESTS, drawn, heat, seed_note, writes};
use crate::case::{Case, Run};
use crate::path::number_below;
use crate::plot::{Plot, Scale, ScaleKind, lines, point, with_levels};
use crate::units::{byte_unit, time_unit};
use serde_json::Value;

/// What has a course.
pub(super) fn plots(cases: &[Case]) -> Vec<Plot> {
    let plots = rates(cases, &IOPS).into_iter().chain(rates(cases, &BANDWIDTH));
    let plots = plots.chain(writes::plots(cases)).chain(in_flight(cases));
    let plots = plots.chain(latency(cases)).chain(heat::plots(cases)).chain(hits(cases));
    let note = seed_note(cases);
    let noted = |plot: Plot| {
        let caption = format!("{} {note}", plot.caption);
        plot.captioned(caption.trim())
    };
    plots.map(noted).collect()
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
        format!("{} ({unit})", name_of(key))
    } else if key.contains("bytes") {
        let largest = rows.iter().filter_map(|row| row["y"].as_f64()).fold(0.0, f64::max);
        let (unit, scale) = byte_unit(largest);
        for row in &mut rows {
            row["y"] = row["y"].as_f64().map(|bytes| bytes / scale).into();
        }
        let per_second = if key.ends_with("_per_s") { "/s" } else { "" };
        format!("{} ({unit}{per_second})", name_of(key))
    } else {
        format!("{} ({})", name_of(key), unit_of(key))
    };
    let levels = rows.split_off(points);
    let plot = lines(id, title, rows, TIME, Scale::new(&axis, ScaleKind::FromZero), "linear")?;
    Some(with_levels(plot, levels, &axis))
}

/// A rate of requests: name, what stands at its axis, key of the amount or rate in a series, and what it is divided by.
struct Rate {
    id: &'static str,
    name: &'static str,
    axis: &'static str,
    of: fn(f64, &Value) -> Option<f64>,
}

const IOPS: Rate = Rate {
    id: "iops",
    name: "IOPS",
    axis: "IOPS (1/s)",
    of: |length, request| Some(request["ios"].as_f64()? / length),
};

const BANDWIDTH: Rate = Rate {
    id: "bandwidth",
    name: "bandwidth",
    axis: "Bandwidth (MiB/s)",
    of: |_, request| Some(request["bytes_per_s"].as_f64()? / MIB),
};

/// The rate of one kind of request, if there are any; intervals without one have a rate of zero.
fn rate(run: &Run, rate: &Rate, key: &str, name: &str) -> Vec<Value> {
    let intervals = intervals(run.ours());
    let of = |length: f64, interval: &Value| (rate.of)(length, &interval[key]);
    let any = intervals.iter().any(|(length, interval)| of(*length, interval).is_some());
    let at = |(length, interval): &(f64, &Value)| {
        Some(point(interval["t_s"].as_f64()?, of(*length, interval).unwrap_or(0.0), name))
    };
    intervals.iter().filter(|(length, _)| any && *length > 0.0).filter_map(at).collect()
}

/// One plot of all kinds for one case, else one plot per kind.
fn rates(cases: &[Case], of: &Rate) -> Vec<Plot> {
    let axis = Scale::new(of.axis, ScaleKind::FromZero);
    if let [case] = cases {
        let rows = REQUESTS.iter().flat_map(|(key, name)| rate(case.first(), of, key, name));
        let title = of.name[..1].to_uppercase() + &of.name[1..];
        let plot = lines(of.id, &title, rows.collect(), TIME, axis, "linear");
        return plot.into_iter().collect();
    }
    let plot = |(key, name): (&str, &str)| {
        let rows = drawn(cases).flat_map(|(label, run)| rate(run, of, key, label)).collect();
        let title = format!("{name} {}", of.name);
        lines(&format!("{}-{key}", of.id), &title, rows, TIME, axis, "linear")
    };
    REQUESTS.into_iter().filter_map(plot).collect()
}

fn in_flight(cases: &[Case]) -> Option<Plot> {
    Some(
        levels(cases, "in-flight", "in_flight")?
            .captioned("Of all jobs, at the end of each interval."),
    )
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
    let scale = Scale::new("Lookups that hit (%)", ScaleKind::Share);
    lines("map-hits", "Map cache", rows, TIME, scale, "linear").filter(|_| misses)
}
