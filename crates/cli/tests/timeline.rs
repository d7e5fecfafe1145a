//! `--trace` as users meet it: a file that is JSON, bounds that are reported, and errors with exit codes.

mod common;

use common::{Folder, err, out};
use serde_json::Value;

fn events(folder: &Folder, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.0.join(name)).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(document["traceEvents"].take()).unwrap()
}

/// Jobs and traces leave a timeline with what their units did, in the window that was asked for.
#[test]
fn a_run_and_a_replay_leave_a_timeline() {
    let folder = Folder::new("timeline");
    folder.write("t.trace", "1000 0 0 8 0\n2000000 0 8 16 0\n3000000 0 8000 8 1\n");
    let run = ["run", "job.fio", "--stack", "small.toml", "--trace", "a.json"];
    let replay = ["trace", "run", "t.trace", "--stack", "small.toml", "--trace", "a.json"];
    for args in [&run[..], &replay[..]] {
        let output = folder.command(args).args(["--trace-window", "1ms,9ms"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let events = events(&folder, "a.json");
        let of_units = |event: &&Value| event["ph"] == "X" && event["pid"] == 1;
        assert!(events.iter().any(|event| of_units(&event)), "{args:?}");
        let times = events.iter().filter_map(|event| event["ts"].as_f64());
        assert!(times.clone().count() > 0);
        assert!(times.into_iter().all(|us| (1_000.0..=10_000.0).contains(&us)));
    }
}

/// A timeline that cannot be written and a window that makes no sense are bad input; a run that fails
/// leaves a timeline all the same.
#[test]
fn what_goes_wrong_has_an_exit_code() {
    let folder = Folder::new("timeline-errors");
    let run = |args: &[&str]| {
        let base = ["run", "job.fio", "--stack", "small.toml"];
        folder.command(&base).args(args).output().unwrap()
    };
    let output = run(&["--trace", "no/such/folder.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("cannot write no/such/folder.json"), "{}", err(&output));
    for window in ["1ms", "1ms,", "1ms,0", "x,y"] {
        let output = run(&["--trace", "a.json", "--trace-window", window]);
        assert_eq!(output.status.code(), Some(2), "{window}");
    }
    assert_eq!(run(&["--trace-window", "0,1ms"]).status.code(), Some(2), "without --trace");
    folder.write(
        "long.fio",
        "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=4\nnorandommap\nio_size=1g\n",
    );
    let failing =
        ["--set", "media.faults.erase_rate=1.0", "--set", "precondition.random_overwrite=0"];
    let args = ["run", "long.fio", "--stack", "small.toml", "--trace", "b.json"];
    let output = folder.run(&[&args[..], &failing[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(out(&output).contains("long.fio on small"), "the result is there all the same");
    assert!(events(&folder, "b.json").iter().any(|event| event["ph"] == "X"));
}
