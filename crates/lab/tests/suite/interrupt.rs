//! Runs that are ended before their end: they have the figures of what had happened until then, and say
//! so.

use nandscape_lab::run::{
    NoObserver, Observer, Outcome, Phase, RunError, RunOptions, Trace, replay, run, run_workload,
};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse};
use nandscape_lab::workload::replay::{Pace, ReplayOptions};
use nandscape_lab::workload::trace::{Footprint, ReadOptions, TraceReader};
use nandscape_lab::workload::wml;
use std::io::Cursor;

const SMALL: [&str; 5] = [
    "media.chunks=48",
    "media.sectors=128",
    "ftl.op_percent=35",
    "ftl.gc.pacing=immediate",
    "host.memory=16MiB",
];

fn stack(name: &str, set: &[&str]) -> Stack {
    Stack::load(name, &[&SMALL, set].concat()).unwrap()
}

fn job(text: &str) -> JobFile {
    parse(text, "i.fio", &HostEnvironment).unwrap()
}

/// An observer that interrupts a run after so many reports of progress in this phase.
struct Impatient(Phase, u32);

impl Observer for Impatient {
    fn wall_s(&self) -> f64 {
        0.0
    }
    fn progress(&mut self, phase: Phase, _: f64) {
        self.1 = self.1.saturating_sub(u32::from(phase == self.0));
    }
    fn is_interrupted(&self) -> bool {
        self.1 == 0
    }
}

/// What an interrupted run says, whatever ran.
fn is_marked(outcome: &Outcome) {
    assert!(outcome.interrupted);
    let warning = &outcome.warnings[0];
    assert!(
        warning
            .starts_with("partial results: the run was interrupted, and metrics cover the first "),
        "{warning}"
    );
    assert_eq!(outcome.to_json("i")["nandscape"]["interrupted"], true);
}

/// A job on a block device and on files: the figures are those that the whole run had at that time.
#[test]
fn jobs_tell_what_they_have() {
    let text =
        "[w]\nrw=randwrite\nbs=4k\nsize=4m\niodepth=4\ndirect=1\ntime_based\nruntime=100ms\n";
    for name in ["pblk", "ext4-pblk"] {
        let stack = stack(name, &[]);
        let whole = run(&stack, &job(text), 1, RunOptions::default(), &mut NoObserver).unwrap();
        assert!(!whole.interrupted && whole.to_json("i")["nandscape"]["interrupted"].is_null());
        let part =
            run(&stack, &job(text), 1, RunOptions::default(), &mut Impatient(Phase::Measure, 40))
                .unwrap();
        is_marked(&part);
        assert_eq!(part.virtual_time.0, 40_000_000, "{name}");
        assert_eq!(part.series, whole.series[..part.series.len()], "{name}");
        assert_eq!(part.series.len(), 39);
        let ios = |outcome: &Outcome| outcome.workload.jobs[0].directions[1].ios;
        assert!(ios(&part) > 0 && ios(&part) < ios(&whole), "{name}");
    }
}

/// Rounds that were whole, and the one that was cut short if there is one; nothing is steady. Rounds of reads are
/// as long as they are asked to be.
#[test]
fn rounds_tell_what_they_have() {
    let until_steady = Some("round=10ms".parse().unwrap());
    let options = RunOptions { until_steady, ..RunOptions::default() };
    let job = job("[w]\nrw=randread\nbs=4k\niodepth=4\nsize=4m\n");
    for (ms, rounds) in [(20, 2), (25, 3)] {
        let watch = &mut Impatient(Phase::Measure, ms);
        let part = run(&stack("pblk", &[]), &job, 1, options, watch).unwrap();
        is_marked(&part);
        assert_eq!(part.rounds.unwrap().rounds, rounds);
        assert_eq!(part.virtual_time.0, u64::from(ms) * 1_000_000);
        assert!(!part.is_steady() && part.workload.jobs[0].directions[0].ios > 0);
    }
}

/// A workload of Filebench's; that its threads are ended is no failure.
#[test]
fn workloads_tell_what_they_have() {
    let text = "define fileset name=a,path=/tmp,entries=8,dirwidth=8,size=8k,prealloc\n\
                define process name=p { thread name=t,instances=4 {\n\
                flowop read name=r,filesetname=a,iosize=4k,random } }\nrun 60";
    let workload = wml::parse(text, "i.f", &[]).unwrap();
    let stack = stack("ext4-pblk", &[]);
    let watch = &mut Impatient(Phase::Measure, 40);
    let part = run_workload(&stack, &workload, 1, RunOptions::default(), watch).unwrap();
    is_marked(&part);
    assert_eq!(part.virtual_time.0, 40_000_000);
    let report = part.flowops.unwrap();
    assert!(report.failure().is_none() && report.sums().reads > 0);
}

/// A trace, of which the rest is not read.
#[test]
fn traces_tell_what_they_have() {
    let requests = 100_000_u64;
    let lines = (0..requests).map(|at| format!("{at} dev write {} 4096\n", at % 1000 * 4096));
    let text =
        "fio version 3 iolog\n0 dev add\n0 dev open\n".to_owned() + &lines.collect::<String>();
    let reader = TraceReader::new("i.log", Cursor::new(text), ReadOptions::default()).unwrap();
    let how =
        ReplayOptions { pace: Pace::AsFastAsPossible, iodepth: 8, fold: false, runtime: None };
    let trace = Trace { reader, bytes: 1, how, prefill: Footprint::NOTHING };
    let watch = &mut Impatient(Phase::Measure, 1);
    let part = replay(&stack("pblk", &[]), trace, 1, RunOptions::default(), watch).unwrap();
    is_marked(&part);
    let ios = part.workload.jobs[0].directions[1].ios;
    assert!(ios > 0 && ios < requests, "{ios}");
}

/// Of a run that is ended while the device is written there is nothing to tell.
#[test]
fn preconditioning_ends_without_figures() {
    let job = job("[w]\nrw=randwrite\nnumber_ios=10\n");
    let stack = stack("pblk", &["precondition.fill=9"]);
    for times in [0, 1] {
        let watch = &mut Impatient(Phase::Precondition, times);
        let error = run(&stack, &job, 1, RunOptions::default(), watch).unwrap_err();
        assert_eq!(error, RunError::Interrupted);
        assert!(!error.is_bad_input());
    }
}
