//! Charts: one figure of a grid in a form that the reader chose, beside what others published of it.
//! Groups of bars, lines along an axis, or distributions of latency; a chart for each combination of
//! what is neither across nor shown by colour.

use crate::column::Column;
use crate::plot::{Plot, Scale, ScaleKind, colour, slug};
use crate::plots::{
    bar_range, bars, cdf, cdf_points, course, course_name, courses, marks as along, named,
    request_name, strokes, title, tooltip, upright, with_ends,
};
use crate::point::{Axis, Point, axes, each_once, in_words, label};
use serde_json::{Value, json};

/// Charts that one figure may become; a reader of more wants a table.
const FACETS_MAX: usize = 8;

/// How a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Groups of bars.
    Bars,
    /// Lines along an axis.
    Lines,
}

/// What is drawn of which points.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart<'a> {
    /// Its name: letters, digits and `-`.
    pub id: &'a str,
    /// What stands above it.
    pub title: &'a str,
    /// The axis that lies across.
    pub x: Option<&'a str>,
    /// The axis that colours show.
    pub colour: Option<&'a str>,
    /// The points that are drawn, by their place among all.
    pub drawn: Vec<usize>,
    /// All points.
    pub points: &'a [Point],
}

/// A published value, drawn at the points that it is of.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// The points, by their place among all.
    pub points: Vec<usize>,
    /// The value, as results count.
    pub value: f64,
    /// What it is.
    pub label: String,
}

/// A part of a chart's points that is drawn by itself.
struct Facet {
    name: String,
    /// By their place among all points.
    points: Vec<usize>,
}

impl Chart<'_> {
    /// The place of a point: a number or a name.
    fn across(&self, point: usize) -> Value {
        let Some(axis) = self.x else { return Value::Null };
        let value = self.points[point].at(axis);
        if value.is_number() { value.clone() } else { self.label(axis, point).into() }
    }

    fn label(&self, axis: &str, point: usize) -> String {
        label(self.points, axis, &self.points[point])
    }

    fn series(&self, point: usize) -> String {
        self.colour.map_or_else(String::new, |axis| self.label(axis, point))
    }

    /// The points by what is neither across nor shown by colour.
    fn facets(&self) -> Vec<Facet> {
        let drawn: Vec<Point> = self.drawn.iter().map(|at| self.points[*at].clone()).collect();
        let others: Vec<Axis> = axes(&drawn)
            .into_iter()
            .filter(|axis| [self.x, self.colour].iter().all(|used| *used != Some(&axis.name)))
            .collect();
        let mut facets: Vec<Facet> = Vec::new();
        for at in &self.drawn {
            let part = |axis: &Axis| in_words(&axis.name, &self.label(&axis.name, *at));
            let name = others.iter().map(part).collect::<Vec<_>>().join(", ");
            match facets.iter_mut().find(|facet| facet.name == name) {
                Some(facet) => facet.points.push(*at),
                None => facets.push(Facet { name, points: vec![*at] }),
            }
        }
        facets.truncate(FACETS_MAX);
        facets
    }

    fn id(&self, facet: &Facet) -> String {
        slug(&format!("{} {}", self.id, facet.name))
    }

    fn name(&self, facet: &Facet) -> String {
        [self.title, &facet.name]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The figure of `column` in this shape, with what was published of it.
    #[must_use]
    pub fn plots(&self, shape: Shape, column: &Column, marks: &[Mark]) -> Vec<Plot> {
        let means = |at: &usize| column.mean(*at).map(|mean| mean.mean.abs());
        let published = marks.iter().map(|mark| mark.value.abs());
        let largest = self.drawn.iter().filter_map(means).chain(published).fold(0.0, f64::max);
        let (_, axis, scale) = title(column.figure(), largest);
        let repeated = self.drawn.iter().any(|at| column.count(*at) > 1);
        let draw = |facet: Facet| {
            let row = |at: &usize| {
                let mean = column.mean(*at)?.in_units_of(scale);
                let row = json!({ "x": self.across(*at), "series": self.series(*at) });
                Some(with_ends(&mean, row))
            };
            let rows: Vec<Value> = facet.points.iter().filter_map(row).collect();
            let names = names(&rows);
            let published = self.published(&facet, marks, &names, scale);
            if rows.is_empty() {
                return None;
            }
            let body = match shape {
                Shape::Bars => {
                    let range = bar_range(&rows, &published);
                    bars(&axis, &rows, &names, published, range)
                }
                Shape::Lines => lines(self.x, &axis, &rows, &names, published),
            };
            let plot = Plot::new(&self.id(&facet), &self.name(&facet), rows, body);
            Some(plot.captioned(&self.caption(column, repeated, marks)))
        };
        self.facets().into_iter().filter_map(draw).collect()
    }

    /// A row for each place where a published value is drawn.
    fn published(&self, facet: &Facet, marks: &[Mark], names: &[String], scale: f64) -> Vec<Value> {
        let mut rows = Vec::new();
        for mark in marks {
            for at in &facet.points {
                let (x, series) = (self.across(*at), self.series(*at));
                if names.contains(&series) && mark.points.contains(at) {
                    let value = mark.value / scale;
                    rows.push(json!({ "x": x, "series": series, "published": value, "label": mark.label }));
                }
            }
        }
        rows
    }

    fn caption(&self, column: &Column, repeated: bool, marks: &[Mark]) -> String {
        let mut caption = format!("{}", column.figure());
        if let Some(x) = self.x {
            caption.push_str(&format!(" by {x}"));
        }
        if let Some(colour) = self.colour {
            caption.push_str(&format!(", coloured by {colour}"));
        }
        if repeated {
            caption.push_str("; thin lines are 95 % confidence intervals over the seeds (the range of two seeds)");
        }
        caption.push('.');
        if !marks.is_empty() {
            caption.push_str(" Dark strokes: what the paper states.");
        }
        caption
    }

    /// Distributions of the latency of `kind`, from the result of each point.
    #[must_use]
    pub fn distributions(&self, kind: &str, results: &[Option<&Value>]) -> Vec<Plot> {
        let line = |result: &Value, name: &str| cdf_points(result, kind, name);
        let what = format!("Distribution of {} latency", request_name(kind));
        let plot = |facet: &Facet, rows| cdf(&self.id(facet), &self.name(facet), rows);
        self.one_line_each(results, &what, line, plot)
    }

    /// A number of the series over time, one of [`COURSES`](crate::COURSES), from the result of each point, with what
    /// was published of it as dashed lines.
    #[must_use]
    pub fn courses(&self, key: &str, results: &[Option<&Value>], marks: &[Mark]) -> Vec<Plot> {
        let line = |result: &Value, name: &str| course(&result["nandscape"], key, name);
        let plot = |facet: &Facet, rows| {
            let levels = self.levels(facet, marks);
            courses(&self.id(facet), &self.name(facet), key, rows, levels)
        };
        let dashed = if marks.is_empty() { "" } else { " Dashed: what the paper states." };
        let plots =
            self.one_line_each(results, &format!("{} over time", course_name(key)), line, plot);
        let captioned = |plot: Plot| {
            let caption = format!("{}{dashed}", plot.caption);
            plot.captioned(&caption)
        };
        plots.into_iter().map(captioned).collect()
    }

    /// A level for each published value of each line.
    fn levels(&self, facet: &Facet, marks: &[Mark]) -> Vec<Value> {
        let level = |at: &usize, mark: &Mark| {
            let series = self.line_name(*at);
            mark.points
                .contains(at)
                .then(|| json!({ "y": mark.value, "series": series, "label": mark.label }))
        };
        facet.points.iter().flat_map(|at| marks.iter().filter_map(|mark| level(at, mark))).collect()
    }

    /// What a point's line is called.
    fn line_name(&self, at: usize) -> String {
        let x = self.x.map(|axis| self.label(axis, at));
        let parts = [Some(self.series(at)), x].into_iter().flatten();
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Plots with a line for each point, of its result.
    fn one_line_each(
        &self,
        results: &[Option<&Value>],
        what: &str,
        line: impl Fn(&Value, &str) -> Vec<Value>,
        plot: impl Fn(&Facet, Vec<Value>) -> Option<Plot>,
    ) -> Vec<Plot> {
        let draw = |facet: Facet| {
            let rows = facet.points.iter().flat_map(|at| {
                let result = results.get(*at).copied().flatten();
                result.map(|result| line(result, &self.line_name(*at))).unwrap_or_default()
            });
            let plot = plot(&facet, rows.collect())?;
            let colour =
                self.colour.map_or_else(String::new, |axis| format!(", coloured by {axis}"));
            Some(plot.captioned(&format!("{what}{colour}, of the first seed.")))
        };
        self.facets().into_iter().filter_map(draw).collect()
    }
}

fn names(rows: &[Value]) -> Vec<String> {
    let names = each_once(rows.iter().filter_map(|row| row["series"].as_str()));
    names.into_iter().map(str::to_owned).collect()
}

/// Lines as sweeps have them, and strokes where something was published.
fn lines(
    x: Option<&str>,
    axis: &str,
    rows: &[Value],
    names: &[String],
    published: Vec<Value>,
) -> Value {
    let numeric = rows.iter().all(|row| row["x"].is_number());
    let y = upright(axis, ScaleKind::Free, rows);
    let name = format!("{} (value)", x.unwrap_or_default());
    let across = match numeric {
        true => Scale::new(&name, ScaleKind::Free).encoding("x", rows),
        false => named(rows),
    };
    let tooltip = tooltip(axis, &[("series", "series"), ("x", x.unwrap_or_default())]);
    let colour = colour("series", names);
    let mut layers = along(numeric, &y("mean"), &colour, &tooltip);
    let mark = json!({ "type": "point", "shape": "stroke", "size": 260, "style": "published" });
    layers.extend(strokes(published, mark, json!({ "y": y("published") }), axis));
    json!({ "encoding": { "x": across, "color": colour }, "layer": layers })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chart for each job, bars by stack, and a stroke at the point that something was published of.
    #[test]
    fn charts_have_facets_and_strokes() {
        let point = |stack: &str, job: &str| Point::new(stack, job, &[]);
        let points = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")].map(|(s, j)| point(s, j));
        let mut column = Column::new("waf.gc / stack=a".parse().unwrap(), &points).unwrap();
        for (at, waf) in [2.0, 1.0, 4.0, 1.0].into_iter().enumerate() {
            column.add(at, 1, &json!({ "nandscape": { "waf": { "gc": waf } } }));
        }
        let chart = Chart {
            id: "one",
            title: "One",
            x: Some("stack"),
            colour: None,
            drawn: (0..points.len()).collect(),
            points: &points,
        };
        let mark = Mark { points: vec![3], value: 0.3, label: "stated".to_owned() };
        let plots = chart.plots(Shape::Bars, &column, &[mark]);
        assert_eq!(
            plots.iter().map(|plot| plot.id.as_str()).collect::<Vec<_>>(),
            ["one-x", "one-y"]
        );
        assert_eq!(plots[0].spec["data"]["values"][1]["mean"], 0.5);
        assert_eq!(plots[1].spec["data"]["values"][1]["mean"], 0.25);
        let layers = |plot: &Plot| plot.spec["layer"].as_array().unwrap().clone();
        assert_eq!(layers(&plots[0]).len(), 3, "nothing was published of x");
        let stroke = &layers(&plots[1])[3]["data"]["values"];
        assert_eq!(
            stroke,
            &json!([{ "x": "b", "series": "", "published": 0.3, "label": "stated" }])
        );
    }

    /// A published value of a number over time is a dashed line in the colour of its points, in the unit of the plot.
    #[test]
    fn published_values_are_levels_of_courses() {
        let points = ["a", "b"].map(|stack| Point::new(stack, "x", &[]));
        let result = |bytes: f64| {
            let at = |t_s: f64| json!({ "t_s": t_s, "write": { "bytes_per_s": bytes } });
            json!({ "nandscape": { "series": [at(1.0), at(2.0)] } })
        };
        let results = [result(f64::from(2 << 20)), result(f64::from(4 << 20))];
        let chart = Chart {
            id: "one",
            title: "One",
            x: None,
            colour: Some("stack"),
            drawn: vec![0, 1],
            points: &points,
        };
        let mark = Mark { points: vec![1], value: f64::from(8 << 20), label: "stated".to_owned() };
        let results: Vec<Option<&Value>> = results.iter().map(Some).collect();
        let spec =
            |marks: &[Mark]| chart.courses("write.bytes_per_s", &results, marks)[0].spec.clone();
        let levels = &spec(&[mark])["layer"][1]["data"]["values"];
        assert_eq!(levels, &json!([{ "y": 8.0, "series": "b", "label": "stated" }]));
        assert_eq!(spec(&[])["layer"], Value::Null);
    }
}
