//! The table of a sweep: one line per point of the grid, one column per metric, each a mean over the
//! seeds with its 95 % confidence interval.

mod forms;
mod layout;

pub(crate) use forms::Frame;
pub(crate) use layout::{lay_out, markdown};

use crate::output::Failure;
use crate::paint::Paint;
use crate::rows::Rows;
use anyhow::anyhow;
use nandscape_lab::sweep::{FinishedRow, Named, Report, Sweep};
use nandscape_report::{
    Cautions, Column, Figure, FigureError, Line, Point, axes, distinctions, plain,
};
use nandscape_rt::words::counted;

/// Warnings below a table at most.
const WARNINGS_MAX: usize = 12;

/// A sweep's figures.
pub(crate) struct Table {
    title: String,
    /// What tells the points apart: a header, and an entry for each point.
    labels: Vec<(String, Vec<String>)>,
    /// The figures asked for, in order.
    columns: Vec<Column>,
    /// What they are set against.
    lines: Vec<Line>,
    /// The device of each point, and whether it is shown even if all are alike.
    devices: Vec<String>,
    with_devices: bool,
    /// What to be careful about.
    cautions: Cautions,
    /// Runs whose jobs failed.
    failed: usize,
    /// Runs that were not at steady state.
    unsteady: usize,
    /// Runs with a row, and all of them.
    finished: (usize, usize),
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
            devices: sweep.cases.iter().map(|case| case.stack.device_label()).collect(),
            with_devices: false,
            cautions: Cautions::default(),
            failed: 0,
            unsteady: 0,
            finished: (0, sweep.runs()),
        })
    }

    /// With the device of each point, also if all are alike.
    pub(crate) fn with_devices(mut self) -> Self {
        self.with_devices = true;
        self
    }

    /// The warnings below the table.
    fn warnings(&self, paint: Paint) -> String {
        let all = self.cautions.list();
        let (first, more) = all.split_at(all.len().min(WARNINGS_MAX));
        let line = |text: &String| paint.wrapped("  warning: ", text) + "\n";
        let more = match more.len() {
            0 => String::new(),
            n => format!("  and {n} more, which --report and --output-format json have\n"),
        };
        first.iter().map(line).collect::<String>() + &more
    }

    /// That runs are missing, if they are.
    fn partial(&self) -> Option<String> {
        let (finished, runs) = self.finished;
        (finished < runs).then(|| format!("partial: {finished} of {runs} runs"))
    }

    /// Takes in the rows of the finished sweep.
    pub(crate) fn fill(&mut self, sweep: &Sweep, ids: &[String], rows: &Rows) {
        let cases = sweep.cases.iter();
        let points: Vec<Point> =
            cases.map(|case| Point::new(&case.stack_name, &case.job.name, &case.keys)).collect();
        let names = distinctions(&points);
        for (run, id) in ids.iter().enumerate() {
            let Some(row) = rows.get(id).and_then(FinishedRow::parse) else { continue };
            let (_, seed) = sweep.at(run);
            self.finished.0 += 1;
            let at = run / sweep.seeds.len();
            self.columns.iter_mut().for_each(|column| column.add(at, seed, &row.result));
            self.cautions.add(&points[at], &names[at], seed, &row.result);
            self.failed += usize::from(row.failed());
            self.unsteady += usize::from(row.result["nandscape"]["steady"] == false);
        }
        if self.with_devices || self.cautions.devices_differ() {
            self.labels.push(("device".to_owned(), self.devices.clone()));
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

fn title(sweep: &Sweep) -> String {
    let points = counted(sweep.cases.len() as u64, ["configuration", "configurations"]);
    match sweep.seeds.as_slice() {
        [seed] => format!("{}: {points}, seed {seed}", sweep.name),
        [_, _] => format!("{}: {points} x 2 seeds; means with their range", sweep.name),
        seeds => {
            format!("{}: {points} x {} seeds; mean ± 95 % CI", sweep.name, seeds.len())
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
        let figure = named.text.parse().and_then(|figure: Figure| figure.check().map(|()| figure));
        let column = figure.and_then(|figure| Column::new(figure, points));
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
