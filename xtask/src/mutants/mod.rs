//! Mutants: small changes of the product that break one promise each, and what catches them. The tables in
//! `xtask/mutants` name them; a copy of the repository holds all of them at once and is built once; then the checks of the
//! gate run for each mutant until one fails. A mutant whose record still counts is not run again, so that a run that was
//! interrupted resumes with the next one.

mod basis;
mod checks;
mod limits;
mod page;
mod record;
mod schema;
mod table;

pub(crate) use checks::{KILLED, TIMED_OUT};

use crate::repository::{Repository, cores};
use basis::Basis;
use checks::{Built, Check, End, Ran};
use limits::Limits;
use record::{Record, Records};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use table::Mutant;

/// Which mutants are run, and how.
#[derive(Default)]
pub(crate) struct Options {
    /// What the ids or areas of mutants contain; others are left out.
    pub(crate) only: String,
    /// Mutants at a time; 0: one per core.
    pub(crate) jobs: usize,
    /// Begin with the first mutant again.
    pub(crate) restart: bool,
    /// Run only what the tables name; a mutant that this misses is left for a later run.
    pub(crate) first: bool,
    /// Run only the fresh seeds that campaigns derive from this origin, such as a commit, and keep no records: what the
    /// gate's exploring finds.
    pub(crate) fresh: Option<String>,
    /// Seconds of further campaigns for each mutant that the gate does not catch.
    pub(crate) long: u64,
    /// Print the mutants, and run none.
    pub(crate) list: bool,
}

/// Runs mutants, prints what catches each, and returns whether all are caught that are not equivalent. With all of them,
/// it writes `docs/results/mutants.md`.
///
/// # Errors
/// A table does not fit the sources, the copy does not build, or a check fails without a mutant.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let root = repository.root();
    let all = table::load(root)?;
    let is_wanted =
        |mutant: &Mutant| mutant.id.contains(&options.only) || mutant.area.contains(&options.only);
    let wanted: Vec<(u32, &Mutant)> =
        (1..).zip(&all).filter(|(_, mutant)| is_wanted(mutant)).collect();
    if options.list {
        wanted.iter().for_each(|(number, mutant)| {
            println!("{number:4} {:15} {:55} {}", mutant.area, mutant.id, mutant.breaks)
        });
        return Ok(true);
    }
    let folder = repository.target().join("mutants");
    // Before the copy is made: what changes later is not what runs.
    let basis = Basis::open(root, &folder)?;
    let built = build(root, &folder, &all, &packages(&all, &wanted))?;
    let sources = basis.of_sources()?;
    let limits = Limits::open(&folder.join("limits.jsonl"), &sources, options.restart)?;
    let records = Records::open(&root.join(RECORDS), options.restart)?;
    let runner = Runner {
        built,
        basis,
        sources,
        limits: Mutex::new(limits),
        records: Mutex::new(records),
        first: options.first,
        long: options.long,
    };
    if let Some(origin) = &options.fresh {
        return runner.explore(&wanted, origin);
    }
    runner.run_all(&wanted, jobs(options))?;
    let mut rows = Vec::new();
    for (_, mutant) in &wanted {
        rows.push((*mutant, runner.standing(mutant)?));
    }
    let page = page::Page::of(rows);
    if wanted.len() == all.len() {
        page.write(&root.join("docs/results/mutants.md"))?;
    }
    runner.records.into_inner().map_err(|e| e.to_string())?.compact(&all)?;
    print!("{}", page.text());
    println!("{}", page.summary());
    Ok(page.survivors().is_empty())
}

fn jobs(options: &Options) -> usize {
    match options.jobs {
        0 => cores(),
        jobs => jobs,
    }
}

/// The packages whose tests may catch the mutants of a run, with the program of the campaigns; all of them for all mutants.
fn packages(all: &[Mutant], wanted: &[(u32, &Mutant)]) -> Vec<String> {
    if wanted.len() == all.len() {
        return vec!["--workspace".to_owned()];
    }
    let owners = wanted.iter().flat_map(|(_, mutant)| checks::crates_of(mutant)).chain(["cli"]);
    let owners: BTreeSet<&str> = owners.collect();
    let package = |owner| match owner {
        "cli" => "--package=nandscape".to_owned(),
        owner => format!("--package=nandscape-{owner}"),
    };
    owners.into_iter().map(package).collect()
}

/// Writes the copy and builds it: the test programs of these packages, and the program as the gate's campaigns run it.
fn build(
    root: &Path,
    folder: &Path,
    mutants: &[Mutant],
    packages: &[String],
) -> Result<Built, String> {
    let copy = folder.join("tree");
    println!("building the copy with all mutants: {}", copy.display());
    schema::write(root, &copy, mutants)?;
    let target = folder.join("build");
    let cargo = |args: &[&str]| {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(args).current_dir(&copy).env("CARGO_TARGET_DIR", &target);
        // Snippets in parentheses cause warnings: only errors are of interest.
        let output = command.env_remove("RUSTFLAGS").output().map_err(|e| format!("cargo: {e}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let errors = String::from_utf8_lossy(&output.stderr);
                Err(format!("cargo {}: the copy with mutants does not build:\n{errors}", args[0]))
            }
        }
    };
    let mut args = vec!["test", "--no-run", "--quiet", "--locked", "--message-format=json"];
    args.extend(packages.iter().map(String::as_str));
    let messages = cargo(&args)?;
    let tests = checks::test_programs(&messages, &copy)?;
    Ok(Built { nandscape: target.join("debug/nandscape"), root: copy, tests })
}

/// The records, in the repository.
const RECORDS: &str = "xtask/mutants/records.jsonl";

/// What all mutants of a run share.
struct Runner<'a> {
    built: Built,
    basis: Basis<'a>,
    /// What survivors stand on.
    sources: String,
    limits: Mutex<Limits>,
    records: Mutex<Records>,
    first: bool,
    long: u64,
}

impl Runner<'_> {
    fn last(&self, mutant: &Mutant) -> Result<Option<Record>, String> {
        Ok(self.records.lock().map_err(|e| e.to_string())?.last(mutant).cloned())
    }

    /// The record of a mutant, if what it stands on is as it was.
    fn standing(&self, mutant: &Mutant) -> Result<Option<Record>, String> {
        let Some(record) = self.last(mutant)? else { return Ok(None) };
        let checks = checks::of(mutant, &self.built)?;
        let check = checks.iter().find(|check| record.check == Some(check.to_string()));
        let basis = match check {
            Some(check) => self.basis.of(mutant, check)?,
            // A survivor, or one that a longer campaign caught.
            None => self.sources.clone(),
        };
        Ok((record.basis == basis).then_some(record))
    }

    /// Runs the mutants that have no record that counts, `jobs` at a time.
    #[expect(clippy::disallowed_methods, reason = "mutants are processes; threads wait for them")]
    fn run_all(&self, wanted: &[(u32, &Mutant)], jobs: usize) -> Result<(), String> {
        let mut left = VecDeque::new();
        for (number, mutant) in wanted.iter().filter(|(_, mutant)| mutant.equivalent.is_none()) {
            let record = self.standing(mutant)?;
            if record.is_none_or(|record| !record.is_caught() && self.long > 0 && !record.long) {
                left.push_back((*number, *mutant));
            }
        }
        let (amount, left) = (left.len(), Mutex::new(left));
        let work = || -> Result<(), String> {
            loop {
                let next = left.lock().map_err(|e| e.to_string())?.pop_front();
                let Some((number, mutant)) = next else { return Ok(()) };
                let record = self.run_one(number, mutant)?;
                let after = left.lock().map_err(|e| e.to_string())?.len();
                println!("{} of {amount}: {}", amount - after, page::line(&record));
                if self.first && !record.is_caught() {
                    continue;
                }
                self.records.lock().map_err(|e| e.to_string())?.add(record)?;
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
        })
    }

    /// Runs the fresh seeds of an origin for each mutant, and returns whether they find all.
    fn explore(&self, wanted: &[(u32, &Mutant)], origin: &str) -> Result<bool, String> {
        let mut all = true;
        for (number, mutant) in wanted {
            let mut record = Record::of(mutant, &self.sources);
            for check in checks::fresh(mutant, &self.built, origin)? {
                if !record.is_caught() {
                    self.try_check(*number, &check, &mut record)?;
                }
            }
            println!("{}", page::line(&record));
            all &= record.is_caught();
        }
        Ok(all)
    }

    /// Runs checks until one catches the mutant.
    #[expect(clippy::disallowed_methods, reason = "a record has the time that a mutant took")]
    fn run_one(&self, number: u32, mutant: &Mutant) -> Result<Record, String> {
        let from = Instant::now();
        let mut record = Record::of(mutant, &self.sources);
        let missed = self.standing(mutant)?.is_some();
        let of_gate = if missed { Vec::new() } else { self.checks(mutant)? };
        for check in &of_gate {
            self.try_check(number, check, &mut record)?;
            if record.is_caught() {
                record.basis = self.basis.of(mutant, check)?;
                break;
            }
        }
        if !record.is_caught() && self.long > 0 {
            record.long = true;
            self.run_long(number, mutant, &mut record)?;
        }
        record.seconds = from.elapsed().as_secs_f64();
        Ok(record)
    }

    /// What the gate runs about a mutant: what its table names and what caught it before, then the cheapest.
    fn checks(&self, mutant: &Mutant) -> Result<Vec<Check>, String> {
        let mut checks = checks::of(mutant, &self.built)?;
        let mut first = checks::first(mutant, &self.built)?.len();
        let caught = self.last(mutant)?.and_then(|record| record.check);
        if let Some(at) = checks.iter().position(|check| caught == Some(check.to_string())) {
            let check = checks.remove(at);
            checks.insert(0, check);
            first += usize::from(at >= first);
        }
        if self.first {
            checks.truncate(first);
            return Ok(checks);
        }
        let limits = self.limits.lock().map_err(|e| e.to_string())?;
        let cost = |check: &Check| limits.cost(&check.to_string());
        checks[first..].sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        Ok(checks)
    }

    fn try_check(&self, number: u32, check: &Check, record: &mut Record) -> Result<(), String> {
        let limit = self.limit(check)?;
        record.checks += 1;
        record.note(&check.to_string(), checks::run(check, &self.built, number, limit)?.end);
        Ok(())
    }

    /// The campaigns of the area again and again, with other seeds each time.
    #[expect(clippy::disallowed_methods, reason = "a longer campaign ends after an amount of time")]
    fn run_long(&self, number: u32, mutant: &Mutant, record: &mut Record) -> Result<(), String> {
        let from = Instant::now();
        for round in 1.. {
            let checks = checks::fresh(mutant, &self.built, &format!("long {round}"))?;
            for check in &checks {
                if record.is_caught() || from.elapsed() > Duration::from_secs(self.long) {
                    return Ok(());
                }
                self.try_check(number, check, record)?;
            }
            if checks.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The CPU seconds that a check may take: it is run without a mutant first, and must pass.
    fn limit(&self, check: &Check) -> Result<u64, String> {
        let name = check.to_string();
        if let Some(limit) = self.limits.lock().map_err(|e| e.to_string())?.find(&name) {
            return Ok(limit);
        }
        let Ran { end, cpu_s } = checks::run(check, &self.built, 0, 1800)?;
        if let End::Caught { what, .. } = end {
            return Err(format!("{name}: fails without a mutant: {what}"));
        }
        let mut limits = self.limits.lock().map_err(|e| e.to_string())?;
        limits.add(&name, cpu_s)?;
        limits.find(&name).ok_or_else(|| format!("{name}: no limit"))
    }
}
