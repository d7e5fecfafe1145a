//! Seeds of the gate's campaigns beside those that each campaign begins with: `xtask/seeds.toml` has the ones that found
//! something (`[[found]]`) and the ones that still do (`[[open]]`); fresh ones derive from the commit.

use crate::files::text;
use serde::Deserialize;
use std::path::Path;

/// The file of recorded seeds.
pub(super) const FILE: &str = "xtask/seeds.toml";
/// Faults that may wait while other work goes on.
const OPEN_MAX: usize = 3;
/// Fresh seeds are above those that anyone types, and short enough to be typed.
const FRESH: std::ops::Range<u64> = 1_000_000..1_000_000_000;

/// Recorded seeds.
#[derive(Deserialize, Default, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seeds {
    /// Ran into a fault that is mended, or show a mutant. They run in each gate.
    #[serde(default)]
    pub(super) found: Vec<Recorded>,
    /// Run into a fault that is known. The gate shows that they still do.
    #[serde(default)]
    pub(super) open: Vec<Recorded>,
}

/// A seed of a campaign.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    /// Arguments of `nandscape crash` beside the seed: of `[[found]]`, those of a campaign of the gate.
    pub(super) campaign: String,
    pub(super) seed: u64,
    /// What it finds or found.
    pub(super) why: String,
}

impl Recorded {
    /// The arguments that run this seed alone.
    pub(super) fn args(&self) -> String {
        with_seeds(&self.campaign, self.seed, 1)
    }
}

impl Seeds {
    /// # Errors
    /// The file cannot be read, or has more than [`OPEN_MAX`] open seeds.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        Self::parse(&text(&root.join(FILE))?).map_err(|e| format!("{FILE}: {e}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let seeds: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        match seeds.open.len() {
            0..=OPEN_MAX => Ok(seeds),
            open => Err(format!("{open} open seeds, at most {OPEN_MAX}: mend one first")),
        }
    }
}

/// The arguments of a campaign with others behind them.
pub(super) fn with(campaign: &str, rest: &str) -> String {
    format!("{campaign} {rest}").trim().to_owned()
}

/// The arguments of a campaign that run so many seeds from this one on.
pub(super) fn with_seeds(campaign: &str, first: u64, seeds: u64) -> String {
    with(campaign, &format!("--first {first} --seeds {seeds}"))
}

/// The first of the seeds that a campaign derives from an origin, such as a commit: FNV-1a over both, mixed once more, as
/// it hardly changes with the last byte.
pub(crate) fn fresh(origin: &str, campaign: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash =
        origin.bytes().chain([b'\n']).chain(campaign.bytes()).fold(0xcbf2_9ce4_8422_2325, step);
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    FRESH.start + (mixed >> 16) % (FRESH.end - FRESH.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "campaign = \"--stack ssd\"\nseed = 3\nwhy = \"a fault\"\n";

    #[test]
    fn seeds_are_read() {
        let seeds = Seeds::parse(&format!("[[found]]\n{ONE}[[open]]\n{ONE}")).unwrap();
        assert_eq!(seeds.found[0].args(), "--stack ssd --first 3 --seeds 1");
        assert_eq!(seeds.open.len(), 1);
        assert!(Seeds::parse(&format!("[[fuond]]\n{ONE}")).is_err());
    }

    /// Old faults do not pile up.
    #[test]
    fn a_fourth_open_seed_is_refused() {
        let open = format!("[[open]]\n{ONE}");
        assert!(Seeds::parse(&open.repeat(3)).is_ok());
        assert!(Seeds::parse(&open.repeat(4)).unwrap_err().contains("at most 3"));
    }

    /// Another commit or another campaign has other seeds, and the same has the same.
    #[test]
    fn fresh_seeds_derive_from_the_commit() {
        let seeds = [fresh("a", "x"), fresh("b", "x"), fresh("a", "y")];
        assert_eq!(seeds[0], fresh("a", "x"));
        assert!(seeds.iter().all(|seed| FRESH.contains(seed)));
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            assert!(seeds[one].abs_diff(seeds[other]) > 100_000, "{seeds:?}");
        }
    }
}
