//! What is drawn of which results, in sections.

mod course;
mod device;
mod distribution;
mod figures;
mod grouped;
mod heat;
mod means;
mod rules;
mod series;
mod writes;

pub(crate) use course::{course, courses};
pub(crate) use distribution::{cdf, points as cdf_points};
pub use figures::describe_figure;
pub(crate) use figures::title_of as title;
pub(crate) use grouped::{bars, named, range as bar_range, strokes, upright};
pub(crate) use means::{marks, row as with_ends, tooltip};
pub(crate) use series::name_of as course_name;

use crate::case::{Case, Run};
use crate::plot::Plot;
use crate::{Kind, Report};
use serde_json::Value;

/// Plots under one heading.
pub(crate) struct Section {
    /// The heading.
    pub(crate) title: &'static str,
    /// Its plots; none if the results lack what they would show.
    pub(crate) plots: Vec<Plot>,
}

/// Kinds of requests, by their key in the JSON and by their name.
const REQUESTS: [(&str, &str); 4] =
    [("read", "Read"), ("write", "Write"), ("trim", "Trim"), ("sync", "fsync")];

/// What a kind of request is called in a sentence.
pub(crate) fn request_name(key: &str) -> String {
    let name = REQUESTS.iter().find(|(other, _)| *other == key).map_or(key, |(_, name)| *name);
    name.to_lowercase()
}

/// All that is worth drawing.
pub(crate) fn sections(report: &Report) -> Vec<Section> {
    let cases = &report.cases.list;
    let mut sections = Vec::new();
    let mut put = |title: &'static str, plots: Vec<Plot>| {
        if !plots.is_empty() {
            sections.push(Section { title, plots });
        }
    };
    if report.kind() != Kind::Run {
        put("Metrics", figures::plots(report));
    }
    if report.kind() != Kind::Sweep {
        put("Over time", course::plots(cases));
        put("Latency", distribution::plots(cases));
        put("Media and memory", device::plots(cases));
    }
    sections
}

/// What is drawn of each case: its first run, under the name of the case.
fn drawn(cases: &[Case]) -> impl Iterator<Item = (&str, &Run)> {
    cases.iter().map(|case| (case.label.as_str(), case.first()))
}

/// A caption that says which of several seeds is drawn.
fn seed_note(cases: &[Case]) -> String {
    let repeated = cases.iter().any(|case| case.runs.len() > 1);
    let Some(first) = cases.first().filter(|_| repeated) else { return String::new() };
    format!("Seed {} shown.", first.first().seed)
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}
