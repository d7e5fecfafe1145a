//! Habits of fio's users: jobs on the command line, several job files, standard input, and fio's own output formats.

use crate::common;

use common::{Folder, err, out};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};

const WORDS: [&str; 11] = [
    "--bs=4k",
    "--direct=1",
    "--name=a b",
    "--rw=randread",
    "--iodepth",
    "4",
    "--number_ios=300",
    "--norandommap",
    "--name=c",
    "-rw=write",
    "--number_ios=200",
];
const FILE: &str = "[global]\nbs=4k\ndirect=1\n[a b]\nrw=randread\niodepth=4\nnumber_ios=300\nnorandommap\n\
                    [c]\nrw=write\nnumber_ios=200\n";
const SMALL: [&str; 3] = ["run", "--stack", "small.toml"];

fn run(folder: &Folder, more: &[&str]) -> Output {
    folder.command(&SMALL).args(more).output().unwrap()
}

fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
    out(output)
}

/// A result without what depends on the command and the machine.
fn lasting(output: &Output) -> String {
    let lasts =
        |line: &&str| !["\"wall_s\": ", "\"command\": "].iter().any(|key| line.contains(key));
    text(output).lines().filter(lasts).collect::<Vec<_>>().join("\n")
}

fn piped(folder: &Folder, args: &[&str], input: &str) -> Output {
    let mut command = folder.command(&SMALL);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// fio, where it is installed; with `NANDSCAPE_REQUIRE_FIO` it must be.
fn fio(args: &[&str]) -> Option<Output> {
    let output = Command::new("fio").args(args).output().ok();
    let required = std::env::var_os("NANDSCAPE_REQUIRE_FIO").is_some();
    assert!(output.is_some() || !required, "NANDSCAPE_REQUIRE_FIO is set, but fio is missing");
    output
}

/// The same jobs on the command line, in a file and on standard input give the same result.
#[test]
fn words_are_a_job_file() {
    let folder = Folder::new("words");
    folder.write("a.fio", FILE);
    let json = ["--output-format", "json"];
    let words = lasting(&run(&folder, &[&WORDS[..], &json].concat()));
    assert_eq!(words, lasting(&run(&folder, &[&["a.fio"], &json[..]].concat())));
    assert_eq!(words, lasting(&piped(&folder, &[&["-"], &json[..]].concat(), FILE)));
    assert!(words.contains("\"total_ios\": 300,"), "{words}");
    if let Some(parsed) = fio(&[&["--parse-only", "--size=64m"], &WORDS[..]].concat()) {
        assert!(parsed.status.success(), "{}", err(&parsed));
    }
}

/// The words of `Reproduce:`, read by a shell, give the same summary but for wall times.
#[cfg(unix)]
#[test]
fn the_words_are_reproduced() {
    let folder = Folder::new("words-again");
    let summary = text(&run(&folder, &WORDS));
    let (_, again) = summary.split_once("  Reproduce: nandscape ").unwrap();
    assert!(
        again.contains("--seed 1 --bs=4k --direct=1 '--name=a b' --rw=randread --iodepth=4"),
        "{again}"
    );
    let program = env!("CARGO_BIN_EXE_nandscape");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{program} {}", again.trim())]).current_dir(&folder.0);
    let second = text(&shell.env("XDG_CACHE_HOME", folder.0.join("cache")).output().unwrap());
    let lasting = |text: &str| text.split_once("  nandscape 0").unwrap().0.to_owned();
    assert_eq!(lasting(&summary), lasting(&second));
}

/// `--runtime` is ours before the first `--name`, and the job's after it.
#[test]
fn a_runtime_belongs_to_whom_it_follows() {
    let folder = Folder::new("words-runtime");
    let timed = ["--rw=randwrite", "--direct=1", "--time_based", "--thinktime=10ms"];
    let own =
        [&["--name=a"], &timed[..], &["--runtime=200ms", "--name=b"], &timed, &["--runtime=300ms"]]
            .concat();
    let summary = text(&run(&folder, &own));
    assert!(
        summary.contains("  a (groupid=0, jobs=1), 200 ms")
            && summary.contains("  b (groupid=0, jobs=1), 300 ms"),
        "{summary}"
    );
    let all = text(&run(&folder, &[&["--runtime", "100ms"], &own[..]].concat()));
    assert!(all.contains("), 100 ms") && !all.contains("), 200 ms"), "{all}");
    assert!(all.contains(" --runtime 0.1 "), "{all}");
}

/// Jobs of several files run one file after the other, as in fio, and sections can be chosen.
#[test]
fn files_and_sections_are_chosen() {
    let folder = Folder::new("words-files");
    folder.write("a.fio", FILE);
    let summary = text(&run(&folder, &["a.fio", "job.fio"]));
    let places: Vec<_> =
        ["  a b (groupid=0, jobs=1)", "  c (groupid=0, jobs=1)", "  w (groupid=1, jobs=1)"]
            .iter()
            .map(|job| summary.find(job).unwrap_or_else(|| panic!("{job} in:\n{summary}")))
            .collect();
    assert!(places.is_sorted());
    for line in [
        "Run status group 0 (all jobs):\n   READ: bw=",
        "Run status group 1 (all jobs):\n  WRITE: bw=",
    ] {
        assert!(summary.contains(line), "{line} in:\n{summary}");
    }
    let one = text(&run(&folder, &["a.fio", "--section", "c"]));
    assert!(one.contains("  c, ") && !one.contains("a b"), "{one}");
}

/// What is wrong on the command line is named, and nothing runs.
#[test]
fn wrong_words_are_named() {
    let folder = Folder::new("words-wrong");
    folder.write("a.fio", FILE);
    folder.write("x.f", "run 1\n");
    for (words, message) in [
        (&["--name=t", "--rw=foo"][..], "command line: rw: cannot be `foo`; expected read, "),
        (&["--name=t", "--iodept=4"], "command line: iodept: unknown key; did you mean `iodepth`?"),
        (&["--rw=read"], "command line: no job in this file; expected --name=NAME or a job file"),
        (&["--name=t", "--stak=pblk"], "unexpected argument '--stak' found"),
        (&["--name=t", "--bs=3"], "command line: bs: cannot be `3`; expected "),
        (&["a.fio", "--section", "d"], "--section: no section `d`; expected one of: a b, c"),
        (&["x.f", "--name=t"], "a job on the command line does not go with a Filebench workload"),
    ] {
        let output = run(&folder, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", err(&output));
        assert!(err(&output).contains(message), "{words:?}: {}", err(&output));
        assert!(output.stdout.is_empty());
    }
}

/// A field of a terse line without its numbers: two lines of the same form have the same meaning at each place.
fn form(field: &str) -> String {
    let (label, number) =
        field.split_once('=').map_or(("", field), |(label, number)| (label, number));
    let shape = match number {
        number if number.ends_with('%') => "%",
        number if number.contains('.') => "x.y",
        _ => "n",
    };
    format!("{label}={shape}")
}

/// A terse line has fio's fields, one by one, and what it says is what the JSON says.
#[test]
fn terse_lines_are_those_of_fio() {
    let folder = Folder::new("terse");
    let words = ["--name=t", "--rw=randrw", "--direct=1", "--number_ios=400"];
    let line = text(&run(&folder, &[&words[..], &["--output-format=terse"]].concat()));
    let ours: Vec<&str> = line.trim_end().split(';').collect();
    let json = text(&run(&folder, &[&words[..], &["--output-format=json"]].concat()));
    let json: Value = serde_json::from_str(&json).unwrap();
    let job = &json["jobs"][0];
    let of = |path: &str| job.pointer(path).and_then(Value::as_f64).unwrap();
    for (at, path) in [
        (5, "/read/io_kbytes"),
        (6, "/read/bw"),
        (8, "/read/runtime"),
        (46, "/write/io_kbytes"),
        (47, "/write/bw"),
    ] {
        assert_eq!(ours[at].parse::<f64>().unwrap(), of(path), "{path}");
    }
    let us = |at: usize| ours[at].parse::<f64>().unwrap();
    assert!((us(15) - of("/read/clat_ns/mean") / 1e3).abs() < 1e-3, "{}", ours[15]);
    assert!((us(56) - of("/write/clat_ns/mean") / 1e3).abs() < 1e-3, "{}", ours[56]);
    let path = folder.0.join("fio.data");
    let file = format!("--filename={}", path.display());
    let of_fio =
        ["--name=t", "--rw=randrw", "--ioengine=null", "--size=1m", "--output-format=terse", &file];
    let Some(output) = fio(&of_fio) else { return };
    let theirs = out(&output);
    let theirs: Vec<&str> = theirs.trim_end().split(';').collect();
    assert_eq!(ours.len(), theirs.len(), "{line}\n{}", out(&output));
    for (at, (ours, theirs)) in
        ours.iter().zip(&theirs).enumerate().filter(|(at, _)| ![1, 2].contains(at))
    {
        assert_eq!(form(ours), form(theirs), "field {at}");
    }
}

/// CSV of a run, of a comparison and of the stacks: a header, and as many cells in each line.
#[test]
fn tables_are_csv_too() {
    let folder = Folder::new("csv");
    folder.write("a.fio", FILE);
    let csv = ["--output-format", "csv"];
    let of_run = text(&run(&folder, &[&["a.fio"], &csv[..]].concat()));
    let lines: Vec<&str> = of_run.lines().collect();
    assert!(
        lines[0].starts_with("job,groupid,direction,runtime_ms,total_ios,io_bytes,"),
        "{of_run}"
    );
    assert!(lines[1].starts_with("a b,0,read,") && lines[2].starts_with("c,0,write,"), "{of_run}");
    let compare = [
        "compare",
        "small.toml",
        "pblk",
        "--device",
        "small.toml",
        "--job",
        "job.fio",
        "--metric",
        "waf.gc",
    ];
    let table = text(&folder.run(&[&compare[..], &csv].concat()));
    assert!(table.starts_with("stack,device,waf.gc,waf.gc ci95,waf.gc n\nsmall.toml,"), "{table}");
    assert!(table.lines().skip(1).all(|line| line.ends_with(",,1")), "{table}");
    let markdown = text(&folder.run(&[&compare[..], &["--output-format", "markdown"]].concat()));
    assert!(
        markdown.contains("| stack | device | waf.gc |\n| --- | --- | ---: |\n| small.toml |"),
        "{markdown}"
    );
    let stacks = text(&folder.run(&["stacks", "--output-format", "csv"]));
    let pblk = stacks.lines().find(|line| line.starts_with("pblk,")).unwrap();
    assert!(pblk.starts_with("pblk,8589934592,7593787392,2,4,pblk,,11.59"), "{pblk}");
    let zoned = stacks.lines().find(|line| line.starts_with("f2fs-zns,")).unwrap();
    assert!(zoned.contains(",11.86") && !zoned.contains(",60,"), "what a run says: {zoned}");
}

/// The cache of states is listed and cleared.
#[test]
fn the_state_cache_is_listed_and_cleared() {
    let folder = Folder::new("state-cache");
    text(&run(&folder, &["job.fio"]));
    let list =
        |format: &str| text(&folder.run(&["state", "cache", "list", "--output-format", format]));
    assert!(list("normal").contains("1 state, "), "{}", list("normal"));
    let states: Value = serde_json::from_str(&list("json")).unwrap();
    assert_eq!((&states[0]["ftl"], &states[0]["seed"]), (&"pblk".into(), &1.into()));
    let path = text(&folder.run(&["state", "cache", "path"]));
    assert!(path.trim_end().ends_with("cache/nandscape/states"), "{path}");
    assert!(text(&folder.run(&["state", "cache", "clear"])).starts_with("removed 1 state ("));
    assert!(list("normal").starts_with("0 states, "), "{}", list("normal"));
}

/// A page of the documentation is printed, a strange one is refused with those that there are.
#[test]
fn pages_are_printed() {
    let folder = Folder::new("docs");
    let pages = text(&folder.run(&["docs"]));
    let of_jobs = |line: &str| {
        line.split_once(' ')
            .is_some_and(|(name, title)| name == "job" && title.trim() == "Job files")
    };
    assert!(pages.lines().any(of_jobs), "{pages}");
    assert!(text(&folder.run(&["docs", "job"])).starts_with("# Job files\n"));
    let unknown = folder.run(&["docs", "none"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(err(&unknown).contains("unknown page \"none\"; available: "), "{}", err(&unknown));
}
