//! Timers and thresholds of file systems: what a campaign draws from a seed, so that whatever races with them
//! is seen to race. Each kind declares its own in one place (`ext4::knobs`), and those of the page cache are
//! declared once for all ([`crate::cache::KNOBS`]).
//!
//! What is no knob, and why:
//! - sizes of batches (`EVICT_BATCH`, `EVICT_SCAN`, `TURN_PAGES`, `IN_FLIGHT_MAX`, `RUN_PAGES`,
//!   `WINDOW_BLOCKS`, `WRITES_IN_FLIGHT`, `RATELIMIT_MAX`, `LOGGED_PAGES`): they divide work whose order no
//!   promise depends on, and small memories reach their ends;
//! - credits of operations (`NAME_CREDITS`, `MAP_CREDITS`, `STEP_CREDITS` and the like): upper bounds of what an
//!   operation changes, not choices;
//! - the granularity of times (`TICK`) and limits of the format.

use nandscape_rt::Nanos;
use std::fmt;

/// A timer that is never due: far beyond the end of any run, and far from the end of the clock.
pub const NEVER_NS: u64 = 1 << 60;

/// A timer or threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// The least usual value.
    pub least: u64,
    /// The largest usual value.
    pub most: u64,
    /// The value that acts whenever there is something to do, if there is one.
    pub at_once: Option<u64>,
    /// The value that never acts by itself, if there is one.
    pub never: Option<u64>,
    /// What its values count.
    pub unit: KnobUnit,
}

/// What the values of a knob count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnobUnit {
    /// Nanoseconds.
    Nanos,
    /// Pages or blocks of 4 KiB.
    Blocks,
    /// Parts in a hundred.
    Percent,
    /// Other things.
    Count,
}

impl Knob {
    /// A timer.
    pub(crate) const fn timer(
        name: &'static str,
        least_ns: u64,
        most_ns: u64,
        at_once: Option<u64>,
    ) -> Self {
        let unit = KnobUnit::Nanos;
        Self { name, least: least_ns, most: most_ns, at_once, never: Some(NEVER_NS), unit }
    }

    /// A value as people read it.
    #[must_use]
    pub const fn show(self, value: u64) -> KnobValue {
        KnobValue(self, value)
    }
}

/// A value of a knob, to be shown.
#[derive(Clone, Copy, Debug)]
pub struct KnobValue(Knob, u64);

impl fmt::Display for KnobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(knob, value) = *self;
        write!(f, "{}=", knob.name)?;
        match knob.unit {
            _ if knob.at_once == Some(value) => f.write_str("at-once"),
            _ if knob.never == Some(value) => f.write_str("never"),
            KnobUnit::Nanos => write!(f, "{}", Nanos(value)),
            KnobUnit::Percent => write!(f, "{value}%"),
            KnobUnit::Blocks | KnobUnit::Count => write!(f, "{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values are named where they have names.
    #[test]
    fn values_are_shown() {
        let knob = Knob::timer("age", 1_000, 2_000, Some(0));
        let shown = [0, 1_500, NEVER_NS].map(|value| knob.show(value).to_string());
        assert_eq!(shown, ["age=at-once", "age=1.5us", "age=never"]);
    }
}
