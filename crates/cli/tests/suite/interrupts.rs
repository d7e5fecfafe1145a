//! Ctrl-C during a run, as users meet it; and that no process outlives a test that was killed.

#![cfg(unix)]

use crate::common;
use crate::common::parts;
use crate::common::running;

use common::{Folder, err, out};
use parts::parts;
use running::Running;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// Far longer than a signal takes, and yet a run that ends.
const LONG: &str = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=4\nio_size=128g\n";
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
        assert!(rest.contains("nandscape: interrupted: printing partial results"), "{rest}");
        assert!(rest.contains("nandscape: interrupted: partial results of the first "), "{rest}");
        assert!(!folder.0.join("left.state").exists());
        let result = std::fs::read_to_string(folder.0.join("result")).unwrap();
        if format == "normal" {
            let warning =
                "- partial results: the run was interrupted, and metrics cover the first ";
            assert!(result.contains(warning) && result.contains(" IOPS, "), "{result}");
            continue;
        }
        let json: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(json["nandscape"]["interrupted"], true);
        let ios = json["jobs"][0]["write"]["total_ios"].as_u64().unwrap();
        assert!(ios > 0 && ios < LONG_IOS, "{ios}");
    }
}

/// Whether tests run below nohup, whose programs ignore a terminal that went away.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1)
}

/// A terminal that went away ends a run as the batch system's signal does: with what it has.
#[test]
fn hangup_and_termination_keep_what_a_run_has() {
    for signal in ["TERM", "HUP"] {
        if signal == "HUP" && ignores_hangup() {
            continue;
        }
        let folder = Folder::new(&format!("interrupt-{signal}"));
        let (mut running, mut log) =
            measuring(&folder, &["--output-format", "json", "--output", "result"]);
        running.signal(signal);
        let mut rest = String::new();
        log.read_to_string(&mut rest).unwrap();
        assert_eq!(running.child.wait().unwrap().code(), Some(130), "{signal}: {rest}");
        let result = std::fs::read_to_string(folder.0.join("result")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(json["nandscape"]["interrupted"], true, "{signal}");
    }
}

/// Ctrl-C ends a campaign with what it found, in both forms; on devices, on a file system, and a matrix.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_campaign_reports_what_it_found() {
    let few = ["--composition", "single/*/device/data/resident", "--cuts", "1000000"];
    let matrix = [&["--matrix", "all"], &few[..]].concat();
    let fs = ["--fs", "ext4", "--base", "adversary", "--cuts", "1000000"];
    let cases: [(&str, &str, &[&str]); 3] = [
        ("seeds", "json", &["--seeds", "10000000"]),
        ("fs", "normal", &fs),
        ("matrix", "json", &matrix),
    ];
    for (name, format, args) in cases {
        let folder = Folder::new(&format!("interrupt-crash-{name}"));
        let output = ["--jobs", "1", "--output-format", format, "--output", "found"];
        let running = Running::start(&folder, &[&["crash"], args, &output].concat());
        // One for the command and two for signals; the fourth runs seeds.
        let threads = format!("/proc/{}/task", running.child.id());
        while std::fs::read_dir(&threads).unwrap().count() < 4 {
            std::thread::yield_now();
        }
        running.interrupt();
        let (code, said) = ended(running);
        assert_eq!(code, Some(130), "{name}: {said}");
        assert!(said.contains("the campaign ends after the seeds in progress"), "{said}");
        let found = std::fs::read_to_string(folder.0.join("found")).unwrap();
        if format == "normal" {
            assert!(found.contains("PASS: no violations\nPARTIAL: interrupted; "), "{found}");
            continue;
        }
        let json: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!((&json["interrupted"], &json["passed"]), (&true.into(), &true.into()));
    }
}

/// A run that is not interrupted does not mention it.
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

/// A pipe with a name, at which a process that opens it waits for the other end.
fn pipe(folder: &Folder, name: &str) {
    let made = Command::new("mkfifo").arg(name).current_dir(&folder.0).status().unwrap();
    assert!(made.success());
}

/// How a process ended that was interrupted, and what it said.
fn ended(mut running: Running) -> (Option<i32>, String) {
    let mut said = String::new();
    running.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (running.child.wait().unwrap().code(), said)
}

/// The first Ctrl-C ends a program that saves a state, whether a run left it or nothing else was asked for.
#[test]
fn an_interrupted_save_ends() {
    // Far more than a pipe holds.
    let set = ["--set", "media.sectors=2048"];
    let save = ["state", "save", "--output", "state"];
    let run = ["run", "job.fio", "--save-state", "state"];
    for (name, command) in [("interrupt-save", &save[..]), ("interrupt-left", &run[..])] {
        let folder = Folder::new(name);
        pipe(&folder, "state");
        let running = Running::start(&folder, &[command, &STACK[..], &set].concat());
        let mut state = File::open(folder.0.join("state")).unwrap();
        let mut head = [0; 8];
        state.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"nandstat", "it is being saved");
        running.interrupt();
        let (code, said) = ended(running);
        assert_eq!(code, Some(130), "{name}: {said}");
        assert!(said.contains("nandscape: interrupted"), "{name}: {said}");
    }
}

/// Interrupts what writes an image: it says so, and no part of the image is left.
fn interrupt_writing(folder: &Folder, running: Running, image: &str) {
    running.interrupt();
    let (code, said) = ended(running);
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(said, format!("nandscape: interrupted: not written: {image}\n"));
    assert!(parts(folder).is_empty(), "{image}");
}

/// An interrupted export says what is not written, leaves no part of it, and what was there as it was.
#[test]
fn an_interrupted_export_leaves_nothing() {
    let folder = Folder::new("interrupt-export");
    pipe(&folder, "never.state");
    folder.write("old.img", "old");
    let export = ["image", "export", "never.state"];
    for image in ["old.img", "new.img"] {
        let running = Running::start(&folder, &[&export[..], &[image], &STACK[..]].concat());
        // Opened when the export opens the other end, behind which nothing comes.
        let _state = File::options().write(true).open(folder.0.join("never.state")).unwrap();
        assert_eq!(parts(&folder).len(), 1, "it is being written");
        interrupt_writing(&folder, running, image);
    }
    assert_eq!(std::fs::read_to_string(folder.0.join("old.img")).unwrap(), "old");
    assert!(!folder.0.join("new.img").exists());
}

/// What a run writes on the way is under its name when the run has ended, and not before.
#[test]
fn an_interrupted_run_leaves_its_logs() {
    let folder = Folder::new("interrupt-logs");
    let (mut running, mut log) = measuring(&folder, &["--trace", "run.json", "--output", "result"]);
    assert!(!folder.0.join("run.json").exists());
    assert_eq!(parts(&folder).len(), 1, "the timeline is being written");
    running.interrupt();
    log.read_to_string(&mut String::new()).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    let text = std::fs::read_to_string(folder.0.join("run.json")).unwrap();
    let timeline: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(timeline["traceEvents"].as_array().unwrap().iter().any(|event| event["ph"] == "X"));
    assert!(parts(&folder).is_empty());
}

/// A pipe that takes nothing, since no process reads it.
fn full_pipe(folder: &Folder, name: &str) -> File {
    pipe(folder, name);
    let both_ends = File::options().read(true).write(true).open(folder.0.join(name)).unwrap();
    let mut fill = Command::new("dd");
    fill.args(["if=/dev/zero", "bs=4096", "oflag=nonblock"]).arg(format!("of={name}"));
    let filled = fill.current_dir(&folder.0).stderr(Stdio::null()).status().unwrap();
    assert!(!filled.success(), "it goes on until nothing more is taken");
    both_ends
}

/// A run that writes logs and cannot end, since no process reads its timeline.
fn stuck(folder: &Folder, stderr: Stdio) -> (Running, File) {
    folder.write("long.fio", &format!("{LONG}write_lat_log=log\n"));
    folder.write("log_lat.1.log", "old");
    let timeline = full_pipe(folder, "run.json");
    let args = [&["run", "long.fio"], &STACK[..], &["--trace", "run.json", "--hdr-log", "hlog"]];
    let mut running = Running::start_with(folder, &args.concat(), stderr);
    // Three logs of latencies, then the histograms'; whether each can be written was tried one by one.
    while parts(folder).len() < 4 {
        assert_eq!(running.child.try_wait().unwrap(), None, "no logs are being written");
        std::thread::yield_now();
    }
    (running, timeline)
}

/// What such a run was writing is gone, and what was there is as it was.
fn expect_nothing_left(folder: &Folder) {
    assert_eq!(std::fs::read_to_string(folder.0.join("log_lat.1.log")).unwrap(), "old");
    assert!(parts(folder).is_empty() && !folder.0.join("hlog").exists());
}

/// The second Ctrl-C ends a run at once.
#[test]
fn a_run_that_is_ended_at_once_leaves_nothing() {
    let folder = Folder::new("interrupt-twice");
    let (mut running, _timeline) = stuck(&folder, Stdio::piped());
    let mut said = BufReader::new(running.child.stderr.take().unwrap());
    running.interrupt();
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert!(first.contains("(Ctrl-C again to abort)"), "{first}");
    running.interrupt();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.starts_with("nandscape: interrupted: not written: hlog, "), "{rest}");
    expect_nothing_left(&folder);
}

/// If no process reads the answers, Ctrl-C ends a run all the same.
#[test]
fn a_run_without_a_reader_leaves_nothing() {
    let folder = Folder::new("interrupt-unheard");
    let answers = full_pipe(&folder, "answers");
    let (mut running, _timeline) = stuck(&folder, answers.into());
    // Signals that are pending are one, so three may not do.
    let ended = (0..1000).find_map(|_| {
        running.interrupt();
        running.child.try_wait().unwrap()
    });
    assert_eq!(ended.and_then(|ended| ended.code()), Some(130));
    expect_nothing_left(&folder);
}

/// An interrupted mkfs leaves no half of an image, and what was there as it was.
#[test]
fn an_interrupted_mkfs_leaves_nothing() {
    let folder = Folder::new("interrupt-mkfs");
    folder.write("old.img", "old");
    for image in ["old.img", "new.img"] {
        let make = ["mkfs", "--fs", "ext4", "--force", "--size", "8TiB", image];
        let mut running = Running::start(&folder, &make);
        while parts(&folder).iter().all(|&bytes| bytes == 0) {
            assert_eq!(running.child.try_wait().unwrap(), None, "{image}: it is not being written");
            std::thread::yield_now();
        }
        interrupt_writing(&folder, running, image);
    }
    assert_eq!(std::fs::read_to_string(folder.0.join("old.img")).unwrap(), "old");
    assert!(!folder.0.join("new.img").exists());
}
