//! Running until steady state (SNIA, Solid State Storage Performance Test Specification 2.0.2): the
//! load goes on in rounds until IOPS and write amplification are steady over five of them, and these
//! five, the measurement window, are what is reported.
//!
//! SNIA's rounds are sets of tests or minutes; here a round is an amount of I/O or of virtual time. A
//! round ends at the first millisecond at which its amount is reached, and not before it has written a fifth of the
//! spare space, if it writes at all: a window of shorter rounds could lie within a transient.

use super::jobs::{RunningJobs, first_ramp, uniform_bytes, writes_at_random};
use super::{INTERVAL, Load, Measurement, RunEnd, RunningLoad, drive};
use crate::run::counts::Counts;
use crate::run::criterion::{self, Ground, Stretch, WINDOWS};
use crate::run::error::RunError;
use crate::run::observer::Observer;
use crate::run::rig::Rig;
use crate::run::series::Totals;
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::SectorCounts;
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts as _;
use nandscape_workload::engine::{JobResult, RunState};
use nandscape_workload::fio::JobFile;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// Rounds of a measurement window.
pub const WINDOW_ROUNDS: u32 = WINDOWS as u32;
/// Rounds at most by default; SNIA's own limit.
const ROUNDS_MAX: u32 = 25;
/// A round by default, in percent of the logical space.
const ROUND_PERCENT: u32 = 25;

/// Until when a load goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UntilSteady {
    /// What a round is.
    pub round: Round,
    /// Rounds at most, no fewer than a measurement window has.
    pub rounds_max: u32,
}

/// How long a round is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// So many percent of the logical space, read, written or trimmed.
    Percent(u32),
    /// So many bytes.
    Bytes(u64),
    /// Virtual time.
    Time(Nanos),
}

impl Default for UntilSteady {
    fn default() -> Self {
        Self { round: Round::Percent(ROUND_PERCENT), rounds_max: ROUNDS_MAX }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Bytes(bytes) => {
                whole(f, *bytes, [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)], "")
            }
            Self::Time(time) => {
                whole(f, time.0, [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)], "ns")
            }
        }
    }
}

/// In the largest of `units` that divides it, so that it is read back as it was.
fn whole(
    f: &mut fmt::Formatter<'_>,
    number: u64,
    units: [(&str, u64); 3],
    one: &str,
) -> fmt::Result {
    match units.into_iter().find(|(_, size)| number >= *size && number.is_multiple_of(*size)) {
        Some((unit, size)) => write!(f, "{}{unit}", number / size),
        None => write!(f, "{number}{one}"),
    }
}

impl fmt::Display for UntilSteady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round={},rounds={}", self.round, self.rounds_max)
    }
}

impl FromStr for UntilSteady {
    type Err = String;

    /// `round=LENGTH,rounds=N`, either, both or neither.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut until = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("round", length)) => until.round = length.parse()?,
                Some(("rounds", rounds)) => until.rounds_max = rounds_max(rounds)?,
                _ => {
                    return Err(format!(
                        "expected round=LENGTH or rounds=N, by commas, found \"{part}\""
                    ));
                }
            }
        }
        Ok(until)
    }
}

fn rounds_max(text: &str) -> Result<u32, String> {
    let rounds = text.parse().ok().filter(|rounds| (WINDOW_ROUNDS..=10_000).contains(rounds));
    rounds.ok_or_else(|| format!("expected {WINDOW_ROUNDS} to 10000 rounds, found \"{text}\""))
}

impl FromStr for Round {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let timed = crate::stack::parse_time(text).map(Self::Time);
        let percent = || text.strip_suffix('%')?.parse().ok().map(Self::Percent);
        let bytes = || crate::stack::parse_size(text).map(Self::Bytes);
        timed
            .or_else(percent)
            .or_else(bytes)
            .filter(|round| !round.is_empty())
            .ok_or_else(|| format!("expected a round such as 25%, 1GiB or 500ms, found \"{text}\""))
    }
}

impl Round {
    const fn is_empty(self) -> bool {
        matches!(self, Self::Percent(0) | Self::Bytes(0) | Self::Time(Nanos::ZERO))
    }

    /// Whether one that began at `began` is over on a device of so many sectors.
    fn is_over(self, logical_sectors: u64, began: (Nanos, u64), now: (Nanos, u64)) -> bool {
        let bytes = now.1 - began.1;
        match self {
            Self::Time(time) => now.0.saturating_sub(began.0) >= time,
            Self::Bytes(wanted) => bytes >= wanted,
            Self::Percent(percent) => {
                let device = u128::from(logical_sectors) * u128::from(SECTOR_BYTES);
                u128::from(bytes) * 100 >= device * u128::from(percent)
            }
        }
    }
}

/// How a run until steady state went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundsRun {
    /// What was asked for.
    pub asked: UntilSteady,
    /// Rounds that were run; the last five of them are reported.
    pub rounds: u32,
}

/// A job file that runs in rounds until it is steady.
pub(in crate::run) struct SteadyJobs<'a> {
    pub(in crate::run) file: &'a JobFile,
    pub(in crate::run) until: UntilSteady,
    /// What is different from what the file asks for.
    pub(in crate::run) warnings: Vec<String>,
}

impl Load for SteadyJobs<'_> {
    /// Runs the jobs, which go on for ever, until the last five rounds are steady, or as many as are
    /// allowed. What is measured is those five.
    fn measure(
        self,
        rig: &mut Rig,
        ground: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError> {
        let Self { file, until, mut warnings } = self;
        let file = endless(file)?;
        let mut jobs = RunningJobs::new(&file, rig, seed, observer)?;
        warnings.append(&mut jobs.warnings);
        let ramp = first_ramp(&file);
        if ramp > Nanos::ZERO {
            jobs.until = ramp;
            // A run that is interrupted in its ramp has the figures of one pause more.
            drive(&mut jobs, rig, observer)?;
            restart(&mut jobs, rig);
        }
        let mut run = SteadyStateRun::new(jobs, until, *ground, rig);
        let end = drive(&mut run, rig, observer)?;
        let measured = run.finish(rig, end);
        let (random_writes, uniform_bytes) = (writes_at_random(&file), uniform_bytes(&file));
        Ok(Measurement { random_writes, uniform_bytes, warnings, ..measured })
    }
}

/// The same jobs, each in a loop without end.
fn endless(file: &JobFile) -> Result<JobFile, RunError> {
    let mut file = file.clone();
    if let Some(spec) = file.jobs.iter().skip(1).find(|spec| spec.stonewall) {
        let why = "stonewall: jobs that run until steady state run together";
        return Err(RunError::Job(format!("{}: {why}", spec.place)));
    }
    for spec in &mut file.jobs {
        (spec.time_based, spec.runtime) = (true, None);
        // Rounds say when they are steady.
        spec.steady.criterion = None;
    }
    Ok(file)
}

/// What jobs and device did since the last call, and counts from zero again.
fn restart(jobs: &mut RunningJobs, rig: &mut Rig) -> (Vec<JobResult>, Counts) {
    let counts = rig.counts();
    jobs.sampler.before = jobs.sampler.before.plus(&rig.sample());
    rig.reset_counts();
    (jobs.engine.cut(), counts)
}

/// Totals of a job whose counters were reset now and then.
fn totals(jobs: &RunningJobs, rig: &Rig) -> Totals {
    jobs.totals(jobs.sampler.before.plus(&rig.sample()))
}

/// Jobs that go on in rounds.
struct SteadyStateRun {
    jobs: RunningJobs,
    until: UntilSteady,
    /// Those that are over.
    rounds: Rounds,
    /// Totals when the current one began, and bytes of all directions.
    from: Totals,
    from_bytes: u64,
    /// Free sectors then.
    from_free: u64,
    /// User sectors that a round writes at least, if it writes any.
    round_min: u64,
}

impl SteadyStateRun {
    fn new(jobs: RunningJobs, until: UntilSteady, ground: Ground, rig: &Rig) -> Self {
        let (from, from_bytes) = (totals(&jobs, rig), jobs.bytes());
        let round_min = ground.round_min(WINDOW_ROUNDS.into());
        let (rounds, from_free) = (Rounds::new(ground), rig.free_sectors());
        Self { jobs, until, rounds, from, from_bytes, from_free, round_min }
    }

    /// Whether the current round has taken so much, and written so much.
    fn is_round_over(&self, rig: &Rig) -> bool {
        let now = (self.jobs.engine.now(), self.jobs.bytes());
        let written = rig.sectors().user;
        let sectors = rig.caps().sectors;
        self.until.round.is_over(sectors, (self.from.at, self.from_bytes), now)
            && (written == 0 || written >= self.round_min)
    }

    /// Ends the current round, and begins the next.
    fn end_round(&mut self, rig: &mut Rig) {
        let to = totals(&self.jobs, rig);
        let (reports, counts) = restart(&mut self.jobs, rig);
        let from = std::mem::replace(&mut self.from, totals(&self.jobs, rig));
        self.from_bytes = self.jobs.bytes();
        let to_free = rig.free_sectors();
        let free = (std::mem::replace(&mut self.from_free, to_free), to_free);
        self.rounds.push(RoundDone { from, to, free, reports, counts });
    }

    fn finish(mut self, rig: &mut Rig, end: RunEnd) -> Measurement {
        if self.jobs.engine.now() > self.from.at {
            self.end_round(rig);
        }
        let Self { jobs, until, rounds, from: last, .. } = self;
        let steady = match end {
            RunEnd::Interrupted => {
                Err("not at steady state: the last round was cut short".to_owned())
            }
            RunEnd::Finished => rounds.steady(),
        };
        let run = RoundsRun { asked: until, rounds: rounds.len() };
        let mut results = jobs.engine.finish();
        let (from, reports, counts) = rounds.into_window().unwrap_or_default();
        for (job, window) in results.jobs.iter_mut().zip(reports) {
            (job.directions, job.sync) = (window.directions, window.sync);
            (job.runtime, job.depths) = (window.runtime, window.depths);
            (job.began, job.ended) = (window.began, window.ended);
            job.zones = window.zones;
        }
        let mut measured = Measurement::new(results, from, counts, end);
        if measured.totals.last().is_none_or(|known| known.at < last.at) {
            measured.totals.push(last);
        }
        Measurement { steady, rounds: Some(run), ..measured }
    }
}

impl RunningLoad for SteadyStateRun {
    fn step(&mut self, rig: &mut Rig) -> Result<RunState, RunError> {
        let stop = self.jobs.engine.now().saturating_add(INTERVAL);
        let state = self.jobs.run_to(rig, stop)?;
        // Jobs without end that have ended: something failed.
        let failed = state == RunState::Finished;
        if !failed && !self.is_round_over(rig) {
            return Ok(RunState::Paused);
        }
        self.end_round(rig);
        let enough = self.rounds.len() >= self.until.rounds_max || self.rounds.steady().is_ok();
        Ok(if failed || enough { RunState::Finished } else { RunState::Paused })
    }

    fn now(&self, _: &Rig) -> Nanos {
        self.jobs.engine.now()
    }

    fn fraction(&self) -> f64 {
        f64::from(self.rounds.len()) / f64::from(self.until.rounds_max)
    }
}

/// One round.
struct RoundDone {
    /// Totals when it began and when it ended.
    from: Totals,
    to: Totals,
    /// Free sectors when it began and when it ended.
    free: (u64, u64),
    reports: Vec<JobResult>,
    counts: Counts,
}

/// The rounds so far: figures of all, everything else of the last five.
struct Rounds {
    ground: Ground,
    /// User sectors placed in all rounds.
    written: u64,
    iops: Vec<f64>,
    waf: Vec<Option<f64>>,
    window: VecDeque<RoundDone>,
}

impl Rounds {
    /// None yet, on this device.
    fn new(ground: Ground) -> Self {
        Self { ground, written: 0, iops: Vec::new(), waf: Vec::new(), window: VecDeque::new() }
    }

    fn push(&mut self, round: RoundDone) {
        self.written += round.counts.ftl.sectors.user;
        self.iops.push(round.to.iops_since(&round.from));
        self.waf.push(round.to.waf_since(&round.from).gc);
        self.window.push_back(round);
        if self.window.len() > WINDOWS {
            self.window.pop_front();
        }
    }

    fn len(&self) -> u32 {
        self.iops.len() as u32
    }

    /// Whether the window is steady.
    fn steady(&self) -> Result<(), String> {
        let first = self.waf.len().saturating_sub(WINDOWS);
        let waf: Option<Vec<f64>> = self.waf[first..].iter().copied().collect();
        criterion::settled("IOPS", &self.iops)
            .and_then(|()| {
                waf.map_or(Ok(()), |waf| criterion::settled("write amplification", &waf))
            })
            .and_then(|()| self.ground.check(&self.stretch()))
            .map_err(|why| format!("{why}, after {} rounds", self.len()))
    }

    /// The window as a whole.
    fn stretch(&self) -> Stretch {
        let mut sectors = SectorCounts::default();
        self.window.iter().for_each(|round| sectors.add(&round.counts.ftl.sectors));
        let from = self.window.front().map_or(0, |round| round.free.0);
        let to = self.window.back().map_or(0, |round| round.free.1);
        let requests = self.window.iter().map(|round| round.counts.queue.requests).sum();
        Stretch { written_before: self.written - sectors.user, sectors, free: (from, to), requests }
    }

    /// Where the window begins, and what jobs and device did in it.
    fn into_window(self) -> Option<(Totals, Vec<JobResult>, Counts)> {
        let mut rounds = self.window.into_iter();
        let RoundDone { from, mut reports, mut counts, .. } = rounds.next()?;
        for round in rounds {
            reports.iter_mut().zip(&round.reports).for_each(|(sum, more)| sum.extend(more));
            counts.extend(&round.counts);
        }
        Some((from, reports, counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_and_shown() {
        let read = |text: &str| text.parse::<UntilSteady>();
        assert_eq!(read(""), Ok(UntilSteady::default()));
        for text in [
            "round=25%,rounds=25",
            "round=1000,rounds=5",
            "round=64KiB,rounds=5",
            "round=500us,rounds=40",
            "round=1500ns,rounds=40",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        assert_eq!(read("round=500us"), read("round=500000ns"));
        assert_eq!(read("round=1MiB"), read("round=1048576"));
        for wrong in ["round", "rounds=4", "round=0s", "round=0%", "round=x", "rouns=5", "5"] {
            assert!(read(wrong).unwrap_err().contains("expected"), "{wrong}");
        }
    }

    #[test]
    fn a_round_is_over_when_its_amount_is_reached() {
        let over = |text: &str, bytes: u64, ms: u64| {
            let round: Round = text.parse().unwrap();
            round.is_over(100, (Nanos::from_ms(5), 1000), (Nanos::from_ms(5 + ms), 1000 + bytes))
        };
        assert!(over("25%", 25 * 4096, 0) && !over("25%", 25 * 4096 - 1, 9));
        assert!(over("1k", 1024, 0) && !over("1k", 1023, 9));
        assert!(over("2ms", 0, 2) && !over("2ms", 9999, 1));
    }
}
