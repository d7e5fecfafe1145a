//! Traces on a whole stack: a trace of what a job does results in what the job results in, and the
//! result is a function of stack, trace and seed.

use nandscape_lab::run::{NoObserver, Outcome, RunError, RunOptions, Trace, replay, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use nandscape_lab::workload::replay::{Pace, ReplayOptions};
use nandscape_lab::workload::trace::{Footprint, ReadOptions, TraceReader};
use std::fmt::Write;
use std::io::Cursor;

const STACK: &str = "name = \"small\"
extends = \"pblk\"
[media]
chunks = 48
sectors = 128
[ftl]
op_percent = 35
[precondition]
fill = 1.0
random_overwrite = 0.5
";

const FAST: ReplayOptions =
    ReplayOptions { pace: Pace::AsFastAsPossible, iodepth: 8, fold: false, runtime: None };

/// Requests of the job below, one after the other.
const REQUESTS: u64 = 2_000;

fn stack() -> Stack {
    Stack::parse("small.toml", STACK, &[] as &[&str]).unwrap()
}

/// Sequential writes of 16 KiB, a microsecond apart, in fio's version 3.
fn writes() -> String {
    let mut text = "fio version 3 iolog\n0 dev add\n0 dev open\n".to_owned();
    for index in 0..REQUESTS {
        writeln!(text, "{index} dev write {} 16384", index * 16_384).unwrap();
    }
    text
}

fn replayed(text: &str, how: ReplayOptions, seed: u64) -> Result<Outcome, RunError> {
    let reader =
        TraceReader::new("w.log", Cursor::new(text.to_owned()), ReadOptions::default()).unwrap();
    replay(
        &stack(),
        Trace { reader, bytes: text.len() as u64, how, prefill: Footprint::NOTHING },
        seed,
        RunOptions::default(),
        &mut NoObserver,
    )
}

/// The same requests at the same depth: the same latencies, and the same work for the FTL.
#[test]
fn a_trace_of_a_job_is_the_job() {
    let job = "[w]\nrw=write\ndirect=1\nbs=16k\niodepth=8\nnumber_ios=2000\n";
    let job = parse(job, "w.fio", &HostEnvironment).unwrap();
    let expected = run(&stack(), &job, 1, RunOptions::default(), &mut NoObserver).unwrap();
    let outcome = replayed(&writes(), FAST, 1).unwrap();
    assert_eq!(outcome.virtual_time, expected.virtual_time);
    assert_eq!(outcome.ftl, expected.ftl);
    assert_eq!(outcome.ftl_detail, expected.ftl_detail);
    let writes = |outcome: &Outcome| outcome.workload.jobs[0].direction(Direction::Write).clone();
    assert_eq!(writes(&outcome), writes(&expected));
    assert_eq!(writes(&outcome).ios, REQUESTS);
}

/// Same stack, trace and seed: the same JSON, to the last byte, and it says how the trace was read.
#[test]
fn same_input_same_result() {
    let json = |seed| replayed(&writes(), FAST, seed).unwrap().to_json("test").to_string();
    assert_eq!(json(1), json(1));
    assert_ne!(json(1), json(2));
    let timed = ReplayOptions { pace: Pace::Timed(2.0), iodepth: 64, fold: false, runtime: None };
    let json = replayed(&writes(), timed, 1).unwrap().to_json("test");
    let trace = &json["nandscape"]["trace"];
    assert_eq!(trace["requests"], REQUESTS);
    assert!(
        trace["issued_late"].as_u64().unwrap() > 0,
        "16 KiB every 2 us are more than the device takes"
    );
    assert_eq!(json["jobs"][0]["write"]["io_bytes"], REQUESTS * 16_384);
    assert_eq!(json["nandscape"]["reads"]["mismatches"], 0);
}

/// What does not fit the device is bad input, with its line.
#[test]
fn a_trace_of_a_larger_device_is_bad_input() {
    let text = writes() + "9999 dev read 1099511627776 4096\n";
    let error = replayed(&text, FAST, 1).unwrap_err();
    assert!(error.is_bad_input());
    assert!(error.to_string().starts_with("w.log:2004: the request ends in sector "), "{error}");
    let folded = replayed(&text, ReplayOptions { fold: true, ..FAST }, 1).unwrap();
    assert_eq!(folded.trace.map(|counts| counts.fit.folded), Some(1));
    assert!(
        folded.warnings.iter().any(|warning| warning.contains("1 out-of-range request wrapped"))
    );
}
