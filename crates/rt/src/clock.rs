//! The two clocks. On the virtual one time stands still until the executor moves it; the real one is
//! the operating system's monotonic clock. Nothing else in the runtime reads a clock.

use crate::time::Nanos;
use std::time::Instant;

/// Where the time comes from.
pub(crate) enum Clock {
    /// Jumps to the next timer.
    Virtual,
    /// Runs by itself, since this instant.
    Real(Instant),
}

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "the real clock is what this constructor is for")]
    pub(crate) fn real() -> Self {
        Self::Real(Instant::now())
    }

    /// The time by this clock, when it runs by itself.
    #[inline]
    pub(crate) fn reading(&self) -> Option<Nanos> {
        match self {
            Self::Virtual => None,
            Self::Real(start) => {
                Some(Nanos(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)))
            }
        }
    }
}
