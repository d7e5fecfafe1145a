//! Ctrl-C during a run, as users meet it; and that no process outlives a test that was killed.

#![cfg(unix)]

mod common;
#[path = "common/running.rs"]
mod running;

use common::{Folder, err, out};
use running::Running;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;

/// Far longer than a signal takes, and yet a run that ends.
const LONG: &str = "[w]\nrw=randwrite\nbs=4k\niodepth=4\nio_size=128g\n";
const LONG_IOS: u64 = 32 << 20;
const STACK: [&str; 2] = ["--stack", "small.toml"];

/// A run in its measured phase, which a line of its log tells.
fn measuring(folder: &Folder, more: &[&str]) -> (Running, impl Read + use<>) {
    folder.write("long.fio", LONG);
    let log = ["--hdr-log", "/dev/stderr", "--hdr-interval", "1"];
    let args = [&["run", "long.fio"], &STACK[..], &log, more].concat();
    let mut running = Running::start(folder, &args);
    let mut log = BufReader::new(running.child.stderr.take().unwrap());
    let mut first = String::new();
    log.read_line(&mut first).unwrap();
    assert!(first.starts_with('#'), "{first}");
    (running, log)
}

/// The first Ctrl-C ends a run with the figures that it has, which say so. It leaves no state.
#[test]
fn an_interrupted_run_tells_what_it_has() {
    for format in ["json", "normal"] {
        let folder = Folder::new(&format!("interrupt-{format}"));
        let state = ["--save-state", "left.state"];
        let output = [&["--output-format", format, "--output", "result"], &state[..]].concat();
        let (mut running, mut log) = measuring(&folder, &output);
        running.interrupt();
        let mut rest = String::new();
        log.read_to_string(&mut rest).unwrap();
        assert_eq!(running.child.wait().unwrap().code(), Some(130), "{rest}");
        assert!(rest.contains("nandscape: interrupted: the figures are of the first "), "{rest}");
        assert!(!folder.0.join("left.state").exists());
        let result = std::fs::read_to_string(folder.0.join("result")).unwrap();
        if format == "normal" {
            let warning = "warning: the run was interrupted, and all figures are of the ";
            assert!(result.contains(warning) && result.contains(" IOPS, "), "{result}");
            continue;
        }
        let json: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(json["nandscape"]["interrupted"], true);
        let ios = json["jobs"][0]["write"]["total_ios"].as_u64().unwrap();
        assert!(ios > 0 && ios < LONG_IOS, "{ios}");
    }
}

/// A run that nobody interrupts says nothing of it.
#[test]
fn a_whole_run_is_not_marked() {
    let folder = Folder::new("interrupt-none");
    let run = folder.run(&["run", "job.fio", STACK[0], STACK[1], "--output-format", "json"]);
    assert_eq!(run.status.code(), Some(0), "{}", err(&run));
    assert!(!out(&run).contains("interrupted"));
}

/// A test that is killed closes its end of the pipe, and what it started ends.
#[test]
fn no_process_outlives_its_test() {
    let folder = Folder::new("interrupt-outlived");
    let (mut running, log) = measuring(&folder, &[]);
    drop((running.watcher.take(), log));
    assert_eq!(running.child.wait().unwrap().signal(), Some(9));
}
