//! `--trace` as users meet it: a file that is JSON, bounds that are reported, and errors with exit codes.

use crate::common;

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

/// Each thread of a Filebench workload has a track with its flowops one after the other; a window that the run never
/// reaches is reported.
#[test]
fn threads_of_a_workload_have_tracks() {
    let folder = Folder::new("timeline-threads");
    folder.write(
        "files.toml",
        "name = \"files\"\nextends = \"ext4-js-pblk\"\n[host]\nmemory = \"16MiB\"\n\
         [media]\nchunks = 48\nsectors = 128\n[ftl]\nop_percent = 35\n",
    );
    folder.write(
        "mail.f",
        "define fileset name=mail,path=/var,entries=20,dirwidth=100,size=4k,prealloc=50\n\
         define process name=p { thread name=t,instances=2 {\n\
         flowop createfile name=new,filesetname=mail,fd=1\n\
         flowop appendfile name=app,iosize=4k,fd=1\nflowop fsync name=sync,fd=1\n\
         flowop closefile name=close,fd=1\nflowop deletefile name=del,filesetname=mail } }\nrun 1\n",
    );
    let run = |window: &str| {
        let args = ["run", "mail.f", "--stack", "files.toml", "--runtime", "50ms"];
        let output = folder
            .command(&args)
            .args(["--trace", "a.json", "--trace-window", window])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (events(&folder, "a.json"), err(&output))
    };
    let (all, said) = run("0,20ms");
    assert_eq!(said, "nandscape: timeline in a.json\n");
    for instance in [1, 2] {
        let own = all.iter().filter(|event| event["pid"] == 10 && event["tid"] == instance);
        let slices: Vec<_> = own.filter(|event| event["ph"] == "X").collect();
        let names = |name: &str| slices.iter().filter(|slice| slice["name"] == name).count();
        assert!(["new", "app", "sync", "close", "del"].into_iter().all(|name| names(name) > 2));
        let ends = |slice: &Value| (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
        assert!(slices.windows(2).all(|pair| {
            let ((start, length), (next, _)) = (ends(pair[0]), ends(pair[1]));
            start + length <= next + 1e-3
        }));
    }
    assert!(all.iter().any(|event| event["ph"] == "C" && event["name"] == "free lines"));
    let (none, said) = run("10s,1s");
    assert!(none.iter().all(|event| event["ph"] == "M"));
    assert!(
        said.contains("its window starts at 10.00s, after the end of the run at 50.0ms"),
        "{said}"
    );
}
