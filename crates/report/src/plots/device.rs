//! The state of the device: what was written and why, lines, utilisation, wear, memory.

use super::writes::CAUSES;
use super::{drawn, numbers, seed_note};
use crate::case::{Case, Run};
use crate::plot::{Plot, Scale, ScaleKind, bars, lines, part, point};
use crate::units::byte_unit;
use serde_json::{Value, json};

/// What is known of the device.
pub(super) fn plots(cases: &[Case]) -> Vec<Plot> {
    let plots =
        [sectors(cases), memory(cases), valid_counts(cases), wear(cases), utilisation(cases)];
    let note = seed_note(cases);
    let noted = |plot: Plot| {
        let caption = format!("{} {note}", plot.caption);
        plot.captioned(caption.trim())
    };
    plots.into_iter().flatten().map(noted).collect()
}

fn sectors(cases: &[Case]) -> Option<Plot> {
    let of = |run: &Run, key: &str| {
        let sectors = &run.ours()["sectors"];
        let count = |key: &str| sectors[key].as_f64().unwrap_or(0.0);
        let user = Some(count("user")).filter(|user| *user > 0.0)?;
        let written = match key {
            "pad" => count("pad") - count("stale"),
            "meta" => count("line_meta") + count("trim"),
            _ => count(key),
        };
        Some(written / user)
    };
    let used =
        |key: &str| drawn(cases).any(|(_, run)| of(run, key).is_some_and(|share| share > 0.0));
    let causes: Vec<_> = CAUSES.into_iter().filter(|(key, _)| used(key)).collect();
    let of_case = |(label, run): (&str, &Run)| {
        let parts = causes.iter().filter_map(|(key, name)| Some(part(label, name, of(run, key)?)));
        parts.collect::<Vec<_>>()
    };
    let rows = drawn(cases).flat_map(of_case).collect();
    let x = Scale::new("Media writes (sectors per user sector)", ScaleKind::FromZero);
    bars("sectors", "Write amplification by cause", rows, x)
}

/// Width of a bar in its class.
const BAR_SHARE: f64 = 0.92;

/// Classes of a width: bars for one case, else a line a case.
fn distribution(
    id: &str,
    title: &str,
    mut rows: Vec<Value>,
    x: Scale<'_>,
    y: Scale<'_>,
    width: f64,
) -> Option<Plot> {
    let one =
        rows.first().is_some_and(|first| rows.iter().all(|row| row["series"] == first["series"]));
    for row in &mut rows {
        row["end"] = row["x"].as_f64().map(|x| x + BAR_SHARE * width).into();
    }
    let mut plot = lines(id, title, rows, x, y, "step-after")?;
    plot.spec["mark"]["point"] = false.into();
    if one {
        plot.spec["mark"] = json!({ "type": "rect", "clip": true });
        plot.spec["encoding"]["x2"] = json!({ "field": "end" });
        plot.spec["encoding"]["y2"] = json!({ "datum": 0 });
    }
    plot.spec["encoding"]["y"]["axis"]["format"] = "~p".into();
    Some(plot)
}

/// Shares of a whole; nothing without any.
fn shares(counts: &[f64]) -> Vec<f64> {
    let sum: f64 = counts.iter().sum();
    counts.iter().map(|count| count / sum).filter(|share| share.is_finite()).collect()
}

/// Points at the beginning of each class; of an `outline`, also where it leaves the ground and comes
/// back.
fn classes(shares: &[f64], first: f64, step: f64, name: &str, outline: bool) -> Vec<Value> {
    let at = |class: usize| first + class as f64 * step;
    let edge = |class: usize| Some(point(at(class), 0.0, name)).filter(|_| outline);
    let all = shares.iter().enumerate().map(|(class, share)| point(at(class), *share, name));
    edge(0).into_iter().chain(all).chain(edge(shares.len())).collect()
}

fn valid_counts(cases: &[Case]) -> Option<Plot> {
    let of = |(label, run): (&str, &Run)| {
        let shares = shares(&numbers(&run.ours()["lines"]["valid_histogram"]));
        classes(&shares, 0.0, 1.0 / shares.len() as f64, label, cases.len() > 1)
    };
    let rows: Vec<Value> = drawn(cases).flat_map(of).collect();
    let x = Scale::new("Valid sectors (%)", ScaleKind::Share);
    let y = Scale::new("Closed lines (%)", ScaleKind::FromZero);
    let plot =
        distribution("valid-counts", "Valid ratio of closed lines at the end", rows, x, y, 0.05)?;
    Some(plot.captioned("Free, open and bad lines are excluded."))
}

/// Most bars that a reader can distinguish.
const BARS_MAX: usize = 72;

fn utilisation(cases: &[Case]) -> Option<Plot> {
    let of = |(label, run): (&str, &Run)| {
        let busy = |key: &str| numbers(&run.ours()["utilisation"][key]).into_iter().enumerate();
        let units = busy("units").map(|(at, share)| (format!("U{at}"), share));
        let channels = busy("channels").map(|(at, share)| (format!("C{at}"), share));
        let pcie = run.ours()["utilisation"]["pcie"].as_f64();
        let all = units.chain(channels).chain(pcie.map(|share| ("PCIe".to_owned(), share)));
        all.map(|(name, share)| json!({ "x": name, "y": share, "series": label }))
            .collect::<Vec<_>>()
    };
    let rows: Vec<Value> = drawn(cases).flat_map(of).collect();
    let few = rows.len() <= BARS_MAX;
    let axis = "Unit (U), channel (C), PCIe link";
    let (x, y) = (Scale::new(axis, ScaleKind::Free), Scale::new("Busy (%)", ScaleKind::Share));
    let mut plot = lines("utilisation", "Utilisation", rows, x, y, "linear")?;
    plot.spec["mark"] = match few {
        true => json!({ "type": "bar", "width": { "band": 0.8 } }),
        false => json!({ "type": "point" }),
    };
    let encoding = &mut plot.spec["encoding"];
    encoding["x"] = json!({
        "field": "x", "type": "ordinal", "sort": null, "axis": { "title": axis, "labelAngle": 0 },
    });
    if few && cases.len() > 1 {
        encoding["xOffset"] = json!({ "field": "series", "sort": encoding["color"]["sort"] });
    }
    Some(plot.captioned(
        "PCIe utilisation counts reads only; write transfers are part of the write buffer's latency.",
    ))
}

fn wear(cases: &[Case]) -> Option<Plot> {
    let of = |(label, run): (&str, &Run)| {
        let histogram = &run.ours()["wear"]["erases_histogram"];
        let (first, step) = (histogram["first"].as_f64(), histogram["step"].as_f64());
        let shares = shares(&numbers(&histogram["chunks"]));
        let (first, step) = (first.unwrap_or(0.0), step.unwrap_or(1.0));
        classes(&shares, first, step, label, cases.len() > 1)
    };
    let step = cases.first()?.first().ours()["wear"]["erases_histogram"]["step"].as_f64();
    let rows: Vec<Value> = drawn(cases).flat_map(of).collect();
    let x = Scale::new("P/E cycles (count)", ScaleKind::FromZero);
    let y = Scale::new("Chunks in service (%)", ScaleKind::FromZero);
    let mut plot = distribution("wear", "P/E cycle distribution", rows, x, y, step.unwrap_or(1.0))?;
    plot.spec["encoding"]["x"]["axis"]["tickMinStep"] = 1.into();
    Some(plot.captioned("Since the device was new, preconditioning included."))
}

/// Parts of the FTL's memory: path in the JSON and name.
const MEMORY: [([&str; 2], &str); 4] = [
    (["map", "bytes"], "mapping table"),
    (["memory", "buffers_bytes"], "write buffers"),
    (["memory", "bitmap_bytes"], "valid bitmaps"),
    (["memory", "line_bytes"], "lines"),
];

fn memory(cases: &[Case]) -> Option<Plot> {
    let total = |run: &Run| run.ours()["memory"]["ftl_bytes"].as_f64().unwrap_or(0.0);
    let largest = drawn(cases).map(|(_, run)| total(run)).fold(0.0, f64::max);
    let (unit, scale) = byte_unit(largest);
    let of_case = |(label, run): (&str, &Run)| {
        let known = MEMORY
            .map(|([table, key], name)| (name, run.ours()[table][key].as_f64().unwrap_or(0.0)));
        let rest = total(run) - known.iter().map(|(_, bytes)| bytes).sum::<f64>();
        let all = known.into_iter().chain([("other", rest)]).filter(|(_, bytes)| *bytes > 0.0);
        all.map(|(name, bytes)| part(label, name, bytes / scale)).collect::<Vec<_>>()
    };
    let axis = format!("Memory ({unit})");
    let x = Scale::new(&axis, ScaleKind::FromZero);
    bars("memory", "FTL memory by component", drawn(cases).flat_map(of_case).collect(), x)
}
