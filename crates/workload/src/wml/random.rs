//! Random variables: Filebench's own (`randvar`: uniform, gamma, tabular) and those of its libraries
//! (`cvar`). A variable says how to draw; the caller brings the stream.
//!
//! After fb_random.c, fb_cvar.c and the libraries in cvars/: a `randvar` is its distribution with minimum 0 and
//! mean 1, stretched so that `min` and `mean` hold; a `cvar` is drawn as it is. Both are then rounded to
//! multiples of `round`, and a `cvar` is kept within `min` and `max`.

use nandscape_rt::dist::{
    BadParameter, Exponential, Gamma, Gaussian, Lognormal, Triangular, Weibull,
};
use nandscape_rt::rng::Stream;

/// Rows of a table, each a percent.
pub(super) const TABLE_ROWS: usize = 100;

/// Libraries of Filebench, with their parameters and what these are when nothing is said.
pub(super) const CUSTOM: [(&str, &[(&str, f64)]); 8] = [
    ("cvar-erlang", &[("shape", 1.0), ("rate", 1.0)]),
    ("cvar-exponential", &[("mean", 1.0)]),
    ("cvar-gamma", &[("mean", 4096.0), ("gamma", 1.5)]),
    ("cvar-lognormal", &[("shape", 1.0), ("scale", 1.0)]),
    ("cvar-normal", &[("mean", 0.0), ("sigma", 1.0)]),
    ("cvar-triangular", &[("lower", 0.0), ("upper", 1.0), ("mode", 0.5)]),
    ("cvar-uniform", &[("lower", 0.0), ("upper", 1.0)]),
    ("cvar-weibull", &[("shape", 1.0), ("scale", 1.0)]),
];

/// A distribution, before it is stretched.
#[derive(Clone, Debug)]
pub(super) enum Law {
    Uniform(f64, f64),
    Gamma(Gamma),
    /// Base and width of each percent.
    Table(Box<[(f64, f64)]>),
    Exponential(Exponential),
    Gaussian(Gaussian),
    Lognormal(Lognormal),
    Triangular(Triangular),
    Weibull(Weibull),
}

impl Law {
    /// A gamma distribution with mean 1.
    pub(super) fn unit_gamma(gamma: f64) -> Result<Self, BadParameter> {
        Gamma::new(gamma, 1.0 / gamma).map(Self::Gamma)
    }

    /// One with mean 1 and minimum 0 that has the form of a table (percent, from, to), and the
    /// table's own mean.
    pub(super) fn unit_table(rows: &[(usize, f64, f64)]) -> (Self, f64) {
        let least = rows.iter().fold(f64::MAX, |least, (_, from, _)| least.min(*from));
        let sum: f64 = rows.iter().map(|(share, from, to)| *share as f64 * (from + to) / 2.0).sum();
        let mean = sum / TABLE_ROWS as f64;
        let stretch = if mean > least { 1.0 / (mean - least) } else { 0.0 };
        let row = |&(share, from, to): &(usize, f64, f64)| {
            std::iter::repeat_n(((from - least) * stretch, (to - from) * stretch), share)
        };
        (Self::Table(rows.iter().flat_map(row).collect()), mean)
    }

    /// The distribution of a library, with its parameters in the order of [`CUSTOM`].
    pub(super) fn custom(library: &str, given: &[f64]) -> Result<Self, BadParameter> {
        let at = |index: usize| given.get(index).copied().unwrap_or_default();
        let (a, b) = (at(0), at(1));
        Ok(match library {
            // The library calls its mean a rate.
            "cvar-erlang" => Self::Gamma(Gamma::new(a.max(1.0), b / a.max(1.0))?),
            "cvar-exponential" => Self::Exponential(Exponential::new(a)?),
            "cvar-gamma" => Self::Gamma(Gamma::new(b, a / b)?),
            "cvar-lognormal" => Self::Lognormal(Lognormal::new(b, a)?),
            "cvar-normal" => Self::Gaussian(Gaussian::new(a, b)?),
            "cvar-triangular" => Self::Triangular(Triangular::new(a, b, at(2))?),
            "cvar-weibull" => Self::Weibull(Weibull::new(a, b)?),
            _ => Self::Uniform(a, b),
        })
    }

    fn sample(&self, rng: &mut Stream) -> f64 {
        match self {
            Self::Uniform(low, high) => low + (high - low) * rng.unit(),
            Self::Gamma(law) => law.sample(rng),
            Self::Table(rows) => {
                let at = rng.unit() * rows.len() as f64;
                let (base, width) = rows.get(at as usize).copied().unwrap_or_default();
                base + width * (at - libm::floor(at))
            }
            Self::Exponential(law) => law.sample(rng),
            Self::Gaussian(law) => law.sample(rng),
            Self::Lognormal(law) => law.sample(rng),
            Self::Triangular(law) => law.sample(rng),
            Self::Weibull(law) => law.sample(rng),
        }
    }
}

/// A random variable.
#[derive(Clone, Debug)]
pub struct Random {
    pub(super) law: Law,
    /// A `randvar`: its minimum and its mean, to which the law is stretched.
    pub(super) stretch: Option<(f64, f64)>,
    /// Values are multiples of this; 0: of nothing.
    pub(super) round: f64,
    /// Values are kept within these.
    pub(super) limits: (f64, f64),
}

impl Random {
    /// The mean that a `randvar` has.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.stretch.map(|(_, mean)| mean)
    }

    /// The same with another mean, for a `randvar`.
    #[must_use]
    pub fn with_mean(&self, mean: f64) -> Self {
        Self { stretch: self.stretch.map(|(min, _)| (min, mean)), ..self.clone() }
    }

    /// A value.
    pub fn sample(&self, rng: &mut Stream) -> f64 {
        let drawn = self.law.sample(rng);
        let value = self.stretch.map_or(drawn, |(min, mean)| drawn * (mean - min) + min);
        let rounded = match self.round > 0.0 {
            true => libm::round(value / self.round) * self.round,
            false => value,
        };
        rounded.max(self.limits.0).min(self.limits.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(random: &Random) -> Vec<f64> {
        let mut rng = Stream::new(3, "random");
        (0..20_000).map(|_| random.sample(&mut rng)).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn randvar(law: Law, min: f64, mean: f64, round: f64) -> Random {
        Random { law, stretch: Some((min, mean)), round, limits: (f64::MIN, f64::MAX) }
    }

    /// Minimum, mean and rounding hold for each of Filebench's own kinds.
    #[test]
    fn randvars_have_minimum_and_mean() {
        let (table, own) = Law::unit_table(&[(80, 1000.0, 3000.0), (20, 5000.0, 9000.0)]);
        assert!((own - 3000.0).abs() < 1e-9);
        for law in [Law::Uniform(0.0, 2.0), Law::unit_gamma(1.5).unwrap(), table] {
            let values = samples(&randvar(law, 512.0, 4096.0, 256.0));
            assert!((mean(&values) - 4096.0).abs() < 100.0, "{}", mean(&values));
            assert!(values.iter().all(|v| *v >= 512.0 && v.rem_euclid(256.0) == 0.0));
        }
    }

    /// A table's values lie in its stretches, as often as it says.
    #[test]
    fn tables_keep_their_shares() {
        let (law, mean) = Law::unit_table(&[(85, 8.0, 8.0), (15, 16.0, 32.0)]);
        let values = samples(&randvar(law, 8.0, mean, 0.0));
        let small = values.iter().filter(|value| (**value - 8.0).abs() < 1e-9).count();
        assert!((small as f64 / values.len() as f64 - 0.85).abs() < 0.01);
        assert!(values.iter().all(|v| (*v - 8.0).abs() < 1e-9 || (15.9..32.1).contains(v)));
    }

    /// Every library draws with its own mean, and stays within limits.
    #[test]
    fn libraries_have_their_means() {
        for (library, given, expected) in [
            ("cvar-erlang", vec![3.0, 700.0], 700.0),
            ("cvar-exponential", vec![50.0], 50.0),
            ("cvar-gamma", vec![4096.0, 1.5], 4096.0),
            ("cvar-lognormal", vec![0.5, 2.0], libm::exp(2.125)),
            ("cvar-normal", vec![100.0, 5.0], 100.0),
            ("cvar-triangular", vec![0.0, 9.0, 3.0], 4.0),
            ("cvar-uniform", vec![10.0, 30.0], 20.0),
            ("cvar-weibull", vec![1.0, 30.0], 30.0),
        ] {
            let law = Law::custom(library, &given).unwrap();
            let random = Random { law, stretch: None, round: 0.0, limits: (0.0, f64::MAX) };
            let found = mean(&samples(&random));
            assert!((found / expected - 1.0).abs() < 0.04, "{library}: {found}, not {expected}");
            let limited = Random { limits: (1.0, 2.0), ..random };
            assert!(samples(&limited).iter().all(|value| (1.0..=2.0).contains(value)));
        }
    }
}
