//! Device states: no result shows whether its device was preconditioned here, came from a cache or from
//! a file; a sweep preconditions once what it needs once; a run leaves what it wrote; and no file from outside
//! brings anything down.

use nandscape_block::{SectorData, Tag};
use nandscape_lab::run::{
    FinalState, NoObserver, Observer, Outcome, Phase, RunError, RunOptions, Trace, export_image,
    make_state, replay, run,
};
use nandscape_lab::stack::Stack;
use nandscape_lab::state::{FORMAT_VERSION, Header, StateCache, StateKey, StateSource};
use nandscape_lab::sweep::Sweep;
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse};
use nandscape_lab::workload::replay::{Pace, ReplayOptions};
use nandscape_lab::workload::trace::{Footprint, ReadOptions, TraceReader};
use nandscape_media::SnapshotError;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const STACK: &str = "name = \"small\"
extends = \"pblk\"
[media]
chunks = 48
sectors = 128
[ftl]
op_percent = 35
[precondition]
recipe = \"random\"
";

const JOB: &str = "[w]\nrw=randrw\ndirect=1\nbs=4k\niodepth=8\nnumber_ios=3000\nfsync=32\n";

fn stack(set: &[&str]) -> Stack {
    Stack::parse("small.toml", STACK, set).unwrap()
}

fn job() -> JobFile {
    parse(JOB, "w.fio", &HostEnvironment).unwrap()
}

fn outcome(stack: &Stack, states: StateSource<'_>) -> Result<Outcome, RunError> {
    let options = RunOptions { states, program: "test", ..RunOptions::default() };
    run(stack, &job(), 1, options, &mut NoObserver)
}

fn json(stack: &Stack, states: StateSource<'_>) -> String {
    let json = outcome(stack, states).unwrap().to_json("test");
    serde_json::to_string_pretty(&json).unwrap()
}

/// A cache in memory that counts.
#[derive(Default)]
struct Shelf {
    kept: Mutex<BTreeMap<StateKey, Vec<u8>>>,
    made: AtomicU32,
    taken: AtomicU32,
    damaged: Mutex<Vec<String>>,
}

impl StateCache for Shelf {
    fn open(&self, key: StateKey) -> Option<Box<dyn Read>> {
        let bytes = self.kept.lock().unwrap().get(&key)?.clone();
        self.taken.fetch_add(1, Relaxed);
        Some(Box::new(Cursor::new(bytes)))
    }
    fn with_exclusive_lock(&self, _: StateKey, work: &mut dyn FnMut()) {
        work();
    }
    fn keep(
        &self,
        key: StateKey,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), SnapshotError>,
    ) {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        self.made.fetch_add(1, Relaxed);
        self.kept.lock().unwrap().insert(key, bytes);
    }
    fn damaged(&self, _: StateKey, why: &str) {
        self.damaged.lock().unwrap().push(why.to_owned());
    }
}

/// A file of one test.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn saved(stack: &Stack) -> Vec<u8> {
    saved_by(stack, 1)
}

fn saved_by(stack: &Stack, seed: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    make_state(stack, seed, "test", &mut NoObserver).unwrap().write(&mut bytes).unwrap();
    bytes
}

/// Whether a device was made, found in the cache or read from a file: the same result to the last
/// byte, RAM of the virtual media included, with any payload, with faults and without.
#[test]
fn a_result_never_tells_where_its_device_came_from() {
    let faults: &[&str] = &[
        "media.faults.program_rate=0.0005",
        "media.faults.erase_rate=0.0003",
        "media.faults.unreadable_rate=0.0001",
        "media.faults.bad_chunk_rate=0.01",
    ];
    for (index, set) in
        [&[][..], faults, &["media.payload=none"], &["media.payload=bytes"]].into_iter().enumerate()
    {
        let set: Vec<&str> = set.iter().copied().chain(["media.ws_min=2"]).collect();
        let stack = stack(&set);
        let made = json(&stack, StateSource::Make);
        let shelf = Shelf::default();
        assert_eq!(json(&stack, StateSource::Cached(&shelf)), made, "{set:?}: made for the cache");
        assert_eq!(json(&stack, StateSource::Cached(&shelf)), made, "{set:?}: from the cache");
        assert_eq!((shelf.made.load(Relaxed), shelf.taken.load(Relaxed)), (1, 1));
        let file = TestFile::new(&format!("equal-{index}.state"), &saved(&stack));
        assert_eq!(json(&stack, StateSource::File(&file.0)), made, "{set:?}: from a file");
    }
}

/// StateSource are the same bytes whenever and wherever they are made.
#[test]
fn a_state_follows_from_stack_and_seed() {
    let stack = stack(&[]);
    assert_eq!(saved(&stack), saved(&stack));
    assert_ne!(saved(&stack), saved_by(&stack, 2));
}

/// Hears whether anything was preconditioned.
#[derive(Default)]
struct Ear(bool);

impl Observer for Ear {
    fn wall_s(&self) -> f64 {
        0.0
    }
    fn progress(&mut self, phase: Phase, _: f64) {
        self.0 |= phase == Phase::Precondition;
    }
}

/// A sweep preconditions each state that it needs once: axes that change only the load or the timing
/// share one, axes of the FTL and seeds do not. Its rows are those of a sweep without a cache.
#[test]
fn a_sweep_preconditions_once() {
    let text = "seeds = 2\n[jobs]\na = \"[a]\\nrw=randwrite\\ndirect=1\\nnumber_ios=200\\n\"\n\
                b = \"[b]\\nrw=randread\\ndirect=1\\nnumber_ios=200\\n\"\n\
                [set]\nmedia.chunks = 48\nmedia.sectors = 512\nftl.op_percent = 35\n\
                [grid]\nmedia.timing.program_ns = [500000, 900000]\nftl.gc.victim = [\"greedy\", \"fifo\"]\n";
    let sweep = Sweep::parse("grid.toml", text, &HostEnvironment).unwrap();
    let rows = |states: StateSource<'_>| {
        let row = |index| {
            let mut ear = Ear::default();
            let options = RunOptions { states, program: "test", ..RunOptions::default() };
            (sweep.run(index, "commit", options, &mut ear).unwrap(), ear.0)
        };
        (0..sweep.runs()).map(row).collect::<Vec<_>>()
    };
    let shelf = Shelf::default();
    let shared = rows(StateSource::Cached(&shelf));
    assert_eq!(sweep.runs(), 16);
    assert_eq!(shelf.made.load(Relaxed), 4, "two victims and two seeds");
    assert_eq!(shared.iter().filter(|(_, preconditioned)| *preconditioned).count(), 4);
    let alone = rows(StateSource::Make);
    assert!(alone.iter().all(|(_, preconditioned)| *preconditioned));
    assert!(shared.iter().zip(&alone).all(|(shared, alone)| shared.0 == alone.0));
}

/// What is damaged in a cache is made again, with a notice, and then it is whole.
#[test]
fn a_damaged_entry_is_made_again() {
    let (stack, shelf) = (stack(&[]), Shelf::default());
    let made = json(&stack, StateSource::Cached(&shelf));
    for bytes in shelf.kept.lock().unwrap().values_mut() {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
    }
    assert_eq!(json(&stack, StateSource::Cached(&shelf)), made);
    assert_eq!(shelf.made.load(Relaxed), 2);
    let damaged = shelf.damaged.lock().unwrap().clone();
    assert!(damaged.len() == 1 && damaged[0].contains("checksum"), "{damaged:?}");
    assert_eq!(json(&stack, StateSource::Cached(&shelf)), made);
    assert_eq!(shelf.made.load(Relaxed), 2);
}

/// A state of another device is bad input that names both; one of another history is a warning.
#[test]
fn states_of_other_stacks_are_distinct() {
    let file = TestFile::new("other.state", &saved(&stack(&[])));
    let error = |set: &[&str]| outcome(&stack(set), StateSource::File(&file.0)).unwrap_err();
    for (set, expected) in [
        (
            "media.chunks=64",
            "incompatible with stack small: media.chunks is 48 in the state, 64 in the stack",
        ),
        ("media.payload=bytes", "media.payload is \"tags\" in the state, \"bytes\" in the stack"),
        ("ftl.op_percent=30", "ftl.op_percent is 35 in the state, 30 in the stack"),
    ] {
        let error = error(&[set]);
        assert!(error.is_bad_input() && error.to_string().contains(expected), "{error}");
        assert!(error.to_string().contains("other.state: "), "{error}");
    }
    let other = outcome(&stack(&["ftl.gc.victim=fifo"]), StateSource::File(&file.0)).unwrap();
    let warning = "ftl.gc.victim is \"pblk-lists\" in the state, \"fifo\" in the stack";
    assert!(other.warnings.iter().any(|text| text.ends_with(warning)), "{:?}", other.warnings);
    let options = RunOptions {
        states: StateSource::File(&file.0),
        program: "later",
        ..RunOptions::default()
    };
    let later = run(&stack(&[]), &job(), 1, options, &mut NoObserver).unwrap();
    let warning = "another program: test, not later";
    assert!(later.warnings.iter().any(|text| text.contains(warning)), "{:?}", later.warnings);
}

fn tiny() -> Stack {
    stack(&["media.chunks=40", "media.sectors=64", "ftl.op_percent=60", "precondition.recipe=fill"])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Wherever a state was cut off or changed, it is refused as bad input, by a run and when it is shown.
    #[test]
    fn damage_is_bad_input(at in any::<prop::sample::Index>(), mask in 1_u8.., cut: bool) {
        let stack = tiny();
        let mut bytes = saved(&stack);
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= mask }
        let file = TestFile::new("damaged.state", &bytes);
        let error = outcome(&stack, StateSource::File(&file.0)).unwrap_err();
        prop_assert!(error.is_bad_input(), "byte {}: {}", at, error);
        prop_assert!(error.to_string().contains("damaged.state: byte "), "{}", error);
        prop_assert!(nandscape_lab::state::inspect(&file.0).is_err());
    }

    /// No bytes bring the reader down.
    #[test]
    fn noise_is_no_state(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(Header::read(&mut &bytes[..]).is_err());
    }
}

/// A stack that no fresh device takes is refused with its key wherever the device comes from, and a limit of
/// RAM that leaves none, too; what is kept in a cache is not damaged for that.
#[test]
fn an_impossible_stack_is_refused_on_any_device() {
    let bytes = saved(&stack(&[]));
    let (file, shelf) = (TestFile::new("impossible.state", &bytes), Shelf::default());
    json(&stack(&[]), StateSource::Cached(&shelf));
    let map = ["ftl.map.kind=cached", "ftl.map.cache=4KiB", "ftl.map.block=4KiB"];
    let impossible: [(&[&str], &str); 4] = [
        (&map, "ftl.map.cache: with so few mapping blocks in RAM"),
        (&["ftl.limiter=reserve-30"], "ftl.op_percent: not enough lines"),
        (&["media.maxocpu=2"], "media.maxocpu: pblk needs 4 open chunks"),
        (&["media.memory_cap=4KiB"], "media.memory_cap: "),
    ];
    for (set, expected) in impossible {
        let stack = stack(set);
        let fresh = outcome(&stack, StateSource::Make).unwrap_err();
        assert!(fresh.is_bad_input() && fresh.to_string().contains(expected), "{fresh}");
        assert_eq!(outcome(&stack, StateSource::File(&file.0)).unwrap_err(), fresh);
        assert_eq!(outcome(&stack, StateSource::Cached(&shelf)).unwrap_err(), fresh);
        let image = export_image(&stack, &file.0, "test", &mut Cursor::new(Vec::new()));
        assert_eq!(image.unwrap_err(), fresh);
    }
    assert!(shelf.damaged.lock().unwrap().is_empty(), "{:?}", shelf.damaged);
}

/// A device that exceeds the memory cap is refused before its bad chunks are drawn, which take more than that.
#[test]
fn the_memory_cap_holds_before_chunks_are_drawn() {
    let huge = [
        "media.groups=256",
        "media.units=256",
        "media.chunks=65536",
        "media.sectors=1",
        "media.ws_min=1",
        "media.ws_opt=1",
        "media.mw_cunits=0",
        "media.faults.bad_chunk_rate=1",
    ];
    let error = outcome(&stack(&huge), StateSource::Make).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("media.memory_cap: "), "{error}");
}

/// Damage is reported with the part of the device from which on it cannot be had.
#[test]
fn damage_has_a_place() {
    let stack = stack(&["media.sectors=1024"]);
    let mut bytes = saved(&stack);
    let file = |bytes: &[u8]| TestFile::new("placed.state", bytes);
    let error = |bytes: &[u8]| {
        let error = outcome(&stack, StateSource::File(&file(bytes).0)).unwrap_err().to_string();
        error.split_once("placed.state: ").unwrap().1.to_owned()
    };
    let length =
        |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + 4 + i])) as usize;
    let first = Header::read(&mut &bytes[..]).unwrap().bytes() as usize;
    let next = |at: &usize| Some(at + 12 + length(*at)).filter(|next| *next < bytes.len());
    let frames: Vec<usize> = std::iter::successors(Some(first), next).collect();
    let [_, second, .., end] = frames[..] else { panic!("too few frames: {frames:?}") };
    let cut = error(&bytes[..second + 5]);
    let from = " (the content of unit ";
    assert!(cut.starts_with(&format!("byte {second}: truncated file{from}")), "{cut}");
    assert_eq!(
        error(&bytes[..end + 3]),
        format!("byte {end}: truncated file (the end of the device)")
    );
    bytes[second + 40] ^= 1;
    let changed = error(&bytes);
    let expected = format!("byte {second}: a checksum does not match{from}");
    assert!(changed.starts_with(&expected) && changed.ends_with(')'), "{changed}");
    bytes[first + 40] ^= 1;
    let expected = "a checksum does not match (the beginning of the device)";
    assert_eq!(error(&bytes), format!("byte {first}: {expected}"));
}

/// What follows a state is noticed.
#[test]
fn something_behind_a_state_is_noticed() {
    let stack = tiny();
    let file = TestFile::new("longer.state", &[saved(&stack), vec![0]].concat());
    let error = outcome(&stack, StateSource::File(&file.0)).unwrap_err().to_string();
    assert!(error.contains("something follows the state"), "{error}");
}

const DOCUMENT: &str = include_str!("../../../../docs/formats/state.md");

/// The header of a state is as its document says: fields follow each other without a gap, and hold
/// what is written.
#[test]
fn the_header_is_as_documented() {
    let stack = stack(&[]);
    let bytes = saved(&stack);
    let header = Header::read(&mut &bytes[..]).unwrap();
    let (_, section) = DOCUMENT.split_once("## Header").unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let mut end = 0;
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (from, to) = cells[0].split_once("..").unwrap();
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        assert_eq!(from, end, "{row}");
        end = to;
        let value = bytes[from..to].iter().rev().fold(0_u128, |v, byte| v << 8 | u128::from(*byte));
        let geometry = header.geometry;
        let expected: u128 = match cells[1] {
            "magic" => u128::from(u64::from_le_bytes(*b"nandstat")),
            "version" => FORMAT_VERSION.into(),
            "crc" => {
                crc32c::crc32c_append(
                    crc32c::crc32c(&bytes[..12]),
                    &bytes[16..header.bytes() as usize],
                )
            }
            .into(),
            "key" => header.key.0,
            "groups" => geometry.groups.into(),
            "units" => geometry.units.into(),
            "chunks" => geometry.chunks.into(),
            "sectors" => geometry.sectors.into(),
            "ws_min" => geometry.ws_min.into(),
            "ws_opt" => geometry.ws_opt.into(),
            "mw_cunits" => geometry.mw_cunits.into(),
            "maxoc" => geometry.maxoc.into(),
            "maxocpu" => geometry.maxocpu.into(),
            "payload" => 1,
            "seed" => 1,
            "fill" => header.preconditioned.fill_sectors.into(),
            "overwrites" => header.preconditioned.overwrite_sectors.into(),
            "steady" => 0,
            "program length" => "test".len() as u128,
            "text length" => header.text.len() as u128,
            "" => 0,
            name => panic!("the document has a field {name} that is not written"),
        };
        assert_eq!(value, expected, "{row}");
    }
    assert_eq!(end, 128);
    assert_eq!(header.key, StateKey::of(&header.text));
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

/// The result of a run, and the state that it leaves.
fn leave(stack: &Stack, text: &str, states: StateSource<'_>) -> (String, Vec<u8>) {
    let options = RunOptions { states, program: "test", ..RunOptions::default() };
    let (job, mut keeper) = (parse(text, "w.fio", &HostEnvironment).unwrap(), Keeper::default());
    let outcome = run(stack, &job, 1, options, &mut keeper).unwrap();
    let mut bytes = Vec::new();
    keeper.0.unwrap().unwrap().write(&mut bytes).unwrap();
    (outcome.to_json("test").to_string(), bytes)
}

/// What a run wrote without a sync is in the state that it leaves, whatever buffers, maps and lines the
/// FTL has; and the result is that of a run whose final state is not wanted.
#[test]
fn a_run_leaves_what_it_wrote() {
    const SECTORS: u64 = 301;
    let text = "[w]\nrw=write\ndirect=1\nbs=4k\niodepth=8\nsize=1204k\n";
    let small = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];
    let stacks = ["pblk", "pblk-4.13", "js-pblk", "fa-ftl", "dftl", "qblk", "combined", "ssd"];
    for name in stacks {
        for fill in ["precondition.fill=0.0", "precondition.fill=1.0"] {
            let own: &[&str] = match name {
                "combined" => &["ftl.map.cache=100%"],
                "ssd" => &["ftl.buffer.flush=nvmevirt"],
                _ => &[],
            };
            let stack = Stack::load(name, &[&small[..], &[fill], own].concat()).unwrap();
            let (result, bytes) = leave(&stack, text, StateSource::Make);
            let job = parse(text, "w.fio", &HostEnvironment).unwrap();
            let options = RunOptions { program: "test", ..RunOptions::default() };
            let plain = run(&stack, &job, 1, options, &mut NoObserver).unwrap();
            assert_eq!(result, plain.to_json("test").to_string(), "{name}: the result differs");

            let file = TestFile::new(&format!("left-{name}-{}.state", &fill[18..]), &bytes);
            let mut image = Cursor::new(Vec::new());
            export_image(&stack, &file.0, "test", &mut image).unwrap();
            let image = image.into_inner();
            let filled = Header::read(&mut &bytes[..]).unwrap().preconditioned.fill_sectors;
            let holds_something = |sector: &&[u8]| sector.iter().any(|byte| *byte != 0);
            let held = image.chunks(4096).filter(holds_something).count() as u64;
            assert_eq!(filled, held, "{name}, {fill}: sectors that hold something");
            for lba in 0..SECTORS {
                let tag = Tag::new((lba + 1) << 34 | lba);
                let sector = &image[lba as usize * 4096..][..4096];
                let expected = SectorData::Tag(tag).expand().unwrap();
                assert!(sector == &expected[..], "{name}, {fill}: sector {lba}");
            }
        }
    }
}

/// What flushes wait for while a device is measured changes nothing of how it is made: what was flushed then is there.
#[test]
fn flushes_are_kept_while_a_device_is_made() {
    let small = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];
    for name in ["ssd", "zns", "iplfs-ssd", "d2fs-ssd"] {
        let small = if name == "ssd" { &small[..] } else { &[] };
        let made = |set: &[&str]| {
            let set = [small, &["precondition.fill=0.01"], set].concat();
            saved(&Stack::load(name, &set).unwrap())
        };
        assert!(made(&[]) == made(&["ftl.buffer.flush=nvmevirt"]), "{name}");
    }
}

/// What traces leave that differ far behind their heads has different names.
#[test]
fn what_a_trace_leaves_has_a_name() {
    let leave = |last: u32| {
        let sectors = (0..8_000).map(|n| n % 1_000).chain([last]);
        let line = |(n, sector): (u32, u32)| format!("{n} dev write {} 4096\n", sector * 4_096);
        let requests: String = (0..).zip(sectors).map(line).collect();
        let lines = format!("fio version 3 iolog\n0 dev add\n0 dev open\n{requests}");
        assert!(lines.len() > 128 << 10, "more than is read to know the format");
        let file = TestFile::new("left.log", lines.as_bytes());
        let reader = TraceReader::open(&file.0, ReadOptions::default()).unwrap();
        let how =
            ReplayOptions { pace: Pace::AsFastAsPossible, iodepth: 32, fold: false, runtime: None };
        let mut keeper = Keeper::default();
        let options = RunOptions { program: "test", ..RunOptions::default() };
        replay(
            &stack(&[]),
            Trace { reader, bytes: 0, how, prefill: Footprint::NOTHING },
            1,
            options,
            &mut keeper,
        )
        .unwrap();
        keeper.0.unwrap().unwrap().header.key
    };
    assert_eq!(leave(1), leave(1));
    assert_ne!(leave(1), leave(2));
}

/// A state that a run left is named by what it holds. A run on it reports where it comes from, and what its own
/// [precondition] says is no difference.
#[test]
fn what_a_run_leaves_has_a_name() {
    let key = |stack: &Stack, text: &str, states| {
        let bytes = leave(stack, text, states).1;
        (Header::read(&mut &bytes[..]).unwrap().key, bytes)
    };
    let (plain, bytes) = key(&stack(&[]), JOB, StateSource::Make);
    assert_eq!(key(&stack(&[]), JOB, StateSource::Make), (plain, bytes.clone()), "the same again");
    let grouped = format!("{JOB}\ngroup_reporting\n");
    assert_eq!(key(&stack(&[]), &grouped, StateSource::Make).0, plain, "the same on the device");
    let file = TestFile::new("left-name.state", &bytes);
    let on_it = key(&stack(&[]), JOB, StateSource::File(&file.0)).0;
    let other_job = key(&stack(&[]), &JOB.replace("3000", "3001"), StateSource::Make).0;
    let mut keys = vec![plain, on_it, other_job];
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3);

    let bare = stack(&["precondition.recipe=none"]);
    let outcome = outcome(&bare, StateSource::File(&file.0)).unwrap();
    assert_eq!(outcome.state, Some(plain));
    let found: Vec<_> = outcome.warnings.iter().filter(|w| w.contains("the state")).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("is what another run left; the run begins on that"), "{found:?}");
}
