//! Replaying traces: when requests go out, where they land, what is measured, and what happens when
//! the device fails or the trace does not fit.

use crate::common;

use common::{Defect, TestDevice};
use nandscape_block::{Fua, Op};
use nandscape_rt::Nanos;
use nandscape_workload::Direction::{Read, Trim, Write};
use nandscape_workload::engine::{NoProbe, Options, Results, RunState};
use nandscape_workload::replay::{Pace, Replay, ReplayError, ReplayOptions, TraceCounts, check};
use nandscape_workload::trace::{ReadOptions, TraceReader};
use proptest::prelude::*;
use std::io::Cursor;

const TIMED: ReplayOptions =
    ReplayOptions { pace: Pace::Timed(1.0), iodepth: 64, fold: false, runtime: None };
const FAST: ReplayOptions =
    ReplayOptions { pace: Pace::AsFastAsPossible, iodepth: 1, fold: false, runtime: None };

/// Replays `text` on `device`.
fn replay(
    text: &str,
    how: ReplayOptions,
    device: &mut TestDevice,
) -> Result<(Results<()>, TraceCounts), ReplayError> {
    let reader =
        TraceReader::new("test.trace", Cursor::new(text.to_owned()), ReadOptions::default())?;
    let mut replay = Replay::new(reader, &device.caps.clone(), how, &Options::default())?;
    while replay.run_for(device, &mut NoProbe, 7)? == RunState::Paused {}
    Ok(replay.finish())
}

/// A device that takes 10 us for everything.
fn device() -> TestDevice {
    let mut device = TestDevice::new(1_000);
    device.spread_ns = 0;
    device
}

/// That device, broken.
fn broken(defect: Defect) -> TestDevice {
    let mut device = device();
    device.defect = Some(defect);
    device
}

/// Times of submission in microseconds.
fn submitted_us(device: &TestDevice) -> Vec<u64> {
    device.log.iter().map(|(at, _)| at.0 / 1_000).collect()
}

/// Six requests in MQSim's form: pairs at 0, 50 and 100 us.
const PAIRS: &str = "1000000 0 0 8 0\n1000000 0 80 8 0\n1050000 0 8 8 1\n1050000 0 160 16 0\n\
                     1100000 0 800 8 1\n1100000 0 0 8 1\n";

/// A replay that may take so long issues what is due before that, and nothing need fit that is due later.
#[test]
fn a_runtime_ends_a_replay() {
    let runtime = "90us".parse().ok();
    let far = PAIRS.replace("800 8 1", "80000000 8 1");
    for (trace, how, expected) in [
        (&far[..], ReplayOptions { runtime, ..TIMED }, &[0, 0, 50, 50][..]),
        (&far, ReplayOptions { runtime: "50us".parse().ok(), ..TIMED }, &[0, 0]),
        (PAIRS, ReplayOptions { runtime: "35us".parse().ok(), ..FAST }, &[0, 10, 20, 30]),
    ] {
        let mut device = device();
        device.pending = true;
        let (_, counts) = replay(trace, how, &mut device).unwrap();
        assert_eq!(submitted_us(&device), expected, "{how:?}");
        assert_eq!(counts.late, 0, "{how:?}");
    }
    let checked = |how: ReplayOptions| {
        let options = ReadOptions::default();
        let mut reader = TraceReader::new("test.trace", Cursor::new(far.clone()), options).unwrap();
        check(&mut reader, &device().caps, &how)
    };
    assert!(checked(ReplayOptions { runtime, ..TIMED }).is_ok());
    assert!(checked(TIMED).is_err() && checked(FAST).is_err());
}

/// Timed, requests go out when the trace says so, scaled if asked for, whether the device answers at
/// once or later.
#[test]
fn timed_replay_keeps_the_times_of_the_trace() {
    for pending in [false, true] {
        let mut device = device();
        device.pending = pending;
        let (results, counts) = replay(PAIRS, TIMED, &mut device).unwrap();
        assert_eq!(submitted_us(&device), [0, 0, 50, 50, 100, 100]);
        assert_eq!(results.ended, Nanos::from_us(110));
        assert_eq!((counts.read.requests, counts.late), (6, 0));
        let job = &results.jobs[0];
        assert_eq!((job.direction(Read).ios, job.direction(Write).ios), (3, 3));
        assert_eq!((job.direction(Read).bytes, job.direction(Write).bytes), (3 * 4096, 4 * 4096));
        assert_eq!(job.direction(Read).latency.max(), Nanos::from_us(10));
        let last = results.series.points.last().unwrap();
        assert_eq!((last.at, last.ios), (results.ended, [3, 3, 0]));
    }
    let mut device = device();
    replay(PAIRS, ReplayOptions { pace: Pace::Timed(0.5), ..TIMED }, &mut device).unwrap();
    assert_eq!(submitted_us(&device), [0, 0, 25, 25, 50, 50]);
}

/// A device that falls behind cannot hide it: latency counts from when a request was due.
#[test]
fn waiting_for_room_counts_as_latency() {
    let burst = "5 0 0 8 0\n5 0 8 8 0\n5 0 16 8 0\n";
    let mut device = device();
    let (results, counts) =
        replay(burst, ReplayOptions { iodepth: 1, ..TIMED }, &mut device).unwrap();
    assert_eq!(submitted_us(&device), [0, 10, 20]);
    let latency = &results.jobs[0].direction(Write).latency;
    assert_eq!((latency.min(), latency.max()), (Nanos::from_us(10), Nanos::from_us(30)));
    assert_eq!((counts.late, counts.late_max), (2, Nanos::from_us(20)));
}

/// As fast as possible, the depth is kept full and times do not matter.
#[test]
fn a_closed_loop_keeps_its_depth() {
    for (iodepth, expected) in [(1, [0, 10, 20, 30, 40, 50]), (2, [0, 0, 10, 10, 20, 20])] {
        let mut device = device();
        let (results, counts) =
            replay(PAIRS, ReplayOptions { iodepth, ..FAST }, &mut device).unwrap();
        assert_eq!(submitted_us(&device), expected);
        assert_eq!(results.jobs[0].direction(Write).latency.max(), Nanos::from_us(10));
        assert_eq!(counts.late, 0);
    }
}

/// Requests are widened to whole sectors, split by the device's limit, and counted once.
#[test]
fn requests_fit_the_device() {
    let mut device = device();
    device.caps.max_sectors = 2;
    let (results, counts) = replay("0 0 7 26 0\n1 0 1 1 1\n", FAST, &mut device).unwrap();
    assert_eq!(device.targets(Op::Write), [0, 2, 4]);
    assert_eq!(device.targets(Op::Read), [0, 4, 0], "sectors covered in part are read first");
    let job = &results.jobs[0];
    assert_eq!((job.direction(Write).ios, job.direction(Write).bytes), (1, 26 * 512));
    assert_eq!((job.direction(Read).ios, job.direction(Read).bytes), (1, 512));
    assert_eq!((counts.issued_bytes, counts.rmw_reads), ([4096, 5 * 4096, 0], 2));
    assert_eq!((counts.fit.widened, counts.fit.widened_bytes), (2, 7 * 4096 - 27 * 512 - 4096));
}

/// A write of a part of a sector is issued when the sector was read, and its latency counts both; what covers
/// whole sectors reads nothing.
#[test]
fn a_partial_write_reads_first() {
    for (write, reads, writes, ends_us) in [
        ("0 0 1 2 0\n", &[0][..], &[0][..], 20),
        ("0 0 4 8 0\n", &[0, 1], &[0], 20),
        ("0 0 8 12 0\n", &[2], &[1], 20),
        ("0 0 7998 4 0\n", &[999, 0], &[999, 0], 20),
        ("0 0 8 16 0\n", &[], &[1], 10),
    ] {
        for pending in [false, true] {
            let mut device = device();
            device.pending = pending;
            let how = ReplayOptions { fold: true, ..TIMED };
            let (results, counts) = replay(write, how, &mut device).unwrap();
            let sectors = |op| device.targets(op);
            assert_eq!(
                (&sectors(Op::Read)[..], &sectors(Op::Write)[..]),
                (reads, writes),
                "{write}"
            );
            assert_eq!(counts.rmw_reads, reads.len() as u64, "{write}");
            let latency = &results.jobs[0].direction(Write).latency;
            assert_eq!((latency.count(), latency.max()), (1, Nanos::from_us(ends_us)), "{write}");
            assert_eq!(results.jobs[0].direction(Read).ios, 0, "{write}");
        }
    }
    let mut failing = broken(Defect::Fails(0));
    let (results, _) = replay("0 0 1 2 0\n", FAST, &mut failing).unwrap();
    assert!(results.failed() && failing.targets(Op::Write).is_empty());
}

/// A trace of a larger device is an error with its line, unless folding is asked for.
#[test]
fn folding_is_asked_for() {
    let text = "0 0 0 8 0\n1 0 7992 16 0\n2 0 16008 8 0\n";
    let error = replay(text, FAST, &mut device()).unwrap_err().to_string();
    assert!(error.starts_with("test.trace:2: the request ends in sector 1000 "), "{error}");
    let mut device = device();
    let (_, counts) = replay(text, ReplayOptions { fold: true, ..FAST }, &mut device).unwrap();
    assert_eq!(device.targets(Op::Write), [0, 999, 0, 1]);
    assert_eq!(counts.fit.folded, 2);
}

/// Trims, flushes and their flags reach the device; what it cannot do is an error with the line.
#[test]
fn trims_and_flushes_are_replayed() {
    let blkparse = include_str!("../traces/blkparse.txt");
    let mut device = device();
    let (results, _) = replay(blkparse, TIMED, &mut device).unwrap();
    assert_eq!(device.targets(Op::Discard), [16]);
    assert_eq!(device.targets(Op::Flush).len(), 1);
    assert_eq!(results.jobs[0].sync.count(), 1);
    assert_eq!(results.jobs[0].direction(Trim).bytes, 8192);
    let mut refusing = device.clone();
    refusing.caps.fua = Fua::Refused;
    let error = replay(blkparse, TIMED, &mut refusing).unwrap_err().to_string();
    assert_eq!(error, "test.trace:8: the device does not honour FUA");
    refusing.caps.discard_sectors = 0;
    let error = replay(blkparse, TIMED, &mut refusing).unwrap_err().to_string();
    assert_eq!(error, "test.trace:6: the device does not support trims");
}

/// A failed request ends the replay and is part of the result; one that hangs is an error.
#[test]
fn failures_are_reported() {
    let mut failing = broken(Defect::Fails(20));
    let (results, _) = replay(PAIRS, FAST, &mut failing).unwrap();
    let job = &results.jobs[0];
    assert!(results.failed());
    assert_eq!((job.errors, job.failures[0].lba.0, failing.log.len()), (1, 20, 4));
    let mut hanging = broken(Defect::Hangs);
    let error = replay(PAIRS, FAST, &mut hanging).unwrap_err().to_string();
    assert!(error.contains("write of") && error.contains("by test.trace since"), "{error}");
}

/// A malformed line in the middle stops the replay with its place.
#[test]
fn a_malformed_line_stops_the_replay() {
    let text = format!("{PAIRS}1 2 3\n");
    let error = replay(&text, FAST, &mut device()).unwrap_err();
    assert!(matches!(error, ReplayError::Trace(_)));
    assert_eq!(error.to_string(), "test.trace:7: size is missing");
}

proptest! {
    /// Every request of a trace is carried out exactly once, within depth and device, and the same
    /// way each time.
    #[test]
    fn every_request_is_replayed_once(
        requests in prop::collection::vec((0..2_000_u64, 0..20_000_u64, 1..200_u64, 0..2_u8), 1..60),
        iodepth in 1..9_u16,
        timed: bool,
        pending: bool,
    ) {
        let mut at = 0;
        let mut text = String::new();
        for (gap, sector, sectors, flags) in &requests {
            at += gap;
            text += &format!("{at} 0 {sector} {sectors} {flags}\n");
        }
        let pace = if timed { Pace::Timed(1.5) } else { Pace::AsFastAsPossible };
        let how = ReplayOptions { pace, iodepth, fold: true, runtime: None };
        let mut first = TestDevice::new(1_000);
        first.pending = pending;
        let mut second = first.clone();
        let (results, counts) = replay(&text, how, &mut first).unwrap();
        prop_assert_eq!(replay(&text, how, &mut second).unwrap(), (results.clone(), counts));
        let job = &results.jobs[0];
        let reads = requests.iter().filter(|request| request.3 == 1).count() as u64;
        prop_assert_eq!(job.direction(Read).ios, reads);
        prop_assert_eq!(job.direction(Write).ios, requests.len() as u64 - reads);
        let sectors = |op| first.log.iter().filter(move |(_, bio)| bio.op == op)
            .map(|(_, bio)| u64::from(bio.sectors)).sum::<u64>();
        let bytes = |flags| requests.iter().filter(|request| request.3 == flags)
            .map(|request| request.2 * 512).sum::<u64>();
        prop_assert_eq!(job.direction(Read).bytes, bytes(1));
        prop_assert_eq!(job.direction(Write).bytes, bytes(0));
        prop_assert_eq!(counts.issued_bytes[0] + counts.rmw_reads * 4096, sectors(Op::Read) * 4096);
        prop_assert_eq!(counts.issued_bytes[1], sectors(Op::Write) * 4096);
        prop_assert!(first.log.is_sorted_by_key(|(at, _)| *at));
    }
}
