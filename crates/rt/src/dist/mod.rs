//! Random distributions of our own, because a run must draw the same numbers on every machine: they
//! use the `libm` crate and never the platform's functions, and golden vectors pin their output.
//!
//! [`Zipf`], [`Pareto`] and [`Normal`] draw items out of `n`, with the parameters and the meaning of
//! fio's `random_distribution`; [`Exponential`], [`Gamma`], [`Gaussian`], [`Lognormal`], [`Triangular`] and
//! [`Weibull`] draw real numbers. All take constant memory.

mod items;
mod reals;
mod spans;
#[cfg(test)]
mod tests;

pub use items::{Normal, Pareto, Zipf};
pub use reals::{Gaussian, Lognormal, Triangular, Weibull};
pub use spans::{Exponential, Gamma};

use crate::rng::Stream;
use thiserror::Error;

/// A parameter for which the distribution does not exist.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
#[error("{name} is {value}, but must be {expected}")]
pub struct BadParameter {
    /// Which.
    pub name: &'static str,
    /// What was given.
    pub value: f64,
    /// What is possible.
    pub expected: &'static str,
}

fn require(
    holds: bool,
    name: &'static str,
    value: f64,
    expected: &'static str,
) -> Result<(), BadParameter> {
    if holds { Ok(()) } else { Err(BadParameter { name, value, expected }) }
}

fn require_items(n: u64) -> Result<(), BadParameter> {
    let holds = n > 0 && n < 1 << 53;
    require(holds, "the number of items", n as f64, "at least 1 and below 2^53")
}

fn require_positive(name: &'static str, value: f64) -> Result<(), BadParameter> {
    require(value > 0.0 && value.is_finite(), name, value, "above 0 and finite")
}

/// Normal with mean 0 and deviation 1, by Marsaglia's polar method; the second number of the pair is
/// not kept, so that a distribution has no state.
fn standard_normal(rng: &mut Stream) -> f64 {
    loop {
        let (x, y) = (2.0 * rng.unit() - 1.0, 2.0 * rng.unit() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}
