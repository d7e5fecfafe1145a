//! `nandscape run`: a fio job file on a stack; workload files of Filebench go to `wml.rs`.

use crate::args::{RunArgs, RuntimeArgs};
use crate::cache::{Cache, states};
use crate::command::{COMMIT, again};
use crate::hdr::job_names;
use crate::job::job_text;
use crate::logs::{Wanted, Watch};
use crate::outcome::{tell, verdict};
use crate::output::{Failure, classify, complain};
use crate::paint::ColorChoice;
use crate::replace::expect_replaceable;
use crate::state::keep;
use crate::wml;
use crate::writable::expect_writable;
use anyhow::Context;
use nandscape_lab::run::{Manner, Outcome, run_as};
use nandscape_lab::stack::Stack;
use nandscape_lab::sweep::program;
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse_for};
use nandscape_lab::workload::log::FioLogs;
use nandscape_lab::workload::wml::is_workload;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs, and writes the result where it is wanted.
pub(crate) fn run(args: &RunArgs, color: ColorChoice) -> Result<(), Failure> {
    let (trace, left) = (args.timeline.trace.as_deref(), args.device.save_state.as_deref());
    let outputs = args.output.files().into_iter().chain([trace, left]);
    let inputs = [args.job.as_deref(), args.device.state.as_deref()].into_iter().flatten();
    expect_writable(outputs, inputs.chain([args.stack.file()]))?;
    left.map_or(Ok(()), expect_replaceable)?;
    if let Some(file) = args.job.as_deref().filter(|file| is_workload(file)) {
        return wml::run(args, file, color);
    }
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    let (job_name, job) = read_job(args.job.as_deref(), args.length)?;
    let iologs = job.jobs.iter().map(|spec| spec.write_iolog.as_deref().map(Path::new));
    expect_writable(iologs, args.job.as_deref())?;
    for notice in job.notices.iter().filter(|notice| stack.tells(notice)) {
        complain(&format!("{notice}"));
    }
    let cache = Cache::open(&args.cache)?;
    let mut watch = Watch::of(Wanted {
        output: &args.output,
        jobs: job_names(&job),
        fio_logs: Some((FioLogs::new(&job), args.log_dir.as_deref())),
        timeline: &args.timeline,
        device: left.is_some(),
    })?;
    let states = states(args.device.state.as_deref(), cache.as_ref());
    let manner =
        Manner { states, program: &program(COMMIT), until_steady: args.rounds.until_steady };
    let outcome = run_as(&stack, &job, args.seed, manner, &mut watch);
    let device = watch.take_device();
    let watched = watch.finish();
    let outcome = outcome.map_err(classify)?;
    tell(&outcome, &args.output, color, &job_name, &again(args))?;
    watched?;
    write_iologs(&outcome)?;
    keep(left, device)?;
    verdict(&outcome)
}

/// Writes the logs that jobs ask for with `write_iolog`.
fn write_iologs(outcome: &Outcome) -> Result<(), Failure> {
    for log in &outcome.workload.iologs {
        let write = || {
            let mut file = BufWriter::new(File::create(&log.path)?);
            log.write_to(&mut file)?;
            file.flush()
        };
        write().with_context(|| format!("cannot write {}", log.path)).map_err(Failure::Run)?;
    }
    Ok(())
}

fn read_job(path: Option<&Path>, length: RuntimeArgs) -> Result<(String, JobFile), Failure> {
    let (name, text) = job_text(path)?;
    let job = parse_for(&text, &name, &HostEnvironment, length.runtime).map_err(Failure::input)?;
    Ok((name, job))
}
