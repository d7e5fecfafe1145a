//! The table of a sweep: one line a point of the grid, one column a figure, each a mean over the
//! seeds with its 95 % confidence.

use crate::command::COMMIT;
use crate::output::Failure;
use crate::paint::{Paint, Tone};
use crate::rows::Rows;
use anyhow::anyhow;
use nandscape_lab::run::VERSION;
use nandscape_lab::sweep::{FinishedRow, Named, Report, Sweep};
use nandscape_report::{Column, Figure, FigureError, Line, Mean, Point, axes, plain};
use nandscape_rt::words::counted;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A sweep's figures.
pub(crate) struct Table {
    title: String,
    /// What tells the points apart: a header, and an entry for each point.
    labels: Vec<(String, Vec<String>)>,
    /// The figures asked for, in order.
    columns: Vec<Column>,
    /// What they are set against.
    lines: Vec<Line>,
    /// Keys of the device in which the points differ.
    differences: Vec<String>,
    /// Runs whose jobs failed.
    failed: usize,
    /// Runs that had not settled.
    pub(crate) unsteady: usize,
}

impl Table {
    /// Of a sweep whose rows are to come. Says what is wrong with its figures before anything runs.
    pub(crate) fn new(sweep: &Sweep) -> Result<Self, Failure> {
        let cases = sweep.cases.iter();
        let points: Vec<Point> =
            cases.map(|case| Point::new(&case.stack_name, &case.job.name, &case.keys)).collect();
        let columns = columns(&sweep.report, &points)?;
        Ok(Self {
            title: title(sweep),
            labels: labels(&points),
            lines: lines(sweep, &columns)?,
            columns,
            differences: Vec::new(),
            failed: 0,
            unsteady: 0,
        })
    }

    /// With the device of each point, and the keys in which these differ.
    pub(crate) fn with_devices(mut self, sweep: &Sweep) -> Self {
        let devices = sweep.cases.iter().map(|case| case.stack.device_label()).collect();
        self.labels.push(("device".to_owned(), devices));
        self.differences = sweep.device_differences();
        self
    }

    /// What a reader should know before the figures are set beside each other.
    pub(crate) fn warning(&self) -> String {
        if self.differences.is_empty() {
            return String::new();
        }
        let keys = self.differences.join(", ");
        format!(
            "  warning: the stacks differ in their devices ({keys}), so the figures are not of the FTLs alone; \
             --device STACK puts all of them on one\n"
        )
    }

    /// Takes in the rows of the finished sweep.
    pub(crate) fn fill(&mut self, sweep: &Sweep, ids: &[String], rows: &Rows) {
        for (run, id) in ids.iter().enumerate() {
            let Some(row) = rows.get(id).and_then(FinishedRow::parse) else { continue };
            let (_, seed) = sweep.at(run);
            for column in &mut self.columns {
                column.add(run / sweep.seeds.len(), seed, &row.result);
            }
            self.failed += usize::from(row.failed());
            self.unsteady += usize::from(row.result["nandscape"]["steady"] == false);
        }
        if sweep.report == Report::Usual {
            self.columns.retain(Column::is_informative);
        }
    }

    /// Its figures.
    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> {
        self.columns.iter().map(|column| column.figure().clone())
    }

    /// What they are set against.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lines.clone()
    }

    /// To read; `with_ratios` sets each figure beside that of the first line.
    pub(crate) fn text(&self, with_ratios: bool, paint: Paint) -> String {
        let labels = self.labels.iter().map(|(header, cells)| (header.clone(), cells.clone()));
        let figures = self.columns.iter().map(|column| cells(column, with_ratios));
        let columns: Vec<_> = labels.chain(figures).collect();
        let mut text = format!("{}\n\n", paint.paint(Tone::Heading, &self.title));
        for (at, line) in lay_out(&columns, self.labels.len()).iter().enumerate() {
            let line = line.trim_end();
            let headers = || paint.paint(Tone::Faint, line);
            text.push_str(&if at == 0 { headers() } else { line.to_owned() });
            text.push('\n');
        }
        if !self.lines.is_empty() {
            text.push('\n');
        }
        text + &self.lines.iter().map(|line| format!("  line: {line}\n")).collect::<String>()
    }

    /// The same as JSON: what tells the points apart, and for each figure its mean, half the width of
    /// its 95 % confidence interval and the number of results behind it.
    pub(crate) fn json(&self, sweep: &Sweep) -> Value {
        let points = sweep.cases.iter().enumerate().map(|(at, case)| {
            let figures = self.columns.iter();
            let figures = figures.map(|column| (column.figure().to_string(), entry(column, at)));
            json!({
                "stack": case.stack_name,
                "job": case.job.name,
                "keys": case.keys.iter().cloned().collect::<Map<_, _>>(),
                "device": case.stack.device_label(),
                "figures": figures.collect::<Map<_, _>>(),
            })
        });
        json!({
            "name": sweep.name,
            "version": VERSION,
            "commit": COMMIT,
            "seeds": sweep.seeds,
            "device_differences": self.differences,
            "failed_runs": self.failed,
            "unsteady_runs": self.unsteady,
            "lines": self.lines.iter().map(line_entry).collect::<Vec<_>>(),
            "points": points.collect::<Vec<_>>(),
        })
    }

    /// What is wrong with a sweep although it came to its end.
    pub(crate) fn verdict(&self, sweep: &Sweep) -> Result<(), Failure> {
        let unknown_paths = self.columns.iter().map(Column::unknown_path);
        let unknown_path = unknown_paths
            .zip(chosen(&sweep.report))
            .find_map(|(unknown_path, named)| Some((unknown_path?, named)));
        if let Some((unknown_path, named)) = unknown_path {
            return Err(Failure::input(named.error(unknown_path)));
        }
        match self.failed {
            0 => Ok(()),
            n => Err(Failure::run(anyhow!("jobs failed in {n} of {} runs", sweep.runs()))),
        }
    }
}

/// Lines under their headers; the first `left` columns are set to the left, the others to the right.
pub(crate) fn lay_out(columns: &[(String, Vec<String>)], left: usize) -> Vec<String> {
    let mut lines = vec![String::new(); columns.first().map_or(0, |(_, cells)| cells.len() + 1)];
    for (at, (header, cells)) in columns.iter().enumerate() {
        let all = || std::iter::once(header).chain(cells);
        let width = all().map(|cell| cell.chars().count()).max().unwrap_or(0);
        for (line, cell) in lines.iter_mut().zip(all()) {
            // Writing to a string cannot fail.
            let _ = match at < left {
                true => write!(line, "  {cell:<width$}"),
                false => write!(line, "  {cell:>width$}"),
            };
        }
    }
    lines
}

fn title(sweep: &Sweep) -> String {
    let points = counted(sweep.cases.len() as u64, ["point", "points"]);
    match sweep.seeds.as_slice() {
        [seed] => format!("{}: {points}, seed {seed}", sweep.name),
        [_, _] => format!("{}: {points} x 2 seeds; means with their range", sweep.name),
        seeds => {
            format!("{}: {points} x {} seeds; means with 95 % confidence", sweep.name, seeds.len())
        }
    }
}

/// What differs between points; the stack if nothing does.
fn labels(points: &[Point]) -> Vec<(String, Vec<String>)> {
    let axes = axes(points);
    let names = axes.iter().map(|axis| axis.name.as_str());
    let only_stack = axes.is_empty().then_some("stack");
    let cells = |name: &str| points.iter().map(|point| plain(point.at(name))).collect();
    names.chain(only_stack).map(|name| (name.to_owned(), cells(name))).collect()
}

fn chosen(report: &Report) -> &[Named] {
    match report {
        Report::Usual => &[],
        Report::Chosen(chosen) => chosen,
    }
}

fn columns(report: &Report, points: &[Point]) -> Result<Vec<Column>, Failure> {
    if *report == Report::Usual {
        return Ok(Column::usual(points.len()));
    }
    let column = |named: &Named| {
        let column = named.text.parse().and_then(|figure| Column::new(figure, points));
        column.map_err(|why| Failure::input(named.error(why)))
    };
    chosen(report).iter().map(column).collect()
}

/// Lines of figures that are reported.
fn lines(sweep: &Sweep, columns: &[Column]) -> Result<Vec<Line>, Failure> {
    let is_column = |figure: &Figure| columns.iter().any(|column| column.figure() == figure);
    let line = |line: &nandscape_lab::sweep::Line| {
        let error = |why: String| Failure::input(line.figure.error(why));
        let figure: Figure =
            line.figure.text.parse().map_err(|why: FigureError| error(why.to_string()))?;
        if !is_column(&figure) {
            return Err(error(format!("\"{figure}\" is not among the figures of the report")));
        }
        Ok(Line { figure, value: line.value, label: line.label.clone() })
    };
    sweep.lines.iter().map(line).collect()
}

fn entry(column: &Column, at: usize) -> Value {
    let mean = column.mean(at);
    json!({
        "mean": mean.map(|mean| mean.mean),
        "ci95": mean.and_then(|mean| mean.half_width),
        "n": column.count(at),
    })
}

fn line_entry(line: &Line) -> Value {
    json!({ "figure": line.figure.to_string(), "value": line.value, "label": line.label })
}

/// A column's header and cells; `with_ratios` sets each figure beside that of the first line.
fn cells(column: &Column, with_ratios: bool) -> (String, Vec<String>) {
    let figure = column.figure();
    let compared = with_ratios && !figure.is_relative();
    let first = column.mean(0).map(|mean| mean.mean).filter(|first| *first != 0.0 && compared);
    let cell = |mean: Option<Mean>| {
        let Some(mean) = mean else { return "-".to_owned() };
        let ratio = first.map(|first| format!(" (x{:.3})", mean.mean / first));
        figure.show(&mean) + &ratio.unwrap_or_default()
    };
    (figure.to_string(), column.means().map(cell).collect())
}
