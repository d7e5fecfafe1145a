//! What was written to media over time and why: bandwidth by cause, write amplification over a window of writes and
//! since the beginning, free lines.

use super::drawn;
use super::series::{MIB, TIME, intervals, levels};
use crate::case::{Case, Run};
use crate::plot::{Plot, Scale, ScaleKind, areas, lines, point};
use serde_json::Value;

const SECTOR_BYTES: f64 = 4096.0;

/// Causes of writes: the part in a series or in `waf.parts`, and its name.
pub(super) const CAUSES: [(&str, &str); 6] = [
    ("user", "user data"),
    ("gc", "GC copies"),
    ("stale", "stale GC copies"),
    ("pad", "padding"),
    ("meta", "metadata"),
    ("map", "mapping blocks"),
];

/// The window that write amplification is of: so large a part of all user writes of the run.
const WINDOW_PART: f64 = 0.05;

/// What is known of writes; results of earlier versions have no causes over time.
pub(super) fn plots(cases: &[Case]) -> Vec<Plot> {
    let by_cause = match cases {
        [case] => bandwidth_by_cause(case.first()),
        _ => media_bandwidth(cases),
    };
    let amplification = match cases {
        [case] => vec![amplification(case.first())],
        _ => [&WAYS[0], &WAYS[1]].map(|way| compared(cases, way)).into(),
    };
    let free = levels(cases, "free-lines", "free_lines").map(|plot| {
        plot.captioned("Lines (superblocks) without data, at the end of each interval.")
    });
    [by_cause].into_iter().chain(amplification).chain([free]).flatten().collect()
}

fn sectors(interval: &Value, cause: &str) -> Option<f64> {
    interval["sectors"][cause].as_f64()
}

fn all_sectors(interval: &Value) -> Option<f64> {
    CAUSES.iter().map(|(cause, _)| sectors(interval, cause)).sum()
}

const AXIS: Scale<'_> = Scale::new("Written to media (MiB/s)", ScaleKind::FromZero);

/// What `of` counts in sectors of each interval, in MiB/s.
fn bandwidth(run: &Run, name: &str, of: impl Fn(&Value) -> Option<f64>) -> Vec<Value> {
    let rate = |(length, interval): &(f64, &Value)| {
        let rate = of(interval)? * SECTOR_BYTES / MIB / length;
        Some(point(interval["t_s"].as_f64()?, rate, name)).filter(|_| rate.is_finite())
    };
    intervals(run.ours()).iter().filter_map(rate).collect()
}

fn bandwidth_by_cause(run: &Run) -> Option<Plot> {
    let used = |rows: &[Value]| rows.iter().any(|row| row["y"].as_f64() > Some(0.0));
    let of_cause = |(cause, name)| bandwidth(run, name, |interval| sectors(interval, cause));
    let rows = CAUSES.into_iter().map(of_cause).filter(|rows| used(rows)).flatten().collect();
    areas("media-bandwidth", "Media writes by cause", rows, TIME, AXIS)
}

fn media_bandwidth(cases: &[Case]) -> Option<Plot> {
    let rows = drawn(cases).flat_map(|(label, run)| bandwidth(run, label, all_sectors)).collect();
    lines("media-bandwidth", "Media writes", rows, TIME, AXIS, "linear")
}

/// A way to count write amplification.
struct Way {
    id: &'static str,
    name: &'static str,
    causes: &'static [(&'static str, &'static str)],
}

const WAYS: [Way; 2] = [
    Way { id: "waf", name: "user + GC", causes: CAUSES.split_at(2).0 },
    Way { id: "waf-media", name: "all media writes", causes: &CAUSES },
];

impl Way {
    /// Sectors of users, and of all that counts.
    fn count(&self, interval: &Value) -> Option<[f64; 2]> {
        let all: Option<f64> = self.causes.iter().map(|(cause, _)| sectors(interval, cause)).sum();
        Some([sectors(interval, "user")?, all?])
    }
}

/// Write amplification of each interval with those before it, back to where users wrote `window` sectors; all of them
/// if there is no window. Nothing where users wrote less.
fn windows(run: &Run, way: &Way, window: Option<f64>, name: &str) -> Vec<Value> {
    let intervals = intervals(run.ours());
    let counted =
        intervals.iter().filter_map(|(_, at)| Some((at["t_s"].as_f64()?, way.count(at)?)));
    let counted: Vec<(f64, [f64; 2])> = counted.collect();
    let (mut first, mut user, mut all) = (0, 0.0, 0.0);
    let mut rows = Vec::new();
    for (t_s, [more_user, more]) in &counted {
        (user, all) = (user + more_user, all + more);
        while let Some(window) = window
            && user - counted[first].1[0] >= window
        {
            (user, all) = (user - counted[first].1[0], all - counted[first].1[1]);
            first += 1;
        }
        if user > 0.0 && user >= window.unwrap_or(0.0) {
            rows.push(point(*t_s, all / user, name));
        }
    }
    rows
}

/// The window of a run in user sectors.
fn window(run: &Run) -> f64 {
    let all = intervals(run.ours());
    let user: f64 = all.iter().filter_map(|(_, interval)| sectors(interval, "user")).sum();
    WINDOW_PART * user
}

const FACTOR: Scale<'_> =
    Scale::new("Write amplification (sectors per user sector)", ScaleKind::FromZero);

fn caption() -> String {
    format!("Each point covers the last {} % of the run's user writes.", 100.0 * WINDOW_PART)
}

fn amplification(run: &Run) -> Option<Plot> {
    let window = Some(window(run)).filter(|window| *window > 0.0)?;
    let rows = [
        windows(run, &WAYS[1], Some(window), "all media writes (window)"),
        windows(run, &WAYS[0], Some(window), "user + GC (window)"),
        windows(run, &WAYS[1], None, "all media writes (since the start)"),
    ];
    let plot = lines("waf", "Write amplification", rows.concat(), TIME, FACTOR, "linear")?;
    Some(plot.captioned(&caption()))
}

fn compared(cases: &[Case], way: &Way) -> Option<Plot> {
    let of = |(label, run): (&str, &Run)| windows(run, way, Some(window(run)), label);
    let rows = drawn(cases).flat_map(of).collect();
    let title = format!("Write amplification: {}", way.name);
    Some(lines(way.id, &title, rows, TIME, FACTOR, "linear")?.captioned(&caption()))
}
