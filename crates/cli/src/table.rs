//! The table of a sweep: one line a point of the grid, one column a figure, each a mean over the
//! seeds with its 95 % confidence.

use crate::output::Failure;
use crate::paint::{Paint, Tone};
use crate::rows::Rows;
use crate::run::COMMIT;
use anyhow::anyhow;
use nandscape_lab::run::VERSION;
use nandscape_lab::sweep::{Case, FinishedRow, Report, Sweep};
use nandscape_report::{Mean, USUAL, figure, show};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A sweep's figures.
pub(crate) struct Table {
    title: String,
    /// What tells the points apart: a header, and an entry for each point.
    labels: Vec<(String, Vec<String>)>,
    /// The figures asked for, in order.
    columns: Vec<Column>,
    /// Runs whose jobs failed.
    failed: usize,
    /// Runs that had not settled.
    pub(crate) unsteady: usize,
}

/// A figure of every point.
struct Column {
    path: String,
    means: Vec<Option<Mean>>,
    /// Results behind each mean.
    counts: Vec<usize>,
    /// Whether any result has anything under this path.
    known: bool,
}

impl Table {
    /// From the rows of a finished sweep.
    pub(crate) fn new(sweep: &Sweep, ids: &[String], rows: &Rows) -> Self {
        let paths = sweep.report.chosen().unwrap_or_else(|| USUAL.to_vec());
        let column = |path: &&str| Column {
            path: (*path).into(),
            means: Vec::new(),
            counts: Vec::new(),
            known: false,
        };
        let mut table = Self {
            title: title(sweep),
            labels: labels(&sweep.cases),
            columns: paths.iter().map(column).collect(),
            failed: 0,
            unsteady: 0,
        };
        for of_case in ids.chunks(sweep.seeds.len()) {
            let lines = of_case.iter().filter_map(|id| rows.get(id));
            table.add(&lines.filter_map(FinishedRow::parse).collect::<Vec<_>>());
        }
        if sweep.report == Report::Usual {
            table.columns.retain(Column::says_something);
        }
        table
    }

    /// Adds the point with these rows.
    fn add(&mut self, rows: &[FinishedRow]) {
        for column in &mut self.columns {
            let found: Vec<_> =
                rows.iter().filter_map(|row| figure(&row.result, &column.path)).collect();
            column.known |= !found.is_empty();
            let numbers: Vec<f64> = found.into_iter().flatten().collect();
            column.counts.push(numbers.len());
            column.means.push(Mean::of(&numbers));
        }
        self.failed += rows.iter().filter(|row| row.failed()).count();
        let unsteady = |row: &&FinishedRow| figure(&row.result, "steady") == Some(Some(0.0));
        self.unsteady += rows.iter().filter(unsteady).count();
    }

    /// To read; `with_ratios` sets each figure beside that of the first line.
    pub(crate) fn text(&self, with_ratios: bool, paint: Paint) -> String {
        let labels = self.labels.iter().map(|(header, cells)| (header.clone(), cells.clone()));
        let figures = self.columns.iter().map(|column| column.cells(with_ratios));
        let columns: Vec<_> = labels.chain(figures).collect();
        let mut text = format!("{}\n\n", paint.paint(Tone::Heading, &self.title));
        for (at, line) in lay_out(&columns, self.labels.len()).iter().enumerate() {
            let line = line.trim_end();
            let headers = || paint.paint(Tone::Faint, line);
            text.push_str(&if at == 0 { headers() } else { line.to_owned() });
            text.push('\n');
        }
        text
    }

    /// The same as JSON: what tells the points apart, and for each figure its mean, half the width of
    /// its 95 % confidence interval and the number of results behind it.
    pub(crate) fn json(&self, sweep: &Sweep) -> Value {
        let points = sweep.cases.iter().enumerate().map(|(at, case)| {
            let figures = self.columns.iter().map(|column| (column.path.clone(), column.entry(at)));
            json!({
                "stack": case.stack_name,
                "job": case.job.name,
                "keys": case.keys.iter().cloned().collect::<Map<_, _>>(),
                "figures": figures.collect::<Map<_, _>>(),
            })
        });
        json!({
            "name": sweep.name,
            "version": VERSION,
            "commit": COMMIT,
            "seeds": sweep.seeds,
            "failed_runs": self.failed,
            "unsteady_runs": self.unsteady,
            "points": points.collect::<Vec<_>>(),
        })
    }

    /// What is wrong with a sweep although it came to its end.
    pub(crate) fn verdict(&self, sweep: &Sweep) -> Result<(), Failure> {
        let unknown = self.columns.iter().position(|column| !column.known);
        let why = "is nowhere in the results (docs/formats/result.md)";
        if let Some(error) = unknown.and_then(|at| sweep.report.error(at, why)) {
            return Err(Failure::input(error));
        }
        match self.failed {
            0 => Ok(()),
            n => Err(Failure::run(anyhow!("jobs failed in {n} of {} runs", sweep.runs()))),
        }
    }
}

/// Lines under their headers; the first `left` columns are set to the left, the others to the right.
fn lay_out(columns: &[(String, Vec<String>)], left: usize) -> Vec<String> {
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
    let points = sweep.cases.len();
    match sweep.seeds.as_slice() {
        [seed] => format!("{}: {points} points, seed {seed}", sweep.name),
        seeds => format!(
            "{}: {points} points x {} seeds; means with 95 % confidence",
            sweep.name,
            seeds.len()
        ),
    }
}

/// What differs between points; the stack if nothing does.
fn labels(cases: &[Case]) -> Vec<(String, Vec<String>)> {
    let column = |header: &str, cell: &dyn Fn(&Case) -> String| {
        (header.to_owned(), cases.iter().map(cell).collect::<Vec<_>>())
    };
    let mut all = vec![
        column("stack", &|case| case.stack_name.clone()),
        column("job", &|case| case.job.name.clone()),
    ];
    let keys = cases.first().map_or(&[][..], |case| &case.keys);
    for (at, (key, _)) in keys.iter().enumerate() {
        all.push(column(key, &|case| plain(&case.keys[at].1)));
    }
    let differs = |(_, cells): &(String, Vec<String>)| cells.iter().any(|cell| *cell != cells[0]);
    match all.iter().any(differs) {
        true => all.into_iter().filter(differs).collect(),
        false => all.into_iter().take(1).collect(),
    }
}

/// Strings without their quotes.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Column {
    fn entry(&self, at: usize) -> Value {
        let mean = self.means.get(at).copied().flatten();
        json!({
            "mean": mean.map(|mean| mean.mean),
            "ci95": mean.and_then(|mean| mean.half_width),
            "n": self.counts.get(at),
        })
    }

    fn says_something(&self) -> bool {
        self.means.iter().flatten().any(|mean| mean.mean != 0.0)
    }

    fn cells(&self, with_ratios: bool) -> (String, Vec<String>) {
        let first = self.means.first().copied().flatten().map(|mean| mean.mean);
        let ratio =
            |mean: &Mean| first.filter(|first| *first != 0.0).map(|first| mean.mean / first);
        let cell = |mean: &Option<Mean>| {
            let Some(mean) = mean else { return "-".to_owned() };
            let text = show(&self.path, mean);
            match ratio(mean).filter(|_| with_ratios) {
                Some(ratio) => format!("{text} (x{ratio:.3})"),
                None => text,
            }
        };
        (self.path.clone(), self.means.iter().map(cell).collect())
    }
}
