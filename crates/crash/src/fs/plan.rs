//! The power cuts of a seed: one on the load of each round, and some on mounts after it.

use crate::draw::family::ScenarioFamily;
use crate::draw::plan::{CutPlan, Trigger, draw_cut};
use crate::draw::sample::log_uniform;
use crate::shrink::reduction::Round;
use nandscape_rt::{Nanos, Stream};

/// The power cuts of a round.
#[derive(Clone, Debug)]
pub(super) struct RoundPlan {
    /// On the load; none where a reduced run has none.
    pub(super) cut: Option<CutPlan>,
    /// On the mounts after it, those of a reduced run that are not cut left out.
    pub(super) mounts: Vec<Option<CutPlan>>,
}

impl RoundPlan {
    /// Those of all rounds of a seed.
    pub(super) fn draw(seed: u64, rounds: u32) -> Vec<Self> {
        let rng = &mut Stream::new(seed, "fs-rounds");
        let round = |_| {
            let cut = Some(draw_load_cut(rng));
            let mut mounts = Vec::new();
            while rng.chance(0.3) {
                mounts.push(Some(draw_mount_cut(rng)));
            }
            Self { cut, mounts }
        };
        (0..rounds).map(round).collect()
    }

    /// What is left of them in a reduced round.
    pub(super) fn reduced(&self, round: &Round) -> Self {
        let mounts = (1..).zip(&self.mounts);
        let mounts = mounts.map(|(number, cut)| cut.clone().filter(|_| round.mounts.has(number)));
        Self { cut: self.cut.as_ref().and_then(|cut| cut.reduced(round)), mounts: mounts.collect() }
    }
}

pub(super) fn draw_load_cut(rng: &mut Stream) -> CutPlan {
    let most = 64 << rng.below(9);
    let cut = draw_cut(ScenarioFamily::Journal, most, rng);
    // The log has been full once.
    let trigger = Trigger::TailMoved(1 + rng.below(64));
    if rng.chance(0.2) { CutPlan { trigger, ..cut } } else { cut }
}

/// A cut while the journal is recovered, or shortly after.
fn draw_mount_cut(rng: &mut Stream) -> CutPlan {
    let trigger = match rng.below(3) {
        0 => Trigger::Instant(Nanos(log_uniform(rng, 1 << 27))),
        1 => Trigger::OffAfter(log_uniform(rng, 1 << 9)),
        _ => Trigger::Request(log_uniform(rng, 1 << 7)),
    };
    let delay = if rng.chance(0.5) { Nanos::ZERO } else { Nanos(rng.below(100_000)) };
    let recovery_cuts = if rng.chance(0.2) { vec![log_uniform(rng, 1 << 10)] } else { Vec::new() };
    CutPlan { trigger, delay, recovery_cuts }
}
