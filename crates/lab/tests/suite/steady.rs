//! Running until steady state: what is reported is the last five rounds and nothing before them; and
//! preconditioning recipes by name.

use nandscape_lab::run::{
    NoObserver, Outcome, RunError, RunOptions, UntilSteady, run as run_in_lab,
};
use nandscape_lab::stack::{Stack, recipes};
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::fio::{HostEnvironment, parse};

const STACK: &str = "name = \"small\"
extends = \"pblk\"
[media]
chunks = 48
sectors = 256
[ftl]
op_percent = 35
[ftl.gc]
pacing = \"immediate\"
[precondition]
recipe = \"none\"
";

const WRITE: &str = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=8\nsize=1m\nnumber_ios=10\n";

fn stack(set: &[&str]) -> Stack {
    Stack::parse("small.toml", STACK, set).unwrap()
}

fn run(set: &[&str], job: &str, until: &str) -> Result<Outcome, RunError> {
    let job = parse(job, "w.fio", &HostEnvironment).unwrap();
    let until_steady: UntilSteady = until.parse().unwrap();
    let options = RunOptions { until_steady: Some(until_steady), ..RunOptions::default() };
    run_in_lab(&stack(set), &job, 1, options, &mut NoObserver)
}

/// On a fresh device write amplification starts low and rises; the run goes on until it has settled,
/// past the end of the job as it stands, and its figures are of that end alone.
#[test]
fn a_fresh_device_is_run_until_it_is_steady() {
    let job = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=8\nio_size=1m\n";
    let outcome = run(&[], job, "").unwrap();
    let rounds = outcome.rounds.unwrap();
    assert!(outcome.is_steady(), "{:?}", outcome.warnings);
    assert!((8..25).contains(&rounds.rounds), "{rounds:?}");
    let write = outcome.workload.jobs[0].direction(Direction::Write);
    let device_bytes = outcome.size.logical_sectors * 4096;
    let per_round = write.bytes as f64 / device_bytes as f64 / 5.0;
    assert!((0.25..0.26).contains(&per_round), "five rounds of a quarter: {per_round}");
    assert_eq!(write.latency.count(), write.ios);
    let [rates, depths] = [write.iops.samples, outcome.workload.jobs[0].depths.iter().sum()];
    assert_eq!([rates, depths], [5, write.ios], "rates and depths are the window's");
    let busy = outcome.utilisation.units.iter().max().unwrap();
    let share = busy.as_secs_f64() / outcome.virtual_time.as_secs_f64();
    assert!((0.3..1.05).contains(&share), "so is the time that units were taken: {share}");
    assert_eq!(outcome.virtual_time, outcome.workload.jobs[0].runtime);
    assert!(outcome.ftl.host.written.abs_diff(write.ios) <= 8, "the FTL's counts are the window's");
    let waf = outcome.write_amplification().gc.unwrap();
    let settled = run(&["precondition.recipe=steady"], job, "").unwrap();
    let expected = settled.write_amplification().gc.unwrap();
    assert_eq!(settled.rounds.unwrap().rounds, 5, "a steady device needs no more than the window");
    assert!((waf / expected - 1.0).abs() < 0.15, "{waf} of {expected}");
    assert!(outcome.series.len() > 5 && outcome.series[0].waf.gc.unwrap() > 0.8 * waf);
    let end_s = outcome.series.last().unwrap().t_s;
    assert!((end_s - outcome.virtual_time.as_secs_f64()).abs() < 1e-9);
    let json = outcome.to_json("test");
    assert_eq!(json["nandscape"]["until_steady"]["rounds"], rounds.rounds);
}

/// What does not settle ends after as many rounds as were allowed, with a warning that says why.
#[test]
fn what_never_settles_is_said() {
    let job = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=8\n";
    let outcome = run(&["precondition.recipe=fill"], job, "round=10%,rounds=6").unwrap();
    assert!(!outcome.is_steady());
    assert_eq!(outcome.rounds.unwrap().rounds, 6);
    let warned = outcome.warnings.iter().any(|text| text.ends_with("after 6 rounds"));
    assert!(warned, "{:?}", outcome.warnings);
}

/// Rounds of time are as long as they should be, reads have no write amplification to wait for, a
/// ramp comes before the first round, and grouped jobs stay one report.
#[test]
fn rounds_of_time() {
    let job =
        "[global]\nbs=4k\nramp_time=7ms\ngroup_reporting\n[r]\nrw=randread\ndirect=1\nnumjobs=3\n";
    let outcome = run(&["precondition.recipe=fill"], job, "round=20ms").unwrap();
    assert!(outcome.is_steady(), "{:?}", outcome.warnings);
    let jobs = &outcome.workload.jobs;
    assert_eq!((jobs.len(), jobs[0].jobs), (1, 3));
    assert_eq!(jobs[0].runtime.0, 100_000_000);
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    let iops = jobs[0].iops(Direction::Read);
    let shown = outcome.series.iter().map(|point| point.iops).sum::<f64>();
    assert!((shown / outcome.series.len() as f64 / iops - 1.0).abs() < 0.1, "{shown} {iops}");
}

#[test]
fn stages_have_no_steady_state() {
    let job = "[a]\nrw=write\ndirect=1\nsize=1m\n[b]\nstonewall\nrw=read\ndirect=1\nsize=1m\n";
    let error = run(&[], job, "").unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("w.fio:5"), "{error}");
}

/// A recipe restarts its section; keys beside it or laid over it win.
#[test]
fn recipes_and_keys_combine() {
    let plan = |set: &[&str]| {
        let plan = Stack::load("pblk", set).unwrap().precondition;
        (plan.fill, plan.random_overwrite, plan.steady_overwrite)
    };
    assert_eq!(plan(&[]), (1.0, 2.0, 0.0), "as pblk's file has it");
    assert_eq!(plan(&["precondition.recipe=snia-wipc"]), (2.0, 0.0, 0.0));
    assert_eq!(plan(&["precondition.recipe=none"]), (0.0, 0.0, 0.0));
    let over = ["precondition.recipe=fill", "precondition.random_overwrite=0.5"];
    assert_eq!(plan(&over), (1.0, 0.5, 0.0));
    assert_eq!(plan(&[over[1], over[0]]), (1.0, 0.0, 0.0));
    let beside = "extends = \"pblk\"\n[precondition]\nrecipe = \"random\"\nfill = 0.5\n";
    let stack = Stack::parse("b.toml", beside, &[] as &[&str]).unwrap();
    assert_eq!((stack.precondition.fill, stack.precondition.random_overwrite), (0.5, 2.0));
    let again = Stack::parse("again.toml", &stack.toml, &[] as &[&str]).unwrap();
    assert_eq!(again.precondition, stack.precondition);
    let wrong = Stack::load("pblk", &["precondition.recipe=snia"]).unwrap_err().to_string();
    let names: Vec<&str> = recipes().collect();
    assert!(wrong.contains(&names.join(" | ")), "{wrong}");
}

/// A run of random writes on a device that was not, or not wholly, written before has a warning.
#[test]
fn a_device_that_is_not_full_is_remarked_upon() {
    let warnings = |set: &[&str], job: &str| {
        let job = parse(job, "w.fio", &HostEnvironment).unwrap();
        let outcome =
            run_in_lab(&stack(set), &job, 1, RunOptions::default(), &mut NoObserver).unwrap();
        outcome.warnings.join("\n")
    };
    assert!(warnings(&[], WRITE).contains("the device was fresh"));
    let written = warnings(&[], "[w]\nrw=write\ndirect=1\nsize=1m\n");
    assert!(!written.contains("write results are optimistic"));
    assert!(!warnings(&["precondition.recipe=fill"], WRITE).contains("fresh"));
    assert!(
        warnings(&["precondition.fill=0.5"], WRITE)
            .contains("logical sectors at the beginning: unwritten space")
    );
    let never = ["precondition.fill=1", "precondition.steady_overwrite=1"];
    assert!(warnings(&never, WRITE).contains("before write amplification was steady"));
}
