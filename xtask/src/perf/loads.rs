//! What is measured: the loads of `nandscape bench`, with a sixteenth of their I/Os, and overwrites of a file through the
//! page cache.

use serde_json::Value;

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

/// Where a load runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The device of `nandscape bench`, filled and overwritten before.
    Preconditioned,
    /// The same, fresh.
    Fresh,
    /// A file on this stack.
    File(&'static str),
    /// A file on `f2fs-lfs-ssd` that takes four fifths of it and was written over until sections had to be cleaned; with
    /// this `fs.reclaim`.
    Cleaned(&'static str),
}

/// What a figure is compared with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Limit {
    /// Its base.
    Base,
    /// Another load of the same measurement, of which it may be so much.
    Load(&'static str, f64),
    /// Nothing.
    None,
}

/// A load that is measured.
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) rw: &'static str,
    pub(super) place: Place,
    pub(super) limit: Limit,
}

/// A load on the device of `nandscape bench`.
const fn bench(name: &'static str, unit: Unit, rw: &'static str, place: Place) -> Load {
    Load { name, unit, rw, place, limit: Limit::Base }
}

/// Overwrites through the page cache.
const fn file(name: &'static str, stack: &'static str, limit: Limit) -> Load {
    Load { name, unit: Unit::Io, rw: "randwrite", place: Place::File(stack), limit }
}

/// What [`Place::Cleaned`] begins with.
pub(super) const AGE: &str = "[global]\nfilename=data\ndirect=1\nsize=1368m\n[fill]\nrw=write\nbs=1m\n\
                              [age]\nstonewall\nrw=randwrite\nbs=4k\nnorandommap\nio_size=600m\n";

/// Overwrites of a file, with the cleaning that they make necessary.
const fn cleaned(name: &'static str, reclaim: &'static str, limit: Limit) -> Load {
    let place = Place::Cleaned(reclaim);
    Load { name, unit: Unit::Io, rw: "randwrite", place, limit }
}

pub(super) const LOADS: [Load; 7] = [
    bench("steady", Unit::PlacedSector, "randwrite", Place::Preconditioned),
    bench("empty", Unit::Io, "randwrite", Place::Fresh),
    bench("read", Unit::Io, "randread", Place::Preconditioned),
    file("ext4", "ext4-ssd", Limit::None),
    file("f2fs", "f2fs-lfs-ssd", Limit::Load("ext4", 1.25)),
    cleaned("cleaned", "checkpoint", Limit::None),
    cleaned("gc-journal", "gc-journal", Limit::Load("cleaned", 1.0)),
];

impl Load {
    /// I/Os of the shorter run, in which caches fill, and of the longer one.
    pub(super) const fn ios(&self) -> [u64; 2] {
        match self.place {
            Place::File(_) => [10_000, 40_000],
            Place::Cleaned(_) => [2_000, 12_000],
            Place::Preconditioned | Place::Fresh => [100_000, 600_000],
        }
    }

    /// The fio job of so many I/Os.
    pub(super) fn job(&self, ios: u64) -> String {
        let (rw, bytes) = (self.rw, ios * 4096);
        match self.place {
            Place::File(_) => format!(
                "[bench]\nrw={rw}\nbs=4k\nsize=64m\nnorandommap\nnumber_ios={ios}\nio_size={bytes}\n"
            ),
            Place::Cleaned(_) => format!(
                "[move]\nfilename=data\nrw={rw}\ndirect=1\nbs=4k\nsize=1368m\nnorandommap\nnumber_ios={ios}\n"
            ),
            Place::Preconditioned | Place::Fresh => format!(
                "[bench]\nrw={rw}\ndirect=1\nbs=4k\niodepth=32\nnorandommap\nnumber_ios={ios}\nloops=1\n\
                 io_size={bytes}\n"
            ),
        }
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
            "nandscape": {
                "sectors": { "user": 10, "gc": 20, "pad": 3, "map": 50 },
            },
        });
        assert_eq!(Unit::PlacedSector.count(&result), Some(33));
        assert_eq!(Unit::Io.count(&result), Some(10));
        assert_eq!(Unit::Io.count(&json!({ "jobs": [] })), None);
    }
}
