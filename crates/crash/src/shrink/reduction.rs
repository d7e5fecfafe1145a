//! What is left of a seed's run. Everything is named by its number in what the seed draws, so that a reduction and the
//! seed together are a run.

use super::numbers::Numbers;
use nandscape_rt::Nanos;
use std::collections::BTreeMap;
use std::fmt;

/// Whose operations: the host of a device, or a writer of a file system by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// The one host of a device.
    Host,
    /// A writer of a file system.
    Writer(u16),
}

/// How the load of a round ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Cut {
    /// By the power cut that the seed draws.
    #[default]
    Drawn,
    /// Without a power cut. The run ends in order after it.
    None,
    /// Power is cut so long after the last operation began.
    After(Nanos),
    /// Power goes off after so many media commands, counted from the beginning of the last operation.
    AfterCommands(u64),
}

/// What is left of a round.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Round {
    /// The operations of the load, by the number in which they are drawn, from 1. Number 0 of a writer is the growth of
    /// all its files, with which some rounds begin.
    pub operations: BTreeMap<Source, Numbers>,
    /// How the load ends.
    pub cut: Cut,
    /// The drawn power cuts of the recovery that are left, from 1.
    pub recovery: Numbers,
    /// Of a file system: the drawn mounts that are cut, from 1.
    pub mounts: Numbers,
}

/// What is left of a seed's run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Reduction {
    /// Of a device: the writes that fill it before the first round, from 1.
    pub fill: Numbers,
    /// Whether media commands fail as the seed draws it.
    pub faults: bool,
    /// The rounds, by their number in the seed's run, from 0. No other runs.
    pub rounds: BTreeMap<u32, Round>,
}

impl Round {
    /// How many operations are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.values().map(Numbers::len).sum()
    }

    /// Whether no operation is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The operations of one source.
    #[must_use]
    pub fn of(&self, source: Source) -> Numbers {
        self.operations.get(&source).cloned().unwrap_or_default()
    }
}

impl Reduction {
    /// Whether it fits a seed with so many power cuts: the run after the last one has a number, too.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self, cuts: u32, on_files: bool) -> Result<(), String> {
        if on_files && (self.faults || !self.fill.is_empty()) {
            return Err("a campaign on a file system has no faults and no fill".into());
        }
        for (number, round) in &self.rounds {
            if *number > cuts {
                return Err(format!("round {number}: the last one of this seed is {cuts}"));
            }
            if !on_files && !round.mounts.is_empty() {
                return Err(format!("round {number}: mounts: a device alone has none"));
            }
            if let Some(source) =
                round.operations.keys().find(|it| on_files == (**it == Source::Host))
            {
                let wanted = if on_files { "w0 and further writers" } else { "ops" };
                return Err(format!("round {number}: {source}: expected {wanted}"));
            }
        }
        Ok(())
    }

    /// How many operations are left, those of the filling included.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.fill.len() + self.rounds.values().map(Round::len).sum::<usize>()
    }
}

/// The parts, separated by `/`: `fill=1-4/faults/0:ops=12,57-60;cut=1500ns/2:w1=3;mounts=1`.
impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fill = (!self.fill.is_empty()).then(|| format!("fill={}", self.fill));
        let faults = self.faults.then(|| "faults".to_owned());
        let rounds = self.rounds.iter().map(|(number, round)| match round.to_string() {
            nothing if nothing.is_empty() => number.to_string(),
            round => format!("{number}:{round}"),
        });
        let parts: Vec<String> = fill.into_iter().chain(faults).chain(rounds).collect();
        f.write_str(&parts.join("/"))
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations =
            self.operations.iter().map(|(source, numbers)| (source.to_string(), numbers));
        let others = [("recovery", &self.recovery), ("mounts", &self.mounts)];
        let others = others.map(|(key, numbers)| (key.to_owned(), numbers));
        let some = |(_, numbers): &(String, &Numbers)| !numbers.is_empty();
        let item = |(key, numbers)| format!("{key}={numbers}");
        let cut = match self.cut {
            Cut::Drawn => None,
            Cut::None => Some("cut=none".to_owned()),
            Cut::After(Nanos(after)) => Some(format!("cut={after}ns")),
            Cut::AfterCommands(count) => Some(format!("cut={count}commands")),
        };
        let items = operations.filter(some).map(item).chain(cut);
        let items: Vec<String> = items.chain(others.into_iter().filter(some).map(item)).collect();
        f.write_str(&items.join(";"))
    }
}

/// The key of its operations.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("ops"),
            Self::Writer(number) => write!(f, "w{number}"),
        }
    }
}
