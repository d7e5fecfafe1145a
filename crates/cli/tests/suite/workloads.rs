//! Filebench workloads as users meet them: what is printed where, exit codes, and variables.

use crate::common;

use common::{Folder, err, out};

/// A stack with a file system, small enough that runs take no time.
const FILES: &str = "name = \"files\"\nextends = \"ext4-js-pblk\"\n[host]\nmemory = \"16MiB\"\n\
                     [media]\nchunks = 48\nsectors = 128\n[ftl]\nop_percent = 35\n";
const MAIL: &str = "set $n=20\nset $seconds=1\n\
    define fileset name=mail,path=/var,entries=$n,dirwidth=100,size=4k,prealloc=50\n\
    define process name=p { thread name=t {\n\
    flowop createfile name=new,filesetname=mail,fd=1\n\
    flowop appendfile name=app,iosize=4k,fd=1\nflowop fsync name=sync,fd=1\n\
    flowop closefile name=close,fd=1\nflowop deletefile name=del,filesetname=mail\n\
    flowop delay name=rest,value=1 } }\necho \"mail for $n\"\nrun $seconds\n";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("files.toml", FILES);
    folder.write("mail.f", MAIL);
    folder
}

/// A run ends in Filebench's table and summary, and says how to do it again.
#[test]
fn a_workload_is_summed_up() {
    let folder = folder("wml-summary");
    let args = ["run", "mail.f", "--stack", "files.toml", "--set", "$seconds=3"];
    let output = folder.run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(err(&output).is_empty(), "{}", err(&output));
    let text = out(&output);
    for expected in [
        "mail.f on files, seed 1",
        "mail for 20",
        "mail: 20 files",
        "Per-Operation Breakdown\nrest ",
        "sync                 3ops        1ops/s   0.0mb/s",
        "IO Summary:    15 ops 5.000 ops/s 0/1 rd/wr   0.0mb/s",
        "Reproduce: nandscape run mail.f --stack files.toml --set '$seconds=3' --seed 1",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
}

/// A workload runs as long as the command line says, whatever its file says.
#[test]
fn a_runtime_is_given() {
    let folder = folder("wml-runtime");
    let args = ["run", "mail.f", "--stack", "files.toml", "--set", "$seconds=60", "--runtime", "3"];
    let text = out(&folder.run(&args));
    assert!(text.contains("sync                 3ops        1ops/s"), "{text}");
    assert!(text.contains(" --set '$seconds=60' --runtime 3 --seed 1"), "{text}");
    let half = out(&folder.command(&args[..6]).args(["--runtime", "500ms"]).output().unwrap());
    assert!(half.contains(": simulated 0.50 s in "), "{half}");
}

/// The JSON holds every flowop.
#[test]
fn a_workload_has_json() {
    let folder = folder("wml-json");
    let args = ["run", "mail.f", "--stack", "files.toml", "--output-format", "json"];
    let json: serde_json::Value = serde_json::from_str(&out(&folder.run(&args))).unwrap();
    let flowops = json["nandscape"]["wml"]["flowops"].as_array().unwrap();
    let names: Vec<_> = flowops.iter().map(|flowop| flowop["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rest", "del", "close", "sync", "app", "new"]);
    assert_eq!(flowops[3]["latency_ns"]["min"], flowops[3]["latency_ns"]["max"], "one fsync");
}

/// Wrong input is exit code 2, with its place; a workload that ends early is exit code 1, with what it
/// counted.
#[test]
fn exit_codes() {
    let folder = folder("wml-exits");
    let run = |args: &[&str]| {
        let output = folder.command(&["run"]).args(args).output().unwrap();
        (output.status.code(), out(&output), err(&output))
    };
    folder.write("wrong.f", "set $a=1\n\tdefin file name=a\n");
    let (code, _, message) = run(&["wrong.f", "--stack", "files.toml"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains(
            "wrong.f:2:2: no command is called \"defin\"; did you mean \"define\"?\n  | \tdefin"
        ),
        "{message}"
    );
    let (code, _, message) = run(&["mail.f"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("needs a file system, and the stack pblk has none; these have: ext4-"),
        "{message}"
    );
    let (code, _, message) = run(&["mail.f", "--stack", "files.toml", "--set", "$m=1"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("no variable of the file is called \"m\"; known: n, seconds"),
        "{message}"
    );
    let (code, _, message) = run(&["mail.f", "--stack", "files.toml", "--until-steady"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("--until-steady does not go with a Filebench workload"), "{message}");
    folder.write(
        "early.f",
        &MAIL
            .replace(
                "flowop createfile",
                "flowop deletefile name=d,filesetname=mail,iters=9\nflowop createfile",
            )
            .replace("entries=$n", "entries=4"),
    );
    let (code, shown, message) = run(&["early.f", "--stack", "files.toml"]);
    assert_eq!(code, Some(1), "{message}");
    assert!(shown.contains("FAILED flowop d: nothing of fileset mail exists"), "{shown}");
    assert!(message.contains("the workload ended early: flowop d"), "{message}");
}
