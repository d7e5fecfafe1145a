//! The plots of a paper: its figures in its own forms with what it states drawn in them, what its open
//! assumptions do, and its extension.

use crate::answers::Answers;
use crate::model::{Assumption, Extension, Figure, Filter, Form, Measured, PlotSpec, Statement};
use crate::reproduction::Reproduction;
use nandscape_report::{Chart, Figure as Metric, Mark, Plot, Point, Shape, axes, describe};

/// The axis that tells alternatives apart beside their own.
const COLOUR: &str = "stack";

/// The plots of a figure.
pub(super) fn of_figure(one: &Reproduction, figure: &Figure) -> Vec<Plot> {
    let answers = &one.answers[figure.experiment];
    let title = format!("Figure {}: {}", figure.id, figure.title);
    let chart = Chart {
        id: &format!("{} figure {}", one.paper.id, figure.id),
        title: &title,
        x: figure.x.as_deref(),
        colour: figure.color.as_deref(),
        drawn: figure.filter.of(answers.points()),
        points: answers.points(),
    };
    let firsts = || answers.firsts().map(|(_, result)| result).collect::<Vec<_>>();
    match &figure.metric {
        PlotSpec::Latency(kind) => chart.distributions(kind, &firsts()),
        PlotSpec::Course(key) => {
            let marks = marks(one, figure, |metric| is_mean_of(metric, key));
            chart.courses(key, &firsts(), &marks)
        }
        PlotSpec::Figure(metric) => {
            let marks = marks(one, figure, |other| other == metric);
            plots(&chart, figure.form, answers, metric, &marks)
        }
    }
}

fn plots(
    chart: &Chart<'_>,
    form: Form,
    answers: &Answers,
    metric: &Metric,
    marks: &[Mark],
) -> Vec<Plot> {
    let shape = if form == Form::Lines { Shape::Lines } else { Shape::Bars };
    answers.column(metric).map(|column| chart.plots(shape, &column, marks)).unwrap_or_default()
}

/// Whether this is the number of a whole run whose course is called `key`: `iops` and `write.iops` of `iops`.
fn is_mean_of(metric: &Metric, key: &str) -> bool {
    let text = metric.to_string();
    text.strip_suffix(key).is_some_and(|kind| matches!(kind, "" | "read." | "write."))
}

/// What the paper states of a figure, as far as that is what the figure shows.
fn marks(one: &Reproduction, figure: &Figure, shown: impl Fn(&Metric) -> bool) -> Vec<Mark> {
    let at = one.paper.figures.iter().position(|other| other.id == figure.id);
    let of_figure = one.paper.statements.iter().filter(|statement| statement.figure == at);
    of_figure.flat_map(|statement| marks_of(one, figure, &shown, statement)).collect()
}

fn marks_of(
    one: &Reproduction,
    figure: &Figure,
    shown: &impl Fn(&Metric) -> bool,
    statement: &Statement,
) -> Vec<Mark> {
    let Measured::As(measure) = &statement.measured else { return Vec::new() };
    if measure.experiment != figure.experiment || !shown(&measure.metric) {
        return Vec::new();
    }
    let points = measure.filter.of(one.answers[figure.experiment].points());
    let mark = |value| Mark {
        points: points.clone(),
        value,
        label: format!("{}: {}", statement.id, statement.text),
    };
    statement.numbers().into_iter().map(mark).collect()
}

/// What an assumption does: each of its figures along the alternatives, in a colour a stack.
pub(super) fn of_assumption(one: &Reproduction, assumption: &Assumption) -> Vec<Plot> {
    let answers = &one.answers[assumption.experiment];
    let points = answers.points();
    let differs = assumption.axis != COLOUR && axes(points).iter().any(|axis| axis.name == COLOUR);
    let plot = |(at, metric): (usize, &Metric)| {
        let id = format!("{} assumption {} {at}", one.paper.id, assumption.id);
        let title = describe(metric);
        let chart = Chart {
            id: &id,
            title: &title,
            x: Some(&assumption.axis),
            colour: differs.then_some(COLOUR),
            drawn: Filter::default().of(points),
            points,
        };
        plots(&chart, Form::Bars, answers, metric, &[])
    };
    assumption.metric.iter().enumerate().flat_map(plot).collect()
}

/// Extensions: a plot for each figure.
pub(super) fn of_extension(one: &Reproduction, extension: &Extension) -> Vec<Plot> {
    let answers = &one.answers[extension.experiment];
    let points: &[Point] = answers.points();
    let first = axes(points).into_iter().next().map(|axis| axis.name);
    let x = extension.x.clone().or(first);
    let plot = |(at, metric): (usize, &Metric)| {
        let id = format!("{} extension {} {at}", one.paper.id, extension.id);
        let title = describe(metric);
        let chart = Chart {
            id: &id,
            title: &title,
            x: x.as_deref(),
            colour: extension.color.as_deref(),
            drawn: extension.filter.of(points),
            points,
        };
        plots(&chart, extension.form, answers, metric, &[])
    };
    extension.metric.iter().enumerate().flat_map(plot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only means of a whole run are lines in the figure of a number over time.
    #[test]
    fn means_of_whole_runs_belong_to_a_course() {
        let of = |text: &str, key| is_mean_of(&text.parse().unwrap(), key);
        assert!(of("iops", "iops") && of("write.iops", "iops") && of("read.iops", "iops"));
        assert!(!of("second_half.iops", "iops"), "a part of the run");
        assert!(!of("write.iops / stack=a", "iops"), "a ratio");
        assert!(!of("write.iops", "waf"), "another number");
    }
}
