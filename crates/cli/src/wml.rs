//! `nandscape run` with a Filebench workload.

use crate::args::RunArgs;
use crate::logs::Watch;
use crate::output::{Failure, complain};
use crate::paint::ColorChoice;
use crate::run::{COMMIT, again, classify, job_text, tell, verdict};
use anyhow::anyhow;
use nandscape_lab::run::{Manner, run_workload};
use nandscape_lab::stack::Stack;
use nandscape_lab::state::States;
use nandscape_lab::sweep::program;
use nandscape_lab::workload::wml::parse;
use std::path::Path;

/// Whether a file is a workload of Filebench: by its name, as Filebench's own are called.
pub(crate) fn is_workload(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "f")
}

/// Runs the workload in `file`, and writes the result where it is wanted.
pub(crate) fn run(args: &RunArgs, file: &Path, color: ColorChoice) -> Result<(), Failure> {
    refuse_what_means_nothing(args)?;
    let (variables, keys): (Vec<_>, Vec<_>) =
        args.stack.set.iter().cloned().partition(|set| set.starts_with('$'));
    let stack = Stack::load(&args.stack.stack, &keys).map_err(Failure::input)?;
    let (name, text) = job_text(Some(file))?;
    let variables = variables.iter().map(|set| variable(set)).collect::<Result<Vec<_>, _>>()?;
    let workload = parse(&text, &name, &variables).map_err(Failure::input)?;
    for notice in &workload.notices {
        complain(&notice.to_string());
    }
    let mut watch = Watch::new();
    watch.timeline(&args.timeline)?;
    let manner =
        Manner { states: States::default(), program: &program(COMMIT), until_steady: None };
    let outcome = run_workload(&stack, &workload, args.seed, manner, &mut watch);
    let watched = watch.finish();
    let outcome = outcome.map_err(classify)?;
    tell(&outcome, &args.output, color, &name, &again(args))?;
    watched?;
    verdict(&outcome)
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
        (args.until_steady.is_some(), "--until-steady", "a workload says itself how long it runs"),
        (args.state.is_some(), "--state", "a file system is made on a fresh device"),
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
