//! Campaigns on a file system: seeds from the first on, until there are cuts enough.

use super::e2fsck::E2fsck;
use crate::args::{BrokenRule, CrashArgs};
use crate::output::Failure;
use crate::pool::spread;
use crate::progress::Progress;
use anyhow::anyhow;
use clap::ValueEnum;
use nandscape_crash::fs::{Base, FsOptions, Oracle, run_fs_seed};
use nandscape_crash::{CampaignReport, FaultRates, Options, SeedOutcome};
use nandscape_fs::{ConfigError, FsConfig, FsKind};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cuts when nobody says how many.
const CUTS: u64 = 200;

/// Keys of a stack's `[fs]` that say how a campaign mounts its volumes.
const KEYS: [&str; 2] = ["data", "commit"];
/// Why the others are refused.
const WHY: &str = "a campaign makes small volumes of its own, and seeds choose times and memory; of [fs] it takes data \
                   and commit alone";

/// What a campaign found, and the file system that it ran on.
pub(crate) struct FsReport {
    pub(crate) report: CampaignReport,
    pub(crate) fs: FsConfig,
}

impl fmt::Display for FsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fs.kind().name())?;
        for (key, value) in self.fs.choices() {
            write!(f, ", {key}={value}")?;
        }
        write!(f, "\n{}", self.report)
    }
}

/// Runs a campaign.
pub(crate) fn campaign(kind: FsKind, args: &CrashArgs) -> Result<FsReport, Failure> {
    let mut options = options(kind, args)?;
    let oracle = args.on_fs.oracle_every.map(|_| E2fsck::find()).transpose()?;
    options.oracle_every = args.on_fs.oracle_every.unwrap_or(1);
    let end = u64::MAX;
    let report = until(args, end, &|seed| {
        let oracle = oracle.as_ref().map(|oracle| oracle as &dyn Oracle);
        run_fs_seed(seed, &options, oracle)
    });
    Ok(FsReport { report, fs: options.fs().clone() })
}

/// Runs seeds until there are cuts or violations enough. Which seeds count does not depend on the
/// number of threads.
fn until(args: &CrashArgs, end: u64, run: &(dyn Fn(u64) -> SeedOutcome + Sync)) -> CampaignReport {
    let violations_max = Options::default().violations_max;
    let (wanted, cuts, violations) =
        (args.cuts.unwrap_or(CUTS), AtomicU64::new(0), AtomicU64::new(0));
    let (mut progress, mut all) = (Progress::new(), Vec::new());
    let enough = || {
        cuts.load(Ordering::Relaxed) >= wanted
            || violations.load(Ordering::Relaxed) >= violations_max as u64
    };
    let work = |seed| {
        let outcome = run(seed);
        cuts.fetch_add(outcome.counts.cuts, Ordering::Relaxed);
        violations.fetch_add(u64::from(outcome.violation.is_some()), Ordering::Relaxed);
        outcome
    };
    spread(args.jobs, args.first..end, &enough, &work, |outcome| {
        all.push(outcome);
        progress.update("power cuts", cuts.load(Ordering::Relaxed) as f64 / wanted as f64);
    });
    all.sort_by_key(|outcome| outcome.seed);
    let mut report = CampaignReport::default();
    for outcome in all {
        if report.counts.cuts < wanted && report.violations.len() < violations_max {
            report.add(outcome);
        }
    }
    report
}

/// The command line's choices, else the stack's.
fn options(kind: FsKind, args: &CrashArgs) -> Result<FsOptions, Failure> {
    let stack = super::stack(args)?;
    if let Some(stack) = &stack {
        stack.check_fs_keys(&KEYS, WHY).map_err(Failure::input)?;
    }
    let given = stack.as_ref().and_then(|stack| Some(&stack.fs.as_ref()?.config));
    let given = given.filter(|given| given.kind() == kind);
    let mut fs = kind.config();
    let choices = given.map(FsConfig::choices).unwrap_or_default();
    for (key, value) in choices.into_iter().chain(args.on_fs.choices()) {
        let unknown = |ConfigError { why, .. }| Failure::input(anyhow!("--{key}: {why}"));
        fs.choose(key, value).map_err(unknown)?;
    }
    args.broken.map_or(Ok(()), |rule| leave_out(&mut fs, rule))?;
    let flash = Options {
        stack: stack.as_ref().map(super::device),
        faults: Some(FaultRates::default()),
        ..Options::default()
    };
    Ok(FsOptions::new(Base::Flash(Box::new(flash)), fs))
}

/// Leaves out a rule of the file system's recovery.
fn leave_out(fs: &mut FsConfig, rule: BrokenRule) -> Result<(), Failure> {
    let rule = rule.to_possible_value();
    let name = rule.as_ref().map_or("", |rule| rule.get_name());
    let of_ftl = |_| Failure::input(anyhow!("--broken: a rule of the FTL: leave out --fs"));
    fs.omit(name).map_err(of_ftl)
}
