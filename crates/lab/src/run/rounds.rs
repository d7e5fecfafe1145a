//! Running until steady state (SNIA, Solid State Storage Performance Test Specification 2.0.2): the
//! load goes on in rounds until IOPS and write amplification are steady over five of them, and these
//! five, the measurement window, are what is reported.
//!
//! SNIA's rounds are sets of tests or minutes; here a round is an amount of I/O or of virtual time. A
//! round ends at the first millisecond at which its amount is reached, and not before it has written a fifth of the
//! spare space, if it writes at all: a window of shorter rounds could lie within a transient.

use super::counts::Counts;
use super::course::{self, Totals, WINDOWS};
use super::settled::{Ground, Stretch};
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::SectorCounts;
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts as _;
use nandscape_workload::engine::JobResult;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// Rounds of a measurement window.
pub const WINDOW_ROUNDS: u32 = WINDOWS as u32;
/// Rounds at most when nobody says; SNIA's own limit.
const ROUNDS_MAX: u32 = 25;
/// A round when nobody says, in percent of the logical space.
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
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Time(time) => write!(f, "{}ns", time.0),
        }
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
    pub(super) fn is_over(
        self,
        logical_sectors: u64,
        began: (Nanos, u64),
        now: (Nanos, u64),
    ) -> bool {
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

/// One round.
pub(super) struct RoundDone {
    /// Totals when it began and when it ended.
    pub(super) from: Totals,
    pub(super) to: Totals,
    /// Free sectors when it began and when it ended.
    pub(super) free: (u64, u64),
    pub(super) reports: Vec<JobResult>,
    pub(super) counts: Counts,
}

/// The rounds so far: figures of all, everything else of the last five.
pub(super) struct Rounds {
    ground: Ground,
    /// User sectors placed in all rounds.
    written: u64,
    iops: Vec<f64>,
    waf: Vec<Option<f64>>,
    window: VecDeque<RoundDone>,
}

impl Rounds {
    /// None yet, on this device.
    pub(super) fn new(ground: Ground) -> Self {
        Self { ground, written: 0, iops: Vec::new(), waf: Vec::new(), window: VecDeque::new() }
    }

    pub(super) fn push(&mut self, round: RoundDone) {
        self.written += round.counts.ftl.sectors.user;
        self.iops.push(round.to.iops_since(&round.from));
        self.waf.push(round.to.waf_since(&round.from).gc);
        self.window.push_back(round);
        if self.window.len() > WINDOWS {
            self.window.pop_front();
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.iops.len() as u32
    }

    /// Whether the window is steady.
    pub(super) fn steady(&self) -> Result<(), String> {
        let first = self.waf.len().saturating_sub(WINDOWS);
        let waf: Option<Vec<f64>> = self.waf[first..].iter().copied().collect();
        course::settled("IOPS", &self.iops)
            .and_then(|()| waf.map_or(Ok(()), |waf| course::settled("write amplification", &waf)))
            .and_then(|()| self.ground.check(&self.stretch()))
            .map_err(|why| format!("{why}, after {} rounds", self.len()))
    }

    /// The window as a whole.
    fn stretch(&self) -> Stretch {
        let mut sectors = SectorCounts::default();
        self.window.iter().for_each(|round| sectors.add(&round.counts.ftl.sectors));
        let from = self.window.front().map_or(0, |round| round.free.0);
        let to = self.window.back().map_or(0, |round| round.free.1);
        Stretch { written_before: self.written - sectors.user, sectors, free: (from, to) }
    }

    /// Where the window begins, and what jobs and device did in it.
    pub(super) fn into_window(self) -> Option<(Totals, Vec<JobResult>, Counts)> {
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
        for text in ["round=25%,rounds=25", "round=1024,rounds=5", "round=500000ns,rounds=40"] {
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
