//! The forms in which a table is printed.

use super::Table;
use super::layout::{lay_out, markdown};
use crate::args::TableFormat;
use crate::command::COMMIT;
use crate::complete::Finished;
use crate::output::{Failure, comma_separated, pretty};
use crate::paint::{ColorChoice, Paint, Tone};
use nandscape_lab::run::VERSION;
use nandscape_lab::sweep::Sweep;
use nandscape_report::{Column, Line, Mean};
use nandscape_rt::words::counted;
use serde_json::{Map, Value, json};
use std::path::Path;

/// What a table is printed with.
pub(crate) struct Frame<'a> {
    pub(crate) format: TableFormat,
    pub(crate) color: ColorChoice,
    /// With ratios to the first line.
    pub(crate) with_ratios: bool,
    /// Where the rows are kept.
    pub(crate) output: Option<&'a Path>,
    /// The command that makes the same table.
    pub(crate) again: &'a str,
}

impl Table {
    /// The table of a sweep, in the form that is wanted.
    pub(crate) fn show(
        &self,
        sweep: &Sweep,
        finished: &Finished,
        frame: &Frame<'_>,
    ) -> Result<String, Failure> {
        match frame.format {
            TableFormat::Normal => {
                let paint = Paint::new(frame.color, false);
                Ok(self.text(frame.with_ratios, paint) + &self.footer(finished, frame, paint))
            }
            TableFormat::Json => pretty(&self.json(sweep)),
            TableFormat::Csv => comma_separated(self.rows()),
            TableFormat::Markdown => {
                let table = markdown(&self.cells(frame.with_ratios), self.labels.len());
                Ok(format!("{}\n\n{table}", self.heading()))
            }
        }
    }

    /// What a reader needs to believe the table, and to make it again.
    fn footer(&self, finished: &Finished, frame: &Frame<'_>, paint: Paint) -> String {
        let (done, new) = (self.finished.0, finished.new);
        let runs = counted(done as u64, ["run", "runs"]);
        let place =
            frame.output.map_or(String::new(), |path| format!("; results in {}", path.display()));
        format!(
            "\n{}  nandscape {VERSION} ({COMMIT}): {runs} ({new} executed, {} reused){place}\n  Reproduce: {}\n",
            self.warnings(paint),
            done.saturating_sub(new),
            frame.again
        )
    }

    /// What tells the points apart, then for each metric its mean, half the width of its 95 % confidence interval, and
    /// the number of runs. Units are those of the metric's path.
    fn rows(&self) -> Vec<Vec<String>> {
        let labels = self.labels.iter().map(|(header, _)| header.clone());
        let metrics = self.columns.iter().flat_map(|column| {
            let name = column.figure().to_string();
            [name.clone(), format!("{name} ci95"), format!("{name} n")]
        });
        let mut rows = vec![labels.chain(metrics).collect()];
        let points = self.labels.first().map_or(0, |(_, cells)| cells.len());
        let number =
            |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
        for at in 0..points {
            let labels = self.labels.iter().map(|(_, cells)| cells[at].clone());
            let metrics = self.columns.iter().flat_map(|column| {
                let mean = column.mean(at);
                let interval = mean.and_then(|mean| mean.half_width);
                [number(mean.map(|mean| mean.mean)), number(interval), column.count(at).to_string()]
            });
            rows.push(labels.chain(metrics).collect());
        }
        rows
    }

    /// The title, and whether runs are missing.
    fn heading(&self) -> String {
        let partial = self.partial().map_or_else(String::new, |partial| format!(" ({partial})"));
        format!("{}{partial}", self.title)
    }

    /// Headers and cells.
    fn cells(&self, with_ratios: bool) -> Vec<(String, Vec<String>)> {
        let figures = self.columns.iter().map(|column| cells(column, with_ratios));
        self.labels.iter().cloned().chain(figures).collect()
    }

    /// Human-readable; `with_ratios` adds to each metric its ratio to that of the first line.
    fn text(&self, with_ratios: bool, paint: Paint) -> String {
        let columns = self.cells(with_ratios);
        let mut text = format!("{}\n\n", paint.paint(Tone::Heading, &self.heading()));
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
    fn json(&self, sweep: &Sweep) -> Value {
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
            "device_differences": self.cautions.device_differences(),
            "warnings": self.cautions.list(),
            "runs": self.finished.1,
            "finished_runs": self.finished.0,
            "failed_runs": self.failed,
            "unsteady_runs": self.unsteady,
            "lines": self.lines.iter().map(line_entry).collect::<Vec<_>>(),
            "points": points.collect::<Vec<_>>(),
        })
    }
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
