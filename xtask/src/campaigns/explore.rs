//! `cargo xtask campaigns explore`: rounds of fresh seeds for each campaign of the gate, until an amount of CPU time is
//! used. The seeds derive from a word, such as the name of a night, so that another one looks elsewhere.

use super::campaigns;
use super::crash::Crash;
use crate::cpu;
use crate::repository::Repository;

/// How far to explore.
pub(crate) struct Options {
    /// CPU seconds of all campaigns together; the round in which they end is finished.
    cpu_seconds: u64,
    /// What the seeds derive from; `None`: the commit.
    origin: Option<String>,
}

impl Options {
    pub(super) fn of(words: &[&str]) -> Option<Self> {
        let mut options = Self { cpu_seconds: 600, origin: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--cpu-seconds" => options.cpu_seconds = words.next()?.parse().ok()?,
                "--origin" => options.origin = Some((*words.next()?).to_owned()),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Explores, and returns whether no seed found a violation; the last line that it prints says how much ran.
///
/// # Errors
/// Something cannot be built, run or read.
pub(super) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let all = campaigns(repository.root())?;
    let origin = match &options.origin {
        Some(origin) => origin.clone(),
        None => repository.commit()?,
    };
    let crash = Crash::build(repository)?;
    let (from, per_round) =
        (cpu::of_children()?, all.iter().map(|one| one.fresh_seeds()).sum::<u64>());
    let (mut rounds, mut runs, mut failed) = (0, 0, Vec::new());
    while cpu::of_children()? - from < options.cpu_seconds as f64 {
        rounds += 1;
        let origin = format!("{origin} {rounds}");
        let ran = crash.run_all(all.iter().filter_map(|one| one.fresh(&origin)).collect())?;
        runs += ran.len();
        failed.extend(ran.into_iter().filter(|ran| !ran.passed));
    }
    failed.iter().for_each(|ran| println!("failed: cargo run -- crash {}", ran.args));
    println!(
        "{} fresh seeds, {} of {runs} runs with a violation",
        rounds * per_round,
        failed.len(),
    );
    Ok(failed.is_empty())
}
