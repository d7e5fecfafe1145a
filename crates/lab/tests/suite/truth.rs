//! Figures that mislead: reads of what was never written, rates of jobs that end early, preconditioning that leaves
//! the device in another state than that in which it is used, steady states that are none.

use nandscape_lab::run::{NoObserver, Outcome, RunOptions, Trace, check_trace, replay, run};
use nandscape_lab::stack::{SHIPPED, Stack};
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use nandscape_lab::workload::replay::{Pace, ReplayOptions};
use nandscape_lab::workload::trace::{Footprint, ReadOptions, TraceReader};
use std::io::Cursor;

/// A small device that writes in 480 lines, of which users see little more than half.
const SMALL: &str = "name = \"small\"
extends = \"pblk\"
[host]
page_cache = false
[media]
chunks = 96
sectors = 256
[ftl]
op_percent = 25
[ftl.gc]
pacing = \"immediate\"
";

fn small(set: &[&str]) -> Stack {
    Stack::parse("small.toml", SMALL, set).unwrap()
}

fn job_on(stack: &Stack, job: &str) -> Outcome {
    let job = parse(job, "job.fio", &HostEnvironment).unwrap();
    run(stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap()
}

fn warns(outcome: &Outcome, text: &str) -> bool {
    outcome.warnings.iter().any(|warning| warning.contains(text))
}

/// On every shipped stack, reads of what was never written take as long as a command and the link take, are counted,
/// and the result says so, what would have been written before left out. A trim takes its command.
#[test]
fn reads_of_nothing_cost_a_command() {
    let reads = "[r]\nrw=randread\nbs=4k\niodepth=4\nsize=64m\nruntime=2ms\ntime_based\n";
    let trims = "[t]\nrw=randtrim\nbs=16k\nsize=64m\nruntime=2ms\ntime_based\n";
    for (name, text) in SHIPPED.iter().filter(|(_, text)| !text.contains("[fs]")) {
        let mut set = vec!["precondition.recipe=none"];
        if text.contains("keeps no content") {
            set.push("media.payload=none");
        }
        let stack = Stack::load(name, &set).unwrap();
        if stack.fs.is_some() {
            continue;
        }
        // Zones are reset, and an empty one needs no command.
        let zoned = stack.toml.contains("kind = \"zoned\"");
        let outcome =
            job_on(&stack, &if zoned { reads.to_owned() } else { reads.to_owned() + trims });
        let read = outcome.workload.jobs[0].direction(Direction::Read);
        assert!(read.latency.mean_ns() > 1_000.0, "{name}: {:?}", read.latency);
        for trims in outcome.workload.jobs.iter().skip(1) {
            let trim = trims.direction(Direction::Trim);
            assert!(trim.latency.mean_ns() > 1_000.0, "{name}: {:?}", trim.latency);
        }
        let host = &outcome.ftl.host;
        assert!(host.read > 0 && host.unwritten == host.read, "{name}: {host:?}");
        assert!(warns(&outcome, "sectors read hold nothing"), "{name}: {:?}", outcome.warnings);
        let json = outcome.to_json("test");
        assert_eq!(json["nandscape"]["reads"]["unwritten"], host.unwritten, "{name}");
        assert!(!outcome.is_steady(), "{name}: a fresh device");
    }
}

/// Without timing reads of nothing take none, and what that means for jobs that only time can end is said.
#[test]
fn time_that_stands_still_is_explained() {
    let stack = small(&["media.timing=none", "precondition.recipe=none"]);
    let job = "[r]\nrw=randread\nbs=4k\nruntime=1s\ntime_based\n";
    let job = parse(job, "job.fio", &HostEnvironment).unwrap();
    let error =
        run(&stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap_err().to_string();
    assert!(
        error.contains("sectors that they read hold nothing: precondition.recipe=fill"),
        "{error}"
    );
}

fn traced(stack: &Stack, prefilled: bool) -> Outcome {
    let text = "0 0 800 64 1\n1000 0 160 8 1\n2000 0 160 16 0\n";
    let reader = || {
        TraceReader::new("t.trace", Cursor::new(text.to_owned()), ReadOptions::default()).unwrap()
    };
    let how = ReplayOptions { pace: Pace::AsFastAsPossible, iodepth: 4, fold: true, runtime: None };
    let footprint = check_trace(stack, 1, &mut reader(), &how).unwrap();
    assert_eq!(footprint.sectors(), 8 + 2);
    let prefill = if prefilled { footprint } else { Footprint::NOTHING };
    let trace = Trace { reader: reader(), bytes: 0, how, prefill };
    replay(stack, trace, 1, RunOptions::default(), &mut NoObserver).unwrap()
}

/// The footprint of a trace is written before it, so that its reads come from media.
#[test]
fn a_footprint_is_written_before_its_trace() {
    let stack = small(&["precondition.recipe=none"]);
    let (with, without) = (traced(&stack, true), traced(&stack, false));
    assert_eq!((with.ftl.host.unwritten, without.ftl.host.unwritten), (0, 9));
    assert!(!warns(&with, "hold nothing") && warns(&without, "--prefill"));
    let mean =
        |outcome: &Outcome| outcome.workload.jobs[0].direction(Direction::Read).latency.mean_ns();
    assert!(mean(&with) > 1.5 * mean(&without), "{} {}", mean(&with), mean(&without));
    let json = with.to_json("test");
    assert_eq!(json["nandscape"]["precondition"]["prefill_sectors"], 10);
    assert_eq!(json["nandscape"]["steady"], false, "a boolean");
    assert!(with.not_steady.as_deref().unwrap().contains("not judged"));
    assert!(!warns(&with, "not judged"), "that is no warning");
}

/// Rates over all jobs are of the time in which they ran, not of each job's own.
#[test]
fn jobs_that_end_early_do_not_count_on() {
    let job = "[global]\nrw=write\nbs=4k\n[short]\nsize=1m\n[long]\nsize=16m\nrate_iops=20000\n";
    let outcome = job_on(&small(&["precondition.recipe=none"]), job);
    let totals = outcome.workload.totals();
    let expected = outcome.virtual_time.as_secs_f64();
    assert!((totals.length.as_secs_f64() / expected - 1.0).abs() < 0.01);
    assert_eq!(totals.bytes[1], 17 << 20);
    let rate = totals.bytes_per_s(Direction::Write).unwrap();
    assert!((rate * expected / f64::from(17 << 20) - 1.0).abs() < 0.01, "{rate}");
    let summed: f64 =
        outcome.workload.jobs.iter().map(|job| job.bytes_per_s(Direction::Write)).sum();
    assert!(summed > 1.2 * rate, "the sum of each job's rate misleads: {summed} {rate}");
    let json = outcome.to_json("test");
    assert_eq!(json["nandscape"]["totals"]["write"]["bw_bytes"], rate);
}

/// The factor of a run that wrote less than a line while lines were collected is none; its parts are the whole.
#[test]
fn amplification_of_next_to_nothing_is_none() {
    let job = |size: &str| format!("[w]\nrw=randwrite\nbs=4k\niodepth=4\nio_size={size}\n");
    let few = job_on(&small(&[]), &job("4m")).to_json("test");
    let many = job_on(&small(&[]), &job("64m")).to_json("test");
    let ours =
        |json: &serde_json::Value, pointer: &str| json["nandscape"].pointer(pointer).cloned();
    assert_ne!(ours(&few, "/sectors/gc").unwrap(), 0);
    assert!(ours(&few, "/waf/media").unwrap().is_null());
    assert!(ours(&few, "/waf/parts").unwrap().is_null());
    let parts = ours(&many, "/waf/parts").unwrap();
    let sum: f64 = parts.as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
    assert!((sum - ours(&many, "/waf/media").unwrap().as_f64().unwrap()).abs() < 1e-9, "{parts}");
    assert_eq!(parts["user"], 1.0);
}

/// A device without timing has rates of nothing, not zero.
#[test]
fn no_rate_without_time() {
    let job = "[w]\nrw=write\nbs=64k\nsize=4m\n";
    let json = job_on(&small(&["media.timing=none"]), job).to_json("test");
    assert!(json["nandscape"]["totals"]["write"]["iops"].is_null());
    assert_eq!(json["nandscape"]["totals"]["write"]["total_ios"], 64);
}

/// Faults that make preconditioning fail are named.
#[test]
fn faults_that_end_preconditioning_are_named() {
    let stack = small(&["media.faults.program_rate=0.2"]);
    let job = parse("[w]\nrw=randwrite\nnumber_ios=1\n", "job.fio", &HostEnvironment).unwrap();
    let error =
        run(&stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap_err().to_string();
    for named in ["media.faults.program_rate = 0.2)", "media.faults.from = \"measured\""] {
        assert!(error.contains(named), "{error}");
    }
    let worn = small(&["media.endurance_erases=1"]);
    let error = run(&worn, &job, 1, RunOptions::default(), &mut NoObserver).unwrap_err();
    assert!(error.to_string().contains("media.endurance_erases = 1"), "{error}");
}

/// A device that wears out serves until then, and the result says so.
#[test]
fn wear_ends_a_run_with_what_it_has() {
    let job = "[w]\nrw=randwrite\nbs=4k\niodepth=4\nio_size=4g\n";
    let outcome = job_on(&small(&["media.endurance_erases=20"]), job);
    assert!(warns(&outcome, "end of life: the device became read-only"), "{:?}", outcome.warnings);
    assert!(outcome.ftl.host.written > 100_000 && outcome.wear.offline > 0);
    let unlimited = job_on(&small(&[]), "[w]\nrw=randwrite\nbs=4k\nio_size=16m\n");
    assert!(!warns(&unlimited, "end of life"));
}

/// Faults that begin with the measured phase leave the device as a stack without faults has it, and strike then.
#[test]
fn faults_can_begin_with_the_measured_phase() {
    let job = "[w]\nrw=randwrite\nbs=4k\nnumber_ios=3000\n";
    let faults = ["media.faults.program_rate=0.005", "media.faults.from=measured"];
    let [plain, struck, again] = [&[][..], &faults, &faults].map(|set| job_on(&small(set), job));
    assert_eq!(struck.state, plain.state);
    assert_eq!(struck.preconditioned, plain.preconditioned);
    let failures = |outcome: &Outcome| outcome.ftl.media_errors.program_failures;
    assert_eq!(failures(&plain), 0);
    assert!(failures(&struck) > 0);
    assert_eq!(struck.to_json("test")["jobs"], again.to_json("test")["jobs"]);
}

/// What the limiter waits for and what can be free is said where it waits for ever; with free lines that it can have
/// nothing is said.
#[test]
fn a_limiter_without_rest_is_reported() {
    let job = "[w]\nrw=randwrite\nbs=4k\niodepth=8\nio_size=16m\n";
    let tight = job_on(&small(&[]), job);
    assert!(warns(&tight, "cannot rest") && warns(&tight, "ftl.limiter"), "{:?}", tight.warnings);
    let fixed = job_on(&small(&["ftl.limiter=reserve-2"]), job);
    assert!(!warns(&fixed, "cannot rest"), "{:?}", fixed.warnings);
    let half = job_on(&small(&["precondition.fill=0.5", "precondition.random_overwrite=0"]), job);
    assert!(!warns(&half, "cannot rest"), "{:?}", half.warnings);
    let busy = job_on(&small(&["precondition.fill=0.5", "precondition.random_overwrite=2"]), job);
    assert!(busy.ftl.gc.victims > 0 && !warns(&busy, "cannot rest"), "{:?}", busy.warnings);
}

/// The sample whose length is `runtime` of a job on a small device: random choices of what decides how collection
/// goes.
fn drawn(seed: u64) -> (Stack, String) {
    let mut rng = nandscape_rt::Stream::new(seed, "truth");
    let mut of = |choices: &[&str]| choices[rng.below(choices.len() as u64) as usize].to_owned();
    let set = [
        of(&["media.chunks=48", "media.chunks=96"]),
        of(&["media.sectors=128", "media.sectors=256"]),
        of(&["ftl.op_percent=25", "ftl.op_percent=35", "ftl.op_percent=45"]),
        of(&["ftl.gc.victim=greedy", "ftl.gc.victim=fifo", "ftl.gc.victim=pblk-lists"]),
        of(&["ftl.limiter=kernel", "ftl.limiter=reserve-2", "ftl.limiter=reserve-4"]),
        of(&["ftl.gc.pacing=immediate", "ftl.gc.pacing=kernel"]),
        of(&[
            "precondition.recipe=fill",
            "precondition.recipe=random",
            "precondition.recipe=steady",
        ]),
    ];
    // Lines are an eightieth as long as those of the default device, and so is the period.
    let is_paced = set.iter().any(|set| set == "ftl.gc.pacing=kernel");
    let period = is_paced.then_some("ftl.gc.period=12ms");
    let set: Vec<&str> = set.iter().map(String::as_str).chain(period).collect();
    let pattern = of(&["rw=randwrite", "rw=randwrite\nrandom_distribution=zipf:0.9", "rw=randrw"]);
    let depth = of(&["1", "8", "32"]);
    let job = format!("[w]\n{pattern}\nrandrepeat=0\nbs=4k\niodepth={depth}\n");
    (Stack::parse("small.toml", SMALL, &set).unwrap(), job)
}

fn written(stack: &Stack, job: &str, bytes: u64) -> Outcome {
    job_on(stack, &format!("{job}io_size={bytes}\nsize=100%\n"))
}

/// What is called steady is: a run of four times the length has the same write amplification within 5 %.
#[test]
fn steady_runs_agree_with_longer_ones() {
    let (mut steady, mut all) = (0, 0);
    for seed in 0..24 {
        let (stack, job) = drawn(seed);
        let logical = written(&stack, &job, 4096).size.logical_sectors * 4096;
        for times in [1, 3] {
            let outcome = written(&stack, &job, times * logical);
            all += 1;
            if !outcome.is_steady() {
                continue;
            }
            let longer = written(&stack, &job, 4 * times * logical);
            let waf = |outcome: &Outcome| outcome.write_amplification().gc.unwrap();
            let off = waf(&outcome) / waf(&longer) - 1.0;
            assert!(
                off.abs() < 0.05,
                "seed {seed}: {} {}\n{}",
                waf(&outcome),
                waf(&longer),
                stack.toml
            );
            steady += 1;
        }
    }
    assert!(steady >= 8 && steady < all, "{steady} of {all}");
}
