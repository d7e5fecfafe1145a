//! The plots of a paper: its figures in its own forms with what it states drawn in them, what its open
//! choices do, and what lies beyond it.

use crate::answers::Answers;
use crate::model::{Beyond, Choice, Figure, Filter, Form, Measured, Shown, Statement};
use crate::reproduction::Reproduction;
use nandscape_report::{Chart, Figure as Asked, Mark, Plot, Point, Shape, axes, describe};

/// The axis that tells alternatives apart beside their own.
const COLOUR: &str = "stack";

/// The plots of a figure.
pub(super) fn of_figure(one: &Reproduction, figure: &Figure) -> Vec<Plot> {
    let answers = &one.answers[figure.question];
    let title = format!("Figure {}: {}", figure.id, figure.title);
    let chart = Chart {
        id: &format!("{} figure {}", one.paper.id, figure.id),
        title: &title,
        x: figure.x.as_deref(),
        colour: figure.color.as_deref(),
        drawn: figure.filter.of(answers.points()),
        points: answers.points(),
    };
    match &figure.shows {
        Shown::Latency(kind) => {
            let firsts: Vec<_> = answers.firsts().map(|(_, result)| result).collect();
            chart.distributions(kind, &firsts)
        }
        Shown::Figure(shows) => {
            plots(&chart, figure.form, answers, shows, &marks(one, figure, shows))
        }
    }
}

fn plots(
    chart: &Chart<'_>,
    form: Form,
    answers: &Answers,
    shows: &Asked,
    marks: &[Mark],
) -> Vec<Plot> {
    let shape = if form == Form::Lines { Shape::Lines } else { Shape::Bars };
    answers.column(shows).map(|column| chart.plots(shape, &column, marks)).unwrap_or_default()
}

/// What the paper states of a figure, as far as that is what the figure shows.
fn marks(one: &Reproduction, figure: &Figure, shows: &Asked) -> Vec<Mark> {
    let at = one.paper.figures.iter().position(|other| other.id == figure.id);
    let of_figure = one.paper.statements.iter().filter(|statement| statement.figure == at);
    of_figure.flat_map(|statement| marks_of(one, figure, shows, statement)).collect()
}

fn marks_of(
    one: &Reproduction,
    figure: &Figure,
    shows: &Asked,
    statement: &Statement,
) -> Vec<Mark> {
    let Measured::As(measure) = &statement.measured else { return Vec::new() };
    if measure.question != figure.question || measure.shows != *shows {
        return Vec::new();
    }
    let points = measure.filter.of(one.answers[figure.question].points());
    let mark = |value| Mark {
        points: points.clone(),
        value,
        label: format!("{}: {}", statement.id, statement.says),
    };
    statement.numbers().into_iter().map(mark).collect()
}

/// What a choice does: each of its figures along the alternatives, in a colour a stack.
pub(super) fn of_choice(one: &Reproduction, choice: &Choice) -> Vec<Plot> {
    let answers = &one.answers[choice.question];
    let points = answers.points();
    let differs = choice.axis != COLOUR && axes(points).iter().any(|axis| axis.name == COLOUR);
    let plot = |(at, shows): (usize, &Asked)| {
        let id = format!("{} choice {} {at}", one.paper.id, choice.id);
        let title = describe(shows);
        let chart = Chart {
            id: &id,
            title: &title,
            x: Some(&choice.axis),
            colour: differs.then_some(COLOUR),
            drawn: Filter::default().of(points),
            points,
        };
        plots(&chart, Form::Bars, answers, shows, &[])
    };
    choice.shows.iter().enumerate().flat_map(plot).collect()
}

/// What lies beyond: a plot for each figure.
pub(super) fn of_beyond(one: &Reproduction, beyond: &Beyond) -> Vec<Plot> {
    let answers = &one.answers[beyond.question];
    let points: &[Point] = answers.points();
    let first = axes(points).into_iter().next().map(|axis| axis.name);
    let x = beyond.x.clone().or(first);
    let plot = |(at, shows): (usize, &Asked)| {
        let id = format!("{} beyond {} {at}", one.paper.id, beyond.id);
        let title = describe(shows);
        let chart = Chart {
            id: &id,
            title: &title,
            x: x.as_deref(),
            colour: beyond.color.as_deref(),
            drawn: beyond.filter.of(points),
            points,
        };
        plots(&chart, beyond.form, answers, shows, &[])
    };
    beyond.shows.iter().enumerate().flat_map(plot).collect()
}
