//! What campaigns need to find each safety rule missing: `nandscape crash --omit RULE` until the first seed that is
//! caught, as a Markdown table, beside what the campaigns of CI found before media had delays and resets were
//! watched.

use crate::repository::Repository;
use std::path::Path;
use std::process::{Command, Stdio};

/// A rule to leave out.
struct Rule {
    name: &'static str,
    /// Arguments of `nandscape crash` beside it.
    args: &'static str,
    /// Where the campaigns of CI at commit a4bee96, with the rule added, noticed: first campaign and seed.
    before: &'static str,
}

const fn rule(name: &'static str, args: &'static str, before: &'static str) -> Rule {
    Rule { name, args, before }
}

const SSD: &str = "--stack ssd";
const NOTHING: &str = "not found";

const RULES: [Rule; 18] = [
    rule("settled-gate", "", NOTHING),
    rule("moved-trims", "", NOTHING),
    rule("trim-sequence", "", NOTHING),
    rule("relog-gate", "", "`crash --faults 1000`, seed 213"),
    rule("trim-gate", "", "`crash`, seed 883"),
    rule("erase-gate", "", "`crash`, seed 15"),
    rule("program-order", "", "`crash`, seed 12"),
    rule("flush-completion", "", "`crash`, seed 4"),
    rule("file-trims", "", "`crash`, seed 43"),
    rule("settled-gate", SSD, NOTHING),
    rule("trim-sequence", SSD, NOTHING),
    rule("compacted-trims", SSD, NOTHING),
    rule("buffered-trims", SSD, NOTHING),
    rule("torn-units", "--stack ssd --edge-cases", "`crash --stack ssd --edge-cases`, seed 55"),
    rule("copy-completion", SSD, "`crash --stack ssd`, seed 32"),
    rule("fua-instances", SSD, "`crash --stack ssd`, seed 9"),
    rule("trim-gate", SSD, "`crash --stack ssd`, seed 30"),
    rule("erase-gate", SSD, "`crash --stack ssd`, seed 12"),
];

/// How a rule is looked for.
pub(crate) struct Options {
    /// Seeds after which a rule counts as not found.
    pub(crate) seeds: u64,
    /// Threads.
    pub(crate) jobs: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { seeds: 10_000, jobs: 1 }
    }
}

/// What a campaign found first.
struct Found {
    seeds: u64,
    cuts: u64,
    what: String,
}

/// Prints the table, and returns whether every rule was found missing.
///
/// # Errors
/// The program cannot be built or run.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let binary = repository.root().join(repository.release_binary()?);
    let mut all = true;
    println!("| Rule left out | Campaign | CI before | Seeds | Cuts | What was noticed |");
    println!("|---|---|---|---|---|---|");
    for Rule { name, args, before } in &RULES {
        let words: Vec<&str> = args.split(' ').filter(|word| !word.is_empty()).collect();
        let found = first_violation(&binary, repository.root(), name, &words, options)?;
        all &= found.is_some();
        let last = match found {
            Some(Found { seeds, cuts, what }) => format!("{seeds} | {cuts} | {what}"),
            None => format!("not in {} | | ", options.seeds),
        };
        let campaign = format!("crash {args}");
        println!("| `{name}` | `{}` | {before} | {last} |", campaign.trim_end());
    }
    Ok(all)
}

/// The first seed in which a rule is missed, and the power cuts up to there.
fn first_violation(
    binary: &Path,
    root: &Path,
    rule: &str,
    args: &[&str],
    options: &Options,
) -> Result<Option<Found>, String> {
    let report = |seeds: u64| {
        let count = |n: u64| n.to_string();
        let output = Command::new(binary)
            .current_dir(root)
            .arg("crash")
            .args(args)
            .args(["--omit", rule, "--first", "1", "--seeds", &count(seeds)])
            .args(["--jobs", &count(options.jobs.into()), "--output-format", "json"])
            .stderr(Stdio::null())
            .output()
            .map_err(|e| format!("{}: {e}", binary.display()))?;
        serde_json::from_slice::<serde_json::Value>(&output.stdout)
            .map_err(|e| format!("crash --omit {rule}: no report: {e}"))
    };
    let whole = report(options.seeds)?;
    let first = whole["violations"].as_array().into_iter().flatten();
    let first = first.min_by_key(|violation| violation["seed"].as_u64());
    let Some(violation) = first else { return Ok(None) };
    let seeds = violation["seed"].as_u64().unwrap_or(0);
    let cuts = report(seeds)?["counts"]["cuts"].as_u64().unwrap_or(0);
    let what = violation["message"].as_str().unwrap_or_default();
    Ok(Some(Found { seeds, cuts, what: in_general(what) }))
}

/// A message without its numbers.
fn in_general(message: &str) -> String {
    let words = message.split(' ').map(|word| {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if is_number { "N" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_numbers() {
        let message = "a reset of unit 4 chunk 11 at 198.1ms erases";
        assert_eq!(in_general(message), "a reset of unit N chunk N at N erases");
    }
}
