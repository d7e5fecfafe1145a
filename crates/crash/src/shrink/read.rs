//! Reductions from text, as command lines hold them.

use super::numbers::{Numbers, number};
use super::reduction::{Cut, Reduction, Round, Source};
use nandscape_rt::Nanos;
use std::str::FromStr;

/// The largest number of a power cut: 19 hours, in nanoseconds.
const LATEST: u64 = 1 << 46;

impl FromStr for Reduction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut reduction = Self::default();
        for part in text.split('/') {
            reduction.add(part)?;
        }
        match reduction.rounds.is_empty() && reduction.fill.is_empty() {
            true => Err("no round is left".into()),
            false => Ok(reduction),
        }
    }
}

impl Reduction {
    fn add(&mut self, part: &str) -> Result<(), String> {
        if part == "faults" {
            self.faults = true;
            return Ok(());
        }
        if let Some(numbers) = part.strip_prefix("fill=") {
            self.fill = numbers.parse().map_err(|why| format!("fill: {why}"))?;
            return Ok(());
        }
        let (index, items) = part.split_once(':').unwrap_or((part, ""));
        let unknown = |_| format!("'{part}': expected fill=NUMBERS, faults, or ROUND:ITEMS");
        let index = number(index).map_err(unknown)?;
        let round = items.parse().map_err(|why| format!("round {index}: {why}"))?;
        match self.rounds.insert(index, round) {
            None => Ok(()),
            Some(_) => Err(format!("round {index} is given twice")),
        }
    }
}

impl FromStr for Round {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut round = Self::default();
        for item in text.split(';').filter(|item| !item.is_empty()) {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let numbers = || value.parse::<Numbers>().map_err(|why| format!("{key}: {why}"));
            let source = key.parse();
            match (key, source) {
                ("cut", _) => round.cut = value.parse()?,
                ("recovery", _) => round.recovery = numbers()?,
                ("mounts", _) => round.mounts = numbers()?,
                (_, Ok(source)) => drop(round.operations.insert(source, numbers()?)),
                (_, Err(why)) => return Err(why),
            }
        }
        Ok(round)
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(key: &str) -> Result<Self, String> {
        let writer = || key.strip_prefix('w')?.parse().ok();
        match key {
            "ops" => Ok(Self::Host),
            _ => writer().map(Self::Writer).ok_or_else(|| {
                format!("'{key}': expected ops, w0 and further writers, cut, recovery or mounts")
            }),
        }
    }
}

impl FromStr for Cut {
    type Err = String;

    fn from_str(value: &str) -> Result<Self, String> {
        let counted = |unit: &str| {
            let count: u64 = value.strip_suffix(unit)?.parse().ok()?;
            (count <= LATEST).then_some(count)
        };
        match (value, counted("ns"), counted("commands")) {
            ("none", ..) => Ok(Self::None),
            (_, Some(after), _) => Ok(Self::After(Nanos(after))),
            (_, _, Some(count)) => Ok(Self::AfterCommands(count)),
            _ => Err(format!(
                "cut={value}: expected none, 1500ns or 12commands, with a number up to {LATEST}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_are_text() {
        for text in [
            "0:ops=12,57-60;cut=1500ns;recovery=1",
            "fill=1-4/faults/0:ops=1;cut=7commands/3:cut=none",
            "1:w0=3-4;w2=1;mounts=2/2",
            "4",
        ] {
            let reduction: Reduction = text.parse().unwrap();
            assert_eq!(reduction.to_string(), text);
        }
        let reduction: Reduction = "fill=1-4/2:w0=3-4;w2=1".parse().unwrap();
        assert_eq!(reduction.operations(), 7);
        assert_eq!(reduction.rounds[&2].of(Source::Writer(2)), Numbers::up_to(1));
    }

    /// Whatever is wrong is named with its place.
    #[test]
    fn errors_have_a_place() {
        for (text, error) in [
            ("", "'': expected fill=NUMBERS, faults, or ROUND:ITEMS"),
            ("faults", "no round is left"),
            ("fill=x/0", "fill: 'x': expected a number up to 1048576"),
            ("0:ops=1/0:ops=2", "round 0 is given twice"),
            ("0:ops=3-1", "round 0: ops: 3-1: the range ends before it begins"),
            ("0:ops", "round 0: ops: '': expected a number up to 1048576"),
            (
                "0:cut=5",
                "round 0: cut=5: expected none, 1500ns or 12commands, with a number up to \
                 70368744177664",
            ),
            (
                "0:wx=5",
                "round 0: 'wx': expected ops, w0 and further writers, cut, recovery or mounts",
            ),
            ("one:ops=5", "'one:ops=5': expected fill=NUMBERS, faults, or ROUND:ITEMS"),
        ] {
            assert_eq!(text.parse::<Reduction>().unwrap_err(), error, "{text}");
        }
    }
}
