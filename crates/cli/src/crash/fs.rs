//! Campaigns on a file system: seeds from the first on, until there are cuts enough.

use super::e2fsck::E2fsck;
use crate::args::{BrokenRule, CommitChoice, CrashArgs, FileSystemChoice};
use crate::output::Failure;
use crate::pool::spread;
use crate::progress::Progress;
use anyhow::anyhow;
use nandscape_crash::fs::{Base, FsOptions, Oracle, run_fs_seed};
use nandscape_crash::{CampaignReport, FaultRates, Options, SeedOutcome};
use nandscape_fs::ext4::Commit;
use nandscape_fs::ext4::journal::Defect;
use nandscape_lab::stack::{FsStack, commit_name, data_name};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cuts when nobody says how many.
const CUTS: u64 = 200;
/// Rings of file records and their blocks: little, so that they fill.
const IJOURNAL: Commit = Commit::Ijournal { slots: 2, slot_blocks: 24 };

/// Keys of a stack's `[fs]` that say how a campaign mounts its volumes.
const KEYS: [&str; 2] = ["data", "commit"];
/// Why the others are refused.
const WHY: &str = "a campaign makes small volumes of its own, and seeds choose times and memory; of [fs] it takes data \
                   and commit alone";

/// What a campaign found, and how it mounted the file system.
pub(crate) struct FsReport {
    pub(crate) report: CampaignReport,
    pub(crate) data: &'static str,
    pub(crate) commit: &'static str,
}

impl fmt::Display for FsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, data, commit } = self;
        write!(f, "{}, data={data}, commit={commit}\n{report}", FsStack::KIND)
    }
}

/// Runs a campaign.
pub(crate) fn campaign(
    FileSystemChoice::Ext4: FileSystemChoice,
    args: &CrashArgs,
) -> Result<FsReport, Failure> {
    let mut options = options(args)?;
    let oracle = args.on_fs.oracle_every.map(|_| E2fsck::find()).transpose()?;
    options.oracle_every = args.on_fs.oracle_every.unwrap_or(1);
    let end = u64::MAX;
    let report = until(args, end, &|seed| {
        let oracle = oracle.as_ref().map(|oracle| oracle as &dyn Oracle);
        run_fs_seed(seed, &options, oracle)
    });
    Ok(FsReport { report, data: data_name(options.data), commit: commit_name(options.commit) })
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
fn options(args: &CrashArgs) -> Result<FsOptions, Failure> {
    let stack = super::stack(args)?;
    if let Some(stack) = &stack {
        stack.check_fs_keys(&KEYS, WHY).map_err(Failure::input)?;
    }
    let mounted = stack.as_ref().and_then(|stack| Some(&stack.fs.as_ref()?.mount));
    let data = args.on_fs.data().or(mounted.map(|mount| mount.data)).unwrap_or_default();
    let by_file = match args.on_fs.commit {
        Some(commit) => commit == CommitChoice::Ijournal,
        None => mounted.is_some_and(|mount| mount.commit != Commit::Jbd2),
    };
    let flash = Options {
        stack: stack.as_ref().map(super::device),
        faults: Some(FaultRates::default()),
        ..Options::default()
    };
    let options = FsOptions::new(Base::Flash(Box::new(flash)), data);
    let commit = if by_file { IJOURNAL } else { Commit::Jbd2 };
    Ok(FsOptions { commit, defect: args.broken.map(defect).transpose()?, ..options })
}

/// The rule of the journal that is to be left out.
fn defect(rule: BrokenRule) -> Result<Defect, Failure> {
    match rule {
        BrokenRule::CommitBeforeData => Ok(Defect::CommitBeforeData),
        BrokenRule::TailBeforeCheckpoint => Ok(Defect::TailBeforeCheckpoint),
        BrokenRule::MissingRevoke => Ok(Defect::MissingRevoke),
        BrokenRule::MissingBarrier => Ok(Defect::MissingBarrier),
        _ => Err(Failure::input(anyhow!("--broken: a rule of the FTL: leave out --fs"))),
    }
}
