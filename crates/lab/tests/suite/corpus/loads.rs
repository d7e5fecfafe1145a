//! The loads of the corpus: some 20 ms of virtual time each on a small device, of which GC, flushes, file systems
//! and cached maps have their share.

use crate::corpus::SMALL;
use nandscape_lab::run::{
    FinalState, NoObserver, Observer, Outcome, Phase, RunOptions, Trace, make_state, replay, run,
    run_workload,
};
use nandscape_lab::stack::Stack;
use nandscape_lab::state::{State, StateSource};
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use nandscape_lab::workload::replay::{Pace, ReplayOptions};
use nandscape_lab::workload::trace::{Footprint, ReadOptions, TraceReader};
use nandscape_lab::workload::wml;
use std::fmt::Write;
use std::io::Cursor;
use std::path::{Path, PathBuf};

const SEED: u64 = 1;
/// What states say that they were written by.
const PROGRAM: &str = "corpus";

/// The stack with all techniques.
pub(crate) const COMBINED: &str = "ext4-combined";

/// fio jobs for every stack, which run on files where it has some. `SIZE` stands for what a job may write.
const JOBS: [(&str, &str); 3] = [
    (
        "randwrite",
        "[global]\nSIZE\nbs=4k\niodepth=16\ntime_based\nruntime=20ms\n\
         [w]\nrw=randwrite\nnumjobs=2\n[r]\nrw=randread\ndirect=1\nrate_iops=20000\n",
    ),
    (
        "fsync-mix",
        "[global]\nSIZE\ntime_based\nruntime=20ms\n\
         [s]\nrw=randwrite\nbs=8k\nfsync=2\nnumjobs=2\n\
         [z]\nrw=randrw\nbs=4k\niodepth=8\ndirect=1\nrandom_distribution=zipf:1.1\nfsync=32\n\
         verify=crc32c\n[d]\nrw=write\nbs=64k\nfdatasync=8\n[f]\nrw=write\nbs=4k\nsync=1\n",
    ),
    (
        "trim",
        "[global]\nSIZE\ndirect=1\ntime_based\nruntime=20ms\n\
         [tw]\nrw=randtrimwrite\nbs=16k\nfsync=16\n[t]\nrw=randtrim\nbs=32k\nrate_iops=4000\n\
         [r]\nrw=randrw\nbs=4k\niodepth=4\n",
    ),
];

/// fio jobs for stacks with zones: at write pointers, with resets above no threshold, and beside reads.
const ZONED_JOBS: [(&str, &str); 2] = [
    (
        "zbd-write",
        "[global]\nSIZE\nzonemode=zbd\ntime_based\nruntime=20ms\nbs=128k\n\
         [s]\nrw=write\niodepth=4\n[w]\nrw=randwrite\nnumjobs=2\nzone_reset_frequency=0.1\n",
    ),
    (
        "zbd-mix",
        "[global]\nSIZE\nzonemode=zbd\ntime_based\nruntime=20ms\nbs=4k,128k\n\
         [m]\nrw=randrw\niodepth=8\nfsync=16\nverify=crc32c\n[r]\nrw=randread\nread_beyond_wp=1\n",
    ),
];

/// Filebench workloads among the examples, made small.
pub(crate) const WORKLOADS: [(&str, &[(&str, &str)]); 4] = [
    ("varmail.f", &[("messages", "200"), ("threads", "8"), ("seconds", "1")]),
    ("fileserver.f", &[("files", "200"), ("size", "32k"), ("threads", "8")]),
    ("oltp.f", &[("clients", "8"), ("writers", "4"), ("filesize", "2m"), ("seconds", "1")]),
    ("webproxy.f", &[("pages", "200"), ("threads", "8"), ("rate", "200"), ("seconds", "6")]),
];

/// A stack on which loads run.
pub(crate) struct Load(Stack);

impl Load {
    /// The jobs of a shipped stack, each with the device that it runs on.
    pub(crate) fn of_stack(name: &str) -> Vec<(&'static str, Self)> {
        let whole = Stack::load(name, &["media.payload=tags"]).unwrap();
        if !whole.toml.contains("kind = \"zoned\"") {
            return JOBS.map(|(load, _)| (load, Self::aged(name))).into();
        }
        if whole.fs.is_none() {
            return ZONED_JOBS.map(|(load, _)| (load, Self(whole.clone()))).into();
        }
        let mounted = Stack::load(name, &["media.payload=tags", "host.memory=16MiB"]).unwrap();
        JOBS.map(|(load, _)| (load, Self(mounted.clone()))).into()
    }

    /// A shipped stack, made small.
    pub(crate) fn small(name: &str) -> Self {
        Self::with(name, &[])
    }

    /// A small stack whose device was written over and over, so that garbage is collected from the beginning; a
    /// file system leaves it as it is.
    pub(crate) fn aged(name: &str) -> Self {
        let it = Self::with(name, &["precondition.recipe=random"]);
        if it.0.fs.is_none() {
            return it;
        }
        Self::with(name, &["precondition.recipe=random", "fs.discard=false"])
    }

    fn with(name: &str, set: &[&str]) -> Self {
        let mut set = [&SMALL, set].concat();
        let stack = Stack::load(name, &set).unwrap();
        if stack.toml.contains("payload = \"none\"") {
            set.push("media.payload=tags");
        }
        if stack.fs.is_some() {
            set.push("host.memory=16MiB");
        }
        if stack.toml.contains("kind = \"cached\"") {
            // 40 blocks of the table in place of 3, of which a cache holds a third.
            set.extend(["ftl.map.block=4KiB", "ftl.op_percent=45"]);
            set.push("precondition.random_overwrite=0.2");
        }
        if ["interval", "coupled"]
            .iter()
            .any(|kind| stack.toml.contains(&format!("kind = \"{kind}\"")))
        {
            // Room for the metadata of a file system.
            set.push("ftl.random.size=32MiB");
        }
        if stack.toml.contains("kind = \"coupled\"") {
            // More lines than those that hold no data, and pages for the journal.
            set.extend(["media.chunks=240", "ftl.random.op_percent=60"]);
            set.push("ftl.superblock.spare_chunks=24");
        }
        if stack.toml.contains("kind = \"f2fs\"") {
            // Nine sections and more in place of one.
            set.push("fs.segments_per_section=1");
        }
        Self(Stack::load(name, &set).unwrap())
    }

    /// The fio job of this name.
    pub(crate) fn job(&self, load: &str) -> Outcome {
        let text = JOBS.iter().chain(&ZONED_JOBS).find(|(name, _)| *name == load).unwrap().1;
        self.run(text, RunOptions::default(), &mut NoObserver)
    }

    fn run(&self, text: &str, options: RunOptions<'_>, observer: &mut dyn Observer) -> Outcome {
        let size = if self.0.fs.is_some() { "size=4m" } else { "size=100%\ndirect=1" };
        let job = parse(&text.replace("SIZE", size), "corpus.fio", &HostEnvironment).unwrap();
        let outcome = run(&self.0, &job, SEED, options, observer)
            .unwrap_or_else(|error| panic!("{}: {error}", self.0.name));
        let failed = outcome.workload.jobs.iter().find(|job| job.failed());
        assert!(failed.is_none(), "{}: {failed:?}", self.0.name);
        outcome
    }

    /// A Filebench workload of [`WORKLOADS`].
    pub(crate) fn workload(&self, file: &str, set: &[(&str, &str)]) -> Outcome {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let set: Vec<(String, String)> =
            set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let workload = wml::parse(&text, file, &set).unwrap();
        run_workload(&self.0, &workload, SEED, RunOptions::default(), &mut NoObserver).unwrap()
    }

    /// A trace of all kinds of requests, some faster than the device, some past its end.
    pub(crate) fn trace(&self) -> Outcome {
        let text = requests();
        let (bytes, input) = (text.len() as u64, Cursor::new(text));
        let reader = TraceReader::new("corpus.log", input, ReadOptions::default()).unwrap();
        let how = ReplayOptions { pace: Pace::Timed(2.0), iodepth: 32, fold: true, runtime: None };
        let trace = Trace { reader, bytes, how, prefill: Footprint::NOTHING };
        replay(&self.0, trace, SEED, RunOptions::default(), &mut NoObserver).unwrap()
    }

    /// Random writes until write amplification is steady.
    pub(crate) fn until_steady(&self) -> Outcome {
        let until_steady = Some("".parse().unwrap());
        let options = RunOptions { until_steady, ..RunOptions::default() };
        let text =
            "[global]\ndirect=1\n[w]\nrw=randwrite\nbs=4k\niodepth=8\nsize=100%\nio_size=1m\n";
        self.run(text, options, &mut NoObserver)
    }

    /// A run on a device that was saved and loaded, which is the run on a new one; and a run on a device as
    /// another run left it.
    pub(crate) fn saved_and_loaded(&self) -> [(&'static str, Outcome); 3] {
        let from = |file: &Path, observer: &mut dyn Observer| {
            let options = RunOptions {
                states: StateSource::File(file),
                program: PROGRAM,
                ..RunOptions::default()
            };
            self.run(JOBS[1].1, options, observer)
        };
        let made = make_state(&self.0, SEED, PROGRAM, &mut NoObserver).unwrap();
        let file = save("made", &made);
        let loaded = from(&file, &mut NoObserver);
        let new = self.job(JOBS[1].0);
        assert!(
            crate::corpus::row(&loaded) == crate::corpus::row(&new),
            "a loaded device is not as a new one"
        );
        let mut keeper = Keeper::default();
        let left = from(&file, &mut keeper);
        let file = save("left", &keeper.0.unwrap().unwrap());
        let next = from(&file, &mut NoObserver);
        [("state-loaded", loaded), ("state-left", left), ("state-next", next)]
    }
}

/// Wants the device as a run leaves it.
#[derive(Default)]
struct Keeper(FinalState);

impl Observer for Keeper {
    fn wall_s(&self) -> f64 {
        0.0
    }
    fn progress(&mut self, _: Phase, _: f64) {}
    fn final_state(&mut self) -> Option<&mut FinalState> {
        Some(&mut self.0)
    }
}

fn save(name: &str, state: &State) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("corpus-{name}.state"));
    let mut bytes = Vec::new();
    state.write(&mut bytes).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

/// An I/O log of fio's third version: 40 ms of writes, reads, trims and syncs.
fn requests() -> String {
    let mut text = "fio version 3 iolog\n0 dev add\n0 dev open\n".to_owned();
    let mut state = 1_u64;
    for index in 0..2_000_u64 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = state >> 33;
        let (offset, at_us) = (draw % 60_000 * 4_096, index * 20);
        let bytes = (1 + draw / 60_000 % 8) * 4_096;
        match draw % 10 {
            0..6 => writeln!(text, "{at_us} dev write {offset} {bytes}"),
            6..8 => writeln!(text, "{at_us} dev read {offset} {bytes}"),
            8 => writeln!(text, "{at_us} dev trim {offset} {}", bytes * 8),
            _ => writeln!(text, "{at_us} dev sync 0 0"),
        }
        .unwrap();
    }
    text
}
