//! What several tests of runs need.

pub(crate) mod complete;
pub(crate) mod fs_keys;

use nandscape_lab::run::{Observer, Phase};

/// Who notes how far a run said that its measured phase is.
#[derive(Default)]
pub(crate) struct Fractions(pub(crate) Vec<f64>);

impl Observer for Fractions {
    fn wall_s(&self) -> f64 {
        0.0
    }
    fn progress(&mut self, phase: Phase, fraction: f64) {
        if phase == Phase::Measure {
            self.0.push(fraction);
        }
    }
}
