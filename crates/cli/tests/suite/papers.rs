//! Papers as users meet them: lists, checks, reproductions that go on and repeat, exit codes.

use crate::common;

use common::{Folder, err, out};
use std::process::Output;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../paper/tests/tiny");

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.0.join(name)).unwrap()
}

fn reproduce(folder: &Folder, place: &str) -> Output {
    folder.run(&["paper", TINY, "--quick", "--out", place, "--jobs", "2"])
}

/// The tiny paper in a folder `mine`.
fn copy_tiny(folder: &Folder) {
    std::fs::create_dir_all(folder.0.join("mine")).unwrap();
    for file in std::fs::read_dir(TINY).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.0.join("mine").join(file.file_name())).unwrap();
    }
}

/// Every file of a reproduction is the same the next time, and what is there is not run again.
#[test]
fn reproductions_repeat_and_go_on() {
    let folder = Folder::new("papers-repeat");
    let first = reproduce(&folder, "one");
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    let text = out(&first);
    for expected in [
        "statement",
        "published",
        "measured",
        "verdict",
        "partially",
        "inconclusive",
        "0.001 (the source's data: 0.250)",
        "caution: The small device is full too soon.",
        "5 reproductions: 0 agrees, 0 partially, 0 disagrees, 1 source contradicts itself, 4 inconclusive",
        "checks of physical sense hold in 17 runs",
        "--quick --out one\n",
        "one/index.html",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    assert!(err(&first).contains("17 of 17: "), "{}", err(&first));
    let second = reproduce(&folder, "two");
    assert_eq!(second.status.code(), Some(0));
    let files =
        ["index.html", "paper.json", "tiny-space.jsonl", "tiny-depth.jsonl", "tiny-maps.jsonl"];
    for file in files {
        assert_eq!(
            read(&folder, &format!("one/{file}")),
            read(&folder, &format!("two/{file}")),
            "{file}"
        );
    }
    let rows = read(&folder, "one/tiny-space.jsonl");
    folder.write("one/tiny-space.jsonl", &rows[..rows.len() / 2]);
    let third = reproduce(&folder, "one");
    assert_eq!(third.status.code(), Some(0));
    assert!(err(&third).contains(" of 2: ") || err(&third).contains(" of 3: "), "{}", err(&third));
    assert_eq!(read(&folder, "one/tiny-space.jsonl"), rows);
    assert_eq!(read(&folder, "one/index.html"), read(&folder, "two/index.html"));
    let json: serde_json::Value = serde_json::from_str(&read(&folder, "one/paper.json")).unwrap();
    assert_eq!(json["papers"][0]["statements"].as_array().unwrap().len(), 5);
    assert_eq!((&json["quick"], &json["full"]), (&true.into(), &false.into()));
}

/// What two experiments ask for under different names is run once, and is in the rows of both, to the
/// letter; also where only one of them has its rows from an earlier time.
#[test]
fn twins_are_run_once() {
    let folder = Folder::new("papers-twins");
    copy_tiny(&folder);
    let paper = read(&folder, "mine/paper.toml");
    folder.write(
        "mine/paper.toml",
        &(paper + "\n[[experiment]]\nid = \"again\"\nsweep = \"again.toml\"\n"),
    );
    let again =
        "stacks = \"small.toml\"\njobs = \"overwrite.fio\"\n[grid]\nftl.op_percent = [35, 40]\n";
    folder.write("mine/again.toml", again);
    let reproduce = || folder.run(&["paper", "mine", "--quick", "--out", "out", "--jobs", "2"]);
    let first = reproduce();
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    assert!(err(&first).contains("18 of 18: "), "one of 19 is a twin: {}", err(&first));
    let held = "checks of physical sense hold in 18 runs";
    assert!(out(&first).contains(held), "{}", out(&first));
    let page = read(&folder, "out/index.html");
    assert!(page.contains("1 paper, 18 simulated runs"), "a twin is no run of its own");
    assert!(page.contains("holds in 18 of 18") && !page.contains("holds in 19 of 19"));
    let result = |file: &str| {
        let rows = read(&folder, file);
        let row = rows.lines().next().unwrap().split_once(",\"result\":").unwrap();
        (row.0.contains("op_percent"), row.1.to_owned())
    };
    let (one, twin) = (result("out/mine-space.jsonl"), result("out/mine-again.jsonl"));
    assert_eq!((one.0, twin.0), (false, true));
    assert_eq!(one.1, twin.1);
    let rows = read(&folder, "out/mine-again.jsonl");
    std::fs::remove_file(folder.0.join("out/mine-again.jsonl")).unwrap();
    let second = reproduce();
    assert!(err(&second).contains("1 of 1: "), "{}", err(&second));
    assert_eq!(read(&folder, "out/mine-again.jsonl"), rows);
    let check = folder.run(&["paper", "mine", "--check"]);
    assert!(
        out(&check).contains("36 runs (22 if quick), 35 of them distinct (18)"),
        "{}",
        out(&check)
    );
}

/// A result that makes no physical sense is reported, and fails the command after the report is written.
#[test]
fn nonsense_is_exit_code_1() {
    let folder = Folder::new("papers-nonsense");
    assert_eq!(reproduce(&folder, "out").status.code(), Some(0));
    let rows = read(&folder, "out/tiny-space.jsonl");
    folder.write("out/tiny-space.jsonl", &rows.replacen("\"line_meta\":", "\"line_meta\":7", 1));
    let output = reproduce(&folder, "out");
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output);
    assert!(text.contains("makes no sense: sectors: space: small.toml, overwrite.fio, seed 1: the causes add up to"), "{text}");
    assert!(read(&folder, "out/index.html").contains("Sanity checks that failed"));
}

/// A paper is looked at without running anything; what ships can be listed.
#[test]
fn papers_are_checked_and_listed() {
    let folder = Folder::new("papers-check");
    let output = folder.run(&["paper", TINY, "--check"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(
        out(&output).ends_with(
            "5 statements, 3 experiments, 34 runs (20 if quick), 34 of them distinct (17); 4 runs under --full, 4 of them distinct\n"
        ),
        "{}",
        out(&output)
    );
    let output = folder.run(&["paper", TINY, "--check", "--seeds", "3"]);
    let runs = "66 runs (60 if quick), 54 of them distinct (51); 12 runs under --full, ";
    assert!(out(&output).contains(runs), "{}", out(&output));
    let output = folder.run(&["paper", TINY, "--list"]);
    assert!(out(&output).contains(
        "A Paper that Does Not Exist (the tests of nandscape, 2026); 4 runs under --full"
    ));
    let json = |what: &str| -> serde_json::Value {
        let output = folder.run(&["paper", TINY, what, "--output-format", "json"]);
        serde_json::from_str(&out(&output)).unwrap()
    };
    assert_eq!(json("--list")[0]["title"], "A Paper that Does Not Exist");
    let checked = &json("--check")[0];
    assert_eq!((&checked["name"], &checked["statements"]), (&TINY.into(), &5.into()));
    assert_eq!(checked["inputs"], 0);
    assert_eq!(checked["runs_if_quick"], serde_json::json!({ "all": 20, "distinct": 17 }));
    let full = serde_json::json!({ "all": 4, "distinct": 4 });
    assert_eq!((&checked["runs_if_full"], &json("--list")[0]["runs_if_full"]), (&full, &full));
}

/// Inputs are counted apart from reproductions.
#[test]
fn inputs_have_a_line_of_their_own() {
    let folder = Folder::new("papers-inputs");
    copy_tiny(&folder);
    let published = read(&folder, "mine/published.toml");
    let input = published.replacen("within", "input = \"chosen so\"\nwithin", 1);
    folder.write("mine/published.toml", &input);
    let output = folder.run(&[
        "paper",
        "mine",
        "--quick",
        "--variant",
        "base",
        "--out",
        "out",
        "--jobs",
        "2",
    ]);
    let text = out(&output);
    for expected in [
        "inconclusive (looks like agrees) (input)",
        "  4 reproductions: 0 agrees, ",
        "  1 input: 0 agrees, 0 partially, 0 disagrees, 0 source contradicts itself, 1 inconclusive\n",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    let check = folder.run(&["paper", "mine", "--check"]);
    assert!(out(&check).contains("5 statements (1 of them input), "), "{}", out(&check));
}

/// --full runs the experiments that have it, and no other; a paper without any is refused, and so is --full beside
/// --quick or variants.
#[test]
fn full_sizes_are_reproduced() {
    let folder = Folder::new("papers-full");
    let output = folder.run(&["paper", TINY, "--full", "--out", "out", "--jobs", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    for expected in
        ["experiment \"depth\" is not run under --full", "hold in 4 runs", "--full --out out\n"]
    {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    assert!(folder.0.join("out/tiny-space.jsonl").exists());
    assert!(!folder.0.join("out/tiny-depth.jsonl").exists());
    let json: serde_json::Value = serde_json::from_str(&read(&folder, "out/paper.json")).unwrap();
    assert_eq!((&json["quick"], &json["full"]), (&false.into(), &true.into()));
    assert!(json["command"].as_str().unwrap().ends_with("tiny --full"));

    copy_tiny(&folder);
    let paper = read(&folder, "mine/paper.toml");
    let lines = paper.lines().filter(|line| !line.starts_with("full = "));
    folder.write("mine/paper.toml", &lines.collect::<Vec<_>>().join("\n"));
    let cases: [(&[&str], &str); 3] = [
        (&["mine"], "mine/paper.toml:8:1: experiment: none has `full`, so --full has nothing"),
        (&[TINY, "--quick"], "cannot be used with"),
        (&[TINY, "--variant", "base"], "cannot be used with"),
    ];
    for (args, message) in cases {
        let output = folder.run(&[&["paper", "--full", "--out", "none"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(message), "{args:?}: {}", err(&output));
        assert!(!folder.0.join("none").exists());
    }
    let check = folder.run(&["paper", "mine", "--check"]);
    assert!(out(&check).ends_with("34 of them distinct (17)\n"), "{}", out(&check));
}

/// Wrong input is exit code 2 with its place, before anything runs.
#[test]
fn wrong_papers_are_exit_code_2() {
    let folder = Folder::new("papers-wrong");
    std::fs::create_dir_all(folder.0.join("mine")).unwrap();
    folder.write("mine/paper.toml", "[[experiment]]\nid = \"a\"\nsweep = \"a.toml\"\n");
    folder.write("mine/a.toml", "stacks = \"pblk\"\njob = \"a.fio\"\n");
    let cases: [(&[&str], &str); 3] = [
        (&["mine"], "mine/a.toml:1:1: jobs: is missing"),
        (&["unknown"], "unknown paper \"unknown\"; available: "),
        (&[TINY, TINY], "two papers are called \"tiny\""),
    ];
    for (args, message) in cases {
        let output = folder.run(&[&["paper", "--out", "out"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(message), "{args:?}: {}", err(&output));
        assert!(!folder.0.join("out").exists());
    }
}
