//! The result of one run: printed in the output that was asked for, and what it means for the exit code.

use crate::args::{ResultArgs, ResultFormat};
use crate::command::COMMIT;
use crate::logs::Watch;
use crate::output::{Failure, classify, complain, pretty, wrote};
use crate::paint::{ColorChoice, Paint};
use crate::replace::{deliver, replace, with_path};
use crate::report::report_run;
use crate::run_csv::run_csv;
use crate::state::keep;
use crate::summary::summary;
use crate::terse::terse;
use crate::zones;
use anyhow::anyhow;
use nandscape_lab::run::{Outcome, RunError};
use serde_json::Value;
use std::path::Path;

/// How the result of a run is presented.
pub(crate) struct ResultOutput<'a> {
    /// What ran.
    pub(crate) name: &'a str,
    /// The command that makes the same result.
    pub(crate) again: &'a str,
    pub(crate) args: &'a ResultArgs,
    pub(crate) color: ColorChoice,
    /// Where the device goes as the run left it, if anywhere.
    pub(crate) left: Option<&'a Path>,
}

/// A run has ended: writes everything where it is wanted, and gives what the run means for the exit code.
pub(crate) fn finish_result(
    outcome: Result<Outcome, RunError>,
    mut watch: Watch,
    output: &ResultOutput<'_>,
) -> Result<(), Failure> {
    let device = watch.take_device();
    let watched = watch.finish(outcome.as_ref().err());
    let outcome = outcome.map_err(classify)?;
    present(&outcome, output)?;
    watched?;
    write_iologs(&outcome)?;
    keep(output.left, device)?;
    verdict(&outcome)
}

fn present(outcome: &Outcome, output: &ResultOutput<'_>) -> Result<(), Failure> {
    let &ResultOutput { name, again, args, color, .. } = output;
    let json = |result| pretty(&with_zones(with_command(result, again), outcome, args));
    let text = match args.output_format {
        ResultFormat::Normal => {
            let paint = Paint::new(color, args.file().is_some());
            summary(outcome, name, COMMIT, again, paint) + &zone_table(outcome, args)
        }
        ResultFormat::Json => json(outcome.to_json(COMMIT))?,
        ResultFormat::JsonPlus => json(outcome.to_json_plus(COMMIT))?,
        ResultFormat::Terse => terse(&outcome.to_json(COMMIT)),
        ResultFormat::Csv => run_csv(&outcome.to_json(COMMIT))?,
    };
    if args.zones && outcome.zones.is_none() {
        complain("--zones has no effect: the device has no zones");
    }
    deliver(&text, args.file())?;
    args.file().into_iter().for_each(|file| wrote("result", file));
    args.report
        .html
        .as_ref()
        .map_or(Ok(()), |html| report_run(html, name, with_command(outcome.to_json(COMMIT), again)))
}

/// Writes the logs that jobs ask for with `write_iolog`.
fn write_iologs(outcome: &Outcome) -> Result<(), Failure> {
    outcome.workload.iologs.iter().try_for_each(|log| {
        let path = Path::new(&log.path);
        replace(path, |out| with_path(path, log.write_to(out)))?;
        wrote("I/O log", path);
        Ok(())
    })
}

/// A result with the command that makes the same.
fn with_command(mut result: Value, again: &str) -> Value {
    result["nandscape"]["command"] = again.into();
    result
}

/// The zones as a table, if that is wanted and there are any.
fn zone_table(outcome: &Outcome, args: &ResultArgs) -> String {
    let report = outcome.zones.as_ref().filter(|_| args.zones);
    report.map_or_else(String::new, zones::table)
}

/// A result with each zone, if that is wanted and there are any.
fn with_zones(mut result: Value, outcome: &Outcome, args: &ResultArgs) -> Value {
    if let Some(report) = outcome.zones.as_ref().filter(|_| args.zones) {
        result["nandscape"]["zones"]["list"] = report.list();
    }
    result
}

/// A job that failed fails the run, and one that was interrupted is reported, after its result was written.
fn verdict(outcome: &Outcome) -> Result<(), Failure> {
    if outcome.interrupted {
        let length = outcome.virtual_time;
        let why = anyhow!("interrupted: partial results of the first {length} (virtual time)");
        return Err(Failure::Interrupted(why));
    }
    if let Some(why) = outcome.flowops.as_ref().and_then(|report| report.failure()) {
        return Err(Failure::run(anyhow!("the workload ended early: {why}")));
    }
    let failed = outcome.workload.jobs.iter().find(|job| job.failed());
    failed.map_or(Ok(()), |job| {
        let why = job.failures.first().map_or_else(String::new, |failure| format!(": {failure}"));
        Err(Failure::run(anyhow!("job {} failed{why}", job.name)))
    })
}
