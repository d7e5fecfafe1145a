//! `nandscape report`, and the reports of other commands: results into HTML and stand-alone plots.

use crate::args::ReportArgs;
use crate::command::quoted;
use crate::complete::Finished;
use crate::output::{Failure, wrote};
use crate::replace::{deliver, make_folder};
use crate::table::Table;
use crate::writable::expect_writable;
use anyhow::{Context, anyhow};
use nandscape_lab::sweep::{Report as Interrupt, Sweep};
use nandscape_report::{Figure, FigureError, Plot, Report, Run, read};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Reads results, and writes what was asked for.
pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    expect_writable([Some(args.output.as_path())], args.results.iter().map(PathBuf::as_path))?;
    let runs = read_all(&args.results)?;
    let mut report = Report::new(&title(args), runs).made_by(&again(args));
    if !args.metric.is_empty() {
        let asked = ask(report, &args.metric);
        report = asked.map_err(|why| Failure::Input(anyhow!("--metric: {why}")))?;
    }
    if let Some(folder) = &args.specs {
        write_specs(folder, &report.plots())?;
    }
    write_html(&args.output, &report)
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| name.clone());
        runs.extend(read(&name, &text.map_err(Failure::Input)?).map_err(Failure::input)?);
    }
    Ok(runs)
}

/// With these figures, all of which the results know.
fn ask(report: Report, figures: &[String]) -> Result<Report, FigureError> {
    let figures = figures.iter().map(|text| text.parse()).collect::<Result<Vec<Figure>, _>>()?;
    let report = report.with_figures(figures)?;
    report.unknown_path().map_or(Ok(report), Err)
}

fn title(args: &ReportArgs) -> String {
    let stems = args.results.iter().filter_map(|file| file.file_stem());
    let names: Vec<_> = stems.map(|stem| stem.to_string_lossy()).collect();
    args.title.clone().unwrap_or_else(|| names.join(", "))
}

/// The command that makes the same report. A single result knows by itself how it came about.
fn again(args: &ReportArgs) -> String {
    let mut words = vec!["nandscape".to_owned(), "report".to_owned()];
    words.extend(args.results.iter().map(|file| quoted(&file.display().to_string())));
    for path in &args.metric {
        words.extend(["--metric".to_owned(), quoted(path)]);
    }
    if let Some(title) = &args.title {
        words.extend(["--title".to_owned(), quoted(title)]);
    }
    words.join(" ")
}

fn write_specs(folder: &Path, plots: &[Plot]) -> Result<(), Failure> {
    make_folder(folder)?;
    for plot in plots {
        let text = serde_json::to_string_pretty(&plot.standalone()).map_err(Failure::run)?;
        deliver(&(text + "\n"), Some(&folder.join(format!("{}.vl.json", plot.id))))?;
    }
    Ok(())
}

fn write_html(file: &Path, report: &Report) -> Result<(), Failure> {
    deliver(&report.html(), Some(file))?;
    wrote("report", file);
    Ok(())
}

/// The report of one run of `job`.
pub(crate) fn report_run(file: &Path, job: &str, result: Value) -> Result<(), Failure> {
    let ours = &result["nandscape"];
    let set = ours["set"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    let set: String = set.map(|assignment| format!(" + {assignment}")).collect();
    let stack = ours["stack"].as_str().unwrap_or_default().to_owned() + &set;
    let title = format!("{job} on {stack}");
    let seed = ours["seed"].as_u64().unwrap_or_default();
    let run =
        Run { source: String::new(), job: job.to_owned(), keys: Vec::new(), stack, seed, result };
    write_html(file, &Report::new(&title, vec![run]))
}

/// The report of a sweep's rows, made by the command `again`.
pub(crate) fn report_sweep(
    file: &Path,
    sweep: &Sweep,
    table: &Table,
    finished: &Finished,
    again: &str,
) -> Result<(), Failure> {
    let mut runs = Vec::new();
    for row in finished.ids.iter().filter_map(|id| finished.rows.get(id)) {
        runs.extend(read(&sweep.name, row).map_err(Failure::run)?);
    }
    let again = format!("{again} --report {}", quoted(&file.display().to_string()));
    let mut report = Report::new(&sweep.name, runs).made_by(&again).with_lines(table.lines());
    if sweep.report != Interrupt::Usual {
        report = report.with_figures(table.figures()).map_err(Failure::input)?;
    }
    write_html(file, &report)
}
