//! Arguments about reports: `--report`, and `nandscape report`.

use clap::Args;
use nandscape_lab::stack::Place;
use nandscape_lab::sweep::{Named, Report, Sweep};
use std::path::PathBuf;

/// Where a report goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct HtmlArgs {
    /// Write a report with plots: one HTML file that works offline
    #[arg(long = "report", value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
}

/// Metrics of a table.
#[derive(Args, Clone, Debug)]
pub(crate) struct MetricArgs {
    /// Metric to show: a path in the JSON of a run, such as waf.gc (may be repeated)
    #[arg(long, alias = "figure", value_name = "METRIC")]
    pub(crate) metric: Vec<String>,
}

impl MetricArgs {
    /// Lets a sweep report these in place of its own, if there are any.
    pub(crate) fn choose(&self, sweep: &mut Sweep) {
        if !self.metric.is_empty() {
            let place = Place::Argument("--metric");
            let named = |text: &String| Named { text: text.clone(), place: place.clone(), key: "" };
            sweep.report = Report::Chosen(self.metric.iter().map(named).collect());
        }
    }
}

/// `nandscape report`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape run --output-format json --output run.json
  nandscape report run.json                         report.html
  nandscape report old.json new.json --output both.html
  nandscape report op-vs-victim.jsonl --metric waf.gc --output sweep.html
  nandscape report rows.jsonl --metric \"waf.gc / stack=pblk\"    relative to pblk, seed by seed
  nandscape report run.json --specs plots           plots/*.vl.json, for vl2svg or the Vega editor

One result is drawn over time and in detail; a few are drawn in one colour each; many, or results \
along an axis of numbers, as figures with 95 % confidence bands. Every plot in the page can be saved \
as SVG or PNG. Nothing is run again: the JSON is all that a report is made from.")]
pub(crate) struct ReportArgs {
    /// Results of `run --output-format json`, or rows of a sweep
    #[arg(value_name = "RESULT.json|ROWS.jsonl", required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// The file of the page
    #[arg(long, value_name = "FILE.html", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Write each plot as a stand-alone Vega-Lite specification into this folder, too
    #[arg(long, value_name = "DIR")]
    pub(crate) specs: Option<PathBuf>,
    /// Metric to compare: a path in the JSON of a run, such as waf.gc (may be repeated)
    #[arg(long, alias = "figure")]
    pub(crate) metric: Vec<String>,
    /// Title of the report [default: the files' names]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}
