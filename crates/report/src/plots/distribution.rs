//! Distributions of latencies, and where the time of a flush went.

use super::course::in_time_unit;
use super::{REQUESTS, drawn, numbers, seed_note};
use crate::case::{Case, Run};
use crate::plot::{Plot, Scale, ScaleKind, bars, lines, part, point};
use crate::units::time_unit;
use serde_json::{Value, json};

/// Distribution function and percentiles, then flushes.
pub(super) fn plots(cases: &[Case]) -> Vec<Plot> {
    let note = seed_note(cases);
    let distributions = rows_of_plots(cases).into_iter().flat_map(|(key, name, rows)| {
        [
            cdf(&format!("cdf{key}"), &format!("{name}: distribution"), rows.clone()),
            percentiles(&key, &name, rows),
        ]
    });
    distributions
        .chain([flush(cases)])
        .flatten()
        .map(|plot| match plot.caption.is_empty() {
            true => plot.captioned(&note),
            false => plot,
        })
        .collect()
}

/// One plot of all kinds of requests for one case, else one plot a kind: key, name, points.
fn rows_of_plots(cases: &[Case]) -> Vec<(String, String, Vec<Value>)> {
    if let [case] = cases {
        let rows = REQUESTS.iter().flat_map(|(key, name)| points(&case.first().result, key, name));
        return vec![(String::new(), "Latency".to_owned(), rows.collect())];
    }
    let of_kind = |(key, name): (&str, &str)| {
        let rows = drawn(cases).flat_map(|(label, run)| points(&run.result, key, label));
        (format!("-{key}"), format!("{name} latency"), rows.collect())
    };
    REQUESTS.into_iter().map(of_kind).collect()
}

/// Points of a distribution function: latency and the share that is no longer.
pub(crate) fn points(result: &Value, key: &str, name: &str) -> Vec<Value> {
    let cdf = &result["nandscape"]["latency_cdf"][key];
    let points = numbers(&cdf["ns"]).into_iter().zip(numbers(&cdf["share"]));
    points.filter(|(ns, _)| *ns > 0.0).map(|(ns, share)| point(ns, share, name)).collect()
}

/// The distribution function as steps, called `id`, under this title.
pub(crate) fn cdf(id: &str, title: &str, rows: Vec<Value>) -> Option<Plot> {
    let (rows, unit) = in_time_unit(rows, "x");
    let axis = format!("Latency ({unit}, log scale)");
    let share = Scale::new("Cumulative requests (%)", ScaleKind::Share);
    let x = Scale::new(&axis, ScaleKind::Log);
    let mut plot = lines(id, title, rows, x, share, "step-after")?;
    plot.spec["mark"]["point"] = false.into();
    Some(plot)
}

/// Latency over percentiles, with as much room for each further nine.
fn percentiles(key: &str, name: &str, rows: Vec<Value>) -> Option<Plot> {
    let (mut rows, unit) = in_time_unit(rows, "x");
    rows.retain(|row| row["y"].as_f64().is_some_and(|share| (0.01..1.0).contains(&share)));
    for row in &mut rows {
        let nines = row["y"].as_f64().map(|share| 1.0 / (1.0 - share));
        row["y"] = row["x"].take();
        row["x"] = nines.into();
    }
    let axis = format!("Latency ({unit}, log scale)");
    let x = Scale::new("Percentile (%)", ScaleKind::Log);
    let y = Scale::new(&axis, ScaleKind::Log);
    let mut plot =
        lines(&format!("percentiles{key}"), &format!("{name}: percentiles"), rows, x, y, "linear")?;
    plot.spec["mark"]["point"] = false.into();
    let encoding = &mut plot.spec["encoding"]["x"];
    encoding["axis"]["labelExpr"] =
        "datum.value <= 1 ? '0' : format(100 * (1 - 1 / datum.value), '~r')".into();
    encoding["axis"]["labelSeparation"] = 2.into();
    encoding["axis"]["grid"] = true.into();
    encoding["axis"]["values"] = json!([1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]);
    Some(plot)
}

/// Parts of a flush's time: key and name.
const PARTS: [(&str, &str); 4] = [
    ("queue_ns", "waiting for other I/O"),
    ("gc_ns", "waiting for GC and erases"),
    ("padding_ns", "programming padding"),
    ("program_ns", "programming data"),
];

fn flush(cases: &[Case]) -> Option<Plot> {
    let means = |run: &Run| {
        let flush = &run.ours()["flush"];
        let waited = flush["waited"].as_f64().filter(|waited| *waited > 0.0)?;
        Some(PARTS.map(|(key, _)| flush[key].as_f64().unwrap_or(0.0) / waited))
    };
    let all: Vec<(&str, [f64; 4])> =
        drawn(cases).filter_map(|(label, run)| Some((label, means(run)?))).collect();
    let longest = all.iter().map(|(_, parts)| parts.iter().sum()).fold(0.0, f64::max);
    let (unit, scale) = time_unit(longest);
    let of_case = |(label, means): &(&str, [f64; 4])| {
        let label = (*label).to_owned();
        let parts: Vec<_> = PARTS.iter().map(|(_, name)| *name).zip(*means).collect();
        parts.into_iter().map(move |(name, mean)| part(&label, name, mean / scale))
    };
    let axis = format!("Mean latency of a device flush ({unit})");
    let x = Scale::new(&axis, ScaleKind::FromZero);
    let plot =
        bars("flush", "Device flush latency by cause", all.iter().flat_map(of_case).collect(), x);
    plot.map(|plot| {
        plot.captioned(
            "Flushes and writes with PREFLUSH or FUA; those that found an empty buffer are excluded.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::colour;

    /// Each part has the colour of its meaning in every plot, not that of its place in this one.
    #[test]
    fn parts_of_flushes_have_colours_of_their_own() {
        let names = PARTS.map(|(_, name)| name.to_owned());
        let domain = &colour("part", &names)["scale"]["domain"];
        assert_ne!(domain, &json!(names));
        assert!(names.iter().all(|name| domain.as_array().unwrap().contains(&json!(name))));
    }
}
