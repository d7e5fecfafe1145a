//! Figures against the axes of a sweep, each a mean over the seeds with its 95 % confidence: along the
//! first axis of numbers, one colour for each value of the next axis, one plot for each combination of
//! the rest. A comparison, which has no axis of numbers, gets a row a case.

use super::grouped::bars;
use super::means::{marks, row, span, tooltip};
use super::rules;
use crate::case::Case;
use crate::column::Column;
use crate::figure::{Divisor, Figure, Line, Term};
use crate::path::ALL;
use crate::plot::{Plot, Scale, ScaleKind, colour, slug};
use crate::point::{Axis, each_once, plain};
use crate::student::Mean;
use crate::units::{byte_unit, show, time_unit};
use crate::{COMPARED_MAX, Kind, Report};
use serde_json::{Value, json};

/// Plots of one figure at most; a reader of more wants a table.
const FACETS_MAX: usize = 12;
/// Part of the height that is kept for the label of a line.
const LABEL_ROOM: f64 = 0.08;

/// A figure as it is drawn.
struct Drawn<'a> {
    figure: &'a Figure,
    /// What it is.
    name: String,
    /// What stands at its axis.
    axis: String,
    /// By case.
    means: Vec<Option<Mean>>,
    /// What it is set against, each with its value as it is drawn.
    lines: Vec<(f64, &'a Line)>,
}

/// One plot a figure, or one a figure and combination of the further axes.
pub(super) fn plots(report: &Report) -> Vec<Plot> {
    let figures = report.visible_columns().filter_map(|column| Drawn::new(column, &report.lines));
    figures
        .flat_map(|figure| match report.kind() {
            Kind::Sweep => along_axis(report, &figure),
            _ => vec![by_case(&report.cases.list, &figure)],
        })
        .collect()
}

impl<'a> Drawn<'a> {
    /// In the unit that suits the largest; `None` where no case has it.
    fn new(column: &'a Column, lines: &'a [Line]) -> Option<Self> {
        let figure = column.figure();
        let means: Vec<Option<Mean>> = column.means().collect();
        let largest = means.iter().flatten().map(|mean| mean.mean.abs()).reduce(f64::max)?;
        let Title { name, axis, scale } = title(figure, largest);
        let scaled = |mean: Mean| mean.in_units_of(scale);
        let lines = lines.iter().filter(|line| line.figure == *figure);
        Some(Self {
            figure,
            name,
            axis,
            means: means.into_iter().map(|mean| mean.map(scaled)).collect(),
            lines: lines.map(|line| (line.value / scale, line)).collect(),
        })
    }

    /// The lowest and the highest that is drawn, so that plots of it can be compared.
    fn range(&self) -> [f64; 2] {
        let ends = self.means.iter().flatten().flat_map(|mean| mean.ends);
        let ends = ends.chain(self.lines.iter().map(|(value, _)| *value));
        let (low, high) =
            ends.fold((f64::MAX, f64::MIN), |(low, high), end| (low.min(end), high.max(end)));
        let room = if self.lines.is_empty() { 0.0 } else { LABEL_ROOM * (high - low) };
        [low, high + room]
    }

    fn middle(&self) -> f64 {
        self.range().iter().sum::<f64>() / 2.0
    }

    /// What it is, what bands and bars are, and what lines are.
    fn caption(&self, seeds: usize) -> String {
        let confidence = match seeds {
            0 | 1 => "",
            2 => ": mean and range of two seeds",
            _ => ": mean and 95 % confidence interval over the seeds",
        };
        let lines = self
            .lines
            .iter()
            .map(|(_, line)| format!(" Line at {}: {}.", line.shown(), line.label));
        format!("{}{confidence}.{}", self.figure, lines.collect::<String>())
    }

    fn slug(&self, facet: &str) -> String {
        slug(&format!("figure {} {facet}", self.figure))
    }
}

/// What stands above a figure and at its axis, and what numbers there are divided by. Only the axis says
/// what a figure is relative to, for the line above has no room for it in a narrow window.
struct Title {
    name: String,
    axis: String,
    scale: f64,
}

fn title(figure: &Figure, largest: f64) -> Title {
    let (term, per) = figure.parts();
    let name = match per {
        None => in_words(term),
        Some(Divisor::Term(per)) => format!("{} / {}", in_words(term), in_words(per)),
        Some(Divisor::Number(per)) => format!("{} / {per}", in_words(term)),
    };
    if let Some(reference) = figure.reference() {
        let axis = format!("Relative to {} (ratio)", reference.in_words());
        return Title { name, axis, scale: 1.0 };
    }
    let Some(path) = figure.plain_path() else {
        return Title { axis: format!("{name} (ratio)"), name, scale: 1.0 };
    };
    let (unit, scale) = match path {
        _ if path.contains("_ns") => time_unit(largest),
        _ if path.contains("bytes") => byte_unit(largest),
        _ => (describe(path).1, 1.0),
    };
    let per_second = if path.ends_with("bw_bytes") { "/s" } else { "" };
    let short = name.split(':').next().unwrap_or(&name);
    Title { axis: format!("{short} ({unit}{per_second})"), name, scale }
}

/// What a term is, as far as its paths tell.
fn in_words(term: &Term) -> String {
    let names: Vec<String> = term.paths().iter().map(|path| describe(path).0).collect();
    match names.as_slice() {
        [name] => name.clone(),
        names => format!("({})", names.join(" + ")),
    }
}

/// What a figure is and what it counts, as far as the path tells; times and bytes find their unit
/// themselves.
fn describe(path: &str) -> (String, &'static str) {
    if let Some((_, name, unit)) = NAMES.iter().find(|(other, ..)| *other == path) {
        return ((*name).to_owned(), unit);
    }
    let (job, of_job) = job(path);
    match request(of_job) {
        Some((kind, "iops")) => (format!("{job}{kind} IOPS"), "1/s"),
        Some((kind, "bw_bytes")) => (format!("{job}{kind} bandwidth"), ""),
        Some((kind, "io_bytes")) => (format!("{job}{kind}: data"), ""),
        Some((kind, "total_ios")) => (format!("{job}{kind}: I/Os"), "count"),
        Some((kind, figure)) => (format!("{job}{kind} latency: {}", figure_of_latency(figure)), ""),
        None => (path.to_owned(), "value"),
    }
}

/// What stands before a path of one job, and the rest: jobs count from 1, as readers do.
fn job(path: &str) -> (String, &str) {
    let of_job = path.strip_prefix("jobs.").and_then(|rest| rest.split_once('.'));
    let numbered = of_job.and_then(|(index, rest)| Some((index.parse::<u64>().ok()? + 1, rest)));
    numbered.map_or((String::new(), path), |(number, rest)| (format!("Job {number}, "), rest))
}

/// Figures whose names their paths do not give: path, name, and unit where the path has none.
const NAMES: [(&str, &str, &str); 22] = [
    ("waf.gc", "Write amplification: user + GC", "sectors per user sector"),
    ("waf.gc_pad", "Write amplification: user + GC + padding", "sectors per user sector"),
    ("waf.media", "Write amplification: all media writes", "sectors per user sector"),
    ("waf.fs", "Write amplification of the file system", "sectors per file sector"),
    ("virtual_s", "Virtual time", "s"),
    ("gc.valid_ratio_mean", "Valid ratio of victims", "share"),
    ("gc.victims", "GC victims", "lines"),
    ("erases", "Erases", "chunks"),
    ("flush.waited", "Device flushes that waited", "count"),
    ("memory.ftl_bytes", "FTL memory", ""),
    ("map.bytes", "Mapping table", ""),
    ("map.hit_ratio", "Map cache hit ratio", "share"),
    ("map.loads", "Map cache loads", "blocks"),
    ("map.writebacks", "Map cache write-backs", "blocks"),
    ("reads.sectors", "Sectors read", "sectors"),
    ("writes.sectors", "Sectors written", "sectors"),
    ("writes.stall_ns_max", "Longest write stall", ""),
    ("wear.erases_max", "P/E cycles: maximum", "count"),
    ("fs.cache.hits", "Page cache hits", "pages"),
    ("steady", "Steady runs", "share"),
    ("wml.summary.ops_per_s", "Flowops", "operations/s"),
    ("wml.summary.latency_mean_ns", "Flowop latency: mean", ""),
];

/// The kind of request and what of it, for a path such as `write.clat_ns.p99`, of all jobs or one.
fn request(path: &str) -> Option<(&'static str, &str)> {
    let (kind, rest) = path.strip_prefix(ALL).unwrap_or(path).split_once('.')?;
    let (_, name) = super::REQUESTS.into_iter().find(|(key, _)| *key == kind)?;
    let latency = rest.strip_prefix("clat_ns.").or_else(|| rest.strip_prefix("lat_ns."));
    let known = matches!(rest, "iops" | "bw_bytes" | "io_bytes" | "total_ios");
    latency.or(Some(rest).filter(|_| known)).map(|figure| (name, figure))
}

/// `p99` as `99th percentile`.
fn figure_of_latency(figure: &str) -> String {
    match figure {
        "p50" => "median".to_owned(),
        "min" => "minimum".to_owned(),
        "max" => "maximum".to_owned(),
        _ => match figure.strip_prefix('p') {
            Some(percent) => format!("{percent}th percentile"),
            None => figure.to_owned(),
        },
    }
}

/// A bar per case from zero, below its name and its number, with the interval around its end.
fn by_case(cases: &[Case], figure: &Drawn<'_>) -> Plot {
    let labels: Vec<String> = cases.iter().map(|case| case.label.clone()).collect();
    let means = cases.iter().zip(&figure.means);
    let row = |(case, mean): (&Case, &Option<Mean>)| {
        let mean = mean.as_ref()?;
        let shown = show(false, mean);
        Some(row(mean, json!({ "series": case.label, "shown": shown })))
    };
    let rows: Vec<Value> = means.filter_map(row).collect();
    let mut x = Scale::new(&figure.axis, ScaleKind::FromZero).encoding("mean", &rows);
    x["axis"]["grid"] = true.into();
    // Labels of lines have a row each, which is called by so many blanks.
    let blank = (1..=figure.lines.len()).map(|count| " ".repeat(count));
    let domain: Vec<String> = labels.iter().cloned().chain(blank).collect();
    let y = json!({ "field": "series", "type": "nominal", "sort": labels, "scale": { "domain": domain }, "axis": null });
    let mut colour = colour("series", &labels);
    colour["legend"] = Value::Null;
    let tooltip = tooltip(&figure.axis, &[("series", "stack")]);
    let mut layers = rules::upright(&figure.lines, &x, cases.len(), figure.middle());
    layers.extend(bar_with_texts(&x, &tooltip));
    let body = json!({
        "height": rules::ROW_HEIGHT * domain.len() as u32,
        "encoding": { "y": y, "color": colour },
        "layer": layers,
    });
    let plot = Plot::new(&figure.slug(""), &figure.name, rows, body);
    plot.captioned(&figure.caption(repeated(cases)))
}

/// The most seeds of a case.
fn repeated(cases: &[Case]) -> usize {
    cases.iter().map(|case| case.runs.len()).max().unwrap_or(0)
}

/// The marks of a row: name on the left and number on the right, then the bar and its interval below them.
fn bar_with_texts(x: &Value, tooltip: &Value) -> [Value; 4] {
    let text = |field: &str, place: Value, style: &str, align: &str, limit: &str| {
        json!({
            "mark": { "type": "text", "style": style, "align": align, "baseline": "middle", "dy": -10, "limit": { "expr": limit } },
            "encoding": { "x": place, "text": { "field": field, "type": "nominal" }, "color": null },
        })
    };
    let ends = json!({ "x": span("low", x), "x2": { "field": "high" }, "color": null });
    [
        text("series", json!({ "value": 0 }), "name", "left", "width - 130"),
        text("shown", json!({ "value": "width" }), "number", "right", "130"),
        json!({ "mark": { "type": "bar", "height": 12, "yOffset": 6 }, "encoding": { "x": x, "tooltip": tooltip } }),
        json!({ "mark": { "type": "rule", "style": "interval", "yOffset": 6 }, "encoding": ends }),
    ]
}

/// What a figure is, in words.
#[must_use]
pub fn describe_figure(figure: &Figure) -> String {
    title(figure, 0.0).name
}

/// Name, axis and divisor of a figure whose largest number is this.
pub(crate) fn title_of(figure: &Figure, largest: f64) -> (String, String, f64) {
    let Title { name, axis, scale } = title(figure, largest);
    (name, axis, scale)
}

/// Which axis is which.
struct Axes<'a> {
    /// Index and axis.
    x: (usize, &'a Axis),
    colour: Option<(usize, &'a Axis)>,
    /// The rest, by index.
    facets: Vec<usize>,
}

impl<'a> Axes<'a> {
    /// The first axis of numbers lies across, or the longest; the next that has few values is shown by
    /// colour.
    fn of(axes: &'a [Axis]) -> Option<Self> {
        let all = || axes.iter().enumerate();
        let longest = || all().max_by_key(|(at, axis)| (axis.values.len(), usize::MAX - at));
        let x = all().find(|(_, axis)| axis.is_numeric()).or_else(longest)?;
        let rest = || all().filter(|(at, _)| *at != x.0);
        let colour = rest().find(|(_, axis)| axis.values.len() <= COMPARED_MAX);
        let facets =
            rest().map(|(at, _)| at).filter(|at| colour.is_none_or(|(other, _)| other != *at));
        Some(Self { x, colour, facets: facets.collect() })
    }
}

/// A figure along the axis of numbers.
fn along_axis(report: &Report, figure: &Drawn<'_>) -> Vec<Plot> {
    let cases = &report.cases;
    let Some(axes) = Axes::of(&cases.axes) else { return Vec::new() };
    let facet = |case: &Case| -> Vec<Value> {
        axes.facets.iter().map(|at| case.values[*at].clone()).collect()
    };
    let facets = each_once(cases.list.iter().map(facet));
    let left_out = facets.len().saturating_sub(FACETS_MAX);
    let plots = facets.iter().take(FACETS_MAX).map(|values| {
        let of_facet =
            cases.list.iter().zip(&figure.means).filter(|(case, _)| facet(case) == *values);
        let rows = of_facet.filter_map(|(case, mean)| Some(at_point(&axes, case, mean.as_ref()?)));
        let names = axes.facets.iter().zip(values);
        let names =
            names.map(|(at, value)| format!("{} {}", cases.axes[*at].short_name(), plain(value)));
        let names = names.collect::<Vec<_>>().join(", ");
        let mut caption = figure.caption(cases.seeds());
        if left_out > 0 {
            caption.push_str(&format!(" The table has {left_out} more combinations."));
        }
        sweep_plot(figure, &axes, &names, rows.collect()).captioned(&caption)
    });
    plots.collect()
}

fn at_point(axes: &Axes<'_>, case: &Case, mean: &Mean) -> Value {
    let series = axes.colour.map_or_else(String::new, |(at, _)| plain(&case.values[at]));
    row(mean, json!({ "x": case.values[axes.x.0], "series": series }))
}

fn sweep_plot(figure: &Drawn<'_>, axes: &Axes<'_>, facet: &str, rows: Vec<Value>) -> Plot {
    let title = [figure.name.as_str(), facet];
    let title = title.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let x = axes.x.1;
    let body = match x.is_numeric() {
        true => along_numbers(figure, axes, &rows),
        false => by_name(figure, axes, &rows),
    };
    Plot::new(&figure.slug(facet), &title, rows, body)
}

fn along_numbers(figure: &Drawn<'_>, axes: &Axes<'_>, rows: &[Value]) -> Value {
    let mut y = Scale::new(&figure.axis, ScaleKind::Free).encoding("mean", rows);
    y["scale"]["domain"] = json!(figure.range());
    let x = axes.x.1;
    let across = Scale::new(&key_title(x), ScaleKind::Free).encoding("x", rows);
    let tooltip = tooltip(&figure.axis, &[("series", "series"), ("x", x.short_name())]);
    let colour = series_colour(axes);
    let mut layers = rules::level(&figure.lines, &y);
    layers.extend(marks(true, &y, &colour, &tooltip));
    json!({ "encoding": { "x": across, "color": colour }, "layer": layers })
}

/// Bars up to the same height in every plot of the figure.
fn by_name(figure: &Drawn<'_>, axes: &Axes<'_>, rows: &[Value]) -> Value {
    let mut body = bars(&figure.axis, rows, &series_names(axes), Vec::new(), figure.range());
    let y = body["layer"][0]["encoding"]["y"].clone();
    let mut layers = rules::level(&figure.lines, &y);
    layers.extend(body["layer"].as_array().into_iter().flatten().cloned());
    body["layer"] = layers.into();
    body["encoding"]["color"] = series_colour(axes);
    body
}

/// What the axis of colours says, with its name above the legend.
fn series_colour(axes: &Axes<'_>) -> Value {
    let names = series_names(axes);
    let mut colour = colour("series", &names);
    if let Some((_, axis)) = axes.colour.filter(|_| names.len() > 1) {
        colour["legend"]["title"] = axis.name.as_str().into();
        // Symbols are filled; a dashed line around them would blur their shapes.
        colour["legend"]["symbolStrokeWidth"] = 0.into();
    }
    colour
}

fn series_names(axes: &Axes<'_>) -> Vec<String> {
    axes.colour.map_or_else(Vec::new, |(_, axis)| axis.values.iter().map(plain).collect())
}

/// A key with the unit that its name ends with.
fn key_title(axis: &Axis) -> String {
    let units = [("_percent", "%"), ("_ns", "ns"), ("_bytes", "B"), ("_rate", "share")];
    let unit = units.into_iter().find(|(end, _)| axis.name.ends_with(end));
    unit.map_or_else(|| axis.name.clone(), |(_, unit)| format!("{} ({unit})", axis.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths that the usual reports name are worded.
    #[test]
    fn figures_have_names() {
        let cases = [
            ("waf.gc", "Write amplification: user + GC"),
            ("write.clat_ns.p99", "Write latency: 99th percentile"),
            ("sync.lat_ns.p50", "fsync latency: median"),
            ("read.iops", "Read IOPS"),
            ("jobs.1.sync.lat_ns.p95", "Job 2, fsync latency: 95th percentile"),
            ("all.read.clat_ns.p99", "Read latency: 99th percentile"),
            ("memory.ftl_bytes", "FTL memory"),
            ("pad_units.3", "pad_units.3"),
        ];
        for (path, name) in cases {
            assert_eq!(describe(path).0, name);
        }
    }

    /// Numbers lie across wherever they stand among the keys; the rest is colour, then facets.
    #[test]
    fn axes_find_their_roles() {
        let axis = |name: &str, values: &[Value]| Axis { name: name.into(), values: values.into() };
        let all = [
            axis("stack", &["a".into(), "b".into()]),
            axis("ftl.op_percent", &[10.into(), 20.into()]),
            axis("ftl.gc.victim", &["x".into(), "y".into()]),
        ];
        let axes = Axes::of(&all).unwrap();
        assert_eq!(axes.x.1.name, "ftl.op_percent");
        assert_eq!(axes.colour.map(|(at, _)| at), Some(0));
        assert_eq!(axes.facets, [2]);
        assert_eq!(key_title(axes.x.1), "ftl.op_percent (%)");
    }
}
