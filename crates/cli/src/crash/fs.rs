//! Campaigns on a file system: seeds from the first on, until there are cuts enough.

use super::calls::{self, Asked};
use super::findings::{End, SEEDS};
use super::ground::{DRAWN, Ground};
use super::write_report;
use super::{
    ON_SIGNAL, Ran, check_only, end_of, is_of_fs, json, key_of, omit, oracle, violations_max,
};
use crate::args::{BaseChoice, CrashArgs};
use crate::interrupt::Interrupt;
use crate::output::Failure;
use crate::pool::{spread, threads};
use crate::progress::Progress;
use anyhow::anyhow;
use nandscape_crash::fs::{Base, FsOptions, Oracle, run_fs_seed, shrink_fs_seed};
use nandscape_crash::{CampaignReport, FaultRates, Options, SeedOutcome, kind_of_name};
use nandscape_fs::{ConfigError, FsConfig, FsKind};
use nandscape_rt::words::{counted, grouped};
use std::sync::atomic::{AtomicU64, Ordering};

/// Cuts by default.
const CUTS: u64 = 200;

/// Runs a campaign and prints what it found.
pub(super) fn crash(kind: FsKind, args: &CrashArgs) -> Result<(), Failure> {
    check_base(args)?;
    let mut options = options(kind, args)?;
    if let Some(asked) = Asked::by(args) {
        return calls::crash(kind, args, options, &asked);
    }
    if args.seeds.is_some() && args.cuts.is_some() {
        return Err(Failure::input(anyhow!(
            "--seeds and --cuts: either says how long a campaign is"
        )));
    }
    let oracle = args.on_fs.oracle_every.map(|_| oracle::find(kind)).transpose()?;
    options.oracle_every = args.on_fs.oracle_every.unwrap_or(1);
    options.damage_every = args.on_fs.damage_every.unwrap_or(options.damage_every);
    let end = args.seeds.map_or(Ok(u64::MAX), |seeds| end_of(args, seeds))?;
    let wanted = match args.seeds {
        Some(seeds) => Wanted::Seeds(seeds),
        None => Wanted::Cuts(args.cuts.unwrap_or(CUTS)),
    };
    options.only.clone_from(&args.only);
    check_only(args, |only| only.check(options.rounds, true))?;
    let oracle = || oracle.as_deref().map(|oracle| oracle as &dyn Oracle);
    let ran = until(args, wanted, end, &|seed| run_fs_seed(seed, &options, oracle()));
    let modes = options.modes().into_iter();
    let modes = modes.map(|(key, value)| (key, value.unwrap_or(DRAWN))).collect();
    let ground = Ground { kind, modes, base: args.base(), full: options.full };
    let report = &ran.report;
    let findings = ran.findings(args, wanted.finished(report), &|found, budget, on_run| {
        shrink_fs_seed(found.violation.seed, &options, oracle(), budget, on_run)
    });
    let stack = match &options.base {
        Base::Flash(flash) => super::stack_kind(flash),
        Base::Adversary | Base::ZonedAdversary => None,
    };
    let text = || {
        let (totals, coverage) = (report.totals(), report.coverage.to_string());
        let given = super::given(stack);
        let losses = report.coverage.losses().map_or_else(String::new, |line| line + "\n");
        findings.text(&format!("{ground}{totals}{given}{}\n{losses}", coverage.trim_end()))
    };
    write_report(&text, &|| json::fs_campaign(&findings, report, &ground, stack), &args.output)?;
    findings.result()
}

/// How long a campaign is.
#[derive(Clone, Copy)]
enum Wanted {
    Seeds(u64),
    Cuts(u64),
}

impl Wanted {
    fn fraction(self, seeds: u64, cuts: u64) -> f64 {
        match self {
            Self::Seeds(wanted) => seeds as f64 / wanted as f64,
            Self::Cuts(wanted) => cuts as f64 / wanted as f64,
        }
    }

    fn finished(self, report: &CampaignReport) -> String {
        let (done, wanted) = match self {
            Self::Seeds(wanted) => (report.seeds, counted(wanted, SEEDS)),
            Self::Cuts(wanted) => {
                (report.counts.cuts, counted(wanted, ["power cut", "power cuts"]))
            }
        };
        format!("{} of {wanted}", grouped(done))
    }
}

/// Runs seeds until there are cuts or violations enough, or a signal comes. Which seeds count does not depend on the
/// number of threads.
fn until(
    args: &CrashArgs,
    wanted: Wanted,
    end: u64,
    run: &(dyn Fn(u64) -> SeedOutcome + Sync),
) -> Ran {
    let violations_max = violations_max(args);
    let (stop, cuts, violations) =
        (Interrupt::new(ON_SIGNAL), AtomicU64::new(0), AtomicU64::new(0));
    let (mut progress, mut all) = (Progress::new(), Vec::new());
    let cuts_wanted = match wanted {
        Wanted::Seeds(_) => u64::MAX,
        Wanted::Cuts(cuts) => cuts,
    };
    let enough = || {
        stop.has_come()
            || cuts.load(Ordering::Relaxed) >= cuts_wanted
            || violations.load(Ordering::Relaxed) >= violations_max as u64
    };
    let work = |seed| {
        let outcome = run(seed);
        cuts.fetch_add(outcome.counts.cuts, Ordering::Relaxed);
        violations.fetch_add(u64::from(outcome.violation.is_some()), Ordering::Relaxed);
        outcome
    };
    spread(threads(args.jobs.jobs), args.first..end, &enough, &work, |outcome| {
        all.push(outcome);
        let cuts = cuts.load(Ordering::Relaxed);
        progress.update("power cuts", wanted.fraction(all.len() as u64, cuts));
    });
    all.sort_by_key(|outcome| outcome.seed);
    let mut report = CampaignReport::default();
    for outcome in all {
        if report.counts.cuts < cuts_wanted && report.violations.len() < violations_max {
            report.add(outcome);
        }
    }
    let end = match wanted.fraction(report.seeds, report.counts.cuts) >= 1.0 {
        true => End::Whole,
        false if report.violations.len() >= violations_max => End::Stopped,
        false => End::Interrupted,
    };
    Ran { report, end, wall_s: progress.wall_s() }
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
        ftl: args.ftl.as_deref().and_then(kind_of_name).unwrap_or(FsOptions::ftl_kind(kind)),
        faults: Some(FaultRates::default()),
        ..Options::default()
    };
    let base = args.base();
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
    options.full = args.on_fs.full;
    options.check(args.first).map_err(|ConfigError { key, why }| match key {
        "" => Failure::input(anyhow!("--fs {}: {why}", kind.name())),
        key => Failure::input(anyhow!("--set fs.{key}: {why}")),
    })?;
    Ok(options)
}

/// A stack describes what the hostile device takes the place of.
fn check_base(args: &CrashArgs) -> Result<(), Failure> {
    match (args.base(), &args.stack) {
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
