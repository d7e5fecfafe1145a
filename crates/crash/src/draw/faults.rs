//! How often something goes wrong.

use crate::draw::family::ScenarioFamily;
use crate::draw::sample::{log_uniform, pick};
use nandscape_media::Delays;
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

/// In one of three cases media commands take longer than their timing says: mostly a little, and now and then a
/// unit stalls for many milliseconds.
pub(crate) fn draw_delays(seed: u64) -> Delays {
    let rng = &mut Stream::new(seed, "scenario-delays");
    if rng.below(3) != 0 {
        return Delays::default();
    }
    let usual_max_ns = log_uniform(rng, 1 << 23);
    let stall_one_in = [0, 1_000, 200, 30][pick(rng, &[1, 1, 2, 1])];
    Delays { usual_max_ns, stall_one_in, stall_max_ns: log_uniform(rng, 1 << 28) }
}
