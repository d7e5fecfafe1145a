//! Long crash campaigns by name. They run in batches of seeds; a state file in the build directory has
//! one line per finished batch, so that an interrupted campaign goes on where it was. All batches of a campaign
//! are of one commit. A campaign without a violation writes its row of `docs/results/campaigns.md`.

mod page;
mod rows;
mod state;

use crate::files;
use crate::repository::Repository;
use rows::{Amount, GROUPS, ROWS, Row};
use state::{Batch, Found};
use std::path::Path;
use std::process::{Command, Stdio};

/// How a campaign is run.
pub(crate) struct Options {
    /// Which one.
    name: String,
    /// Threads.
    jobs: u32,
    /// Begin again from the first seed.
    restart: bool,
}

impl Options {
    pub(super) fn of(name: &str, words: &[&str]) -> Option<Self> {
        let mut options = Self { name: name.into(), jobs: 1, restart: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--jobs" => options.jobs = words.next()?.parse().ok()?,
                "--restart" => options.restart = true,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Runs a campaign to its end, or those of all compositions, prints what it found, and returns whether there was no
/// violation.
///
/// # Errors
/// There is no such campaign, or something cannot be built, run, read or written.
pub(super) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let rows = Row::all_named(&options.name);
    if rows.is_empty() {
        let known = ROWS.map(|row| row.name).join(", ");
        let name = &options.name;
        let groups = GROUPS.join(", ");
        return Err(format!("no campaign {name:?}: expected {groups}, or one of {known}"));
    }
    let binary = repository.release_binary()?;
    let mut passed = true;
    for row in rows {
        passed &= run_row(repository, &binary, &row, options)?;
    }
    Ok(passed)
}

fn run_row(
    repository: &Repository,
    binary: &Path,
    row: &Row,
    options: &Options,
) -> Result<bool, String> {
    let state = repository.target().join("campaigns").join(format!("{}.jsonl", row.name));
    if options.restart {
        files::restart(&state)?;
    }
    let mut done = Done::of(state::read(&state)?)?;
    while let Some((first, amount)) = next(row, &done.found) {
        let mut arguments = row.arguments(first, amount);
        arguments.extend(["--jobs".into(), options.jobs.to_string()]);
        let batch = run_batch(repository.root(), binary, &arguments)?;
        done.add(&batch).map_err(|e| format!("{}: {e}", state.display()))?;
        if batch.found.violations > 0 {
            println!("reproduce: nandscape {}", arguments.join(" "));
            break;
        }
        state::append(&state, &batch)?;
        println!("{}: {}", row.name, summary(&done.found));
    }
    finish(repository, row, &done)
}

/// Batches of one commit.
#[derive(Default)]
struct Done {
    commit: Option<String>,
    found: Found,
}

impl Done {
    fn of(batches: Vec<Batch>) -> Result<Self, String> {
        let mut done = Self::default();
        batches.iter().try_for_each(|batch| done.add(batch))?;
        Ok(done)
    }

    fn add(&mut self, batch: &Batch) -> Result<(), String> {
        let commit = self.commit.get_or_insert_with(|| batch.commit.clone());
        if *commit != batch.commit {
            let now = &batch.commit;
            return Err(format!("begun at commit {commit}, not {now}: go back, or --restart"));
        }
        self.found += batch.found.clone();
        Ok(())
    }
}

/// First seed and amount of the next batch, if one is left.
fn next(row: &Row, found: &Found) -> Option<(u64, u64)> {
    let done = match row.amount {
        Amount::Seeds(_) => found.seeds,
        Amount::Cuts(_) => found.cuts,
    };
    let left = row.whole().saturating_sub(done).min(row.batch());
    (left > 0).then_some((row.first + found.seeds, left))
}

/// Runs a batch in `root`, to which the files of stacks are relative; what it printed about violations goes on to
/// the reader.
fn run_batch(root: &Path, binary: &Path, arguments: &[String]) -> Result<Batch, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", binary.display());
    let output = Command::new(root.join(binary))
        .current_dir(root)
        .args(arguments)
        .args(["--output-format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let batch = Batch::of_report(&text);
    let batch = batch.ok_or_else(|| format!("nandscape {}: no report", arguments.join(" ")))?;
    if batch.found.violations > 0 {
        println!("{text}");
    }
    Ok(batch)
}

fn summary(found: &Found) -> String {
    let Found { seeds, cuts, cuts_in_recovery, violations } = found;
    format!(
        "{seeds} seeds, {cuts} cuts ({cuts_in_recovery} during recovery), {violations} violations"
    )
}

fn finish(repository: &Repository, row: &Row, done: &Done) -> Result<bool, String> {
    let commit = done.commit.as_deref().unwrap_or("unknown");
    println!("{} at {commit}: {}", row.name, summary(&done.found));
    if done.found.violations > 0 {
        return Ok(false);
    }
    let page = repository.root().join("docs/results/campaigns.md");
    page::update(&page, row, commit, &done.found)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(commit: &str, seeds: u64, cuts: u64) -> Batch {
        let found = Found { seeds, cuts, ..Found::default() };
        Batch { commit: commit.into(), first: 1, found }
    }

    /// Batches follow each other to the whole amount, and then none is left.
    #[test]
    fn batches_follow_each_other() {
        let row = Row::all_named("pblk-unreadable-10000")[0];
        let found = |seeds| Found { seeds, ..Found::default() };
        assert_eq!(next(&row, &found(0)), Some((100_000, 500)));
        assert_eq!(next(&row, &found(9_800)), Some((109_800, 200)));
        assert_eq!(next(&row, &found(10_000)), None);
        let row = Row::all_named("ext4-pblk-2000")[0];
        let found = Found { seeds: 30, cuts: 205, ..Found::default() };
        assert_eq!(next(&row, &found), Some((31, 200)));
    }

    /// A campaign is of one commit.
    #[test]
    fn another_commit_is_refused() {
        let done = Done::of(vec![batch("a", 5, 20), batch("a", 5, 22)]).expect("one commit");
        assert_eq!((done.found.seeds, done.found.cuts), (10, 42));
        let error = Done::of(vec![batch("a", 5, 20), batch("b", 5, 22)]).err();
        assert!(error.is_some_and(|error| error.contains("--restart")));
    }
}
