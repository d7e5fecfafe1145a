//! How long jobs run, where an option says so and not their files; as fio reads the option of the
//! same name, a plain number counts seconds.

use super::units::time;
use nandscape_rt::Nanos;
use std::fmt;
use std::str::FromStr;

/// The longest run: a leap year.
const MAX: Nanos = Nanos::from_secs(366 * 86_400);

/// How long each job, a workload or a trace may take: more than nothing, and at most a year.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runtime(Nanos);

impl Runtime {
    /// In virtual time.
    #[must_use]
    pub const fn time(self) -> Nanos {
        self.0
    }
}

impl FromStr for Runtime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = time(text.trim(), Nanos::from_secs(1));
        let read = read.filter(|time| *time > Nanos::ZERO && *time <= MAX).map(Self);
        read.ok_or_else(|| {
            "expected a time above zero and up to 366d, such as 5s, 500ms, 2m, or 0.5 for half a second"
                .to_owned()
        })
    }
}

/// In seconds, exactly.
impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = Nanos::from_secs(1).0;
        let (whole, rest) = (self.0.0 / second, format!("{:09}", self.0.0 % second));
        match rest.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            fraction => write!(f, "{whole}.{fraction}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown is read as the same time; what is no time of a run is refused with what one is.
    #[test]
    fn a_runtime_is_read_as_fio_does_and_shown() {
        for (text, shown) in [
            ("5", "5"),
            ("5s", "5"),
            (" 0.5", "0.5"),
            ("500ms", "0.5"),
            ("2m", "120"),
            ("1.0000001", "1.0000001"),
            ("7us", "0.000007"),
            ("366d", "31622400"),
        ] {
            let read: Runtime = text.parse().unwrap();
            assert_eq!(read.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(read), "{text}");
        }
        for wrong in ["", "0", "0.0000000001", "-1", "x", "5 parsecs", "367d", "1e3", "\u{665}s"] {
            let error = wrong.parse::<Runtime>().unwrap_err();
            assert!(error.starts_with("expected a time above zero"), "{wrong}: {error}");
        }
    }
}
