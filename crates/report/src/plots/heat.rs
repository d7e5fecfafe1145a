//! Latencies over time as a heat map: octaves upwards, time across, how many requests by colour.

use super::REQUESTS;
use super::series::{TIME, intervals};
use crate::case::{Case, Run};
use crate::plot::{Plot, Scale, ScaleKind};
use crate::units::time_unit;
use serde_json::{Value, json};

/// Columns at most: neighbours are added up.
const COLUMNS_MAX: usize = 64;
/// Latencies of one column by octave, the start of each in nanoseconds.
type Octaves = Vec<(f64, f64)>;

/// One map for each kind of request of a single case.
pub(super) fn plots(cases: &[Case]) -> Vec<Plot> {
    let [case] = cases else { return Vec::new() };
    REQUESTS.into_iter().filter_map(|(key, name)| plot(case.first(), key, name)).collect()
}

fn octaves(interval: &Value, key: &str) -> Octaves {
    let histogram = &interval[key]["histogram"];
    let Some(first) = histogram["first_ns"].as_f64() else { return Vec::new() };
    let counts = super::numbers(&histogram["ios"]).into_iter();
    let starts = std::iter::successors(Some(first), |start| Some(2.0 * start));
    starts.zip(counts).filter(|(_, count)| *count > 0.0).collect()
}

/// Adds the counts of one to those of the other.
fn add(sum: &mut Octaves, more: Octaves) {
    for (start, count) in more {
        match sum.iter_mut().find(|(other, _)| *other == start) {
            Some((_, sum)) => *sum += count,
            None => sum.push((start, count)),
        }
    }
}

/// Cells of times and latencies.
fn cells(run: &Run, key: &str) -> Vec<Value> {
    let intervals = intervals(run.ours());
    let width = intervals.len().div_ceil(COLUMNS_MAX).max(1);
    let mut cells = Vec::new();
    for column in intervals.chunks(width) {
        let Some(end) = column.last().and_then(|(_, last)| last["t_s"].as_f64()) else { continue };
        let length: f64 = column.iter().map(|(length, _)| length).sum();
        let mut sum = Octaves::new();
        column.iter().for_each(|(_, interval)| add(&mut sum, octaves(interval, key)));
        cells.extend(sum.into_iter().map(|(start, count)| {
            json!({ "x": end - length, "end": end, "y": start, "top": 2.0 * start, "count": count })
        }));
    }
    cells
}

fn plot(run: &Run, key: &str, name: &str) -> Option<Plot> {
    let cells = cells(run, key);
    let starts = cells.iter().filter_map(|cell| cell["y"].as_f64());
    let (unit, scale) = time_unit(starts.fold(f64::INFINITY, f64::min));
    let scaled = |mut cell: Value| {
        for end in ["y", "top"] {
            cell[end] = cell[end].as_f64().map(|ns| ns / scale).into();
        }
        cell
    };
    let rows: Vec<Value> = cells.into_iter().map(scaled).collect();
    let tops = rows.iter().map(|row| json!({ "y": row["top"] }));
    let ends: Vec<Value> = rows.iter().cloned().chain(tops).collect();
    let axis = format!("Latency ({unit}, log scale)");
    let y = Scale::new(&axis, ScaleKind::Log).encoding("y", &ends);
    let legend = json!({ "title": "I/Os", "format": "~s", "gradientLength": 160, "tickCount": 3 });
    let body = json!({
        "mark": { "type": "rect", "clip": true },
        "encoding": {
            "x": TIME.encoding("x", &rows), "x2": { "field": "end" }, "y": y, "y2": { "field": "top" },
            "color": { "field": "count", "type": "quantitative", "scale": { "type": "log", "nice": true }, "legend": legend },
            "tooltip": [
                { "field": "y", "type": "quantitative", "format": ".4~r", "title": format!("from ({unit})") },
                { "field": "top", "type": "quantitative", "format": ".4~r", "title": format!("below ({unit})") },
                { "field": "count", "type": "quantitative", "format": ",", "title": "I/Os" },
            ],
        },
    });
    let title = format!("{name} latency: heat map");
    (!rows.is_empty()).then(|| Plot::new(&format!("heat-{key}"), &title, rows, body))
}
