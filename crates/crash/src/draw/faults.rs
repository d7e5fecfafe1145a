//! How often something goes wrong.

use crate::draw::family::ScenarioFamily;
use crate::draw::sample::pick;
use nandscape_rt::Stream;

/// How often media commands fail: one in so many; 0 means never.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FaultRates {
    /// Programs.
    pub program_one_in: u32,
    /// Erases.
    pub erase_one_in: u32,
    /// Writes, of metadata too, that leave one of their sectors uncorrectable.
    pub unreadable_one_in: u32,
}

impl FaultRates {
    /// Whether anything fails.
    #[must_use]
    pub fn any(&self) -> bool {
        self.program_one_in > 0 || self.erase_one_in > 0 || self.unreadable_one_in > 0
    }
}

/// Rates of failing programs and erases.
pub(crate) fn draw(family: ScenarioFamily, rng: &mut Stream) -> FaultRates {
    let rates = [0, 1_000, 200, 50];
    let weights: [u64; 4] = match family {
        ScenarioFamily::Failures => [0, 2, 3, 3],
        _ => [5, 4, 1, 0],
    };
    let mut one_in = || rates[pick(rng, &weights)];
    FaultRates { program_one_in: one_in(), erase_one_in: one_in(), unreadable_one_in: 0 }
}

/// In one of eight cases media lose sectors.
pub(crate) fn draw_unreadable(seed: u64) -> u32 {
    let rng = &mut Stream::new(seed, "scenario-unreadable");
    if rng.below(8) == 0 { [2_000, 500, 100][pick(rng, &[1, 1, 1])] } else { 0 }
}
