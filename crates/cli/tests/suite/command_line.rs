//! The binary as users meet it: exit codes, what goes where, and that errors name their place.

use crate::common;

use common::{Folder, err, out};
use std::io::Write;
use std::process::Stdio;

/// A run succeeds, says what it found, and how to do it again.
#[test]
fn a_run_is_summed_up() {
    let folder = Folder::new("summary");
    let args = ["run", "job.fio", "--stack", "small.toml", "--set", "ftl.gc.victim=greedy"];
    let output = folder.run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    for expected in [
        "job.fio on small + ftl.gc.victim=greedy, seed 1",
        "WAF ",
        "steady",
        "p99",
        "Device flush, mean ",
        "Reproduce: ",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    let again =
        "Reproduce: nandscape run job.fio --stack small.toml --set ftl.gc.victim=greedy --seed 1";
    assert!(text.contains(again), "{text}");
    assert!(err(&output).is_empty(), "no progress bar where there is no terminal");
}

/// A job runs as long as the command line says, whatever its file says.
#[test]
fn a_runtime_is_given() {
    let folder = Folder::new("runtime");
    folder.write(
        "long.fio",
        "[w]\nrw=randwrite\ndirect=1\ntime_based\nruntime=1000\nthinktime=100ms\n",
    );
    let args = ["run", "long.fio", "--stack", "small.toml", "--runtime", "2"];
    let text = out(&folder.run(&args));
    assert!(text.contains("  w, 2.00 s, direct\n"), "{text}");
    let again = "Reproduce: nandscape run long.fio --stack small.toml --runtime 2 --seed 1\n";
    assert!(text.ends_with(again), "{text}");
    for wrong in [&["--runtime", "0"][..], &["--runtime", "2", "--until-steady"]] {
        let output = folder.command(&args[..4]).args(wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    folder.write("open.fio", "[w]\nrw=randwrite\ndirect=1\ntime_based\nthinktime=100ms\n");
    let open = ["run", "open.fio", "--stack", "small.toml"];
    let lacks = folder.run(&open);
    assert_eq!(lacks.status.code(), Some(2));
    assert!(err(&lacks).contains("open.fio:4:1: time_based: needs a runtime"), "{}", err(&lacks));
    for (given, shown) in [("500ms", "500 ms"), ("0.5", "500 ms"), ("1s", "1.00 s")] {
        let text = out(&folder.command(&open).args(["--runtime", given]).output().unwrap());
        assert!(text.contains(&format!("  w, {shown}, direct\n")), "{given}: {text}");
    }
    for wrong in ["soon", "5 parsecs", "-1s", "367d", ""] {
        let runtime = format!("--runtime={wrong}");
        let output = folder.command(&open).arg(&runtime).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(err(&output).contains("expected a time above zero"), "{}", err(&output));
    }
}

/// Comparisons and sweeps take a runtime, too: their rows are others, and what makes them again says so.
#[test]
fn a_runtime_is_given_to_many_runs() {
    let folder = Folder::new("runtimes");
    folder.write("open.fio", "[w]\nrw=randwrite\ndirect=1\ntime_based\nthinktime=10ms\n");
    folder.write("grid.toml", "stacks = \"small.toml\"\njobs = \"open.fio\"\nruntime = \"1s\"\n");
    folder.write("lacks.toml", "stacks = \"small.toml\"\njobs = \"open.fio\"\n");
    folder.write("wrong.toml", "jobs = \"open.fio\"\nruntime = -3\n");
    folder.write("both.toml", "jobs = \"open.fio\"\nruntime = 3\nuntil_steady = true\n");
    let ios = |args: &[&str], expected: u64, again: &str| {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(
            out(&output).ends_with(&format!("Reproduce: nandscape {again}\n")),
            "{}",
            out(&output)
        );
        let rows = std::fs::read_to_string(folder.0.join("rows.jsonl")).unwrap();
        let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
        assert_eq!(row["result"]["jobs"][0]["write"]["total_ios"], expected, "{args:?}");
    };
    let compare = ["compare", "small.toml", "--job", "open.fio", "--output", "rows.jsonl"];
    let again = "compare small.toml --job open.fio --seeds 1 --runtime 0.2";
    ios(&[&compare[..], &["--runtime", "200ms"]].concat(), 20, again);
    let sweep = ["sweep", "grid.toml", "--output", "rows.jsonl"];
    ios(&sweep, 100, "sweep grid.toml --output rows.jsonl");
    let given = [&sweep[..], &["--runtime", "0.5s"]].concat();
    ios(&given, 50, "sweep grid.toml --runtime 0.5 --output rows.jsonl");
    let cases: [(&[&str], &str); 5] = [
        (&["sweep", "lacks.toml"], "open.fio:4:1: time_based: needs a runtime"),
        (&["sweep", "wrong.toml"], "wrong.toml:2:11: runtime: expected a time above zero"),
        (&["sweep", "both.toml"], "both.toml:2:11: runtime: does not go with until_steady"),
        (&["sweep", "grid.toml", "--runtime", "x"], "--runtime"),
        (&["compare", "pblk", "--runtime", "5", "--until-steady"], "cannot be used with"),
    ];
    for (args, expected) in cases {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(expected), "{args:?}: {}", err(&output));
    }
}

/// What a replay leaves is kept under a name of the trace's content and of how it was replayed.
#[test]
fn what_a_replay_leaves_is_kept() {
    let folder = Folder::new("trace-left");
    folder.write("t.trace", "1000 0 0 8 0\n2000 0 8 8 0\n900000000 0 16 8 0\n");
    folder.write("same.trace", "1000 0 0 8 0\n2000 0 8 8 0\n900000000 0 16 8 0\n");
    folder.write("other.trace", "1000 0 0 8 0\n2000 0 8 8 0\n900000000 0 24 8 0\n");
    let left = |trace: &str, more: &[&str]| {
        let args = ["trace", "run", trace, "--stack", "small.toml", "--save-state", "left.state"];
        let output = folder.command(&args).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let shown = out(&folder.run(&["state", "show", "left.state"]));
        assert!(shown.contains(", left by a run\n"), "{shown}");
        shown
    };
    let whole = left("t.trace", &[]);
    assert_eq!(whole, left("same.trace", &[]));
    assert_ne!(whole, left("other.trace", &[]));
    let short = left("t.trace", &["--runtime", "500ms"]);
    assert_ne!(whole, short);
    let on = ["run", "job.fio", "--stack", "small.toml", "--state", "left.state"];
    let text = out(&folder.run(&on));
    assert!(text.contains("  Preconditioning:  121.5 MiB, left by a run\n"), "{text}");
}

/// Results go to standard output where their file is called -; nothing else does.
#[test]
fn standard_output_takes_results_alone() {
    let folder = Folder::new("stdout");
    folder.write("t.trace", "1000 0 0 8 0\n2000 0 8 8 0\n");
    let run: &[&str] = &["run", "job.fio", "--stack", "small.toml"];
    for args in [run, &["trace", "info", "t.trace"], &["trace", "run", "t.trace", run[2], run[3]]] {
        let output = folder.command(args).args(["--output", "-"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let first = args.iter().find(|arg| arg.contains('.')).unwrap();
        assert!(out(&output).starts_with(*first), "{}", out(&output));
    }
    for (args, flag) in
        [(run, "--save-state"), (run, "--report"), (&["compare", "pblk"], "--output")]
    {
        let output = folder.command(args).args([flag, "-"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag}");
        let expected = "cannot write -: standard output takes results alone";
        assert!(err(&output).contains(expected), "{}", err(&output));
    }
    assert!(!folder.0.join("-").exists());
}

/// JSON goes where the option says, and is the same twice but for wall time.
#[test]
fn json_goes_to_a_file() {
    let folder = Folder::new("json");
    let result = |name: &str| {
        let args = ["run", "job.fio", "--stack", "small.toml", "--output-format", "json"];
        let output = folder.command(&args).args(["--output", name]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(output.stdout.is_empty());
        let text = std::fs::read_to_string(folder.0.join(name)).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(json["nandscape"]["wall_s"].is_number());
        json["nandscape"]["wall_s"] = 0.into();
        json["nandscape"]["precondition"]["wall_s"] = 0.into();
        json
    };
    let once = result("a.json");
    assert_eq!(once, result("b.json"));
    assert_eq!(once["jobs"][0]["write"]["total_ios"], 2000);
    assert_eq!(once["nandscape"]["stack"], "small");
}

/// Four requests in MQSim's form, one of them far beyond the small device, and a line that is none.
const TRACE: &str = "1000 0 0 8 0\n2000 0 8 16 0\n3000 0 4 8 1\nnonsense\n9000 0 99999992 8 0\n";

/// A trace is described, for people and as JSON, and malformed lines are errors unless let pass.
#[test]
fn a_trace_is_described() {
    let folder = Folder::new("trace-info");
    folder.write("t.trace", TRACE);
    let output = folder.run(&["trace", "info", "t.trace"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("t.trace:4: "), "{}", err(&output));
    let args = ["trace", "info", "t.trace", "--skip-bad-lines", "1"];
    let text = out(&folder.run(&args));
    for expected in ["disksim, 4 requests", "footprint      16.00 KiB", "1 malformed line skipped"]
    {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    let output = folder.command(&args).args(["--output-format", "json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(json["write"]["requests"], 3);
    assert_eq!(json["write"]["sequential"], 1);
    assert_eq!(json["footprint_bytes"]["read"], 8192);
    assert_eq!(json["unaligned"], 1);
}

/// A trace is read from standard input, too, and errors call it by that name.
#[test]
fn a_trace_comes_from_standard_input() {
    let folder = Folder::new("trace-stdin");
    let result = |args: &[&str]| {
        let mut command = folder.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(TRACE.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let bad = result(&["trace", "info", "-"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(err(&bad).contains("standard input:4: "), "{}", err(&bad));
    let text = out(&result(&["trace", "info", "-", "--skip-bad-lines", "1"]));
    assert!(text.starts_with("standard input: disksim, 4 requests"), "{text}");
    let run = ["trace", "run", "-", "--stack", "small.toml", "--skip-bad-lines", "1"];
    let far = result(&run);
    assert_eq!(far.status.code(), Some(2));
    assert!(err(&far).contains("standard input:5: the request ends in sector"), "{}", err(&far));
    let text = out(&result(&[&run[..], &["--fold"]].concat()));
    for expected in ["standard input on small, seed 1", "4 requests in the trace; 1 unaligned"] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
}

/// A trace is replayed like a job: summary, JSON, the command that does it again, and exit codes.
#[test]
fn a_trace_is_replayed() {
    let folder = Folder::new("trace-run");
    folder.write("t.trace", TRACE);
    let args = ["trace", "run", "t.trace", "--stack", "small.toml", "--skip-bad-lines", "1"];
    let output = folder.run(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("t.trace:5: the request ends in sector"), "{}", err(&output));
    let run = |more: &[&str]| {
        let output = folder.command(&args).arg("--fold").args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    let text = run(&["--as-fast-as-possible", "--iodepth", "2"]);
    let again = "Reproduce: nandscape trace run t.trace --stack small.toml --skip-bad-lines 1 \
                 --as-fast-as-possible --fold --iodepth 2 --seed 1";
    for expected in
        ["4 requests in the trace; 1 unaligned", "1 out-of-range request wrapped", again]
    {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&run(&["--scale", "2", "--output-format", "json"])).unwrap();
    assert_eq!(json["jobs"][0]["write"]["total_ios"], 3);
    assert_eq!(json["nandscape"]["trace"]["malformed_lines"], 1);
    let both = ["--scale", "2", "--as-fast-as-possible"];
    assert_eq!(folder.command(&args).args(both).output().unwrap().status.code(), Some(2));
}

/// Wrong input is exit code 2, with the place of what is wrong.
#[test]
fn wrong_input_names_its_place() {
    let folder = Folder::new("wrong");
    folder.write("bad.fio", "[w]\nrw=randwrite\ndirect=1\nblocksize_of_nothing=4k\n");
    folder.write("bad.toml", "extends = \"small.toml\"\n[ftl]\nvictim = \"greedy\"\n");
    folder.write("large.fio", "[w]\nrw=write\ndirect=1\nsize=1t\n");
    folder.write("tight.toml", "extends = \"small.toml\"\n[ftl]\nop_percent = 3\n");
    let small = ["--stack", "small.toml"];
    std::fs::write(folder.0.join("bytes.toml"), [0xff, 0xfe]).unwrap();
    folder.write("oops.json", "oops");
    folder.write("iolog.fio", "[w]\nrw=write\ndirect=1\nwrite_iolog=none/x\n");
    let cases: [(&[&str], &str); 29] = [
        (&["trace", "info", "x", "--skip-bad-lines", "-1"], ": expected a whole number from 0 to "),
        (
            &["run", "job.fio", small[0], small[1], "--state-dir", "bad.fio"],
            "cannot make bad.fio: ",
        ),
        (&["paper", "--quick", "--out", "bad.fio"], "cannot make bad.fio: "),
        (
            &["mkfs", "--fs", "ext4", "x", "--size", "-5"],
            "'-5' for '--size <SIZE>': expected a size",
        ),
        (
            &["mkfs", "--fs", "ext4", "x", "--size", "-5MiB"],
            "'-5MiB' for '--size <SIZE>': expected",
        ),
        (&["run", "--runtime", "-1s"], "'-1s' for '--runtime <TIME>': expected a time above zero"),
        (
            &["crash", "--seeds", "-3"],
            "'-3' for '--seeds <SEEDS>': expected a whole number from 1 to ",
        ),
        (&["run", "job.fio", small[0], small[1], "--log-dir", "bad.fio"], "cannot make bad.fio: "),
        (&["run", "iolog.fio", "--stack", "small.toml"], "cannot write none/x: "),
        (
            &["run", "--seed", "-1"],
            "'-1' for '--seed <SEED>': expected a whole number from 0 to 1844",
        ),
        (&["run", "--runtime", "-1"], "'-1' for '--runtime <TIME>': expected a time above zero"),
        (&["trace", "run", "x", "--scale", "-1"], "expected a number above 0"),
        (&["mkfs", "--fs", "ext4", "x", "--time", "-99999999999"], "'-99999999999' for '--time"),
        (&["man", "--output", "job.fio"], "cannot make job.fio: "),
        (&["report", "oops.json"], "oops.json:1:1: not JSON: expected value\n"),
        (&["paper", "--check", "."], "./paper.toml: cannot be read: "),
        (&["run", "job.fio", "--set", "media.chunks=-1"], "--set media.chunks: expected a whole"),
        (&["run", "job.fio", "--set", "media={chunks=-1}"], "--set media: media.chunks: expected"),
        (&["stacks", "show", "nope"], "stack: unknown stack \"nope\", "),
        (&["run", "--stack", "bytes.toml"], "stack: cannot read bytes.toml: "),
        (&["sweep", "none.toml"], "nandscape: none.toml: No such file"),
        (&["run", "bad.fio"], "bad.fio:4"),
        (&["run", "none.fio"], "none.fio"),
        (&["run", "job.fio", "--stack", "bad.toml"], "bad.toml:3:1: ftl.victim: unknown key"),
        (&["run", "job.fio", "--stack", "pblkk"], "did you mean \"pblk\"?"),
        (&["run", "job.fio", "--set", "ftl.gc.victim=gredy"], "--set ftl.gc.victim: "),
        (&["run", "large.fio", small[0], small[1]], "large.fio:1"),
        (&["run", "job.fio", "--stack", "tight.toml"], "tight.toml:3:14: ftl.op_percent: "),
        (&["run", "--no-such-flag"], "--no-such-flag"),
    ];
    for (args, expected) in cases {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
        assert!(err(&output).contains(expected), "{args:?}: {}", err(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// A run that cannot go on is exit code 1, and says what would help.
#[test]
fn a_memory_cap_ends_a_run() {
    let folder = Folder::new("cap");
    let args = ["run", "job.fio", "--stack", "small.toml", "--set", "media.memory_cap=64k"];
    let output = folder.run(&args);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("media.memory_cap"), "{}", err(&output));
}

/// A stack that is shown is a stack file.
#[test]
fn shown_stacks_can_be_used() {
    let folder = Folder::new("stacks");
    let list = out(&folder.run(&["stacks"]));
    for name in ["pblk ", "pblk-4.13", "pblk-5.11", "bench-8g"] {
        assert!(list.contains(name), "{list}");
    }
    folder.write("copy.toml", &out(&folder.run(&["stacks", "show", "pblk-4.13"])));
    let resolved = ["stacks", "show", "copy.toml", "--resolved"];
    let original = ["stacks", "show", "pblk-4.13", "--resolved"];
    assert_eq!(out(&folder.run(&resolved)), out(&folder.run(&original)));
    assert_eq!(folder.run(&["stacks", "show", "nothing"]).status.code(), Some(2));
}

/// A reader that goes away early is no error, and nothing panics.
#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new("pipe");
    let args = ["run", "job.fio", "--stack", "small.toml"];
    let mut child =
        folder.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(err(&output).is_empty(), "{}", err(&output));
}

/// A campaign over a sound FTL holds, whatever the number of threads; over a broken one it does not.
#[test]
fn campaigns_tell_sound_from_broken() {
    let folder = Folder::new("crash");
    let sound = folder.run(&["crash", "--stack", "pblk", "--seeds", "6"]);
    assert_eq!(sound.status.code(), Some(0), "{}{}", out(&sound), err(&sound));
    let threads = folder.run(&["crash", "--stack", "pblk", "--seeds", "6", "--jobs", "3"]);
    let counts = |text: String| text.split("\n\n").next().unwrap().to_owned();
    assert_eq!(counts(out(&sound)), counts(out(&threads)));
    assert!(out(&sound).starts_with("6 seeds, "), "{}", out(&sound));
    let one = folder.run(&["crash", "--stack", "pblk", "--seeds", "1"]);
    assert!(out(&one).starts_with("1 seed, "), "{}", out(&one));
    // The last step of a pump was once that a copy asked for a mapping, which then was not loaded.
    let asks = folder.run(&["crash", "--stack", "combined", "--first", "146", "--seeds", "1"]);
    assert_eq!(asks.status.code(), Some(0), "{}{}", out(&asks), err(&asks));
    let broken = folder.run(&["crash", "--seeds", "200", "--omit", "lost-trims"]);
    assert_eq!(broken.status.code(), Some(1), "{}{}", out(&broken), err(&broken));
    assert!(out(&broken).contains("seed "), "{}", out(&broken));
    let kernel = ["crash", "--stack", "pblk", "--set", "ftl.discard=kernel"];
    assert_eq!(folder.run(&kernel).status.code(), Some(2));
    for on in [&["--stack", "ssd"][..], &["--fs", "f2fs", "--stack", "f2fs-ssd"]] {
        let lossy = ["--set", "ftl.buffer.flush=nvmevirt"];
        let refused = folder.run(&[&["crash"], on, &lossy].concat());
        assert_eq!(refused.status.code(), Some(2), "{on:?}");
        let why = "ftl.buffer.flush: loses what was flushed by design; campaigns need \"program\"";
        assert!(err(&refused).contains(why), "{}", err(&refused));
    }
}
