//! Arguments about results: in which form they are written, where, and what is written beside them.

use super::{HtmlArgs, whole};
use clap::{Args, ValueEnum};
use nandscape_lab::timeline::Window;
use nandscape_lab::workload::fio::time;
use nandscape_rt::Nanos;
use std::path::{Path, PathBuf};

/// The file that stands for standard input or output.
pub(crate) const STDIO: &str = "-";

/// How results without a table are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum OutputFormat {
    /// Human-readable
    Normal,
    /// JSON
    Json,
}

/// How tables are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum TableFormat {
    /// Human-readable
    Normal,
    /// JSON
    Json,
    /// Comma-separated values, with a header
    Csv,
    /// A Markdown table
    Markdown,
}

/// How the result of a run is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum ResultFormat {
    /// Human-readable summary
    Normal,
    /// fio's JSON, and the section `nandscape`
    Json,
    /// As json, and the bins of latency histograms
    #[value(name = "json+")]
    JsonPlus,
    /// fio's terse output, version 3: a line per job
    #[value(alias = "minimal")]
    Terse,
    /// Comma-separated values: a line per job and direction
    Csv,
}

/// The file that a result goes to.
#[derive(Args, Clone, Debug)]
struct ToArgs {
    /// Write the result to a file instead of standard output, which is -
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ToArgs {
    /// The file that is written; none: standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|file| *file != Path::new(STDIO))
    }
}

/// Where results go.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputArgs {
    /// How to write the result
    #[arg(long, value_enum, default_value_t = OutputFormat::Normal)]
    pub(crate) output_format: OutputFormat,
    #[command(flatten)]
    to: ToArgs,
}

/// Where the result of a run and its histograms go.
#[derive(Args, Clone, Debug)]
pub(crate) struct ResultArgs {
    /// How to write the result
    #[arg(long, value_enum, default_value_t = ResultFormat::Normal)]
    pub(crate) output_format: ResultFormat,
    #[command(flatten)]
    to: ToArgs,
    /// Write interval histograms of latencies in HdrHistogram's log format
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr_log: Option<PathBuf>,
    /// Length of those intervals, in milliseconds of virtual time
    #[arg(long, value_name = "MSEC", default_value_t = 1000, requires = "hdr_log",
        value_parser = whole::<1, 86_400_000>)]
    pub(crate) hdr_interval: u64,
    /// Show each zone of the device at the end, as `nvme zns report-zones` does: in the summary the first and
    /// the last ones, in JSON all, as zones.list
    #[arg(long)]
    pub(crate) zones: bool,
    #[command(flatten)]
    pub(crate) report: HtmlArgs,
}

impl OutputArgs {
    /// The file that is written; none: standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.to.file()
    }
}

impl ResultArgs {
    /// The file that the result is written to; none: standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.to.file()
    }

    /// The files that are written.
    pub(crate) fn files(&self) -> [Option<&Path>; 3] {
        [self.file(), self.report.html.as_deref(), self.hdr_log.as_deref()]
    }
}

/// Whether a run is written as a timeline.
#[derive(Args, Clone, Debug)]
pub(crate) struct TimelineArgs {
    /// Write a timeline of units, links and jobs, for Perfetto or Chrome's trace viewer
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The part of the measured phase that the timeline shows [default: 0,100ms]; at most 200,000
    /// events are written
    #[arg(long, value_name = "START,DURATION", value_parser = window, requires = "trace")]
    pub(crate) trace_window: Option<Window>,
}

/// `START,DURATION`, with fio's suffixes.
fn window(text: &str) -> Result<Window, String> {
    let expected = "expected START,DURATION such as 1s,20ms";
    let (start, length) = text.split_once(',').ok_or(expected)?;
    let span = |text: &str| time(text.trim(), Nanos::from_secs(1)).ok_or(expected);
    let (start, length) = (span(start)?, span(length)?);
    if length == Nanos::ZERO {
        return Err("the length of the window must be positive".to_owned());
    }
    Ok(Window { start, length, ..Window::default() })
}
