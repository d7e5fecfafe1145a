//! `cargo xtask differential`: random jobs in fio and here, as many as one likes. The gate runs a hundred with seeds that
//! derive from the commit; the comparison is a test of `nandscape-workload`, so that it needs no program of its own.

use crate::campaigns::fresh;
use crate::repository::Repository;

/// Which jobs.
pub(crate) struct Options {
    jobs: u64,
    /// The first seed; `None`: it derives from the commit.
    seed: Option<u64>,
}

impl Options {
    /// The options of these words; `None`: they are none.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let mut options = Self { jobs: 100, seed: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--jobs" => options.jobs = words.next()?.parse().ok()?,
                "--seed" => options.seed = Some(words.next()?.parse().ok()?),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Compares jobs, and returns whether none differs.
///
/// # Errors
/// The test cannot be started, or git does not know the commit.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let seed = match options.seed {
        Some(seed) => seed,
        None => fresh(&repository.commit()?, "differential"),
    };
    let (seed, jobs) = (seed.to_string(), options.jobs.to_string());
    let variables = [
        ("NANDSCAPE_REQUIRE_FIO", "1"),
        ("NANDSCAPE_FIO_SEED", seed.as_str()),
        ("NANDSCAPE_FIO_JOBS", jobs.as_str()),
    ];
    let test = ["--test", "suite", "--", "--nocapture", "--exact", TEST];
    let args = [&["test", "--quiet", "--locked", "-p", "nandscape-workload"][..], &test].concat();
    repository.cargo_with(&args, &variables)
}

/// The test that compares.
const TEST: &str = "differential::random_jobs_are_those_of_fio";
