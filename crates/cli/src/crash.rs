//! `nandscape crash`: power-cut and fault campaigns, on as many threads as wanted. Seeds are
//! independent, so the report does not depend on the number of threads.

mod fs;
mod json;
mod omit;
mod oracle;

use crate::args::{CrashArgs, KindChoice, OutputArgs, OutputFormat, Which};
use crate::output::{Failure, pretty};
use crate::pool::spread;
use crate::progress::Progress;
use crate::replace::deliver;
use crate::writable::expect_writable;
use anyhow::anyhow;
use nandscape_crash::matrix::{Matrix, MatrixReport};
use nandscape_crash::{
    CampaignReport, FaultRates, Options, SeedOutcome, StackChoice, has_compositions, run_seed,
};
use nandscape_lab::stack::Stack;
use nandscape_rt::words::counted;
use serde_json::Value;
use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a campaign and prints what it found.
pub(crate) fn crash(args: &CrashArgs) -> Result<(), Failure> {
    let stack = args.stack.as_deref().map(Path::new);
    expect_writable([args.output.file()], stack)?;
    if let Some(KindChoice(kind)) = args.on_fs.fs {
        let found = fs::campaign(kind, args)?;
        write_report(&found, &|| json::fs_campaign(&found, args.first), &args.output)?;
        return verdict(&found.report);
    }
    let options = options(args)?;
    if let Some(which) = args.matrix {
        return matrix(which, args, &options);
    }
    let end = args.first.checked_add(args.seeds).ok_or_else(|| {
        Failure::input(anyhow!("--first {} --seeds {}: too many seeds", args.first, args.seeds))
    })?;
    if args.cuts.is_some() {
        return Err(Failure::input(anyhow!(
            "--cuts: needs --matrix or --fs; --seeds says how many"
        )));
    }
    let report = campaign(&options, args.first, end, args.jobs);
    write_report(&report, &|| json::campaign(&report, args.first), &args.output)?;
    verdict(&report)
}

/// A broken promise is a failure.
fn verdict(report: &CampaignReport) -> Result<(), Failure> {
    match report.violations.len() {
        0 => Ok(()),
        n => {
            let seeds = counted(report.seeds, ["seed", "seeds"]);
            Err(Failure::run(anyhow!("{n} of {seeds} failed")))
        }
    }
}

/// Writes a report in the form and to the place that are wanted.
fn write_report(
    report: &dyn Display,
    json: &dyn Fn() -> Value,
    args: &OutputArgs,
) -> Result<(), Failure> {
    let text = match args.output_format {
        OutputFormat::Normal => format!("{report}\n"),
        OutputFormat::Json => pretty(&json())?,
    };
    deliver(&text, args.file())
}

/// Runs compositions in turn and prints what they found.
fn matrix(which: Which, args: &CrashArgs, options: &Options) -> Result<(), Failure> {
    let matrix = match which {
        Which::All => Matrix::all(&options.pins, args.cuts.unwrap_or(50), args.first),
        Which::Pairs => Matrix::pairs(&options.pins, args.cuts.unwrap_or(1_000), args.first),
    };
    let (mut progress, mut reports) = (Progress::new(), Vec::new());
    let compositions = matrix.legal.len() as u64;
    spread(
        args.jobs,
        0..compositions,
        &|| false,
        &|index| (index, matrix.run(index as usize, options)),
        |report| {
            reports.push(report);
            progress.update("compositions", reports.len() as f64 / compositions as f64);
        },
    );
    reports.sort_by_key(|(index, _)| *index);
    let reports = reports.into_iter().map(|(_, report)| report).collect();
    let report = MatrixReport::new(&matrix, reports);
    write_report(&report, &|| json::matrix(&report), &args.output)?;
    match report.violations().count() {
        0 => Ok(()),
        n => {
            let seeds = counted(n as u64, ["seed", "seeds"]);
            Err(Failure::run(anyhow!("{seeds} failed")))
        }
    }
}

fn options(args: &CrashArgs) -> Result<Options, Failure> {
    if let Some(set) = args.set.iter().find(|set| is_of_fs(set)) {
        let key = key_of(set);
        return Err(Failure::input(anyhow!(
            "--set {key}: a campaign on the device alone has no file system: add --fs ext4"
        )));
    }
    let stack = stack(args, &args.set)?.as_ref().map(device);
    let faults = args.faults.map(|one_in| FaultRates {
        program_one_in: one_in,
        erase_one_in: one_in,
        unreadable_one_in: 0,
    });
    let pins = args.composition.unwrap_or_default();
    let (unreadable, edge_cases) = (args.unreadable, args.edge_cases);
    let mut options = Options { stack, faults, unreadable, pins, edge_cases, ..Options::default() };
    if args.composition.is_some() && !has_compositions(options.kind()) {
        let kind = options.kind();
        return Err(Failure::input(anyhow!("--composition: {kind} has no compositions")));
    }
    if let Some(name) = &args.omit {
        omit::rule(name, &mut options, None)?;
        // That a rule is left out is known after one.
        options.violations_max = 1;
    }
    Ok(options)
}

/// Whether an override is of a key in `[fs]`.
fn is_of_fs(set: &str) -> bool {
    set.split(['.', '=']).next().is_some_and(|section| section.trim() == "fs")
}

/// The key of an override.
fn key_of(set: &str) -> &str {
    set.split('=').next().unwrap_or_default().trim()
}

/// The stack that was asked for, with these overrides.
fn stack(args: &CrashArgs, set: &[String]) -> Result<Option<Stack>, Failure> {
    let Some(name) = &args.stack else {
        return match set.first() {
            None => Ok(None),
            Some(set) => Err(Failure::input(anyhow!("--set {}: needs --stack", key_of(set)))),
        };
    };
    let stack = Stack::load(name, set).map_err(Failure::input)?;
    if let Some((key, why)) = stack.ftl.breaks_promises() {
        return Err(Failure::input(stack.error(key, why)));
    }
    Ok(Some(stack))
}

/// What a campaign takes of a stack's device.
fn device(stack: &Stack) -> StackChoice {
    let timing = (stack.media.timing.name.clone(), stack.timing());
    StackChoice { geometry: stack.media.geometry, config: stack.ftl.clone(), timing }
}

/// Runs the seeds `first..end` until there are violations enough.
fn campaign(options: &Options, first: u64, end: u64, jobs: u32) -> CampaignReport {
    let violations = AtomicUsize::new(0);
    let (mut progress, mut all) = (Progress::new(), Vec::new());
    let seeds = end - first;
    spread(
        jobs,
        first..end,
        &|| violations.load(Ordering::Relaxed) >= options.violations_max,
        &|seed| {
            let outcome = run_seed(seed, options);
            violations.fetch_add(usize::from(outcome.violation.is_some()), Ordering::Relaxed);
            outcome
        },
        |outcome| {
            all.push(outcome);
            progress.update("power cuts", all.len() as f64 / seeds as f64);
        },
    );
    report(all, options.violations_max)
}

/// Adds outcomes in the order of their seeds.
fn report(mut all: Vec<SeedOutcome>, violations_max: usize) -> CampaignReport {
    all.sort_by_key(|outcome| outcome.seed);
    let mut report = CampaignReport::default();
    for outcome in all {
        if report.violations.len() < violations_max {
            report.add(outcome);
        }
    }
    report
}
