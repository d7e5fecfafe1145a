//! Campaigns on a file system: seeds from the first on, until there are cuts enough.

use super::{is_of_fs, key_of, omit, oracle};
use crate::args::{BaseChoice, CrashArgs};
use crate::output::Failure;
use crate::pool::spread;
use crate::progress::Progress;
use anyhow::anyhow;
use nandscape_crash::fs::{Base, FsOptions, run_fs_seed};
use nandscape_crash::{CampaignReport, FaultRates, Options, SeedOutcome};
use nandscape_fs::{ConfigError, FsConfig, FsKind};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cuts by default.
const CUTS: u64 = 200;

/// What a campaign found, and the file system and the base that it ran on.
pub(crate) struct FsReport {
    pub(crate) report: CampaignReport,
    pub(crate) kind: FsKind,
    /// How it was mounted: keys and values of `[fs]`.
    pub(crate) modes: Vec<(&'static str, &'static str)>,
    pub(crate) base: BaseChoice,
}

/// The value of a mode that each seed drew.
const DRAWN: &str = "drawn";

impl fmt::Display for FsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        for (key, value) in &self.modes {
            write!(f, ", {key}={value}")?;
        }
        write!(f, ", base={}\n{}\n{}", self.base.name(), self.report, self.report.coverage)
    }
}

/// Runs a campaign.
pub(crate) fn campaign(kind: FsKind, args: &CrashArgs) -> Result<FsReport, Failure> {
    check_base(args)?;
    let mut options = options(kind, args)?;
    let oracle = args.on_fs.oracle_every.map(|_| oracle::find(kind)).transpose()?;
    options.oracle_every = args.on_fs.oracle_every.unwrap_or(1);
    options.damage_every = args.on_fs.damage_every.unwrap_or(options.damage_every);
    let end = u64::MAX;
    let report = until(args, end, &|seed| {
        run_fs_seed(seed, &options, oracle.as_deref().map(|oracle| oracle as _))
    });
    let modes = options.modes().into_iter();
    let modes = modes.map(|(key, value)| (key, value.unwrap_or(DRAWN))).collect();
    Ok(FsReport { report, kind, modes, base: args.on_fs.base })
}

/// Runs seeds until there are cuts or violations enough. Which seeds count does not depend on the
/// number of threads.
fn until(args: &CrashArgs, end: u64, run: &(dyn Fn(u64) -> SeedOutcome + Sync)) -> CampaignReport {
    // That a rule is left out is known after one.
    let violations_max = if args.omit.is_some() { 1 } else { Options::default().violations_max };
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
    let mut fs = kind.config();
    let keys = fs.choice_keys();
    let (modes, others): (Vec<_>, Vec<_>) =
        args.set.iter().partition(|set| mode(set, &keys).is_some());
    let why = format!(
        "a campaign makes small volumes of its own, and seeds choose times and memory; of [fs] it \
         takes {} alone",
        keys.join(" and ")
    );
    let others: Vec<String> = others.into_iter().cloned().collect();
    if let (None, Some(set)) = (&args.stack, others.iter().find(|set| is_of_fs(set))) {
        return Err(Failure::input(anyhow!("--set {}: {why}", key_of(set))));
    }
    let stack = super::stack(args, &others)?;
    if let Some(stack) = &stack {
        let named = fs.choices().into_iter().map(|(key, _)| key);
        let known: Vec<_> = named.chain(["kind"]).collect();
        stack.check_fs_keys(&known, &why).map_err(Failure::input)?;
    }
    let given = stack.as_ref().and_then(|stack| Some(&stack.fs.as_ref()?.config));
    let given = given.filter(|given| given.kind() == kind);
    let given = given.map(FsConfig::choices).unwrap_or_default();
    let mut chosen = Vec::new();
    let mut choose = |key: &'static str, value: &str| {
        let unknown = |ConfigError { why, .. }| Failure::input(anyhow!("--set fs.{key}: {why}"));
        chosen.push(key);
        fs.choose(key, value).map_err(unknown)
    };
    for (key, value) in given.into_iter().chain(args.on_fs.choices()) {
        choose(key, value)?;
    }
    for (key, value) in modes.into_iter().filter_map(|set| mode(set, &keys)) {
        choose(key, value)?;
    }
    let mut flash = Options {
        stack: stack.as_ref().map(super::device),
        ftl: FsOptions::ftl_kind(kind),
        faults: Some(FaultRates::default()),
        ..Options::default()
    };
    let base = args.on_fs.base;
    if let Some(name) = &args.omit {
        omit::rule(name, &mut flash, Some(&mut fs))?;
        if base != BaseChoice::Flash && flash.omit.is_some() {
            let why = format!("a rule of an FTL: --base {} has none", base.name());
            return Err(Failure::input(anyhow!("--omit {name}: {why}")));
        }
    }
    let base = match base {
        BaseChoice::Flash => Base::Flash(Box::new(flash)),
        BaseChoice::Adversary => Base::Adversary,
        BaseChoice::AdversaryZoned if kind != FsKind::F2fs => {
            let why = "only f2fs writes to zones";
            return Err(Failure::input(anyhow!("--base {}: {why}", base.name())));
        }
        BaseChoice::AdversaryZoned => Base::ZonedAdversary,
    };
    let mut options = FsOptions::new(base, fs);
    options.given = chosen;
    options.check(args.first).map_err(|ConfigError { key, why }| match key {
        "" => Failure::input(anyhow!("--fs {}: {why}", kind.name())),
        key => Failure::input(anyhow!("--set fs.{key}: {why}")),
    })?;
    Ok(options)
}

/// A stack describes what the hostile device takes the place of.
fn check_base(args: &CrashArgs) -> Result<(), Failure> {
    match (args.on_fs.base, &args.stack) {
        (BaseChoice::Flash, _) | (_, None) => Ok(()),
        (base, Some(stack)) => Err(Failure::input(anyhow!(
            "--base {} --stack {stack}: a stack has an FTL and media, which this base replaces; \
             --set fs.KEY=VALUE chooses the modes of the file system",
            base.name()
        ))),
    }
}

/// Key and value of an override that chooses one of these modes of the file system.
fn mode<'a>(set: &'a str, keys: &[&'static str]) -> Option<(&'static str, &'a str)> {
    let (key, value) = set.split_once('=')?;
    let key = key.trim().strip_prefix("fs.")?;
    let key = keys.iter().find(|known| **known == key)?;
    Some((key, value.trim().trim_matches('"')))
}
