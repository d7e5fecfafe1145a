//! Sessions: the jobs of a sweep one after the other on the same device.

use nandscape_lab::run::{NoObserver, RunOptions};
use nandscape_lab::sweep::{FinishedRow, Sweep};
use nandscape_lab::workload::fio::Environment;
use std::io;
use std::path::Path;

/// One job file.
struct OneFile;

impl Environment for OneFile {
    fn read(&self, _: &Path) -> io::Result<String> {
        Ok("[f]\nrw=randwrite\nbs=4k\nsize=2m\nend_fsync=1\n".into())
    }
    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

fn sweep(session: &str, jobs: &str) -> Result<Sweep, String> {
    let text = format!(
        "stacks = \"ext4-pblk\"
        jobs = {jobs}
        {session}
        [set]
        media.chunks = 48
        media.sectors = 128
        ftl.op_percent = 35
        host.memory = \"16MiB\""
    );
    Sweep::parse("folder/one.toml", &text, &OneFile).map_err(|error| error.to_string())
}

fn result(sweep: &Sweep) -> serde_json::Value {
    let row = sweep.run(0, "test", RunOptions::default(), &mut NoObserver).unwrap();
    FinishedRow::parse(&row).unwrap().result
}

/// Each step has the result of a separate run; the first is that of the job alone, the second begins on the device
/// and with the file that the first left; and the session's own figures are those of its last step.
#[test]
fn steps_go_on_where_the_step_before_stopped() {
    let session = sweep("session = true", "[\"job.fio\", \"job.fio\"]").unwrap();
    assert_eq!((session.runs(), session.cases[0].job.name.as_str()), (1, "one"));
    let (whole, alone) = (result(&session), result(&sweep("", "\"job.fio\"").unwrap()));
    let steps = whole["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(names, ["job.fio", "job.fio #2"]);
    assert_eq!(steps[0]["nandscape"], alone["nandscape"]);
    assert_eq!(steps[1]["nandscape"], whole["nandscape"]);
    assert_ne!(steps[0]["nandscape"], steps[1]["nandscape"]);
    let before = |step: usize| &steps[step]["nandscape"]["precondition"]["fill_sectors"];
    assert_eq!(before(0).as_u64().unwrap_or(0), 0);
    assert!(before(1).as_u64().unwrap() >= 512, "the file of the first step is there");
    assert_eq!(result(&session), whole, "the same session is the same to the letter");
}

/// A session is one run of all its jobs: another one in another order, and none that goes on until it is steady.
#[test]
fn sessions_are_runs_of_their_own() {
    let ids = |session: &str, jobs: &str| sweep(session, jobs).unwrap().ids("");
    let two = ids("session = true", "[\"job.fio\", \"job.fio\"]");
    assert_eq!(two.len(), 1);
    assert_ne!(two, ids("session = true", "[\"job.fio\", \"job.fio\", \"job.fio\"]"));
    assert_ne!(two, ids("", "\"job.fio\""));
    let refused = sweep("session = true\nuntil_steady = true", "\"job.fio\"").unwrap_err();
    assert!(refused.contains("one.toml") && refused.contains("until_steady"), "{refused}");
    let refused = sweep("session = 1", "\"job.fio\"").unwrap_err();
    assert!(refused.contains("session"), "{refused}");
}

/// A job file for each name.
struct Named;

impl Environment for Named {
    fn read(&self, path: &Path) -> io::Result<String> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(format!("[{name}]\nrw=write\nsize=1m\n"))
    }
    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// The name of a job file may hold variables, so that an axis changes a step: the points have the step's own name.
/// A variable that is not set is an error at its place.
#[test]
fn an_axis_may_name_a_step() {
    let text = "stacks = \"ext4-pblk\"\nsession = true\njobs = [\"fill.fio\", \"${load}\"]\n";
    let parse = |grid: &str| {
        let sweep = Sweep::parse("folder/one.toml", &format!("{text}{grid}"), &Named);
        sweep.map_err(|error| error.to_string())
    };
    let sweep = parse("[grid]\nvar.load = [\"a.fio\", \"b.fio\"]\n").unwrap();
    let names = |case: usize| {
        let steps = sweep.cases[case].job.steps().iter();
        steps.map(|step| step.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!([names(0), names(1)], [["fill.fio", "a.fio"], ["fill.fio", "b.fio"]]);
    let refused = parse("").unwrap_err();
    assert!(refused.contains("one.toml:3") && refused.contains("var.load"), "{refused}");
}
