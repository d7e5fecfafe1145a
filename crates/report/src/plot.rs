//! A plot: a Vega-Lite specification with its data, and the few shapes that plots have.

use crate::theme::Theme;
use serde_json::{Value, json};

/// The version of Vega-Lite that specifications are written for.
const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";
/// Height of a plot of time or of a distribution.
const HEIGHT: u32 = 230;
/// Height of a bar and its gap.
const BAR_HEIGHT: u32 = 30;
/// Width of a stand-alone plot.
const WIDTH: u32 = 640;
/// Width that a legend can count on, and what a letter and a symbol take of it.
const LEGEND_WIDTH: usize = 250;
const LETTER_WIDTH: usize = 7;
const SYMBOL_WIDTH: usize = 40;
/// Letters that a line of a title may have: what fits a narrow window.
const TITLE_MAX: usize = 32;
/// Letters that a line of an axis's title may have.
const AXIS_MAX: usize = 34;
/// Fewer points than this along a line are marked, for a line alone would hide how few they are.
const MARKED_POINTS: usize = 25;

/// A plot of a report.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// Its name: letters, digits and `-`.
    pub id: String,
    /// What a reader should know beyond title and axes; may be empty.
    pub caption: String,
    /// The specification, as wide as what it stands in.
    pub(crate) spec: Value,
}

impl Plot {
    /// A plot of `rows`, drawn as `body` says.
    pub(crate) fn new(id: &str, title: &str, rows: Vec<Value>, body: Value) -> Self {
        let mut spec = json!({
            "$schema": SCHEMA,
            "title": in_lines(title, TITLE_MAX),
            "width": "container",
            "height": HEIGHT,
            "autosize": { "type": "fit-x", "contains": "padding" },
            "data": { "values": rows },
        });
        if let (Value::Object(spec), Value::Object(body)) = (&mut spec, body) {
            spec.extend(body);
        }
        Self { id: id.to_owned(), caption: String::new(), spec }
    }

    /// With a caption.
    pub(crate) fn captioned(mut self, caption: &str) -> Self {
        self.caption = caption.to_owned();
        self
    }

    /// The specification by itself, light and of a fixed width, for other programs.
    #[must_use]
    pub fn standalone(&self) -> Value {
        let mut spec = self.spec.clone();
        spec["width"] = WIDTH.into();
        spec["config"] = Theme::Light.config();
        spec
    }
}

/// An axis with numbers on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Scale<'a> {
    /// What and in which unit.
    pub(crate) title: &'a str,
    pub(crate) kind: ScaleKind,
}

/// How numbers lie on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScaleKind {
    /// From nothing to a round number.
    FromZero,
    /// From nothing to the last.
    Time,
    /// Between round numbers.
    Free,
    /// Decades, of equal height.
    Log,
    /// Shares as percent, from none to all.
    Share,
}

impl<'a> Scale<'a> {
    pub(crate) const fn new(title: &'a str, kind: ScaleKind) -> Self {
        Self { title, kind }
    }

    /// The encoding of `field` of `rows` on this axis.
    pub(crate) fn encoding(&self, field: &str, rows: &[Value]) -> Value {
        let mut scale = match self.kind {
            ScaleKind::FromZero => json!({ "zero": true, "nice": true }),
            ScaleKind::Time => json!({ "zero": true, "nice": false }),
            ScaleKind::Free => json!({ "zero": false, "nice": true }),
            ScaleKind::Log => json!({ "type": "log", "nice": false }),
            ScaleKind::Share => json!({ "domain": [0, 1] }),
        };
        let mut axis = json!({ "title": axis_title(self.title), "tickCount": 6, "format": ",~r" });
        match self.kind {
            ScaleKind::Share => axis["format"] = ".0%".into(),
            ScaleKind::Log => {
                let ticks = log_ticks(rows.iter().filter_map(|row| row[field].as_f64()));
                scale["domain"] = json!([ticks.first(), ticks.last()]);
                axis["values"] = ticks.into();
                // Vega leaves out some of the values if they are more than this.
                axis["tickCount"] = Value::Null;
                axis["labelOverlap"] = "greedy".into();
            }
            ScaleKind::FromZero | ScaleKind::Time | ScaleKind::Free => {}
        }
        json!({ "field": field, "type": "quantitative", "scale": scale, "axis": axis })
    }
}

/// Decades at which an axis has more than their beginnings, at most.
const FINE_DECADES: i32 = 1;

/// Round numbers on both sides of all positive `numbers` and between them: powers of ten, and 2 and 5
/// of each if they are few.
fn log_ticks(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let numbers = numbers.filter(|number| *number > 0.0 && number.is_finite());
    let (low, high) = numbers.fold((f64::MAX, 0.0_f64), |(low, high), n| (low.min(n), high.max(n)));
    if high == 0.0 {
        return vec![1.0, 10.0];
    }
    let first = DECADES.rev().find(|decade| power(*decade) <= low).unwrap_or(*DECADES.start());
    let last = DECADES.into_iter().find(|decade| power(*decade) >= high).unwrap_or(*DECADES.end());
    let steps: &[f64] = if last - first <= FINE_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let all = (first..=last).flat_map(|decade| steps.iter().map(move |step| step * power(decade)));
    let all: Vec<f64> = all.collect();
    let from = all.iter().rposition(|tick| *tick <= low).unwrap_or(0);
    let to = all.iter().position(|tick| *tick >= high).unwrap_or(all.len() - 1);
    all[from..=to.max(from + 1).min(all.len() - 1)].to_vec()
}

/// Powers of ten that an axis may have.
const DECADES: std::ops::RangeInclusive<i32> = -12..=18;

/// The double next to this power of ten, on every machine.
fn power(decade: i32) -> f64 {
    format!("1e{decade}").parse().unwrap_or(1.0)
}

/// What each colour of a theme means, in their order: the same colour has one of these meanings in every plot.
const MEANINGS: [&[&str]; 9] = [
    &["Write", "user data", "waiting for other I/O"],
    &["GC copies", "waiting for GC and erases"],
    &["Read"],
    &["fsync", "programming data"],
    &["padding", "programming padding"],
    &["mapping blocks"],
    &["Trim"],
    &["metadata"],
    &["stale GC copies"],
];

/// `names` at the places of their colours, and at the others what they would mean; `None` if a name has no meaning of
/// its own. What is drawn is of one kind, so no two of `names` share a place.
fn meanings(names: &[String]) -> Option<Vec<&str>> {
    let meant = |name: &String| MEANINGS.iter().any(|all| all.contains(&name.as_str()));
    let is_drawn = |name: &&&str| names.iter().any(|drawn| drawn == **name);
    let place = |all: &&[&'static str]| *all.iter().find(is_drawn).unwrap_or(&all[0]);
    names.iter().all(meant).then(|| MEANINGS.iter().map(place).collect())
}

/// The encoding of what a line or bar stands for, by colour, in this order.
pub(crate) fn colour(field: &str, names: &[String]) -> Value {
    let legend = match names.len() {
        0 | 1 => Value::Null,
        _ => json!({ "title": null, "columns": legend_columns(names), "values": names }),
    };
    let domain = meanings(names).map_or_else(|| json!(names), |domain| json!(domain));
    json!({ "field": field, "type": "nominal", "sort": names, "scale": { "domain": domain }, "legend": legend })
}

/// Columns of a legend that is no wider than a plot.
fn legend_columns(names: &[String]) -> usize {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    (LEGEND_WIDTH / (longest * LETTER_WIDTH + SYMBOL_WIDTH)).clamp(1, names.len().max(1))
}

/// A point of a line: its place, and the line that it belongs to.
pub(crate) fn point(x: f64, y: f64, series: &str) -> Value {
    json!({ "x": x, "y": y, "series": series })
}

/// The names in `rows`, in the order in which they come.
fn names(rows: &[Value], field: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in rows.iter().filter_map(|row| row[field].as_str()) {
        if names.last().is_none_or(|last| last != name) && !names.iter().any(|other| other == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Lines through [`point`]s, a colour each; `None` without any.
pub(crate) fn lines(
    id: &str,
    title: &str,
    rows: Vec<Value>,
    x: Scale<'_>,
    y: Scale<'_>,
    interpolate: &str,
) -> Option<Plot> {
    let names = names(&rows, "series");
    let drawn = rows.iter().filter(|row| row["y"].is_number()).count();
    // Points between gaps have no line to be seen by.
    let marked = match drawn < MARKED_POINTS * names.len() || drawn < rows.len() / 2 {
        true => json!({ "size": 18 }),
        false => false.into(),
    };
    let mark = json!({ "type": "line", "interpolate": interpolate, "point": marked, "clip": true });
    let encoding = json!({
        "x": x.encoding("x", &rows), "y": y.encoding("y", &rows), "color": colour("series", &names),
    });
    (!rows.is_empty())
        .then(|| Plot::new(id, title, rows, json!({ "mark": mark, "encoding": encoding })))
}

/// `plot` of [`lines`] with a dashed line across at the `y` of each level, in the colour of its `series`; `label` is
/// shown at the pointer, as is the value under the title of the axis.
pub(crate) fn with_levels(mut plot: Plot, levels: Vec<Value>, axis: &str) -> Plot {
    let Some(spec) = plot.spec.as_object_mut().filter(|_| !levels.is_empty()) else { return plot };
    let [mark, encoding] = ["mark", "encoding"].map(|key| spec.remove(key).unwrap_or_default());
    let value = json!({ "field": "y", "type": "quantitative", "format": ".4~r",
                        "title": axis });
    let across = json!({
        "y": encoding["y"], "color": encoding["color"],
        "tooltip": [{ "field": "label", "title": "stated" }, value],
    });
    let rule = json!({ "type": "rule", "strokeDash": [7, 4], "strokeWidth": 1.25 });
    let layers = json!([
        { "mark": mark, "encoding": encoding },
        { "data": { "values": levels }, "mark": rule, "encoding": across },
    ]);
    spec.insert("layer".to_owned(), layers);
    plot
}

/// A part of a bar: the bar, the part's name, its length.
pub(crate) fn part(bar: &str, name: &str, value: f64) -> Value {
    json!({ "bar": bar, "series": name, "x": value })
}

/// `rows` with the rank of their `series` among `parts`.
fn ranked(mut rows: Vec<Value>, parts: &[String]) -> Vec<Value> {
    for row in &mut rows {
        row["rank"] = parts.iter().position(|part| row["series"] == part.as_str()).into();
    }
    rows
}

/// Areas over x, of [`point`]s stacked in the order in which their series come; each lasts until its point from the one
/// before. `None` without any.
pub(crate) fn areas(
    id: &str,
    title: &str,
    rows: Vec<Value>,
    x: Scale<'_>,
    y: Scale<'_>,
) -> Option<Plot> {
    let parts = names(&rows, "series");
    let rows = ranked(rows, &parts);
    let mut up = y.encoding("y", &rows);
    up["stack"] = "zero".into();
    let body = json!({
        "mark": { "type": "area", "interpolate": "step-before", "clip": true },
        "encoding": {
            "x": x.encoding("x", &rows), "y": up, "color": colour("series", &parts),
            "order": { "field": "rank", "type": "quantitative" },
        },
    });
    (!rows.is_empty()).then(|| Plot::new(id, title, rows, body))
}

/// Bars to the right, of [`part`]s stacked in the order in which they come; `None` without any.
pub(crate) fn bars(id: &str, title: &str, rows: Vec<Value>, x: Scale<'_>) -> Option<Plot> {
    let (bars, parts) = (names(&rows, "bar"), names(&rows, "series"));
    let rows = ranked(rows, &parts);
    let mut across = x.encoding("x", &rows);
    across["stack"] = "zero".into();
    across["axis"]["grid"] = true.into();
    let body = json!({
        "height": BAR_HEIGHT * bars.len() as u32,
        "mark": { "type": "bar", "height": { "band": 0.66 } },
        "encoding": {
            "y": { "field": "bar", "type": "nominal", "sort": bars, "title": null },
            "x": across,
            "color": colour("series", &parts),
            "order": { "field": "rank", "type": "quantitative" },
            "tooltip": [
                { "field": "bar", "title": " " },
                { "field": "series", "title": "part" },
                { "field": "x", "type": "quantitative", "format": ".4~g", "title": x.title },
            ],
        },
    });
    (!rows.is_empty()).then(|| Plot::new(id, title, rows, body))
}

/// The title of an axis, in lines that fit beside a plot and below a narrow one.
fn axis_title(title: &str) -> Value {
    match in_lines(title, AXIS_MAX) {
        Value::Array(lines) if lines.len() == 1 => title.into(),
        lines => lines,
    }
}

/// Text in lines of at most so many letters, broken between words.
fn in_lines(text: &str, letters: usize) -> Value {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    json!(lines)
}

/// A letters-digits-and-dashes form of any text.
pub(crate) fn slug(text: &str) -> String {
    let dashed: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    dashed.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names keep the order in which they come, and a legend is never wider than its plot.
    #[test]
    fn legends_are_in_order_and_fit() {
        let rows = ["b", "a", "b"].map(|name| point(0.0, 0.0, name));
        assert_eq!(names(&rows, "series"), ["b", "a"]);
        let long = vec!["x".repeat(60), "y".to_owned()];
        assert_eq!(legend_columns(&long), 1);
        assert_eq!(legend_columns(&["read".to_owned(), "write".to_owned()]), 2);
        assert_eq!(colour("series", &["one".to_owned()])["legend"], Value::Null);
    }

    /// A meaning has its colour whatever else is drawn, and what has no meaning takes the colours in order.
    #[test]
    fn colours_have_meanings() {
        let of = |names: &[&str], name: &str| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let domain = colour("series", &names)["scale"]["domain"].clone();
            domain.as_array().unwrap().iter().position(|other| other == name).unwrap()
        };
        assert_eq!(of(&["GC copies"], "GC copies"), of(&["user data", "GC copies"], "GC copies"));
        assert_eq!(of(&["padding", "metadata"], "padding"), 4);
        assert_eq!((of(&["Read", "Write"], "Write"), of(&["user data"], "user data")), (0, 0));
        assert_eq!((of(&["pblk", "Write"], "pblk"), of(&["pblk", "Write"], "Write")), (0, 1));
    }

    /// Ticks are round, and enclose what is drawn.
    #[test]
    fn log_ticks_are_round() {
        let ticks = |numbers: &[f64]| log_ticks(numbers.iter().copied());
        assert_eq!(ticks(&[1.3, 4.0]), [1.0, 2.0, 5.0]);
        assert_eq!(ticks(&[3.0, 6.0]), [2.0, 5.0, 10.0]);
        assert_eq!(ticks(&[0.3, 60.0]), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(ticks(&[0.005, 90.0]), [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]);
        assert_eq!(ticks(&[10.0]), [10.0, 20.0]);
        assert_eq!(ticks(&[0.0]), [1.0, 10.0]);
    }

    /// A long title is broken between its words, in every plot.
    #[test]
    fn titles_are_broken() {
        assert_eq!(in_lines("one two three", 8), json!(["one two", "three"]));
        assert_eq!(in_lines("incomprehensible", 4), json!(["incomprehensible"]));
        let plot =
            Plot::new("id", "Write latency: 99th percentile, victim greedy", vec![], json!({}));
        assert_eq!(plot.spec["title"], json!(["Write latency: 99th percentile,", "victim greedy"]));
    }

    #[test]
    fn slugs_are_plain() {
        assert_eq!(slug("write.clat_ns.p99.9 (µs)"), "write-clat-ns-p99-9-s");
    }
}
