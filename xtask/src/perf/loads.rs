//! What is measured. A load is a row of [`LOADS`]: a stack, what its device begins with, a job, and its two lengths.
//!
//! Counts of equal runs differ by a few thousand instructions: a result contains times of the wall clock, and hash tables of
//! its keys have random seeds. So the longer run of a load executes at least 100 million instructions more than the shorter one.
//! Short runs cost more per unit than long ones by the same code, because the first 256 ms of virtual time are sampled every
//! millisecond, later ones ever less often.

use serde_json::Value;

/// In the texts of a load this word stands for the length of a run.
const LENGTH: &str = "LENGTH";

/// What instructions are counted per.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// A sector that the FTL placed: user data, GC copies and padding.
    PlacedSector,
    /// An I/O of the job.
    Io,
    /// An operation of a Filebench workload.
    Operation,
    /// A sector of the media, whether or not it holds data.
    MediaSector,
}

impl Unit {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PlacedSector => "placed sector",
            Self::Io => "I/O",
            Self::Operation => "operation",
            Self::MediaSector => "media sector",
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
            Self::Operation => sum(&["/nandscape/wml/summary/ops"]),
            Self::MediaSector => sum(&["/nandscape/capacity/physical_sectors"]),
        }
    }
}

/// A job, as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Job {
    Fio(&'static str),
    Filebench(&'static str),
}

impl Job {
    /// The end of its file's name, by which the program tells jobs from workloads.
    pub(super) const fn extension(self) -> &'static str {
        match self {
            Self::Fio(_) => "fio",
            Self::Filebench(_) => "f",
        }
    }

    /// Its text for a run of this length.
    pub(super) fn text(self, length: u64) -> String {
        let (Self::Fio(text) | Self::Filebench(text)) = self;
        with_length(text, length)
    }
}

/// How a state is made, at full speed, that runs start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// As `[precondition]` of the stack says.
    Preconditioned,
    /// By a job, with these arguments of its run alone.
    Aged(Job, &'static [&'static str]),
}

/// A load that is measured. The length is a number of I/Os unless its row says otherwise.
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// Arguments that name and scale the stack.
    pub(super) stack: &'static [&'static str],
    /// Without one, the device is fresh.
    pub(super) start: Option<Start>,
    /// Further arguments of the measured runs.
    pub(super) run: &'static [&'static str],
    pub(super) job: Job,
    /// Of the shorter run, in which caches fill, and of the longer one.
    pub(super) lengths: [u64; 2],
    /// Another load of the same measurement, and how much of it this one may be.
    pub(super) at_most: Option<(&'static str, f64)>,
}

/// A text of a load, for a run of this length.
pub(super) fn with_length(text: &str, length: u64) -> String {
    text.replace(LENGTH, &length.to_string())
}

/// Random writes of a device.
const WRITES: Job = Job::Fio(
    "[bench]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=LENGTH\nio_size=100g\n",
);
/// Random reads of a device.
const READS: Job = Job::Fio(
    "[bench]\nrw=randread\ndirect=1\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=LENGTH\nio_size=100g\n",
);
/// Writes of four zones at their write pointers, which are reset when they are full.
const ZONES: Job = Job::Fio(
    "[bench]\nrw=randwrite\ndirect=1\nbs=64k\niodepth=4\nzonemode=zbd\nmax_open_zones=4\noffset=192m\n\
     size=256m\nnumber_ios=LENGTH\nio_size=100g\n",
);
/// Overwrites of a file through the page cache.
const CACHED: Job = Job::Fio(
    "[bench]\nrw=randwrite\nbs=4k\nsize=16m\nnorandommap\nnumber_ios=LENGTH\nio_size=100g\n",
);
/// A log, each entry of which is synced.
const SYNCED: Job =
    Job::Fio("[bench]\nrw=write\nbs=4k\nsize=16m\nfsync=1\nnumber_ios=LENGTH\nio_size=100g\n");
/// A mail server.
const MAIL: Job = Job::Filebench(include_str!("../../../examples/varmail.f"));
/// A single write.
const ONE: Job = Job::Fio("[bench]\nrw=randwrite\ndirect=1\nbs=4k\nnumber_ios=1\n");

/// A file that takes four fifths of the volume of [`CLEANED`], written over until sections have to be cleaned.
const CLEANED_AGE: Job = Job::Fio(
    "[global]\nfilename=data\ndirect=1\nsize=1368m\n[fill]\nrw=write\nbs=1m\n\
     [age]\nstonewall\nrw=randwrite\nbs=4k\nnorandommap\nio_size=600m\n",
);
/// Overwrites of that file.
const CLEANED_MOVE: Job = Job::Fio(
    "[bench]\nfilename=data\nrw=randwrite\ndirect=1\nbs=4k\nsize=1368m\nnorandommap\nnumber_ios=LENGTH\n",
);
const CLEANED: &[&str] =
    &["--stack=f2fs-lfs-ssd", "--set=media.sectors=64", "--set=fs.background_gc=false"];

/// A file on F2FS, written over until the coupled SSD has to collect.
const COUPLED_AGE: Job = Job::Fio(
    "[global]\nfilename=data\ndirect=1\nsize=280m\n[fill]\nrw=write\nbs=1m\n\
     [age]\nstonewall\nrw=randwrite\nbs=4k\nnorandommap\nio_size=200m\n",
);
/// Overwrites of that file.
const COUPLED_MOVE: Job = Job::Fio(
    "[bench]\nfilename=data\nrw=randwrite\ndirect=1\nbs=4k\nsize=280m\nnorandommap\nnumber_ios=LENGTH\n",
);

/// The stack of `nandscape bench` at a quarter of its size: as many lines, but shorter ones.
const BENCH: &[&str] = &["--stack=bench-8g", "--set=media.sectors=1024"];
/// File systems of 2 GiB, with so little memory that most writes to their files are written back.
const EXT4: &[&str] = &["--stack=ext4-ssd", "--set=media.sectors=64", "--set=host.memory=16MiB"];
const F2FS: &[&str] =
    &["--stack=f2fs-lfs-ssd", "--set=media.sectors=64", "--set=host.memory=16MiB"];

pub(super) const LOADS: &[Load] = &[
    Load {
        name: "steady",
        unit: Unit::PlacedSector,
        stack: BENCH,
        start: Some(Start::Preconditioned),
        run: &[],
        job: WRITES,
        lengths: [10_000, 40_000],
        at_most: None,
    },
    Load {
        name: "empty",
        unit: Unit::Io,
        stack: BENCH,
        start: None,
        run: &["--set=precondition.recipe=none"],
        job: WRITES,
        lengths: [50_000, 120_000],
        at_most: None,
    },
    Load {
        name: "read",
        unit: Unit::Io,
        stack: BENCH,
        start: Some(Start::Preconditioned),
        run: &[],
        job: READS,
        lengths: [10_000, 90_000],
        at_most: None,
    },
    Load {
        name: "ssd",
        unit: Unit::PlacedSector,
        stack: &["--stack=ssd", "--set=media.chunks=256", "--set=media.sectors=64"],
        start: Some(Start::Preconditioned),
        run: &[],
        job: WRITES,
        lengths: [3_000, 12_000],
        at_most: None,
    },
    // One instance with 8,192 lines of one chunk each: what a victim costs grows with its lines.
    Load {
        name: "lines-8192",
        unit: Unit::PlacedSector,
        stack: &[
            "--stack=ssd",
            "--set=media.groups=1",
            "--set=media.units=1",
            "--set=media.chunks=8192",
            "--set=media.sectors=64",
            "--set=media.payload=none",
            "--set=ftl.instances=1",
            "--set=ftl.op_percent=20",
        ],
        start: Some(Start::Preconditioned),
        run: &[],
        job: WRITES,
        lengths: [5_000, 45_000],
        at_most: None,
    },
    Load {
        name: "zoned",
        unit: Unit::Io,
        stack: &["--stack=zns", "--set=media.chunks=64"],
        start: None,
        run: &[],
        job: ZONES,
        lengths: [8_000, 24_000],
        at_most: None,
    },
    Load {
        name: "coupled",
        unit: Unit::PlacedSector,
        stack: &[
            "--stack=d2fs-ssd",
            "--set=media.chunks=192",
            "--set=media.sectors=64",
            "--set=ftl.op_percent=20",
            "--set=ftl.superblock.spare_chunks=16",
            "--set=host.memory=64MiB",
            "--set=fs.kind=f2fs",
            "--set=fs.allocation=lfs",
        ],
        start: Some(Start::Aged(COUPLED_AGE, &["--set=fs.segments_per_section=2"])),
        run: &["--set=fs.format=false"],
        job: COUPLED_MOVE,
        lengths: [1_000, 4_000],
        at_most: None,
    },
    Load {
        name: "ext4",
        unit: Unit::Io,
        stack: EXT4,
        start: None,
        run: &[],
        job: CACHED,
        lengths: [2_500, 7_500],
        at_most: None,
    },
    Load {
        name: "f2fs",
        unit: Unit::Io,
        stack: F2FS,
        start: None,
        run: &[],
        job: CACHED,
        lengths: [2_500, 7_500],
        at_most: Some(("ext4", 1.25)),
    },
    Load {
        name: "fsync",
        unit: Unit::Io,
        stack: EXT4,
        start: None,
        run: &[],
        job: SYNCED,
        lengths: [500, 2_500],
        at_most: None,
    },
    // Its length is in virtual milliseconds, and its mailbox a quarter of the example's.
    Load {
        name: "varmail",
        unit: Unit::Operation,
        stack: EXT4,
        start: None,
        run: &["--set=$messages=500", "--runtime=LENGTHms"],
        job: MAIL,
        lengths: [10, 80],
        at_most: None,
    },
    // The same volume for both values of `fs.reclaim`.
    Load {
        name: "cleaned",
        unit: Unit::Io,
        stack: CLEANED,
        start: Some(Start::Aged(CLEANED_AGE, &["--set=fs.gc_journal_area=true"])),
        run: &["--set=fs.format=false", "--set=fs.reclaim=checkpoint"],
        job: CLEANED_MOVE,
        lengths: [1_000, 3_000],
        at_most: None,
    },
    Load {
        name: "gc-journal",
        unit: Unit::Io,
        stack: CLEANED,
        start: Some(Start::Aged(CLEANED_AGE, &["--set=fs.gc_journal_area=true"])),
        run: &["--set=fs.format=false", "--set=fs.reclaim=gc-journal"],
        job: CLEANED_MOVE,
        lengths: [1_000, 3_000],
        at_most: Some(("cleaned", 1.0)),
    },
    // Loading a saved state. Its length is in sectors of a chunk: the longer run has twice the device.
    Load {
        name: "state",
        unit: Unit::MediaSector,
        stack: &["--stack=ssd", "--set=media.chunks=256", "--set=media.sectors=LENGTH"],
        start: Some(Start::Preconditioned),
        run: &[],
        job: ONE,
        lengths: [64, 128],
        at_most: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn units_are_counted_in_a_result() {
        let result = json!({
            "jobs": [{ "read": { "total_ios": 0 }, "write": { "total_ios": 10 } }],
            "nandscape": {
                "capacity": { "physical_sectors": 4096 },
                "sectors": { "user": 10, "gc": 20, "pad": 3, "map": 50 },
                "wml": { "summary": { "ops": 70 } },
            },
        });
        assert_eq!(Unit::PlacedSector.count(&result), Some(33));
        assert_eq!(Unit::Io.count(&result), Some(10));
        assert_eq!(Unit::Operation.count(&result), Some(70));
        assert_eq!(Unit::MediaSector.count(&result), Some(4096));
        assert_eq!(Unit::Io.count(&json!({ "jobs": [] })), None);
    }

    /// Without that both runs would be the same one.
    #[test]
    fn the_length_of_a_load_is_in_one_of_its_texts() {
        for load in LOADS {
            let texts = || load.stack.iter().chain(load.run).map(|text| (*text).to_owned());
            let of = |length| {
                [load.job.text(length)]
                    .into_iter()
                    .chain(texts().map(move |text| with_length(&text, length)))
            };
            let [short, long] = load.lengths;
            assert!(short < long, "{}", load.name);
            assert_ne!(
                of(short).collect::<Vec<_>>(),
                of(long).collect::<Vec<_>>(),
                "{}",
                load.name
            );
        }
    }

    #[test]
    fn loads_have_names_of_their_own_and_are_compared_with_others() {
        for (at, load) in LOADS.iter().enumerate() {
            assert!(LOADS[..at].iter().all(|other| other.name != load.name), "{}", load.name);
            let known =
                |(name, _)| LOADS.iter().any(|other| other.name == name && name != load.name);
            assert!(load.at_most.is_none_or(known), "{}", load.name);
        }
    }
}
