//! `nandscape crash`: power-cut and fault campaigns, on as many threads as wanted. Seeds are
//! independent, so the report does not depend on the number of threads.

mod again;
mod calls;
mod findings;
mod fs;
mod ground;
mod json;
mod minimise;
mod omit;
mod oracle;

use crate::args::{CrashArgs, KindChoice, OutputArgs, OutputFormat, Which};
use crate::interrupt::Interrupt;
use crate::output::{Failure, pretty};
use crate::pool::{spread, threads};
use crate::progress::Progress;
use crate::replace::deliver;
use crate::writable::expect_writable;
use anyhow::anyhow;
use findings::{End, Findings, Found, SEEDS};
use minimise::{Shrink, minimise};
use nandscape_crash::matrix::{Matrix, MatrixReport};
use nandscape_crash::plan::Plan;
use nandscape_crash::{
    CampaignReport, FaultRates, FtlKind, Options, Reduction, SeedOutcome, StackChoice, given_keys,
    has_compositions, kind_of_name, run_seed, shrink_seed,
};
use nandscape_lab::stack::Stack;
use nandscape_rt::words::{counted, grouped};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Seeds by default.
const DEFAULT_SEEDS: u64 = 1000;

/// What a signal makes a campaign do.
const ON_SIGNAL: &str = "the campaign ends after the seeds in progress";

/// Runs a campaign and prints what it found.
pub(crate) fn crash(args: &CrashArgs) -> Result<(), Failure> {
    if let Some(format) = args.rules {
        return omit::list(args, format);
    }
    let stack = args.stack.as_deref().map(Path::new);
    expect_writable([args.output.file()], stack)?;
    if let Some(KindChoice(kind)) = args.on_fs.fs {
        return fs::crash(kind, args);
    }
    let options = options(args)?;
    if let Some(which) = args.matrix {
        return matrix(which, args, &options);
    }
    if args.cuts.is_some() {
        return Err(Failure::input(anyhow!(
            "--cuts: needs --matrix or --fs; --seeds says how many"
        )));
    }
    let seeds = args.seeds.unwrap_or(DEFAULT_SEEDS);
    let end = end_of(args, seeds)?;
    check_only(args, |only| {
        let Options { family, rounds, intensity_percent, .. } = options;
        let plan = Plan::draw(args.first, family, rounds, intensity_percent);
        only.check(plan.cuts.len() as u32, false)
    })?;
    let ran = campaign(&options, args.first, end, threads(args.jobs.jobs));
    let report = &ran.report;
    let finished = format!("{} of {}", grouped(report.seeds), counted(seeds, SEEDS));
    let findings = ran.findings(args, finished, &|found, budget, on_run| {
        shrink_seed(found.violation.seed, &options, budget, on_run)
    });
    let stack = stack_kind(&options);
    let text = || findings.text(&format!("{}{}", report.totals(), given(stack)));
    write_report(&text, &|| json::campaign(&findings, report, stack), &args.output)?;
    findings.result()
}

/// The seed after the last one.
fn end_of(args: &CrashArgs, seeds: u64) -> Result<u64, Failure> {
    let end = args.first.checked_add(seeds);
    end.ok_or_else(|| {
        Failure::input(anyhow!("--first {} --seeds {seeds}: too many seeds", args.first))
    })
}

/// A campaign that has ended.
pub(crate) struct Ran {
    report: CampaignReport,
    end: End,
    wall_s: f64,
}

impl Ran {
    /// What it found, minimised by `shrink`; `finished` is how much of it is finished.
    fn findings<'a>(
        &'a self,
        args: &'a CrashArgs,
        finished: String,
        shrink: &Shrink<'_>,
    ) -> Findings<'a> {
        let Self { report, end, wall_s } = self;
        let last = args.first.saturating_add(report.seeds.saturating_sub(1));
        let what = match report.seeds {
            1 => format!("seed {last}"),
            _ => format!("seeds {} to {last}", args.first),
        };
        let found = report.violations.iter().map(|violation| Found::new(None, violation));
        let mut violations: Vec<_> = found.collect();
        minimise(&mut violations, args, *end, shrink);
        Findings {
            args,
            end: *end,
            seeds: report.seeds,
            finished,
            violations,
            what,
            wall_s: *wall_s,
        }
    }
}

/// Writes a report in the form and to the place that are wanted.
fn write_report(
    text: &dyn Fn() -> String,
    json: &dyn Fn() -> Value,
    args: &OutputArgs,
) -> Result<(), Failure> {
    let text = match args.output_format {
        OutputFormat::Normal => text(),
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
    let stop = Interrupt::new(ON_SIGNAL);
    let (mut progress, mut reports) = (Progress::new(), Vec::new());
    let compositions = matrix.legal.len() as u64;
    let signal = || stop.has_come();
    spread(
        threads(args.jobs.jobs),
        0..compositions,
        &signal,
        &|index| (index, matrix.run(index as usize, options, &signal)),
        |report| {
            reports.push(report);
            progress.update("compositions", reports.len() as f64 / compositions as f64);
        },
    );
    reports.sort_by_key(|(index, _)| *index);
    let ran = reports.len() as u64;
    let report =
        MatrixReport::new(&matrix, reports.into_iter().map(|(_, report)| report).collect());
    let finished = format!("{} of {} compositions", grouped(ran), grouped(compositions));
    let end = if signal() { End::Interrupted } else { End::Whole };
    let found = report.violations().map(|(it, violation)| Found::new(Some(it), violation));
    let mut violations: Vec<_> = found.collect();
    minimise(&mut violations, args, end, &|found, budget, on_run| {
        let pins = found.composition.map_or(options.pins, |it| (*it).into());
        let options = Options { pins, ..options.clone() };
        shrink_seed(found.violation.seed, &options, budget, on_run)
    });
    let findings = Findings {
        args,
        end,
        seeds: report.seeds(),
        what: counted(ran, ["composition", "compositions"]),
        finished,
        violations,
        wall_s: progress.wall_s(),
    };
    let text = || findings.text(&format!("{report}\n"));
    write_report(&text, &|| json::matrix(&findings, &report), &args.output)?;
    findings.result()
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
    let pins = args.composition.as_ref().map(|given| given.pins).unwrap_or_default();
    let (unreadable, edge_cases) = (args.unreadable, args.edge_cases);
    let mut options = Options {
        stack,
        ftl: args.ftl.as_deref().and_then(kind_of_name).unwrap_or(Options::default().ftl),
        faults,
        unreadable,
        pins,
        edge_cases,
        background_cuts: args.background_cuts,
        ..Options::default()
    };
    if args.composition.is_some() && !has_compositions(options.kind()) {
        let kind = options.kind();
        return Err(Failure::input(anyhow!("--composition: {kind} has no compositions")));
    }
    if let Some(name) = &args.omit {
        omit::rule(name, &mut options, None)?;
    }
    options.violations_max = violations_max(args);
    options.only.clone_from(&args.only);
    Ok(options)
}

/// Refuses a part of a run that the seed does not have.
fn check_only(
    args: &CrashArgs,
    check: impl FnOnce(&Reduction) -> Result<(), String>,
) -> Result<(), Failure> {
    let Some(only) = &args.only else { return Ok(()) };
    if args.seeds != Some(1) {
        return Err(Failure::input(anyhow!("--only: a part of one seed: needs --seeds 1")));
    }
    check(only).map_err(|why| Failure::input(anyhow!("--only: {why}")))
}

/// Failing seeds after which a campaign ends: that a rule is left out is known after one.
fn violations_max(args: &CrashArgs) -> usize {
    let usual = if args.omit.is_some() { 1 } else { Options::default().violations_max };
    args.max_violations.map_or(usual, |most| most as usize)
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

/// What a campaign makes of the choices of a stack of that kind, on a line; nothing without one.
fn given(stack: Option<FtlKind>) -> String {
    stack.map_or_else(String::new, |kind| format!("  {}\n", given_keys(kind)))
}

/// The kind of a stack's FTL.
fn stack_kind(options: &Options) -> Option<FtlKind> {
    options.stack.as_ref().map(|stack| stack.config.kind())
}

/// What a campaign takes of a stack's device.
fn device(stack: &Stack) -> StackChoice {
    let timing = (stack.media.timing.name.clone(), stack.timing());
    StackChoice { geometry: stack.media.geometry, config: stack.ftl.clone(), timing }
}

/// Runs the seeds `first..end` until there are violations enough, or a signal comes.
fn campaign(options: &Options, first: u64, end: u64, jobs: u32) -> Ran {
    let (stop, violations) = (Interrupt::new(ON_SIGNAL), AtomicUsize::new(0));
    let (mut progress, mut all) = (Progress::new(), Vec::new());
    let seeds = end - first;
    spread(
        jobs,
        first..end,
        &|| stop.has_come() || violations.load(Ordering::Relaxed) >= options.violations_max,
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
    let report = report(all, options.violations_max);
    let end = match report.seeds == seeds {
        true => End::Whole,
        false if report.violations.len() >= options.violations_max => End::Stopped,
        false => End::Interrupted,
    };
    Ran { report, end, wall_s: progress.wall_s() }
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
