//! Faults that are planted: our side reads a key as if it were another value.

use super::case::Case;
use std::fmt;

/// A fault.
pub(super) struct Plant {
    pub(super) what: &'static str,
    /// What our side reads instead of a key and its value; `None`: as it stands.
    pub(super) read: fn(&str, &str) -> Option<String>,
}

impl fmt::Debug for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl Plant {
    /// Whether our side reads a job differently.
    pub(super) fn changes(&self, case: &Case) -> bool {
        case.keys().any(|(key, value)| self.value(key, value) != value)
    }

    /// The value that our side reads.
    pub(super) fn value(&self, key: &str, value: &str) -> String {
        (self.read)(key, value).unwrap_or_else(|| value.to_owned())
    }
}

/// The value of one key, changed.
macro_rules! plant {
    ($what:literal, $key:literal, $change:expr) => {
        Plant {
            what: $what,
            read: |key, value| {
                let change: fn(&str) -> String = $change;
                (key == $key).then(|| change(value))
            },
        }
    };
}

/// A number, changed.
fn changed(value: &str, change: fn(u64) -> u64) -> String {
    value.parse().map_or_else(|_| value.to_owned(), |number| change(number).to_string())
}

pub(super) const PLANTS: &[Plant] = &[
    plant!("rwmixread is that of writes", "rwmixread", |text| changed(text, |percent| 100
        - percent)),
    plant!("rate_iops of the first direction counts for all", "rate_iops", |text| {
        text.split(',').find(|part| !part.is_empty()).unwrap_or(text).to_owned()
    }),
    plant!("bssplit has even shares", "bssplit", |text| {
        let even = |part: &str| format!("{}/", part.split('/').next().unwrap_or(part));
        let split = |text: &str| text.split(':').map(even).collect::<Vec<_>>().join(":");
        text.split(',').map(split).collect::<Vec<_>>().join(",")
    }),
    plant!("randrepeat=0 repeats", "randrepeat", |_| "1".to_owned()),
    plant!("zoneskip is lost", "zoneskip", |_| "0".to_owned()),
    plant!("loops is one more", "loops", |text| changed(text, |loops| loops + 1)),
    plant!("fsync comes later", "fsync", |text| changed(text, |writes| writes + 1)),
    plant!("percentage_random is that of sequential I/Os", "percentage_random", |text| {
        changed(text, |percent| 100 - percent)
    }),
];
