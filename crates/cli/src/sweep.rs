//! `nandscape sweep`: the runs of a sweep that are not finished yet, then a table.

use crate::args::SweepArgs;
use crate::cache::Cache;
use crate::command::{fit_words, metric_words, quoted, runtime_words};
use crate::complete::{complete, print_notices};
use crate::output::{Failure, print};
use crate::paint::ColorChoice;
use crate::report::report_sweep;
use crate::table::{Frame, Table};
use crate::writable::expect_writable;
use nandscape_lab::sweep::Sweep;
use nandscape_lab::workload::fio::HostEnvironment;
use std::path::{Path, PathBuf};

/// Runs what is missing and prints the table.
pub(crate) fn sweep(args: &SweepArgs, color: ColorChoice) -> Result<(), Failure> {
    let output = args.output.clone().unwrap_or_else(|| default_output(&args.file));
    let outputs = [Some(output.as_path()), args.report.html.as_deref()];
    expect_writable(outputs, [args.file.as_path()])?;
    let sweep =
        Sweep::load(&args.file, args.length.runtime, &HostEnvironment).map_err(Failure::input)?;
    let mut sweep = if args.sizes.fit { sweep.fit() } else { sweep };
    args.metrics.choose(&mut sweep);
    print_notices(&sweep);
    let mut table = Table::new(&sweep)?;
    let cache = Cache::open(&args.cache)?;
    let (finished, ended) = complete(&sweep, Some(&output), args.jobs, cache.as_ref())?;
    table.fill(&sweep, &finished.ids, &finished.rows);
    let again = again(args, &output);
    let frame = Frame {
        format: args.output_format,
        color,
        with_ratios: false,
        output: Some(&output),
        again: &again,
    };
    print(&table.show(&sweep, &finished, &frame)?)?;
    ended?;
    if let Some(html) = &args.report.html {
        report_sweep(html, &sweep, &table, &finished, &again)?;
    }
    table.verdict(&sweep)
}

/// The command that makes the same table.
fn again(args: &SweepArgs, output: &Path) -> String {
    let path = |path: &Path| quoted(&path.display().to_string());
    let mut words = vec!["nandscape".to_owned(), "sweep".to_owned(), path(&args.file)];
    words.extend(runtime_words(args.length));
    words.extend(fit_words(args.sizes));
    words.extend(metric_words(&args.metrics));
    words.extend(["--output".to_owned(), path(output)]);
    words.join(" ")
}

fn default_output(file: &Path) -> PathBuf {
    Path::new(file.file_stem().unwrap_or_default()).with_extension("jsonl")
}
