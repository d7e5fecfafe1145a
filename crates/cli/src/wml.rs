//! `nandscape run` with a Filebench workload.

use crate::args::RunArgs;
use crate::cache::{Cache, states};
use crate::command::{COMMIT, again};
use crate::job::job_text;
use crate::logs::{Outputs, Watch};
use crate::outcome::{ResultOutput, finish_result};
use crate::output::{Failure, complain};
use crate::paint::ColorChoice;
use crate::writable::expect_writable;
use anyhow::anyhow;
use nandscape_lab::run::{RunOptions, run_workload};
use nandscape_lab::stack::Stack;
use nandscape_lab::sweep::program;
use nandscape_lab::workload::fio::Runtime;
use nandscape_lab::workload::wml::parse;
use std::path::Path;

/// Runs the workload in `file`, and writes the result where it is wanted.
pub(crate) fn run(args: &RunArgs, file: &Path, color: ColorChoice) -> Result<(), Failure> {
    expect_writable(args.outputs(), args.inputs())?;
    refuse_what_means_nothing(args)?;
    let (variables, keys) = variables(&args.stack.set)?;
    let stack = Stack::load(&args.stack.stack, &keys).map_err(Failure::input)?;
    let (name, text) = job_text(Some(file))?;
    let mut workload = parse(&text, &name, &variables).map_err(Failure::input)?;
    workload.length = args.length.runtime.map(Runtime::time).or(workload.length);
    for notice in &workload.notices {
        complain(&notice.to_string());
    }
    let cache = Cache::open(&args.cache)?;
    let mut watch = Watch::of(Outputs {
        output: &args.output,
        jobs: Vec::new(),
        fio_logs: None,
        timeline: &args.timeline,
        device: args.device.save_state.is_some(),
    })?;
    let states = states(args.device.state.as_deref(), cache.as_ref());
    let manner = RunOptions { states, program: &program(COMMIT), until_steady: None };
    let outcome = run_workload(&stack, &workload, args.seed, manner, &mut watch);
    let (again, left) = (again(args), args.device.save_state.as_deref());
    let output = ResultOutput { name: &name, again: &again, args: &args.output, color, left };
    finish_result(outcome, watch, &output)
}

/// What `--set`s say of a workload's variables, and of a stack's keys.
#[expect(clippy::type_complexity, reason = "two lists, named where they are made")]
pub(crate) fn variables(set: &[String]) -> Result<(Vec<(String, String)>, Vec<String>), Failure> {
    let (variables, keys): (Vec<_>, Vec<_>) =
        set.iter().cloned().partition(|set| set.starts_with('$'));
    let variables = variables.iter().map(|set| variable(set)).collect::<Result<_, _>>()?;
    Ok((variables, keys))
}

/// `$name=value` of a `--set`.
fn variable(set: &str) -> Result<(String, String), Failure> {
    let parts = set.trim_start_matches('$').split_once('=');
    let (name, value) =
        parts.ok_or_else(|| Failure::input(anyhow!("--set {set}: expected '$name=value'")))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn refuse_what_means_nothing(args: &RunArgs) -> Result<(), Failure> {
    let given = [
        (
            args.rounds.until_steady.is_some(),
            "--until-steady",
            "a workload defines its own run time",
        ),
        (args.files.len() > 1, "another job", "one workload runs at a time"),
        (!args.jobs.is_empty(), "a job on the command line", "one workload runs at a time"),
        (!args.section.is_empty(), "--section", "a workload has none"),
        (args.sizes.fit, "--fit", "a workload sets the sizes of its filesets"),
        (args.log_dir.is_some(), "--log-dir", "a workload asks for no logs of fio"),
        (args.output.hdr_log.is_some(), "--hdr-log", "flowops have their histograms in the JSON"),
    ];
    match given.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, name, why)) => {
            Err(Failure::input(anyhow!("{name} does not go with a Filebench workload: {why}")))
        }
        None => Ok(()),
    }
}
