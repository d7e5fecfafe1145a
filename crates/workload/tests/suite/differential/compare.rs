//! What must be equal in both logs of a job.
//!
//! Nothing is compared that chance decides, except by shares: two samples differ where they are further apart than
//! [`SIGMAS`] standard deviations of their difference.

use super::accepted::ACCEPTED;
use super::case::{Case, Side};
use super::fio::{self, Io};
use super::ours;
use nandscape_workload::Direction;
use nandscape_workload::fio::{Amount, BlockSizes, Distribution, FileOrder, JobSpec, Mix};
use std::collections::{BTreeMap, BTreeSet};

/// One comparison in a hundred million is as far off by chance.
const SIGMAS: f64 = 6.0;
/// Too few to say anything of chance.
const FEW: usize = 40;
/// Enough of a job that only time ends.
const MOST_BY_TIME: usize = 3_000;
/// I/Os and shares that a rate may be off in real time.
const RATE_IOS: f64 = 3.0;
const RATE_SHARE: f64 = 0.01;

/// What came of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Agreed,
    /// Both refuse the job.
    Refused,
    Accepted(&'static str),
    Different(String),
}

impl Verdict {
    pub(super) const fn is_different(&self) -> bool {
        matches!(self, Self::Different(_))
    }
}

/// The logs of fio and of ours.
type Logs<'a> = [&'a [Io]; 2];

/// Compares what both did.
pub(super) fn compare(
    case: &Case,
    theirs: &Result<Vec<Io>, String>,
    ours: &Result<Vec<Io>, String>,
) -> Verdict {
    let spec = ours::read(&case.text()).ok().and_then(|file| file.jobs.into_iter().next());
    let different = match (theirs, ours, &spec) {
        (Err(_), Err(_), _) => return Verdict::Refused,
        (Err(why), Ok(_), _) if why == fio::HANGS => return Verdict::Accepted(fio::HANGS),
        (Err(why), Ok(_), _) => Some(format!("only fio refuses it: {}", first_line(why))),
        (Ok(_), Err(why), _) => Some(format!("only ours refuses it: {}", first_line(why))),
        (Ok(theirs), Ok(ours), Some(spec)) => differs(case, spec, [theirs, ours]),
        (Ok(_), Ok(_), None) => Some("it cannot be read twice".to_owned()),
    };
    let Some(what) = different else { return Verdict::Agreed };
    let spec = spec.as_ref();
    let accepted = ACCEPTED.iter().find(|(_, holds)| spec.is_some_and(|spec| holds(case, spec)));
    accepted.map_or(Verdict::Different(what), |(why, _)| Verdict::Accepted(why))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A log without further flushes behind the last one: in fio, loops that have nothing left to do flush.
fn without_idle_loops(log: &[Io]) -> &[Io] {
    match log {
        [rest @ .., ('s', ..)] if matches!(rest, [.., ('s', ..)]) => without_idle_loops(rest),
        log => log,
    }
}

/// The first difference, with both sides.
fn differs(case: &Case, spec: &JobSpec, logs: Logs<'_>) -> Option<String> {
    let job = Job::new(case, spec);
    if spec.time_based && !case.is_timed() {
        // How far each comes is the machine's business, and so is where a pass begins with a flush.
        let ios = logs.map(|log| data(log).copied().collect::<Vec<Io>>());
        let common = ios[0].len().min(ios[1].len()).min(MOST_BY_TIME);
        return job
            .differs(ios.each_ref().map(|log| &log[..common]))
            .map(|what| shown(&what, logs));
    }
    if case.side() == Side::Files {
        // fio flushes file by file.
        let flushed = logs.map(|log| {
            let mut log = log.to_vec();
            log.dedup_by(|io, before| io.0 == 's' && before.0 == 's');
            log
        });
        return job.differs(flushed.each_ref().map(|log| &log[..])).map(|what| shown(&what, logs));
    }
    let logs = logs.map(without_idle_loops);
    job.differs(logs).map(|what| shown(&what, logs))
}

/// A difference, and how both logs begin.
fn shown(what: &str, logs: Logs<'_>) -> String {
    let begin = |log: &[Io]| {
        let ios: Vec<String> = log.iter().take(48).map(show).collect();
        format!("{} I/Os: {}", log.len(), ios.join(" "))
    };
    format!("{what}\n  fio:  {}\n  ours: {}", begin(logs[0]), begin(logs[1]))
}

fn show((what, offset, bytes): &Io) -> String {
    match what {
        's' => "s".to_owned(),
        _ => format!("{what}{}+{}", *offset as f64 / 4096.0, *bytes as f64 / 4096.0),
    }
}

/// What a job is, as far as its comparison depends on it.
struct Job<'a> {
    case: &'a Case,
    spec: &'a JobSpec,
    used: Vec<Direction>,
    /// All its I/Os have this size.
    fixed: Option<u64>,
    /// Its I/Os have sizes that are drawn.
    varied: bool,
    /// With a random map.
    mapped: bool,
    /// Offsets come in runs, or follow one another by chance.
    runs: bool,
    lfsr: bool,
    strided: bool,
    /// A pass may end early, by chance.
    ends_by_chance: bool,
}

impl<'a> Job<'a> {
    fn new(case: &'a Case, spec: &'a JobSpec) -> Self {
        let used = Direction::ALL.into_iter().filter(|d| spec.pattern.mix.has(*d));
        let used: Vec<Direction> = used.collect();
        let sizes: Vec<BlockSizes> = used.iter().map(|d| spec.sizes(*d)).collect();
        let fixed = match &sizes[0] {
            BlockSizes::Fixed(bytes) if sizes.iter().all(|size| *size == sizes[0]) => Some(*bytes),
            _ => None,
        };
        let aligned = used.iter().all(|d| spec.align(*d) == spec.map_block(*d));
        let lfsr = case.value("random_generator") == Some("lfsr");
        let uniform = spec.distribution == Distribution::Uniform;
        let chance = spec.percentage_random != [100; 3];
        let random = spec.pattern.random;
        let mixed = spec.pattern.mix == Mix::ReadWrite;
        let varied = sizes.iter().any(|size| !matches!(size, BlockSizes::Fixed(_)));
        let runs = random && (spec.sequence.ios > 1 || chance);
        let blocks: BTreeSet<u64> = Direction::ALL.map(|d| spec.map_block(d)).into();
        let foreign = random && (blocks.len() > 1 || spec.sizes_by_order);
        let last_pass = mixed && !random && spec.io_size.is_some();
        let skips = (mixed || varied) && spec.sequence.skip_bytes != 0;
        let skewed =
            random && !matches!(spec.distribution, Distribution::Uniform | Distribution::Zoned);
        let in_zones = spec.zoning.is_strided() && (random || varied || mixed);
        Self {
            case,
            spec,
            fixed,
            varied,
            ends_by_chance: runs || foreign || skips || in_zones || skewed || last_pass,
            mapped: spec.pattern.random && uniform && spec.random_map && aligned,
            runs,
            lfsr,
            strided: spec.zoning.is_strided(),
            used,
        }
    }

    fn is_mixed(&self) -> bool {
        self.spec.pattern.mix == Mix::ReadWrite
    }

    /// Whether nothing of it is drawn.
    fn is_determined(&self) -> bool {
        let in_turns = self.spec.files.service.order != FileOrder::Random;
        in_turns && !self.spec.pattern.random && !self.varied && !self.is_mixed()
    }

    fn differs(&self, logs: Logs<'_>) -> Option<String> {
        if self.case.is_timed() {
            return self.rates(logs).or_else(|| self.sizes(logs));
        }
        if self.is_determined() {
            return self.sequences(logs);
        }
        let counted = if self.ends_by_chance {
            None
        } else {
            let totals =
                || self.totals(logs).or_else(|| self.flushes(logs)).or_else(|| self.cover(logs));
            let by_bytes = if self.spec.time_based { None } else { totals() };
            by_bytes.or_else(|| self.passes(logs)).or_else(|| self.repeats(logs))
        };
        // What is drawn once and repeated is one sample.
        let once = logs.map(|log| &log[..period(log).unwrap_or(log.len())]);
        counted
            .or_else(|| self.starts(logs))
            .or_else(|| self.zones(logs))
            .or_else(|| self.sizes(once))
            .or_else(|| self.directions(once))
            .or_else(|| self.runs(once))
            .or_else(|| self.spread(once))
    }

    /// I/O by I/O.
    fn sequences(&self, [theirs, ours]: Logs<'_>) -> Option<String> {
        let at = theirs.iter().zip(ours).position(|(theirs, ours)| theirs != ours);
        let at = at.or((theirs.len() != ours.len()).then_some(theirs.len().min(ours.len())))?;
        let io = |log: &[Io]| log.get(at).map_or("the end".to_owned(), show);
        Some(format!("I/O {at}: fio {}, ours {}", io(theirs), io(ours)))
    }

    /// Rates of the directions that have one.
    fn rates(&self, logs: Logs<'_>) -> Option<String> {
        let poisson = self.spec.poisson;
        let seconds = self.spec.runtime.map_or(1.0, |time| time.0 as f64 / 1e9);
        let limited: Vec<(Direction, f64)> = self
            .used
            .iter()
            .filter_map(|direction| {
                let at = *direction as usize;
                let bytes = self.spec.rate[at].map(|rate| rate as f64 / self.mean_size(*direction));
                let rate = self.spec.rate_iops[at].map(|rate| rate as f64).or(bytes)?;
                Some((*direction, rate * seconds))
            })
            .collect();
        limited.into_iter().find_map(|(direction, asked)| {
            let [theirs, ours] = logs.map(|log| of(log, direction).count() as f64);
            let chance = if poisson || self.varied { SIGMAS * (2.0 * asked).sqrt() } else { 0.0 };
            let allowed = RATE_IOS + RATE_SHARE * theirs + chance;
            ((theirs - ours).abs() > allowed)
                .then(|| format!("{}s in {seconds} s: fio {theirs}, ours {ours}", direction.name()))
        })
    }

    fn mean_size(&self, direction: Direction) -> f64 {
        match self.spec.sizes(direction) {
            BlockSizes::Fixed(bytes) => bytes as f64,
            BlockSizes::Range(least, most) => (least + most) as f64 / 2.0,
            BlockSizes::Split(shares) => {
                shares.iter().map(|(bytes, percent)| (bytes * percent) as f64 / 100.0).sum()
            }
        }
    }

    /// I/Os, where they are all of one size, or else bytes up to an I/O a pass.
    fn totals(&self, logs: Logs<'_>) -> Option<String> {
        let ios = logs.map(|log| data(log).count());
        if let Some(most) = self.spec.number_ios
            && ios == [most as usize; 2]
        {
            return None;
        }
        if self.fixed.is_some() {
            return (ios[0] != ios[1]).then(|| format!("I/Os: fio {}, ours {}", ios[0], ios[1]));
        }
        if self.mapped && !self.sizes_are_multiples() {
            return None;
        }
        let bytes = logs.map(|log| data(log).map(|io| io.2).sum::<u64>());
        let most = self.used.iter().map(|d| self.spec.sizes(*d).max()).max().unwrap_or(0);
        let number_ios = self.spec.number_ios.is_some();
        let far = bytes[0].abs_diff(bytes[1]) > most * self.spec.loops.max(2);
        (far && !number_ios).then(|| format!("bytes: fio {}, ours {}", bytes[0], bytes[1]))
    }

    /// Writes in front of each flush.
    fn flushes(&self, logs: Logs<'_>) -> Option<String> {
        let gaps = logs.map(|log| {
            let mut gaps = vec![0];
            log.iter().for_each(|io| match io.0 {
                's' => gaps.push(0),
                'w' => gaps.iter_mut().last().into_iter().for_each(|gap| *gap += 1),
                _ => {}
            });
            gaps
        });
        let differ = if self.is_mixed() || self.fixed.is_none() {
            // How many writes there are is drawn; how many come before a flush is not.
            let inner = gaps.clone().map(|gaps| {
                let inner = gaps.len().saturating_sub(2 + self.spec.loops as usize);
                gaps.into_iter().take(inner).collect::<BTreeSet<u32>>()
            });
            let enough = gaps.iter().all(|gaps| gaps.len() > 12)
                && self.spec.loops == 1
                && self.spec.io_size.is_none();
            let least = [self.spec.fsync, self.spec.fdatasync].into_iter().filter(|n| *n > 0).min();
            let writes = logs.map(|log| of(log, Direction::Write).count() as u64);
            let due = writes.map(|writes| least.is_some_and(|n| writes > 3 * n));
            let none = gaps.each_ref().map(|gaps| gaps.len() == 1);
            (enough && inner[0] != inner[1]) || (due[0] && due[1] && none[0] != none[1])
        } else {
            gaps[0] != gaps[1]
        };
        differ.then(|| format!("writes between flushes: fio {:?}, ours {:?}", gaps[0], gaps[1]))
    }

    /// Shares of sizes.
    fn sizes(&self, logs: Logs<'_>) -> Option<String> {
        self.used.iter().find_map(|direction| {
            let sizes = logs.map(|log| counts(of(log, *direction).map(|io| io.2)));
            if !self.is_cut() {
                let known =
                    sizes.each_ref().map(|sizes| sizes.keys().copied().collect::<BTreeSet<u64>>());
                let enough = sizes.iter().all(|sizes| sizes.values().sum::<usize>() >= 4 * FEW);
                if known[0] != known[1]
                    && (enough || self.fixed.is_some())
                    && sizes.iter().all(|s| !s.is_empty())
                {
                    return Some(format!("sizes of {}s: {known:?}", direction.name()));
                }
            }
            shares("size", direction.name(), sizes)
        })
    }

    /// Whether I/Os end at blocks that were touched before.
    fn is_cut(&self) -> bool {
        self.mapped && (self.varied || self.ends_by_chance)
    }

    /// Shares of directions.
    fn directions(&self, logs: Logs<'_>) -> Option<String> {
        if !self.is_mixed() {
            return None;
        }
        shares(
            "share",
            "direction",
            logs.map(|log| counts(data(log).map(|io| u64::from(io.0 as u32)))),
        )
    }

    /// The first offsets, and the ends that are reached, of sequences.
    fn starts(&self, logs: Logs<'_>) -> Option<String> {
        let on_files = self.case.side() == Side::Files;
        if self.spec.pattern.random || self.varied || self.strided || on_files {
            return None;
        }
        self.used.iter().find_map(|direction| {
            let first = logs.map(|log| {
                let offsets: Vec<u64> = of(log, *direction).map(|io| io.1).collect();
                let again = offsets.iter().skip(1).position(|offset| *offset == offsets[0]);
                let pass = again.map_or(offsets.len(), |at| at + 1);
                offsets[..pass].to_vec()
            });
            let common = first[0].len().min(first[1].len());
            (first[0][..common] != first[1][..common])
                .then(|| format!("the first pass of {}s", direction.name()))
        })
    }

    /// With the random map and one size: what each pass covers.
    fn passes(&self, logs: Logs<'_>) -> Option<String> {
        let plain = self.mapped && !self.runs && !self.strided && self.fixed.is_some();
        if !plain {
            return None;
        }
        let [theirs, ours] = logs.map(|log| {
            let mut passes: Vec<BTreeSet<u64>> = vec![BTreeSet::new()];
            let writes = self.spec.pattern.mix == Mix::TrimWrite;
            let ios = data(log).filter(|io| !writes || io.0 == 't');
            for (_, offset, _) in ios {
                if passes.last().is_some_and(|pass| pass.contains(offset)) {
                    passes.push(BTreeSet::new());
                }
                passes.iter_mut().last().into_iter().for_each(|pass| {
                    pass.insert(*offset);
                });
            }
            passes
        });
        let lengths =
            [&theirs, &ours].map(|passes| passes.iter().map(BTreeSet::len).collect::<Vec<_>>());
        if lengths[0] != lengths[1] {
            return Some(format!(
                "I/Os before a block comes again: fio {:?}, ours {:?}",
                lengths[0], lengths[1]
            ));
        }
        let whole = theirs.iter().map(BTreeSet::len).max().unwrap_or(0);
        let at = (0..theirs.len()).find(|at| {
            theirs[*at].len() == whole && theirs[*at] != ours[*at] && whole > 0 && theirs.len() > 1
        });
        at.map(|at| {
            format!(
                "what pass {at} covers: fio up to {:?}, ours up to {:?}",
                theirs[at].last(),
                ours[at].last()
            )
        })
    }

    /// With the random map and several sizes: the bytes that are covered, and how often.
    fn cover(&self, logs: Logs<'_>) -> Option<String> {
        let whole =
            self.spec.io_size.is_none() && self.spec.number_ios.is_none() && self.spec.loops == 1;
        if !self.mapped
            || self.runs
            || self.strided
            || self.lfsr
            || !whole
            || self.spec.pattern.mix == Mix::TrimWrite
            || !self.sizes_are_multiples()
            || self.case.side() == Side::Files
        {
            return None;
        }
        let units =
            logs.map(|log| counts(data(log).flat_map(|io| io.1 / 512..(io.1 + io.2) / 512)));
        let bytes = units.each_ref().map(|units| units.len() * 512);
        let twice = units.each_ref().map(|units| units.values().any(|count| *count > 1));
        if twice[0] != twice[1] {
            return Some(format!(
                "blocks come twice in a pass: fio {}, ours {}",
                twice[0], twice[1]
            ));
        }
        (!twice[0] && units[0] != units[1])
            .then(|| format!("bytes covered: fio {}, ours {}", bytes[0], bytes[1]))
    }

    /// Whether I/Os leave no part of a block of the map.
    fn sizes_are_multiples(&self) -> bool {
        let are = |d: &Direction| self.spec.sizes(*d).are_multiples_of(self.spec.map_block(*d));
        self.used.iter().all(are)
    }

    /// Zones in their order.
    fn zones(&self, logs: Logs<'_>) -> Option<String> {
        // On the null engine the last zone may be cut off.
        let cut_off = self.case.side() == Side::Null && self.spec.pattern.random;
        if !self.strided || self.fixed.is_none() || cut_off {
            return None;
        }
        let zoning = &self.spec.zoning;
        let distance = zoning.range() + zoning.skip;
        let base = logs.map(|log| data(log).map(|io| io.1).min().unwrap_or(0));
        let Amount::Bytes(offset) = self.spec.offset else { return None };
        let runs = logs.map(|log| {
            let mut runs: Vec<(u64, usize)> = Vec::new();
            for io in data(log) {
                let zone = io.1.saturating_sub(offset) / distance.max(1);
                match runs.last_mut() {
                    Some((last, count)) if *last == zone => *count += 1,
                    _ => runs.push((zone, 1)),
                }
            }
            runs
        });
        let common = runs[0].len().min(runs[1].len()).saturating_sub(1);
        (runs[0][..common] != runs[1][..common]).then(|| {
            format!("zones and their I/Os, from {base:?}: fio {:?}, ours {:?}", runs[0], runs[1])
        })
    }

    /// How often an I/O follows the one before of its direction, or repeats it.
    fn runs(&self, logs: Logs<'_>) -> Option<String> {
        if !self.spec.pattern.random {
            return None;
        }
        let follows = logs.map(|log| {
            let mut ends: BTreeMap<char, (u64, u64)> = BTreeMap::new();
            let kinds = data(log).map(|(what, offset, bytes)| {
                let before = ends.insert(*what, (*offset, offset + bytes));
                match before {
                    Some((_, end)) if end == *offset => 1,
                    Some((start, _)) if start == *offset => 2,
                    _ => 0,
                }
            });
            counts(kinds)
        });
        // fio's next free block behind one that is taken follows more often than ours.
        if self.mapped && !self.runs {
            return None;
        }
        shares("I/Os that follow (1) or repeat (2) the one before", "", follows)
    }

    /// Shares of the eighths of the range.
    fn spread(&self, logs: Logs<'_>) -> Option<String> {
        if !self.spec.pattern.random || self.strided || self.runs {
            return None;
        }
        let skewed = !matches!(
            self.spec.distribution,
            Distribution::Uniform | Distribution::Zoned | Distribution::Normal(_)
        );
        if skewed {
            return self.popularity(logs);
        }
        if matches!(self.spec.distribution, Distribution::Normal(_)) {
            return None;
        }
        let first = logs.iter().flat_map(|log| data(log)).map(|io| io.1).min()?;
        let end = logs.iter().flat_map(|log| data(log)).map(|io| io.1 + io.2).max()?;
        let eighth = |offset: u64| (offset - first) * 8 / (end - first).max(1);
        self.used.iter().find_map(|direction| {
            let eighths = logs.map(|log| counts(of(log, *direction).map(|io| eighth(io.1))));
            shares("eighth of the range", direction.name(), eighths)
        })
    }

    /// How many I/Os go to the most popular offset.
    fn popularity(&self, logs: Logs<'_>) -> Option<String> {
        let most = logs.map(|log| {
            let offsets = counts(data(log).map(|io| io.1));
            let top = offsets.values().copied().max().unwrap_or(0);
            BTreeMap::from([(0, top), (1, data(log).count() - top)])
        });
        shares("the most popular offset (0)", "", most)
    }

    /// Whether the log is made of passes that are the same.
    fn repeats(&self, logs: Logs<'_>) -> Option<String> {
        let distinct = |log: &[Io]| log.iter().collect::<BTreeSet<_>>().len();
        if logs.iter().any(|log| distinct(log) < 12) {
            return None;
        }
        let periods = logs.map(period);
        let determined = self.fixed.is_some() && !self.runs;
        // Directions decide which stream a size comes from, and which sequence an offset.
        let by_turns = self.case.side() == Side::Files && self.varied;
        // Whether a sequence begins again within a pass depends on the sizes at its end.
        let by_ends = self.spec.time_based && self.varied && !self.spec.pattern.random;
        if by_turns || by_ends || self.is_mixed() && (self.varied || !self.spec.pattern.random) {
            return None;
        }
        let differ = match periods {
            [Some(theirs), Some(ours)] => determined && theirs != ours,
            [None, None] => false,
            _ => true,
        };
        differ.then(|| {
            let shown = periods
                .map(|period| period.map_or("never".to_owned(), |n| format!("after {n} I/Os")));
            format!("passes repeat: fio {}, ours {}", shown[0], shown[1])
        })
    }
}

/// I/Os that are none of flushes.
fn data(log: &[Io]) -> impl Iterator<Item = &Io> {
    log.iter().filter(|io| io.0 != 's')
}

fn of(log: &[Io], direction: Direction) -> impl Iterator<Item = &Io> {
    let letter = direction.name().chars().next();
    log.iter().filter(move |io| Some(io.0) == letter)
}

fn counts(values: impl Iterator<Item = u64>) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}

/// The length of the passes that a log repeats, if it does for at least a dozen I/Os. Directions may differ: what was
/// issued so far has a part in them.
fn period(log: &[Io]) -> Option<usize> {
    let ios: Vec<(u64, u64)> = data(log).map(|io| (io.1, io.2)).collect();
    (6..=ios.len().saturating_sub(12)).find(|n| ios[*n..] == ios[..ios.len() - n])
}

/// The value whose shares of two samples are further apart than chance has it.
fn shares(what: &str, of: &str, samples: [BTreeMap<u64, usize>; 2]) -> Option<String> {
    let totals = samples.each_ref().map(|sample| sample.values().sum::<usize>());
    if totals.iter().any(|total| *total < FEW) {
        return None;
    }
    let [theirs, ours] = totals.map(|total| total as f64);
    let values: BTreeSet<u64> = samples.iter().flat_map(|sample| sample.keys().copied()).collect();
    values.into_iter().find_map(|value| {
        let [a, b] =
            samples.each_ref().map(|sample| sample.get(&value).copied().unwrap_or(0) as f64);
        let p = (a + b) / (theirs + ours);
        let deviation = (p * (1.0 - p) * (1.0 / theirs + 1.0 / ours)).sqrt();
        let off = (a / theirs - b / ours).abs();
        (off > SIGMAS * deviation + 2.0 / theirs.min(ours))
            .then(|| format!("{what} {value} {of}: fio {a} of {theirs}, ours {b} of {ours}"))
    })
}
