//! Logs of I/Os: what a job issues is written as fio writes it, and what a log holds is issued.

use crate::common;

use common::{FakeEnvironment, TestDevice, run, try_run};
use nandscape_block::{BlockDevice, Op, Region, RegionKind};
use nandscape_workload::Direction;
use nandscape_workload::engine::{Engine, NoProbe, Options, Results};
use nandscape_workload::fio::parse;

const V3: &str = include_str!("../traces/fio-v3.log");
const V2: &str = include_str!("../traces/fio-v2.log");

/// Microseconds, operation, sector, sectors.
type Submitted = (u64, Op, u64, u32);

/// What a job that replays `v2.log` and `v3.log` submits.
fn replayed(keys: &str) -> (Vec<Submitted>, Results<()>) {
    let mut world = FakeEnvironment::default();
    world.files.extend([("v2.log", V2), ("v3.log", V3)]);
    let file = parse(&format!("[j]\n{keys}\n"), "test.fio", &world);
    let file = file.unwrap_or_else(|error| panic!("{error}"));
    let mut device = TestDevice::new(64);
    device.spread_ns = 0;
    let mut engine = Engine::new(&file, device.caps(), &Options::default()).unwrap();
    engine.run_until(&mut device, &mut NoProbe, None).unwrap();
    let log = device.log.iter();
    let log = log.map(|(at, bio)| (at.0 / 1_000, bio.op, bio.lba.0, bio.sectors)).collect();
    (log, engine.finish())
}

/// Requests come at the log's times, with its offsets, lengths and operations; `rw` and sizes of
/// the job do not count.
#[test]
fn a_log_is_issued_as_it_stands() {
    let (log, results) = replayed("read_iolog=v3.log\nrw=write\nbs=8k\niodepth=4\nloops=5");
    let expected = [
        (0, Op::Write, 0, 1),
        (150, Op::Read, 2, 4),
        (200, Op::Discard, 16, 2),
        (200, Op::Flush, 0, 0),
    ];
    assert_eq!(log, expected);
    let job = &results.jobs[0];
    assert_eq!(Direction::ALL.map(|direction| job.direction(direction).ios), [1, 1, 1]);
    assert_eq!((job.direction(Direction::Read).bytes, job.sync.count()), (16_384, 1));
    assert_eq!(replayed("read_iolog=v2.log\niodepth=4").0, expected, "version 2 means the same");
}

/// Each `replay_` key does its part.
#[test]
fn replay_keys_change_the_log() {
    let times = |keys: &str| -> Vec<u64> {
        let (log, _) = replayed(&format!("read_iolog=v3.log\niodepth=4\n{keys}"));
        log.iter().map(|(at, ..)| *at).collect()
    };
    assert_eq!(times("replay_no_stall=1"), [0, 0, 0, 0]);
    assert_eq!(times("replay_time_scale=200"), [0, 75, 100, 100]);
    assert_eq!(times("replay_time_scale=50"), [0, 300, 400, 400]);
    assert_eq!(times("replay_skip=read,sync"), [0, 200]);
    assert_eq!(times("number_ios=2"), [0, 150]);
    assert_eq!(times("runtime=100us"), [0]);
    let sectors = |keys: &str| -> Vec<u64> {
        let (log, _) = replayed(&format!("read_iolog=v3.log\nreplay_skip=sync\n{keys}"));
        log.iter().map(|(_, _, sector, _)| *sector).collect()
    };
    assert_eq!(sectors("replay_scale=2"), [0, 1, 8]);
    assert_eq!(sectors("replay_scale=2\nreplay_align=16k"), [0, 0, 8]);
}

/// Clones take the files in turn; a name may hold a colon behind a backslash.
#[test]
fn clones_take_logs_in_turn() {
    let (log, results) = replayed("read_iolog=v3.log:v2.log\nnumjobs=3\nreplay_skip=sync,trim");
    assert_eq!(results.jobs.len(), 3);
    assert_eq!(log.iter().filter(|(_, op, ..)| *op == Op::Write).count(), 3);
    let error = |keys: &str| {
        let mut world = FakeEnvironment::default();
        world.files.extend([("msr.csv", include_str!("../traces/msr.csv")), ("bad.log", BAD)]);
        parse(&format!("[j]\n{keys}\n"), "test.fio", &world).unwrap_err().to_string()
    };
    const BAD: &str = "fio version 3 iolog\n0 f write 0 4096\n5 f scribble 0 4096\n";
    for (keys, words) in [
        ("read_iolog=a\\:b", "test.fio:2:1: read_iolog: a:b: "),
        ("read_iolog=msr.csv", "msr.csv: a trace in the format msr"),
        ("read_iolog=bad.log", "test.fio:2:1: read_iolog: bad.log:3: unknown action"),
        ("read_iolog=:", "names of files"),
    ] {
        let message = error(keys);
        assert!(message.contains(words), "{message}");
    }
}

/// A request beyond the device is found before anything runs, with its line.
#[test]
fn a_log_must_fit() {
    let mut world = FakeEnvironment::default();
    world.files.insert("v3.log", V3);
    let file = parse("[j]\nread_iolog=v3.log\n", "test.fio", &world).unwrap();
    let error = Engine::<()>::new(&file, TestDevice::new(17).caps(), &Options::default());
    let message = error.unwrap_err().to_string();
    assert!(message.contains("v3.log:6") && message.contains("sector 17"), "{message}");
}

/// Replayed addresses are verified on a device that is writable at random all over, and on no other.
#[test]
fn a_verified_log_needs_a_random_device() {
    let mut world = FakeEnvironment::default();
    world.files.insert("v3.log", V3);
    let file = parse("[j]\nread_iolog=v3.log\nverify=md5\n", "test.fio", &world).unwrap();
    let mut device = TestDevice::new(64);
    assert!(Engine::<()>::new(&file, device.caps(), &Options::default()).is_ok());
    device.caps.regions = [Region::new(0..32, RegionKind::Random)].into();
    let error = Engine::<()>::new(&file, device.caps(), &Options::default());
    let message = error.unwrap_err().to_string();
    assert!(message.contains("writable at random"), "{message}");
}

const LOGGED: &str = "[j]\nrw=randrw\nbssplit=4k/50:16k/50\nsize=200k\niodepth=3\nfsync=5\n\
                      end_fsync\nthinktime=50\n";

fn written(keys: &str) -> (String, TestDevice) {
    let mut device = TestDevice::new(64);
    device.spread_ns = 0;
    let results = run(&format!("{LOGGED}write_iolog=j.log\n{keys}"), &mut device);
    let [log] = results.iologs.as_slice() else { panic!("one log") };
    assert_eq!(log.path, "j.log");
    let mut text = Vec::new();
    log.write_to(&mut text).unwrap();
    (String::from_utf8(text).unwrap(), device)
}

/// A job's log, replayed, is the same I/O at the same times (in whole microseconds).
#[test]
fn a_written_log_replays_as_the_same_io() {
    let (text, first) = written("");
    let mut world = FakeEnvironment::default();
    world.files.insert("j.log", Box::leak(text.into()));
    let file = parse("[j]\nread_iolog=j.log\niodepth=3\n", "test.fio", &world).unwrap();
    let mut second = TestDevice::new(64);
    second.spread_ns = 0;
    let mut engine = Engine::new(&file, second.caps(), &Options::default()).unwrap();
    engine.run_until(&mut second, &mut NoProbe, None).unwrap();
    let seen = |device: &TestDevice| -> Vec<_> {
        device.log.iter().map(|(at, bio)| (*at, bio.op, bio.lba, bio.sectors)).collect()
    };
    assert!(first.log.len() > 20);
    assert_eq!(seen(&second), seen(&first));
}

/// The log does not change what the job does; its times count from the job's start.
#[test]
fn writing_a_log_changes_nothing() {
    let mut plain = TestDevice::new(64);
    plain.spread_ns = 0;
    run(LOGGED, &mut plain);
    assert_eq!(written("").1.log, plain.log);
    let (late, _) = written("startdelay=1s\n");
    assert_eq!(late, written("").0);
}

/// Debian's fio replays a log of ours, and counts the same I/Os.
#[test]
fn fio_replays_a_written_log() {
    let Some(mut fio) = common::fio() else { return };
    let (text, device) = written("");
    let path = std::env::temp_dir().join(format!("nandscape-iolog-{}.log", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let replay = fio
        .args(["--name=j", "--ioengine=null", "--output-format=terse", "--replay_no_stall=1"])
        .arg(format!("--read_iolog={}", path.display()));
    let output = replay.output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let terse = String::from_utf8(output.stdout).unwrap();
    let fields: Vec<&str> = terse.trim().split(';').collect();
    let kib = |op: Op| -> u64 {
        let bios = device.log.iter().map(|(_, bio)| bio).filter(|bio| bio.op == op);
        bios.map(|bio| u64::from(bio.sectors) * 4).sum()
    };
    assert_eq!(fields[5], kib(Op::Read).to_string());
    assert_eq!(fields[46], kib(Op::Write).to_string());
}

/// A log belongs to one job: clones and namesakes are refused, with a place.
#[test]
fn a_log_belongs_to_one_job() {
    for (text, line) in [
        ("[j]\nrw=write\nwrite_iolog=a\nnumjobs=2\n", 3),
        ("[global]\nwrite_iolog=a\n[j]\n[k]\n", 4),
    ] {
        let error = parse(text, "test.fio", &FakeEnvironment::default()).unwrap_err();
        assert_eq!((error.place.line, error.key.as_deref()), (line, Some("write_iolog")));
    }
    let apart = "[j]\nnumber_ios=1\nwrite_iolog=a\n[k]\nnumber_ios=1\nwrite_iolog=b\n";
    assert_eq!(try_run(apart, &mut TestDevice::new(64)).unwrap().iologs.len(), 2);
}
