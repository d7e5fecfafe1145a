//! Distributions over the items `0..n`, with fio's parameters. fio then scatters zipf's and
//! pareto's items over the file by a hash; that is left to the caller, which maps items to addresses.

use super::{BadParameter, require, require_items, require_positive, standard_normal};
use crate::rng::Stream;

/// Zipf: item `k` is drawn in proportion to `1 / (k + 1)^theta`.
///
/// By rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", 1996): exact for every `theta` above 0, fio's forbidden 1
/// included, with neither a table nor a sum over the items. fio itself uses the approximation of
/// Gray et al. (1994), whose zeta sum it cuts at ten million items.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    theta: f64,
    n: f64,
    /// The integral of the density's hat, at 1.5 less the first item's share, and at n + 0.5.
    low: f64,
    high: f64,
    /// Distances from an item below which no second look is needed.
    squeeze: f64,
}

impl Zipf {
    /// Over `n` items.
    ///
    /// # Errors
    /// Without items, or with a `theta` that is not above 0.
    pub fn new(n: u64, theta: f64) -> Result<Self, BadParameter> {
        require_items(n)?;
        require_positive("theta", theta)?;
        let mut zipf = Self { theta, n: n as f64, low: 0.0, high: 0.0, squeeze: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.n + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        Ok(zipf)
    }

    /// An item; 0 is the hottest.
    pub fn sample(&self, rng: &mut Stream) -> u64 {
        loop {
            let area = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(area);
            let item = libm::floor(x + 0.5).clamp(1.0, self.n);
            let certain = item - x <= self.squeeze;
            if certain || area >= self.integral(item + 0.5) - self.density(item) {
                return item as u64 - 1;
            }
        }
    }

    /// `x^-theta`.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// `(x^(1-theta) - 1) / (1-theta)`, and its limit `ln x`.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = (1.0 - self.theta) * log;
        log * if t.abs() > 1e-8 { libm::expm1(t) / t } else { 1.0 + t / 2.0 }
    }

    /// The inverse of `integral`: `(1 + (1-theta) y)^(1/(1-theta))`, and its limit `exp y`.
    fn inverse(&self, y: f64) -> f64 {
        // Rounding may carry the product just past -1, where the logarithm ends.
        let t = ((1.0 - self.theta) * y).max(-1.0);
        libm::exp(y * if t.abs() > 1e-8 { libm::log1p(t) / t } else { 1.0 - t / 2.0 })
    }
}

/// fio's pareto: item `(n - 1) u^p` for a uniform `u` and `p = ln h / ln (1 - h)`, so that a share
/// `1 - h` of the draws falls on a share `h` of the items (80/20 for `h` = 0.2).
#[derive(Clone, Copy, Debug)]
pub struct Pareto {
    last: f64,
    power: f64,
}

impl Pareto {
    /// Over `n` items.
    ///
    /// # Errors
    /// Without items, or with an `h` that is not between 0 and 1.
    pub fn new(n: u64, h: f64) -> Result<Self, BadParameter> {
        require_items(n)?;
        require(h > 0.0 && h < 1.0, "h", h, "above 0 and below 1")?;
        Ok(Self { last: (n - 1) as f64, power: libm::log(h) / libm::log1p(-h) })
    }

    /// An item; 0 is the hottest.
    pub fn sample(&self, rng: &mut Stream) -> u64 {
        (self.last * libm::exp(self.power * libm::log(rng.unit()))) as u64
    }
}

/// fio's normal: around the middle of the items, the standard deviation given in percent of them.
/// What falls off one end comes back at the other.
#[derive(Clone, Copy, Debug)]
pub struct Normal {
    n: f64,
    deviation: f64,
}

impl Normal {
    /// Over `n` items.
    ///
    /// # Errors
    /// Without items, or with a deviation outside fio's 0 to 100 percent.
    pub fn new(n: u64, percent: f64) -> Result<Self, BadParameter> {
        require_items(n)?;
        let holds = (0.0..=100.0).contains(&percent);
        require(holds, "the deviation in percent", percent, "between 0 and 100")?;
        Ok(Self { n: n as f64, deviation: n as f64 * percent / 100.0 })
    }

    /// An item; the middle one is the hottest.
    pub fn sample(&self, rng: &mut Stream) -> u64 {
        let place = libm::floor(self.n / 2.0 + self.deviation * standard_normal(rng));
        let around = place - self.n * libm::floor(place / self.n);
        // Rounding can make the last step land on n itself.
        around.clamp(0.0, self.n - 1.0) as u64
    }
}
