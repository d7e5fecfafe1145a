//! What becomes of violations when they are minimised: operations before and after, runs and seconds of each search, as a
//! Markdown table, and the medians.

use super::{End, Options, first_violation};
use crate::median::median;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A search.
#[derive(Clone, Copy)]
struct Score {
    before: u64,
    after: u64,
    seconds: f64,
    on_files: bool,
}

/// Prints the table of the rules that are found missing, and whether each of their violations was minimised.
pub(super) fn run<'a>(
    binary: &Path,
    root: &Path,
    rules: impl Iterator<Item = (&'a str, &'a str)>,
    options: &Options,
) -> Result<bool, String> {
    let (mut scores, mut all) = (Vec::new(), true);
    println!(
        "| Rule left out | Campaign | Seed | Operations | Minimised | Rounds | Runs | Seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (args, rule) in rules {
        let End::Found(found) = first_violation(binary, root, rule, args, options)? else {
            continue;
        };
        let seed = found.seeds.to_string();
        let crash = |more: &[&str]| {
            let one = ["--omit", rule, "--first", &seed, "--seeds", "1", "--output-format", "json"];
            let words: Vec<&str> = args.split_whitespace().chain(one).collect();
            crash(binary, root, &[&words, more].concat())
        };
        let (whole_s, _) = crash(&["--no-shrink"])?;
        let (both_s, report) = crash(&[])?;
        let minimised = &report["violations"][0]["minimised"];
        let count = |key: &str| minimised[key].as_u64().unwrap_or_default();
        let seconds = (both_s - whole_s).max(0.0);
        let campaign = format!("crash {args}");
        print!("| `{rule}` | `{}` | {seed} | ", campaign.trim_end());
        if minimised.is_null() {
            println!("not minimised | | | | {seconds:.2} |");
            all = false;
            continue;
        }
        let (before, after) = (count("operations_before"), count("operations"));
        println!("{before} | {after} | {} | {} | {seconds:.2} |", count("rounds"), count("runs"));
        scores.push(Score { before, after, seconds, on_files: args.contains("--fs") });
    }
    println!();
    let of = |on_files| scores.iter().copied().filter(move |it| it.on_files == on_files);
    for (name, of) in [
        ("FTLs", of(false).collect()),
        ("File systems", of(true).collect()),
        ("Both", scores.clone()),
    ] {
        summarise(name, of);
    }
    Ok(all)
}

/// Runs `nandscape crash`; how long it took, and its report.
#[expect(clippy::disallowed_methods, reason = "a search is waited for in real time")]
fn crash(binary: &Path, root: &Path, words: &[&str]) -> Result<(f64, Value), String> {
    let began = Instant::now();
    let mut crash = Command::new(binary);
    let crash = crash.current_dir(root).arg("crash").args(words).stderr(Stdio::null());
    let output = crash.output().map_err(|e| format!("{}: {e}", binary.display()))?;
    let seconds = began.elapsed().as_secs_f64();
    let report = serde_json::from_slice(&output.stdout);
    Ok((seconds, report.map_err(|e| format!("crash {}: no report: {e}", words.join(" ")))?))
}

fn summarise(name: &str, scores: Vec<Score>) {
    let (Some(before), Some(after), Some(seconds)) = (
        median(scores.iter().map(|it| it.before as f64)),
        median(scores.iter().map(|it| it.after as f64)),
        median(scores.iter().map(|it| it.seconds)),
    ) else {
        return;
    };
    let count = scores.len();
    println!("{name}: {count} rules, medians: {after} of {before} operations, {seconds:.2} s");
}
