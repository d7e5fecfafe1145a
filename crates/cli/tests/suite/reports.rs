//! Reports as users meet them: beside a run, and from results that were kept.

use crate::common;

use common::{Folder, err, out};
use std::process::Output;

/// A page stays below this size.
const BYTES_MAX: usize = 3_000_000;

fn page(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.0.join(name)).unwrap()
}

fn succeeds(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
}

/// A run, a comparison and a sweep end in a page each, and say the same on standard output as without.
#[test]
fn commands_end_in_a_page() {
    let folder = Folder::new("reports-commands");
    folder.write(
        "trace.log",
        "fio version 2 iolog\nd add\nd open\nd write 0 4096\nd write 4096 4096\nd close\n",
    );
    folder.write("grid.toml", "stacks = \"small.toml\"\njobs = \"job.fio\"\nseeds = 2\n[grid]\nftl.op_percent = [35, 45]\n");
    let commands: [&[&str]; 4] = [
        &["run", "job.fio", "--stack", "small.toml"],
        &["trace", "run", "trace.log", "--stack", "small.toml"],
        &[
            "compare",
            "small.toml",
            "pblk",
            "--job",
            "job.fio",
            "--set",
            "media.chunks=48",
            "--set",
            "media.sectors=128",
            "--set",
            "ftl.op_percent=35",
        ],
        &["sweep", "grid.toml"],
    ];
    for command in commands {
        let output = folder.run(&[command, &["--report", "page.html"]].concat());
        succeeds(&output);
        assert!(out(&output).contains("Reproduce: nandscape"), "{}", out(&output));
        let page = page(&folder, "page.html");
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(page.len() < BYTES_MAX && page.contains("<figure"), "{command:?}: {}", page.len());
        assert!(page.contains(&format!("<code>nandscape {}", command[0])), "{command:?}");
    }
}

/// A result that was kept gives the plots of the run, on the page and as files; two are compared.
#[test]
fn kept_results_become_reports() {
    let folder = Folder::new("reports-kept");
    for seed in ["1", "2"] {
        let result = format!("{seed}.json");
        let run =
            ["run", "job.fio", "--stack", "small.toml", "--seed", seed, "--output-format", "json"];
        succeeds(&folder.run(&[run.as_slice(), &["--output", &result]].concat()));
    }
    succeeds(&folder.run(&["report", "1.json", "--specs", "plots"]));
    let one = page(&folder, "report.html");
    assert!(one.contains("nandscape run job.fio --stack small.toml --seed 1"));
    let plots: Vec<_> = std::fs::read_dir(folder.0.join("plots")).unwrap().collect();
    assert!(plots.len() >= 8 && plots.len() == one.matches("<figure").count(), "{}", plots.len());
    succeeds(&folder.run(&[
        "report",
        "1.json",
        "2.json",
        "--metric",
        "erases",
        "--metric",
        "sectors.gc/sectors.user",
        "--output",
        "both.html",
    ]));
    let both = page(&folder, "both.html");
    assert!(both.contains("<th scope=\"col\">sectors.gc / sectors.user</th>"));
    assert!(
        both.contains("<th scope=\"col\">erases</th>")
            && both.contains("Single configuration, 2 seeds")
    );
}

/// What is no result is said with its place, and nothing is written.
#[test]
fn wrong_input_is_named() {
    let folder = Folder::new("reports-wrong");
    folder.write("bad.json", "{\n  \"jobs\": 5\n}\n");
    folder.write("rows.jsonl", "{\"result\":{\"nandscape\":{}}}\n{\"result\n");
    folder.write("good.json", "{\"nandscape\":{}}\n");
    let cases: [(&[&str], &str); 6] = [
        (&["bad.json"], "bad.json:1: neither a result"),
        (&["rows.jsonl"], "rows.jsonl:2:"),
        (&["gone.json"], "gone.json"),
        (&["good.json", "--metric", "waf.gv"], "--metric: \"waf.gv\" is nowhere in the results"),
        (&["good.json", "--metric", "a / b / c"], "--metric: \"a / b / c\" is no figure"),
        (&["good.json", "--metric", "a / stack=x"], "--metric: no point has stack=x; there are "),
    ];
    for (args, message) in cases {
        let output = folder.run(&[&["report"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(message), "{args:?}: {}", err(&output));
        assert!(!folder.0.join("report.html").exists());
    }
}
