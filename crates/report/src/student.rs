//! Mean and 95 % confidence of a few repetitions, by Student's t: for n independent samples of a normal
//! distribution, the interval mean ± t(n-1) s/√n holds the true mean in 95 of 100 cases.

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; any statistics textbook has
/// this table.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A mean and how far to trust it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` for a single sample.
    pub half_width: Option<f64>,
    /// What is shown around it: the interval, or the range of samples that are too few for one. It does not go below
    /// zero where no sample does.
    pub ends: [f64; 2],
    /// How many samples it is of.
    pub samples: usize,
}

/// Samples at which an interval says something: that of two is 18 times as wide as their distance.
const INTERVAL_MIN: usize = 3;

impl Mean {
    /// Of `samples`; `None` without any.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
        let half = |freedom: usize| t(freedom) * (squares / freedom as f64 / n).sqrt();
        let half_width = (samples.len() > 1).then(|| half(samples.len() - 1));
        let (low, high) = samples
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
        let ends = match half_width.filter(|_| samples.len() >= INTERVAL_MIN) {
            Some(half) if low >= 0.0 => [(mean - half).max(0.0), mean + half],
            Some(half) => [mean - half, mean + half],
            None => [low, high],
        };
        Some(Self { mean, half_width, ends, samples: samples.len() })
    }

    /// A number that is known as it is.
    #[must_use]
    pub const fn exactly(number: f64) -> Self {
        Self { mean: number, half_width: None, ends: [number; 2], samples: 1 }
    }

    /// Whether its ends are those of its samples, because there are too few for an interval.
    pub(crate) const fn is_range(&self) -> bool {
        self.samples > 1 && self.samples < INTERVAL_MIN
    }

    /// The same in units of `scale`.
    pub(crate) fn in_units_of(self, scale: f64) -> Self {
        Self {
            mean: self.mean / scale,
            half_width: self.half_width.map(|half| half / scale),
            ends: self.ends.map(|end| end / scale),
            samples: self.samples,
        }
    }
}

/// The quantile for `freedom` degrees of freedom; past the table by the first terms of its expansion
/// in 1 / freedom (Abramowitz and Stegun, 26.7.5), good to four digits there.
fn t(freedom: usize) -> f64 {
    const Z: f64 = 1.959_964;
    const FIRST: f64 = (Z * Z * Z + Z) / 4.0;
    const SECOND: f64 = (5.0 * Z * Z * Z * Z * Z + 16.0 * Z * Z * Z + 3.0 * Z) / 96.0;
    let known = freedom.checked_sub(1).and_then(|index| T.get(index));
    let inverse = 1.0 / freedom as f64;
    known.copied().unwrap_or(Z + FIRST * inverse + SECOND * inverse * inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worked example: 1 to 5 has mean 3 and standard error √0.5.
    #[test]
    fn intervals_are_those_of_the_textbook() {
        let mean = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(mean.mean, 3.0);
        assert!((mean.half_width.unwrap() - 1.963).abs() < 1e-3, "{mean:?}");
        assert_eq!(Mean::of(&[7.0]), Some(Mean::exactly(7.0)));
        assert_eq!(Mean::of(&[7.0, 7.0]).unwrap().half_width, Some(0.0));
        assert_eq!(Mean::of(&[]), None);
    }

    /// Two samples are shown as they are, and no band goes below zero unless a sample does.
    #[test]
    fn ends_say_what_samples_say() {
        let two = Mean::of(&[8.0, 9.0]).unwrap();
        assert!(two.is_range() && two.half_width.unwrap() > 6.0, "{two:?}");
        assert_eq!(two.ends, [8.0, 9.0]);
        let low = |samples: &[f64]| Mean::of(samples).unwrap().ends[0];
        assert_eq!(low(&[0.0, 1.0, 9.0]), 0.0);
        assert!(low(&[-1.0, 1.0, 9.0]) < -1.0 && low(&[8.0, 9.0, 10.0]) > 6.0);
    }

    /// Table and expansion meet, and the expansion ends at the normal distribution.
    #[test]
    fn quantiles_fall_with_the_degrees_of_freedom() {
        assert!((1..200).all(|freedom| t(freedom) > t(freedom + 1)));
        for (freedom, quantile) in [(40, 2.021), (60, 2.000), (120, 1.980), (1_000_000, 1.960)] {
            assert!((t(freedom) - quantile).abs() < 6e-4, "{freedom}: {}", t(freedom));
        }
    }
}
