//! Distributions of real numbers that workloads ask for by name, with the parameters that textbooks
//! give them.

use super::{BadParameter, require, require_positive, standard_normal};
use crate::rng::Stream;

fn require_finite(name: &'static str, value: f64) -> Result<(), BadParameter> {
    require(value.is_finite(), name, value, "finite")
}

/// Normal, over all real numbers; [`super::Normal`] draws items.
#[derive(Clone, Copy, Debug)]
pub struct Gaussian {
    mean: f64,
    deviation: f64,
}

impl Gaussian {
    /// With this mean and standard deviation.
    ///
    /// # Errors
    /// When the deviation is below 0.
    pub fn new(mean: f64, deviation: f64) -> Result<Self, BadParameter> {
        require_finite("the mean", mean)?;
        let holds = deviation >= 0.0 && deviation.is_finite();
        require(holds, "the deviation", deviation, "at least 0 and finite")?;
        Ok(Self { mean, deviation })
    }

    /// A number.
    pub fn sample(&self, rng: &mut Stream) -> f64 {
        self.mean + self.deviation * standard_normal(rng)
    }
}

/// What has a normal logarithm.
#[derive(Clone, Copy, Debug)]
pub struct Lognormal(Gaussian);

impl Lognormal {
    /// With this mean and standard deviation of the logarithm.
    ///
    /// # Errors
    /// As [`Gaussian::new`].
    pub fn new(mean: f64, deviation: f64) -> Result<Self, BadParameter> {
        Gaussian::new(mean, deviation).map(Self)
    }

    /// A number above 0.
    pub fn sample(&self, rng: &mut Stream) -> f64 {
        libm::exp(self.0.sample(rng))
    }
}

/// Weibull: spans until something fails.
#[derive(Clone, Copy, Debug)]
pub struct Weibull {
    shape: f64,
    scale: f64,
}

impl Weibull {
    /// With this shape and scale.
    ///
    /// # Errors
    /// When either is not above 0.
    pub fn new(shape: f64, scale: f64) -> Result<Self, BadParameter> {
        require_positive("the shape", shape)?;
        require_positive("the scale", scale)?;
        Ok(Self { shape, scale })
    }

    /// A span.
    pub fn sample(&self, rng: &mut Stream) -> f64 {
        self.scale * libm::pow(-libm::log1p(-rng.unit()), 1.0 / self.shape)
    }
}

/// A density that rises evenly from `lower` to `mode` and falls evenly to `upper`.
#[derive(Clone, Copy, Debug)]
pub struct Triangular {
    lower: f64,
    upper: f64,
    /// Where the mode lies between them.
    peak: f64,
}

impl Triangular {
    /// With these limits and this mode.
    ///
    /// # Errors
    /// When the mode does not lie between limits that are apart.
    pub fn new(lower: f64, upper: f64, mode: f64) -> Result<Self, BadParameter> {
        require(
            lower < upper && upper.is_finite(),
            "the upper limit",
            upper,
            "above the lower one",
        )?;
        require((lower..=upper).contains(&mode), "the mode", mode, "between the limits")?;
        Ok(Self { lower, upper, peak: (mode - lower) / (upper - lower) })
    }

    /// A number between the limits.
    pub fn sample(&self, rng: &mut Stream) -> f64 {
        let uniform = rng.unit();
        let at = match uniform < self.peak {
            true => libm::sqrt(self.peak * uniform),
            false => 1.0 - libm::sqrt((1.0 - self.peak) * (1.0 - uniform)),
        };
        self.lower + (self.upper - self.lower) * at
    }
}
