//! `nandscape run`: jobs of fio on a stack; workload files of Filebench go to `wml.rs`.

use crate::args::RunArgs;
use crate::cache::{Cache, states};
use crate::command::{COMMIT, again};
use crate::hdr::job_names;
use crate::job::read_jobs;
use crate::logs::{Outputs, Watch};
use crate::outcome::{ResultOutput, finish_result};
use crate::output::{Failure, complain};
use crate::paint::ColorChoice;
use crate::wml;
use crate::writable::expect_writable;
use nandscape_lab::run::{RunOptions, run as run_in_lab};
use nandscape_lab::stack::Stack;
use nandscape_lab::sweep::program;
use nandscape_lab::workload::fio::JobFile;
use nandscape_lab::workload::log::FioLogs;
use nandscape_lab::workload::wml::is_workload;
use std::path::{Path, PathBuf};

/// Runs, and writes the result where it is wanted.
pub(crate) fn run(args: &RunArgs, color: ColorChoice) -> Result<(), Failure> {
    if let Some(file) = args.files.iter().find(|file| is_workload(file)) {
        return wml::run(args, file, color);
    }
    let (job_name, job) = read_jobs(args)?;
    let job = if args.sizes.fit { job.fit() } else { job };
    let logs = FioLogs::new(&job);
    expect_all_writable(args, &job, &logs)?;
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    for notice in job.notices.iter().filter(|notice| stack.applies_to(notice)) {
        complain(&format!("{notice}"));
    }
    let cache = Cache::open(&args.cache)?;
    let left = args.device.save_state.as_deref();
    let mut watch = Watch::of(Outputs {
        output: &args.output,
        jobs: job_names(&job),
        fio_logs: Some((logs, args.log_dir.as_deref())),
        timeline: &args.timeline,
        device: left.is_some(),
    })?;
    let states = states(args.device.state.as_deref(), cache.as_ref());
    let manner =
        RunOptions { states, program: &program(COMMIT), until_steady: args.rounds.until_steady };
    let outcome = run_in_lab(&stack, &job, args.seed, manner, &mut watch);
    let again = again(args);
    let output = ResultOutput { name: &job_name, again: &again, args: &args.output, color, left };
    finish_result(outcome, watch, &output)
}

/// Refuses what a run could not write once it has ended. Logs in a folder that does not exist yet
/// replace nothing.
fn expect_all_writable(args: &RunArgs, job: &JobFile, logs: &FioLogs) -> Result<(), Failure> {
    let folder = args.log_dir.as_deref().unwrap_or(Path::new("."));
    let logs = logs.files().iter().filter(|_| folder.is_dir()).map(|name| folder.join(name));
    let iologs = job.jobs.iter().filter_map(|spec| spec.write_iolog.as_deref().map(PathBuf::from));
    let logs: Vec<PathBuf> = logs.chain(iologs).collect();
    expect_writable(
        args.outputs().chain(logs.iter().map(|file| Some(file.as_path()))),
        args.inputs(),
    )
}
