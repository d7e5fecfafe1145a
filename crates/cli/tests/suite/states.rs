//! Device states as users meet them: saved, shown, run on, and kept from run to run.

use crate::common;

use common::{Folder, err, out};
use std::path::PathBuf;

/// The result of a run, without what may differ between two of the same.
fn result(folder: &Folder, more: &[&str]) -> serde_json::Value {
    let args = ["run", "job.fio", "--stack", "small.toml", "--output-format", "json"];
    let output = folder.command(&args).args(more).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{more:?}: {}", err(&output));
    let mut json: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    json["nandscape"]["wall_s"] = 0.into();
    json["nandscape"]["command"] = "".into();
    json["nandscape"]["precondition"]["wall_s"] = 0.into();
    json
}

fn entries(folder: &Folder, name: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.0.join(name)).into_iter().flatten();
    files.map(|file| file.unwrap().path()).collect()
}

/// A run, a run from the cache, one without it and one on a saved state agree; the state tells what it
/// is of.
#[test]
fn a_state_is_saved_shown_and_run_on() {
    let folder = Folder::new("state-save");
    let plain = result(&folder, &["--no-state-cache"]);
    assert!(entries(&folder, "cache/nandscape/states").is_empty());
    assert_eq!(result(&folder, &[]), plain);
    assert_eq!(entries(&folder, "cache/nandscape/states").len(), 1, "no lock and no part stays");
    assert_eq!(result(&folder, &[]), plain);

    let save = ["state", "save", "--stack", "small.toml", "--output", "small.state"];
    let saved = folder.run(&save);
    assert_eq!(saved.status.code(), Some(0), "{}", err(&saved));
    let name = plain["nandscape"]["precondition"]["state"].as_str().unwrap();
    assert!(out(&saved).contains(&format!("state {name}")), "{}", out(&saved));
    assert_eq!(result(&folder, &["--state", "small.state"]), plain);
    let text = out(&folder.run(&["state", "show", "small.state"]));
    for expected in
        [name, "2 channels x 4 PUs x 48 chunks of 512.0 KiB", "ftl.op_percent = 35", "48 chunks"]
    {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
}

/// What is wrong with a state is exit code 2, with file and byte, and nothing is left behind.
#[test]
fn wrong_states_are_bad_input() {
    let folder = Folder::new("state-wrong");
    let save = ["state", "save", "--stack", "small.toml", "--output", "small.state"];
    assert_eq!(folder.run(&save).status.code(), Some(0));
    let mut bytes = std::fs::read(folder.0.join("small.state")).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    std::fs::write(folder.0.join("bad.state"), bytes).unwrap();
    folder.write("notes.state", "my notes");
    let run = ["run", "job.fio", "--stack", "small.toml", "--state"];
    let run = |more: &[&'static str]| [&run[..], more].concat();
    let fresh = "precondition.recipe=none";
    let cases = [
        (run(&["bad.state"]), "bad.state: byte "),
        (run(&["notes.state"]), "notes.state: byte 0: this is not a device state"),
        (run(&["none.state"]), "none.state: "),
        (
            run(&["small.state", "--set", "media.chunks=64"]),
            "small.state: incompatible with stack small: media.chunks is 48 in the state, 64 in",
        ),
        (vec!["state", "show", "bad.state"], "bad.state: byte "),
        ([&save[..], &["--set", fresh]].concat(), "precondition: configures no preconditioning"),
        (run(&["small.state", "--state-dir", "job.fio"]), "job.fio"),
        (run(&["small.state", "--until-steady=rounds=1"]), "expected 5 to 10000 rounds"),
    ];
    for (args, expected) in cases {
        let output = folder.run(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
        assert!(err(&output).contains(expected), "{args:?}: {}", err(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// A file that is there and yet could not be replaced is refused before anything runs.
#[test]
fn what_cannot_be_replaced_is_refused_first() {
    let folder = Folder::new("state-long");
    // The name of what would be written beside it is too long.
    let long = "x".repeat(250);
    folder.write(&long, "old");
    let save = ["state", "save", "--output", &long];
    let run = ["run", "job.fio", "--save-state", &long];
    for command in [&save[..], &run[..]] {
        let output = folder.run(&[command, &["--stack", "small.toml"]].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", err(&output));
        assert!(err(&output).contains(&format!("cannot write {long}")), "{}", err(&output));
        assert!(output.stdout.is_empty(), "{command:?}");
    }
    assert_eq!(std::fs::read_to_string(folder.0.join(&long)).unwrap(), "old");
}

/// A damaged entry of the cache is a notice, not an error, and is made again.
#[test]
fn a_damaged_entry_is_a_notice() {
    let folder = Folder::new("state-damaged");
    let plain = result(&folder, &["--state-dir", "states"]);
    let entry = entries(&folder, "states").pop().unwrap();
    let bytes = std::fs::read(&entry).unwrap();
    std::fs::write(&entry, &bytes[..bytes.len() / 2]).unwrap();
    let args = ["run", "job.fio", "--stack", "small.toml", "--state-dir", "states"];
    let output = folder.run(&args);
    assert_eq!(output.status.code(), Some(0));
    let message = err(&output);
    assert_eq!(message.matches("preconditioning again").count(), 1, "{message}");
    assert_eq!(result(&folder, &["--state-dir", "states"]), plain);
    assert_eq!(std::fs::read(&entry).unwrap(), bytes);
    // Nothing is made again where it cannot be.
    std::fs::write(&entry, &bytes[..bytes.len() / 2]).unwrap();
    let capped = folder.command(&args).args(["--set", "media.memory_cap=64k"]).output().unwrap();
    assert_eq!(capped.status.code(), Some(1));
    let message = err(&capped);
    assert!(message.contains("media.memory_cap") && !message.contains("made again"), "{message}");
}

/// Two workers that need the same state: one makes it, the other waits; rows are those of a sweep
/// without a cache.
#[test]
fn parallel_runs_share_a_state() {
    let folder = Folder::new("state-shared");
    let jobs: String = (0..6)
        .map(|n| format!("j{n} = \"[j]\\nrw=randwrite\\ndirect=1\\nnumber_ios={}\\n\"\n", 100 + n))
        .collect();
    folder.write(
        "grid.toml",
        &format!("stacks = \"small.toml\"\nuntil_steady = false\n[jobs]\n{jobs}"),
    );
    let sweep = |more: &[&str]| {
        let output =
            folder.command(&["sweep", "grid.toml", "--jobs", "4"]).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    };
    sweep(&["--output", "shared.jsonl", "--state-dir", "states"]);
    sweep(&["--output", "alone.jsonl", "--no-state-cache"]);
    assert_eq!(entries(&folder, "states").len(), 1);
    let rows = |name: &str| std::fs::read_to_string(folder.0.join(name)).unwrap();
    assert_eq!(rows("shared.jsonl"), rows("alone.jsonl"));
}

/// A run until steady state says so, and how to do it again.
#[test]
fn until_steady_is_summed_up() {
    let folder = Folder::new("until-steady");
    let run = |more: &str| {
        let output = folder.run(&["run", "job.fio", "--stack", "small.toml", more]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    assert!(run("--until-steady").contains("--until-steady --seed 1"));
    let text = run("--until-steady=round=20%,rounds=30");
    assert!(text.contains("--until-steady=round=20%,rounds=30 --seed 1"), "{text}");
    assert!(text.contains("the last 5 of "), "{text}");
    let compare = ["compare", "small.toml", "--job", "job.fio", "--until-steady", "--jobs", "1"];
    let output = folder.run(&compare);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("--until-steady"), "{}", out(&output));
}
