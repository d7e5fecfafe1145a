//! What the binary writes beside summaries: logs, histograms, tables as JSON, manual pages, completion
//! scripts; and that colours stay where people look.

use crate::common;

use common::{Folder, err, out};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;
use std::collections::BTreeMap;

const RUN: [&str; 4] = ["run", "job.fio", "--stack", "small.toml"];
const LOGGED: &str = "[w]\nrw=randrw\ndirect=1\nbs=4k\niodepth=4\nnumber_ios=2000\nfsync=50\n\
                      write_lat_log=each\nwrite_hist_log\nlog_hist_msec=10\n";

fn json(output: &std::process::Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
    serde_json::from_str(&out(output)).unwrap()
}

/// fio's logs are where they were asked for, with a line for each I/O, and the result knows as many.
#[test]
fn logs_are_written() {
    let folder = Folder::new("logs");
    folder.write("job.fio", LOGGED);
    let result = json(
        &folder
            .command(&RUN)
            .args(["--output-format", "json", "--log-dir", "new/logs"])
            .output()
            .unwrap(),
    );
    let ios = ["read", "write"].map(|name| result["jobs"][0][name]["total_ios"].as_u64().unwrap());
    let log = |name: &str| std::fs::read_to_string(folder.0.join("new/logs").join(name)).unwrap();
    for name in ["each_slat.1.log", "each_clat.1.log", "each_lat.1.log"] {
        assert_eq!(log(name).lines().count() as u64, ios[0] + ios[1], "{name}");
    }
    let histograms = log("w_clat_hist.1.log");
    let counts = histograms.lines().flat_map(|line| line.split(", ").skip(3));
    assert_eq!(counts.map(|n| n.parse::<u64>().unwrap()).sum::<u64>(), ios[0] + ios[1]);
    assert_eq!(folder.run(&RUN).status.code(), Some(0), "logs go to the current folder");
    assert_eq!(
        std::fs::read_to_string(folder.0.join("each_lat.1.log")).unwrap(),
        log("each_lat.1.log")
    );
}

/// A log that cannot be written ends the run before it begins, and names the file.
#[test]
fn a_log_without_a_place_is_an_error() {
    let folder = Folder::new("log-place");
    folder.write("job.fio", "[w]\nrw=randwrite\ndirect=1\nnumber_ios=10\nwrite_bw_log=none/such\n");
    let output = folder.run(&RUN);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("none/such_bw.1.log"), "{}", err(&output));
}

/// The HdrHistogram log holds every I/O under its job and direction, as a reader of the format finds.
#[test]
fn histogram_logs_are_complete() {
    let folder = Folder::new("hdr");
    folder.write("job.fio", LOGGED);
    let args = ["--output-format", "json", "--hdr-log", "l.hlog", "--hdr-interval", "5"];
    let result = json(&folder.command(&RUN).args(args).output().unwrap());
    let text = std::fs::read(folder.0.join("l.hlog")).unwrap();
    let mut found: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    let mut intervals = 0;
    for entry in IntervalLogIterator::new(&text) {
        let LogEntry::Interval(interval) = entry.unwrap() else { continue };
        let bytes = decode(interval.encoded_histogram());
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        let tag = interval.tag().unwrap().as_str().to_owned();
        intervals += 1;
        let whole = found.entry(tag).or_insert_with(|| Histogram::new(3).unwrap());
        whole.add(histogram).unwrap();
    }
    assert!(intervals > found.len(), "several intervals");
    let job = &result["jobs"][0];
    for (tag, latency) in [
        ("w/read", &job["read"]["clat_ns"]),
        ("w/write", &job["write"]["clat_ns"]),
        ("w/sync", &job["sync"]["lat_ns"]),
    ] {
        let histogram = &found[tag];
        assert_eq!(Some(histogram.len()), latency["N"].as_u64(), "{tag}");
        let max = latency["max"].as_u64().unwrap();
        assert!(histogram.equivalent(histogram.max(), max), "{tag}");
    }
}

/// Base64, which the reader of logs leaves to others.
fn decode(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> =
        text.bytes().filter(|c| *c != b'=').map(|c| u32::from(value(c))).collect();
    let group = |digits: &[u32]| {
        let bits = (0..4).fold(0, |bits, at| bits << 6 | digits.get(at).copied().unwrap_or(0));
        bits.to_be_bytes()[1..digits.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

/// json+ is json with the latencies by bin, which hold every I/O.
#[test]
fn json_plus_has_bins() {
    let folder = Folder::new("json-plus");
    let plus = json(&folder.command(&RUN).args(["--output-format", "json+"]).output().unwrap());
    let plain = json(&folder.command(&RUN).args(["--output-format", "json"]).output().unwrap());
    let clat = &plus["jobs"][0]["write"]["clat_ns"];
    let bins = clat["bins"].as_object().unwrap().values();
    assert_eq!(bins.map(|n| n.as_u64().unwrap()).sum::<u64>(), 2000);
    assert!(plain["jobs"][0]["write"]["clat_ns"]["bins"].is_null());
    assert_eq!(plain["jobs"][0]["job options"]["fsync"], "50");
    assert!(plain["jobs"][0]["iodepth_level"]["4"].as_f64().unwrap() > 90.0);
}

/// Through a pipe nothing is coloured, whatever is asked of the environment; `always` is.
#[test]
fn a_pipe_gets_no_escape_codes() {
    let folder = Folder::new("color");
    let text = out(&folder.command(&RUN).env("CLICOLOR_FORCE", "1").output().unwrap());
    assert!(!text.contains('\u{1b}'), "{text}");
    for line in ["    write  ", "    [", "  WAF ", "  Memory: ", "  WRITE: bw="] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line:?} in:\n{text}");
    }
    let colored = out(&folder.command(&RUN).args(["--color", "always"]).output().unwrap());
    assert!(colored.contains("\u{1b}["), "{colored}");
    let stripped: Vec<&str> = colored.split('\u{1b}').collect();
    assert!(stripped.len() > 10, "figures, bar and heading");
    let never = ["--color", "never", "--output", "summary.txt"];
    assert_eq!(folder.command(&RUN).args(never).output().unwrap().status.code(), Some(0));
    let file = std::fs::read_to_string(folder.0.join("summary.txt")).unwrap();
    assert!(!file.contains('\u{1b}'));
}

/// Tables as JSON: mean, confidence and number of each figure.
#[test]
fn tables_are_json_too() {
    let folder = Folder::new("table-json");
    let args = ["compare", "small.toml", "--job", "job.fio", "--seeds", "2", "--report", "waf.gc"];
    let table = json(&folder.command(&args).args(["--output-format", "json"]).output().unwrap());
    let figure = &table["points"][0]["figures"]["waf.gc"];
    assert_eq!(figure["n"], 2);
    assert!(figure["mean"].as_f64().unwrap() >= 1.0 && figure["ci95"].is_number(), "{table}");
    let crash = ["crash", "--stack", "pblk", "--seeds", "3", "--output-format", "json"];
    let report = json(&folder.run(&crash));
    assert_eq!((&report["seeds"], &report["passed"]), (&3.into(), &true.into()));
    assert!(report["counts"]["cuts"].as_u64().unwrap() >= 3);
    let stacks = json(&folder.run(&["stacks", "--output-format", "json"]));
    assert_eq!(stacks[0]["name"], "pblk");
}

/// A violation as JSON names its seed, so that it can be shown again.
#[test]
fn violations_are_json_too() {
    let folder = Folder::new("crash-json");
    let broken = ["crash", "--seeds", "200", "--omit", "lost-trims", "--output-format", "json"];
    let output = folder.run(&broken);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["passed"], false);
    assert!(report["violations"][0]["seed"].is_u64(), "{report}");
}

/// Every command has a manual page, and every shell a script that knows the commands.
#[test]
fn the_manual_covers_every_command() {
    let folder = Folder::new("man");
    assert!(out(&folder.run(&["man"])).contains(".SH NAME"));
    assert_eq!(folder.run(&["man", "--output", "man1"]).status.code(), Some(0));
    for command in ["run", "compare", "sweep", "crash", "trace-run", "stacks-show", "bench"] {
        let page = std::fs::read_to_string(folder.0.join(format!("man1/nandscape-{command}.1")));
        let page = page.unwrap();
        assert!(page.contains(".SH OPTIONS") && page.contains(r"\-\-color"), "{command}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = out(&folder.run(&["completions", shell]));
        assert!(script.contains("compare") && script.contains("output-format"), "{shell}");
    }
}

/// A result that could not be written ends a command before it begins, names the place, and touches
/// nothing.
#[test]
fn a_result_without_a_place_is_an_error() {
    let folder = Folder::new("no-place");
    folder.write("files.f", "run 1\n");
    folder.write("t.trace", "1000 0 0 8 0\n");
    folder.write("sweep.toml", "stacks = \"small.toml\"\njobs = \"job.fio\"\n");
    let small = ["--stack", "small.toml"];
    let commands: [&[&str]; 13] = [
        &["run", "job.fio", small[0], small[1], "--output"],
        &["run", "job.fio", small[0], small[1], "--report"],
        &["run", "files.f", small[0], small[1], "--output"],
        &["trace", "run", "t.trace", small[0], small[1], "--output"],
        &["trace", "info", "t.trace", "--output"],
        &["compare", "small.toml", "--job", "job.fio", "--output"],
        &["compare", "small.toml", "--job", "job.fio", "--report"],
        &["sweep", "sweep.toml", "--output"],
        &["sweep", "sweep.toml", "--report"],
        &["crash", "--seeds", "1", "--output"],
        &["report", "none.json", "--output"],
        &["state", "save", small[0], small[1], "--output"],
        &["image", "import", "none.img", small[0], small[1], "--output"],
    ];
    for command in commands {
        for place in ["none/x", "."] {
            let output = folder.command(command).arg(place).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{command:?} {place}: {}", err(&output));
            let message = err(&output);
            assert!(
                message.starts_with(&format!("nandscape: cannot write {place}: ")),
                "{message}"
            );
            assert!(output.stdout.is_empty(), "{command:?}");
        }
    }
    assert!(!folder.0.join("none").exists() && !folder.0.join("sweep.jsonl").exists());
    assert!(!folder.0.join("cache").exists(), "nothing was preconditioned");
}

/// What is read is not written over, and no two things are written to one file.
#[test]
fn results_do_not_take_the_place_of_what_is_read() {
    let folder = Folder::new("read-and-written");
    folder.write("t.trace", "1000 0 0 8 0\n");
    folder.write("disk.img", "");
    std::fs::create_dir(folder.0.join("sub")).unwrap();
    let small = ["--stack", "small.toml"];
    let commands: [&[&str]; 10] = [
        &["run", "job.fio", small[0], small[1], "--output", "job.fio"],
        &["run", "job.fio", small[0], small[1], "--output", "sub/../small.toml"],
        &["run", "job.fio", small[0], small[1], "--output", "new", "--report", "sub/../new"],
        &["run", "job.fio", small[0], small[1], "--output", "new", "--trace", "new"],
        &["trace", "run", "t.trace", small[0], small[1], "--output", "t.trace"],
        &["compare", "small.toml", "--job", "job.fio", "--report", "small.toml"],
        &["crash", "--stack", "small.toml", "--seeds", "1", "--output", "small.toml"],
        &["report", "t.trace", "--output", "t.trace"],
        &["state", "save", small[0], small[1], "--output", "small.toml"],
        &["image", "import", "disk.img", small[0], small[1], "--output", "disk.img"],
    ];
    for command in commands {
        let output = folder.run(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", err(&output));
        let end = "it is also an input or another output\n";
        assert!(err(&output).ends_with(end), "{command:?}: {}", err(&output));
    }
    assert!(!folder.0.join("new").exists());
    assert_eq!(std::fs::read_to_string(folder.0.join("t.trace")).unwrap(), "1000 0 0 8 0\n");
    let nowhere =
        ["run", "job.fio", small[0], small[1], "--output", "/dev/null", "--report", "/dev/null"];
    assert_eq!(folder.run(&nowhere).status.code(), Some(0));
}

/// A run that fails leaves the old result as it was, and no new one.
#[test]
fn a_failed_run_leaves_results_alone() {
    let folder = Folder::new("kept-result");
    folder.write("old.json", "old");
    for name in ["old.json", "new.json"] {
        let args = ["--set", "media.memory_cap=64k", "--output", name];
        assert_eq!(folder.command(&RUN).args(args).output().unwrap().status.code(), Some(1));
    }
    assert_eq!(std::fs::read_to_string(folder.0.join("old.json")).unwrap(), "old");
    assert!(!folder.0.join("new.json").exists());
}
