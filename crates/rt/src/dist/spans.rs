//! Distributions of spans and sizes: real numbers above 0.

use super::{BadParameter, require_positive, standard_normal};
use crate::rng::Stream;

/// Exponential: spans between independent arrivals.
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    mean: f64,
}

impl Exponential {
    /// With this mean.
    ///
    /// # Errors
    /// When the mean is not above 0.
    pub fn new(mean: f64) -> Result<Self, BadParameter> {
        require_positive("the mean", mean)?;
        Ok(Self { mean })
    }

    /// A span.
    pub fn sample(&self, rng: &mut Stream) -> f64 {
        -self.mean * libm::log1p(-rng.unit())
    }
}

/// Gamma, by Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). Mean
/// `shape * scale`, variance `shape * scale^2`.
#[derive(Clone, Copy, Debug)]
pub struct Gamma {
    scale: f64,
    /// The power of a uniform number that makes shapes below 1 out of the shape above.
    boost: Option<f64>,
    d: f64,
    c: f64,
}

impl Gamma {
    /// With this shape and scale.
    ///
    /// # Errors
    /// When either is not above 0.
    pub fn new(shape: f64, scale: f64) -> Result<Self, BadParameter> {
        require_positive("the shape", shape)?;
        require_positive("the scale", scale)?;
        let boost = (shape < 1.0).then_some(1.0 / shape);
        let d = if boost.is_some() { shape + 1.0 } else { shape } - 1.0 / 3.0;
        Ok(Self { scale, boost, d, c: 1.0 / libm::sqrt(9.0 * d) })
    }

    /// A span.
    pub fn sample(&self, rng: &mut Stream) -> f64 {
        let whole = self.d * self.cube(rng) * self.scale;
        match self.boost {
            Some(power) => whole * libm::exp(power * libm::log1p(-rng.unit())),
            None => whole,
        }
    }

    /// The accepted `(1 + c x)^3` of a normal `x`.
    fn cube(&self, rng: &mut Stream) -> f64 {
        loop {
            let x = standard_normal(rng);
            let base = 1.0 + self.c * x;
            let v = base * base * base;
            let bound = 0.5 * x * x + self.d * (1.0 - v + libm::log(v));
            if v > 0.0 && libm::log1p(-rng.unit()) < bound {
                return v;
            }
        }
    }
}
