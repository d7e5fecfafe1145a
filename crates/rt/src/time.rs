//! Time as integer nanoseconds. One type for instants and for spans: an instant is the span since
//! the run began.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// Nanoseconds; as an instant, since the run began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The beginning of a run, or no time at all.
    pub const ZERO: Self = Self(0);
    /// Later than every instant of a run.
    pub const MAX: Self = Self(u64::MAX);

    /// `us` microseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// `ms` milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// `s` seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// In seconds, for reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - earlier`, or zero when `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or [`Nanos::MAX`] when that overflows.
    #[must_use]
    pub const fn saturating_add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, span: Self) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, span: Self) {
        self.0 += span.0;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self(self.0 - earlier.0)
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, span: Self) {
        self.0 -= span.0;
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    /// In the largest unit that keeps three digits before the point: `12.3us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{}ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1}us", ns / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1}ms", ns / 1e6),
            _ => write!(f, "{:.2}s", ns / 1e9),
        }
    }
}
