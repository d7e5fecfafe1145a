//! `--calls` and `--enumerate`: call sequences on a fresh volume each, with power cuts on the way and at the end. Sequences
//! are independent, so the report does not depend on the number of threads.

use super::findings::End;
use super::ground::Ground;
use super::json::{head, joined, mounted};
use super::{ON_SIGNAL, again, violations_max, write_report};
use crate::args::CrashArgs;
use crate::command::COMMIT;
use crate::interrupt::Interrupt;
use crate::job::read_text;
use crate::output::Failure;
use crate::pool::{spread, threads};
use crate::progress::Progress;
use anyhow::anyhow;
use nandscape_crash::calls::{Case, parse};
use nandscape_crash::fs::FsOptions;
use nandscape_crash::fs::calls::{
    CallsOptions, CaseOutcome, CaseRunner, CutPoints, Enumeration, Finding,
};
use nandscape_crash::{KernelLoss, verdict};
use nandscape_fs::FsKind;
use nandscape_lab::run::VERSION;
use nandscape_rt::Stream;
use nandscape_rt::words::{counted, grouped};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cuts on the way of an enumerated sequence.
const CUTS_OF_ENUMERATED: u64 = 4;
/// Sequences that a thread runs in a row, on copies of one volume.
const BATCH: u64 = 64;
const CASES: [&str; 2] = ["case", "cases"];
const SEQUENCES: [&str; 2] = ["sequence", "sequences"];
const CUTS: [&str; 2] = ["power cut", "power cuts"];

/// Runs call sequences and prints what they showed.
pub(super) fn crash(
    kind: FsKind,
    args: &CrashArgs,
    fs: FsOptions,
    asked: &Asked<'_>,
) -> Result<(), Failure> {
    check(args)?;
    let sequences = Sequences::of(args, asked)?;
    let modes = fs.fs().choices();
    let cuts = match args.cuts {
        Some(cuts) => CutPoints::Some(cuts),
        None => match asked {
            Asked::File(_) => CutPoints::All,
            Asked::Enumeration(_) => CutPoints::Some(CUTS_OF_ENUMERATED),
        },
    };
    let options = CallsOptions { fs, cuts, seed: args.first };
    let ground = Ground { kind, modes, base: args.base(), full: false };
    let ran = run(&sequences, args, &options);
    if let Some((line, why)) = ran.tally.refused() {
        return Err(Failure::input(anyhow!("{}:{line}: {why}", sequences.name)));
    }
    let report = Report { args, sequences: &sequences, ran: &ran, ground: &ground };
    write_report(&|| report.text(), &|| report.json(), &args.output)?;
    report.result()
}

/// Which call sequences a command asks for.
pub(super) enum Asked<'a> {
    /// Those of a file.
    File(&'a Path),
    /// All of so many calls.
    Enumeration(u32),
}

impl<'a> Asked<'a> {
    /// None where it asks for a campaign.
    pub(super) fn by(args: &'a CrashArgs) -> Option<Self> {
        let file = args.on_fs.calls.as_deref().map(Self::File);
        file.or(args.on_fs.enumerate.map(Self::Enumeration))
    }
}

/// What means nothing to call sequences.
fn check(args: &CrashArgs) -> Result<(), Failure> {
    let refused = |option: &str, why: &str| {
        Err(Failure::input(anyhow!("{option}: {why}; leave it out with --calls and --enumerate")))
    };
    if args.on_fs.oracle_every.is_some() {
        return refused("--oracle-every", "call sequences are judged by the model alone");
    }
    if args.on_fs.damage_every.is_some() {
        return refused("--damage-every", "no copy of a call sequence's volume is damaged");
    }
    if args.only.is_some() {
        return refused("--only", "it names a part of a seed's run");
    }
    if args.seeds.is_some() && args.on_fs.calls.is_some() {
        return refused("--seeds", "a file of call sequences runs whole");
    }
    Ok(())
}

/// The sequences of a command.
struct Sequences {
    /// The file, or what is enumerated.
    name: String,
    /// What one and several are called.
    words: [&'static str; 2],
    source: Source,
}

enum Source {
    File(Vec<Case>),
    All(Enumeration),
    /// So many of an enumeration.
    Drawn(Enumeration, Vec<u64>),
}

impl Sequences {
    fn of(args: &CrashArgs, asked: &Asked<'_>) -> Result<Self, Failure> {
        let length = match asked {
            Asked::File(file) => {
                let (name, text) = read_text(file)?;
                let cases = parse(&text);
                let cases = cases
                    .map_err(|it| Failure::input(anyhow!("{name}:{}: {}", it.line, it.what)))?;
                return Ok(Self { name, words: CASES, source: Source::File(cases) });
            }
            Asked::Enumeration(length) => *length,
        };
        let all = Enumeration::new(length);
        let source = match args.seeds {
            None => Source::All(all),
            Some(count) => {
                let mut rng = Stream::new(args.first, "enumerated");
                let numbers = all.numbers();
                let is_sequence = |number: &u64| all.case(*number).is_some();
                let drawn = (0..).map(|_| rng.below(numbers)).filter(is_sequence);
                let drawn = drawn.take(count as usize).collect();
                Source::Drawn(all, drawn)
            }
        };
        let calls = counted(length.into(), ["call", "calls"]);
        Ok(Self { name: format!("sequences of {calls}"), words: SEQUENCES, source })
    }

    /// Numbers of sequences; some may be none.
    fn numbers(&self) -> u64 {
        match &self.source {
            Source::File(cases) => cases.len() as u64,
            Source::All(all) => all.numbers(),
            Source::Drawn(_, drawn) => drawn.len() as u64,
        }
    }

    fn case(&self, number: u64) -> Option<Case> {
        match &self.source {
            Source::File(cases) => cases.get(number as usize).cloned(),
            Source::All(all) => all.case(number),
            Source::Drawn(all, drawn) => all.case(drawn[number as usize]),
        }
    }

    const fn is_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }
}

/// Sequences that ran, and how that ended.
struct Ran {
    tally: Tally,
    end: End,
    wall_s: f64,
}

/// What sequences showed.
#[derive(Default)]
struct Tally {
    sequences: u64,
    cuts: u64,
    losses: BTreeMap<KernelLoss, Lost>,
    /// Sequences with a violation, and all of a file.
    shown: Vec<(Case, CaseOutcome)>,
    violations: usize,
}

/// What was lost in a class.
struct Lost {
    cuts: u64,
    sequences: u64,
    /// The first sequence that lost something.
    first: Case,
}

impl Tally {
    fn add(&mut self, case: Case, outcome: CaseOutcome, is_file: bool) {
        self.sequences += 1;
        self.cuts += outcome.cuts;
        for (loss, cuts) in &outcome.losses {
            self.lose(*loss, *cuts, 1, || case.clone());
        }
        self.violations += usize::from(outcome.finding.is_some());
        if is_file || outcome.finding.is_some() || outcome.refused.is_some() {
            self.shown.push((case, outcome));
        }
    }

    /// Takes in what later sequences showed.
    fn join(&mut self, later: Self) {
        self.sequences += later.sequences;
        self.cuts += later.cuts;
        for (loss, Lost { cuts, sequences, first }) in later.losses {
            self.lose(loss, cuts, sequences, || first);
        }
        self.violations += later.violations;
        self.shown.extend(later.shown);
    }

    fn lose(&mut self, loss: KernelLoss, cuts: u64, sequences: u64, case: impl FnOnce() -> Case) {
        let first = || Lost { cuts: 0, sequences: 0, first: case() };
        let lost = self.losses.entry(loss).or_insert_with(first);
        lost.cuts += cuts;
        lost.sequences += sequences;
    }

    /// The first case that cannot run: its line, and why.
    fn refused(&self) -> Option<(usize, &str)> {
        let refused = self.shown.iter().filter_map(|(_, outcome)| outcome.refused.as_ref());
        refused.map(|(line, why)| (*line, &**why)).next()
    }
}

/// Runs sequences until all have run, there are violations enough, or a signal comes.
fn run(sequences: &Sequences, args: &CrashArgs, options: &CallsOptions) -> Ran {
    let (stop, violations) = (Interrupt::new(ON_SIGNAL), AtomicUsize::new(0));
    let violations_max = violations_max(args);
    let (mut progress, mut batches) = (Progress::new(), Vec::new());
    let (numbers, is_file) = (sequences.numbers(), sequences.is_file());
    let batch_size = if is_file { 1 } else { BATCH };
    let enough = || stop.has_come() || violations.load(Ordering::Relaxed) >= violations_max;
    let work = |batch: u64| {
        let mut runner = CaseRunner::new(options);
        let from = batch * batch_size;
        let mut tally = Tally::default();
        for number in from..(from + batch_size).min(numbers) {
            let Some(case) = sequences.case(number) else { continue };
            let outcome = runner.run(&case);
            violations.fetch_add(usize::from(outcome.finding.is_some()), Ordering::Relaxed);
            tally.add(case, outcome, is_file);
        }
        (batch, tally)
    };
    let all = numbers.div_ceil(batch_size);
    spread(threads(args.jobs.jobs), 0..all, &enough, &work, |batch| {
        batches.push(batch);
        progress.update(sequences.words[1], batches.len() as f64 / all as f64);
    });
    batches.sort_by_key(|(batch, _)| *batch);
    let is_whole = batches.len() as u64 == all;
    let mut tally = Tally::default();
    for (_, batch) in batches {
        // Which batches count does not depend on the number of threads.
        if tally.violations < violations_max {
            tally.join(batch);
        }
    }
    let end = match tally.violations >= violations_max {
        true => End::Stopped,
        false if is_whole => End::Whole,
        false => End::Interrupted,
    };
    Ran { tally, end, wall_s: progress.wall_s() }
}

/// All of it, for people and as JSON.
struct Report<'a> {
    args: &'a CrashArgs,
    sequences: &'a Sequences,
    ran: &'a Ran,
    ground: &'a Ground,
}

impl Report<'_> {
    fn text(&self) -> String {
        let Self { args, sequences: Sequences { name, words, .. }, ran, ground } = self;
        let Ran { tally, wall_s, .. } = ran;
        let count = counted(tally.sequences, *words);
        let mut text = format!("{ground}{name}: {count}, {}\n", counted(tally.cuts, CUTS));
        if !tally.losses.is_empty() {
            text += "lost as the kernel loses it, not as POSIX expects:\n";
        }
        for (loss, Lost { cuts, sequences, first }) in &tally.losses {
            let (cuts, of) = (counted(*cuts, CUTS), counted(*sequences, *words));
            text += &format!("  {}: after {cuts} of {of}\n", loss.name());
            if !self.sequences.is_file() {
                text += &format!("    first: {}\n", calls(first, first.calls.len()).join("; "));
            }
        }
        for (case, outcome) in tally.shown.iter().filter(|_| self.sequences.is_file()) {
            if outcome.finding.is_none() && !outcome.losses.is_empty() {
                text += &format!("    {}: {}\n", numbers(outcome.losses.keys()), place(case));
            }
        }
        text += &self.verdict();
        for (case, outcome) in &tally.shown {
            if let Some(finding) = &outcome.finding {
                text += &format!("\n{}\n", self.in_full(case, finding));
            }
        }
        let speed = match tally.sequences {
            0 => String::new(),
            count => format!(", {:.2} s per 1,000", wall_s / count as f64 * 1_000.0),
        };
        let again = again::campaign(args);
        text + &format!(
            "\n  nandscape {VERSION} ({COMMIT}): {count} in {wall_s:.2} s{speed}\n  Reproduce: {again}\n"
        )
    }

    fn verdict(&self) -> String {
        let Ran { tally: Tally { sequences, violations, .. }, end, .. } = self.ran;
        let of = counted(*sequences, self.sequences.words);
        let verdict = verdict(*violations as u64, &of);
        match end {
            End::Whole => verdict + "\n",
            End::Stopped => format!("{verdict}; stopped (--max-violations)\n"),
            End::Interrupted => format!("{verdict}\nPARTIAL: interrupted; {of} finished\n"),
        }
    }

    /// What is wrong, and the calls that led there.
    fn in_full(&self, case: &Case, finding: &Finding) -> String {
        let mut lines = vec![format!("{}: {}", place(case), said(case, finding))];
        lines.push("  calls:".to_owned());
        lines.extend(calls(case, finding.calls).iter().map(|call| format!("    {call}")));
        lines.push("    CUT".to_owned());
        lines.extend(finding.expected.iter().map(|it| format!("    {}", it.is)));
        lines.join("\n")
    }

    fn json(&self) -> Value {
        let Self { args, sequences, ran: Ran { tally, end, .. }, ground } = self;
        let losses = tally.losses.iter().map(|(loss, Lost { cuts, sequences, first })| {
            let first = calls(first, first.calls.len());
            let lost = json!({ "cuts": cuts, "sequences": sequences, "first": first });
            (loss.number().to_owned(), lost)
        });
        let cases = tally.shown.iter().filter(|_| sequences.is_file());
        let cases: Vec<Value> = cases
            .map(|(case, outcome)| {
                let losses: Vec<&str> = outcome.losses.keys().map(|loss| loss.number()).collect();
                let kept = outcome.finding.is_none();
                let line = line(case);
                json!({ "name": case.name, "line": line, "cuts": outcome.cuts,
                    "passed": kept, "losses": losses })
            })
            .collect();
        let violations: Vec<Value> = tally
            .shown
            .iter()
            .filter_map(|(case, outcome)| {
                let finding = outcome.finding.as_ref()?;
                let calls = calls(case, finding.calls);
                let losses: Vec<&str> = finding.losses.iter().map(|loss| loss.number()).collect();
                Some(json!({ "name": case.name, "line": line(case), "message": finding.what,
                    "expected": finding.expected.as_ref().map(|it| it.is.to_string()),
                    "expected_line": finding.expected.as_ref().map(|it| it.line),
                    "at_end": finding.at_end, "losses": losses, "calls": calls }))
            })
            .collect();
        let shown = json!({
            "fs": mounted(ground),
            "sequences": tally.sequences,
            "cuts": tally.cuts,
            "losses": losses.collect::<Map<_, _>>(),
            "cases": cases,
            "violations": violations,
            "reproduce": again::campaign(args),
        });
        joined(head(args, tally.violations == 0, *end), shown)
    }

    /// A violation is a failure, and so is an interruption.
    fn result(&self) -> Result<(), Failure> {
        let Ran { tally: Tally { sequences, violations, .. }, end, .. } = self.ran;
        let of = counted(*sequences, self.sequences.words);
        match (end, *violations) {
            (End::Interrupted, _) => {
                Err(Failure::Interrupted(anyhow!("interrupted: {of} finished")))
            }
            (_, 0) => Ok(()),
            (_, n) => Err(Failure::run(anyhow!("violations in {} of {of}", grouped(n as u64)))),
        }
    }
}

/// The first calls of a case.
fn calls(case: &Case, count: usize) -> Vec<String> {
    case.calls.iter().take(count).map(|call| call.is.to_string()).collect()
}

/// The line of a case's first call.
fn line(case: &Case) -> usize {
    case.calls.first().map_or(1, |call| call.line)
}

/// Which case.
fn place(case: &Case) -> String {
    match &*case.name {
        "" => format!("line {}", line(case)),
        name => format!("case {name}"),
    }
}

/// Which cut left what.
fn said(case: &Case, finding: &Finding) -> String {
    let Finding { what, calls, at_end, expected, losses } = finding;
    let call = calls.checked_sub(1).and_then(|index| case.calls.get(index));
    let when = match (at_end, call) {
        (true, _) => "after the cut at its end".to_owned(),
        (false, Some(call)) => format!("after a cut during `{}`", call.is),
        (false, None) => "before its first call".to_owned(),
    };
    let class = match losses.is_empty() {
        true => String::new(),
        false => format!(" ({}: as the kernel, not as POSIX)", numbers(losses.iter())),
    };
    match expected {
        Some(expected) => format!("{when}, `{}` does not hold: {what}{class}", expected.is.what),
        None => format!("{when}: {what}{class}"),
    }
}

fn numbers<'a>(losses: impl Iterator<Item = &'a KernelLoss>) -> String {
    losses.map(|loss| loss.number()).collect::<Vec<_>>().join(", ")
}
