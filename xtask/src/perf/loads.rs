//! What is measured: the loads of `nandscape bench`, with a sixteenth of their I/Os.

use serde_json::Value;

/// I/Os of the shorter run, in which caches fill, and of the longer one.
pub(super) const IOS: [u64; 2] = [100_000, 600_000];

/// The stack of `nandscape bench`.
pub(super) const STACK: &str = "bench-8g";

/// What instructions are counted per.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// A sector that the FTL placed: user data, GC copies and padding.
    PlacedSector,
    /// An I/O of the host.
    Io,
}

impl Unit {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PlacedSector => "placed sector",
            Self::Io => "I/O",
        }
    }

    /// How many of them a result reports.
    pub(super) fn count(self, result: &Value) -> Option<u64> {
        let sum = |paths: &[&str]| -> Option<u64> {
            paths.iter().map(|path| result.pointer(path)?.as_u64()).sum()
        };
        match self {
            Self::PlacedSector => {
                sum(&["/nandscape/sectors/user", "/nandscape/sectors/gc", "/nandscape/sectors/pad"])
            }
            Self::Io => sum(&["/jobs/0/read/total_ios", "/jobs/0/write/total_ios"]),
        }
    }
}

/// A load that is measured.
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) rw: &'static str,
    /// Whether the device was filled and overwritten before.
    pub(super) preconditioned: bool,
}

pub(super) const LOADS: [Load; 3] = [
    Load { name: "steady", unit: Unit::PlacedSector, rw: "randwrite", preconditioned: true },
    Load { name: "empty", unit: Unit::Io, rw: "randwrite", preconditioned: false },
    Load { name: "read", unit: Unit::Io, rw: "randread", preconditioned: true },
];

impl Load {
    /// The fio job of so many I/Os.
    pub(super) fn job(&self, ios: u64) -> String {
        let (rw, bytes) = (self.rw, ios * 4096);
        format!(
            "[bench]\nrw={rw}\ndirect=1\nbs=4k\niodepth=32\nnorandommap\nnumber_ios={ios}\nloops=1\n\
             io_size={bytes}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn units_are_counted_in_a_result() {
        let result = json!({
            "jobs": [{ "read": { "total_ios": 0 }, "write": { "total_ios": 10 } }],
            "nandscape": { "sectors": { "user": 10, "gc": 20, "pad": 3, "map": 50 } },
        });
        assert_eq!(Unit::PlacedSector.count(&result), Some(33));
        assert_eq!(Unit::Io.count(&result), Some(10));
        assert_eq!(Unit::Io.count(&json!({ "jobs": [] })), None);
    }
}
