//! The result of one run: told in the form that was asked for, and what it means for the exit code.

use crate::args::{ResultArgs, ResultFormat};
use crate::command::COMMIT;
use crate::output::{Failure, deliver, pretty};
use crate::paint::{ColorChoice, Paint};
use crate::report::report_run;
use crate::summary::summary;
use anyhow::anyhow;
use nandscape_lab::run::Outcome;
use serde_json::Value;

/// Writes the result of `name` where it is wanted; `again` is the command that makes it again.
pub(crate) fn tell(
    outcome: &Outcome,
    args: &ResultArgs,
    color: ColorChoice,
    name: &str,
    again: &str,
) -> Result<(), Failure> {
    let text = match args.output_format {
        ResultFormat::Normal => {
            let paint = Paint::new(color, args.file().is_some());
            summary(outcome, name, COMMIT, again, paint)
        }
        ResultFormat::Json => pretty(&with_command(outcome.to_json(COMMIT), again))?,
        ResultFormat::JsonPlus => pretty(&with_command(outcome.to_json_plus(COMMIT), again))?,
    };
    deliver(&text, args.file())?;
    args.report
        .html
        .as_ref()
        .map_or(Ok(()), |html| report_run(html, name, with_command(outcome.to_json(COMMIT), again)))
}

/// A result with the command that makes the same.
fn with_command(mut result: Value, again: &str) -> Value {
    result["nandscape"]["command"] = again.into();
    result
}

/// A job that failed fails the run, and one that was interrupted is told, after its result was written.
pub(crate) fn verdict(outcome: &Outcome) -> Result<(), Failure> {
    if outcome.interrupted {
        let length = outcome.virtual_time;
        let why = anyhow!("interrupted: the figures are of the first {length} of virtual time");
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
