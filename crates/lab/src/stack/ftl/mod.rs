//! The `[ftl]` section of a stack file. Its key `kind` comes first and chooses the reader of all others;
//! a key that only another kind has is refused with that kind's name.

mod coupled;
mod device;
mod interval;
mod pblk;
mod zoned;

use super::Host;
use super::place::StackError;
use super::reader::{Section, Words};
use super::units::did_you_mean;
use nandscape_ftl::pblk::config::Victim;
use nandscape_ftl::{FtlConfig, FtlKind};

/// Choices of `d-choices` when a stack does not say how many.
const DEFAULT_D: u32 = 10;

const VICTIM: Words<Victim> = Words {
    here: &[
        ("pblk-lists", Victim::PblkLists),
        ("greedy", Victim::Greedy),
        ("cost-benefit", Victim::CostBenefit),
        ("fifo", Victim::Fifo),
        ("random", Victim::Random),
        ("d-choices", Victim::DChoices(DEFAULT_D)),
    ],
};

/// The kind of a stack that names none.
const DEFAULT_KIND: &str = FtlKind::Pblk.name();

/// Reads the FTL's section.
pub(super) fn read(mut ftl: Section<'_>, host: &Host) -> Result<(FtlConfig, String), StackError> {
    let kind = ftl.word("kind", DEFAULT_KIND, read_kind, |kind, _| kind.to_string())?;
    for other in FtlKind::ALL.into_iter().filter(|&other| other != kind) {
        ftl.foreign(keys(other), "ftl.kind", other.name());
    }
    match kind {
        FtlKind::Pblk => {
            let (config, text) = pblk::read(ftl, host)?;
            Ok((FtlConfig::Pblk(config), text))
        }
        FtlKind::PageMap => {
            let (config, text) = device::read(ftl)?;
            Ok((FtlConfig::Device(config), text))
        }
        FtlKind::Zoned => {
            let (config, text) = zoned::read(ftl)?;
            Ok((FtlConfig::Zoned(config), text))
        }
        FtlKind::Interval => {
            let (config, text) = interval::read(ftl)?;
            Ok((FtlConfig::Interval(config), text))
        }
        FtlKind::Coupled => {
            let (config, text) = coupled::read(ftl)?;
            Ok((FtlConfig::Coupled(config), text))
        }
    }
}

fn read_kind(name: &str) -> Result<FtlKind, String> {
    let names = FtlKind::ALL.map(FtlKind::name);
    name.parse().map_err(|why| format!("{why}{}", did_you_mean(name, names)))
}

/// Keys of a kind, but for `kind` itself.
const fn keys(kind: FtlKind) -> &'static [&'static str] {
    match kind {
        FtlKind::Pblk => &pblk::KEYS,
        FtlKind::PageMap => &device::KEYS,
        FtlKind::Zoned => &zoned::KEYS,
        FtlKind::Interval => &interval::KEYS,
        FtlKind::Coupled => &coupled::KEYS,
    }
}

/// The victim policy of a `gc` section.
fn read_victim(gc: &mut Section<'_>, default: &str) -> Result<Victim, StackError> {
    let d: Option<u32> = gc.unwritten("d")?;
    gc.check("d", d != Some(0), "must be at least 1")?;
    let parse = |word: &str| match (parse_victim(word)?, d) {
        (Victim::DChoices(_), Some(d)) => Ok(Victim::DChoices(d)),
        (_, Some(_)) => Err("`d` goes with victim = \"d-choices\" only".into()),
        (victim, None) => Ok(victim),
    };
    gc.word("victim", default, parse, |victim, word| match victim {
        Victim::DChoices(d) => format!("d-choices-{d}"),
        _ => word.to_owned(),
    })
}

fn parse_victim(word: &str) -> Result<Victim, String> {
    match word.strip_prefix("d-choices-").and_then(|d| d.parse().ok()) {
        Some(d) if d > 0 => Ok(Victim::DChoices(d)),
        _ => VICTIM.read(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;

    /// Every key that a kind asks for is among the keys that other kinds refuse by its name.
    #[test]
    fn keys_of_a_kind_are_all_its_keys() {
        for kind in FtlKind::ALL {
            let set = [format!("ftl.kind={kind}"), "ftl.no_such_key=1".to_owned()];
            let refused = Stack::load("pblk", &set).unwrap_err().to_string();
            let (_, known) = refused.split_once("(known here: ").unwrap();
            let known: Vec<&str> = known.trim_end_matches(')').split(", ").collect();
            let mut expected = vec!["kind"];
            expected.extend(keys(kind));
            assert_eq!(known, expected);
        }
    }
}
