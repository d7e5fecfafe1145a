//! Random jobs in fio 3.33 and in our engine, compared: keys that both accept, in combination.
//!
//! A seed says which keys a job has. fio runs it on a file or its null engine, ours on a test device, and both write a log
//! of their I/Os. What the keys decide must be equal: sequences, what a pass covers, whether passes repeat, where flushes
//! come. What is drawn must have the same shares, and rates must hold. [`accepted::ACCEPTED`] lists what differs on purpose.
//!
//! `cargo xtask differential` runs more of them, from any seed.

mod accepted;
mod case;
mod compare;
mod fio;
mod ours;
mod plant;

use case::Case;
use compare::Verdict;
use fio::Folder;
use plant::Plant;
use std::collections::BTreeMap;

/// Jobs of a run, where nothing says otherwise; and how many find each planted fault.
const JOBS: u64 = 100;
const JOBS_TO_FIND: u64 = 300;
/// Jobs that fio runs at a time: its start takes longer than any of them.
const AT_ONCE: u64 = 25;
/// How often a rate in real time may be missed.
const ATTEMPTS: u32 = 4;

/// The I/Os of a job, or why it does not run.
type Log = Result<Vec<fio::Io>, String>;

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: no number")))
}

/// What came of a comparison of many jobs.
#[derive(Default)]
struct Tally {
    agreed: u64,
    /// Jobs that both sides refuse.
    refused: u64,
    accepted: BTreeMap<&'static str, u64>,
    differences: Vec<String>,
}

impl Tally {
    fn add(&mut self, case: &Case, verdict: Verdict) {
        match verdict {
            Verdict::Agreed => self.agreed += 1,
            Verdict::Refused => self.refused += 1,
            Verdict::Accepted(why) => *self.accepted.entry(why).or_default() += 1,
            Verdict::Different(what) => self.differences.push(format!(
                "seed {}: {what}\n{}again: cargo xtask differential --seed {} --jobs 1\n",
                case.seed,
                case.text(),
                case.seed
            )),
        }
    }
}

/// Jobs from a seed on, as many as fio runs at a time, with what it does.
fn batch(folder: &Folder, first: u64, end: u64) -> Vec<(Case, Log)> {
    let cases: Vec<Case> = (first..end.min(first + AT_ONCE)).map(Case::draw).collect();
    let theirs = fio::run(folder, &cases);
    cases.into_iter().zip(theirs).collect()
}

/// Compares a job, again where a busy machine may have been in its way.
fn judge(folder: &Folder, case: &Case, theirs: &Log, plant: Option<&Plant>) -> Verdict {
    let ours = ours::run(case, plant);
    let mut verdict = compare::compare(case, theirs, &ours);
    for _ in 1..ATTEMPTS {
        if plant.is_some() || !(case.is_timed() && verdict.is_different()) {
            break;
        }
        let again = fio::run(folder, std::slice::from_ref(case)).remove(0);
        verdict = compare::compare(case, &again, &ours);
    }
    verdict
}

/// Jobs are the same in fio and here. `NANDSCAPE_FIO_JOBS` and `NANDSCAPE_FIO_SEED` say how many, and which.
#[test]
fn random_jobs_are_those_of_fio() {
    let (first, jobs) = (number("NANDSCAPE_FIO_SEED", 1), number("NANDSCAPE_FIO_JOBS", JOBS));
    let Some(folder) = Folder::new("jobs") else { return };
    let mut tally = Tally::default();
    for from in (first..first + jobs).step_by(AT_ONCE as usize) {
        for (case, theirs) in batch(&folder, from, first + jobs) {
            tally.add(&case, judge(&folder, &case, &theirs, None));
        }
    }
    println!(
        "{jobs} jobs from seed {first}: {} agree, {} refused by both, {} different",
        tally.agreed,
        tally.refused,
        tally.differences.len()
    );
    tally.accepted.iter().for_each(|(why, count)| println!("{count:6} {why}"));
    assert!(tally.differences.is_empty(), "\n{}", tally.differences.join("\n"));
    assert!(jobs < JOBS || tally.agreed > jobs * 2 / 3, "only {} jobs agree", tally.agreed);
}

/// A key that ours reads wrongly is found.
#[test]
fn planted_faults_are_found() {
    let Some(folder) = Folder::new("plants") else { return };
    let mut left: Vec<&Plant> = plant::PLANTS.iter().collect();
    for from in (1..=JOBS_TO_FIND).step_by(AT_ONCE as usize) {
        for (case, theirs) in batch(&folder, from, JOBS_TO_FIND + 1) {
            // What a busy machine may do to rates is no plant's work.
            if left.iter().any(|plant| plant.changes(&case))
                && !judge(&folder, &case, &theirs, None).is_different()
            {
                left.retain(|plant| {
                    let found = plant.changes(&case)
                        && judge(&folder, &case, &theirs, Some(plant)).is_different();
                    if found {
                        println!("seed {}: {}", case.seed, plant.what);
                    }
                    !found
                });
            }
        }
        if left.is_empty() {
            return;
        }
    }
    panic!("not found in {JOBS_TO_FIND} jobs: {left:?}");
}
