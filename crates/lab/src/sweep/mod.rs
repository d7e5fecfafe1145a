//! Sweeps: the same question asked of many stacks, jobs and seeds.
//!
//! A [`Sweep`] is a plan, and nothing here runs more than one run at a time: the owner of threads
//! calls [`Sweep::run`] with each index, in any order. A run's row is a function of the run alone, so
//! rows put in the order of their indices are the same however they came about. [`Sweep::ids`] names
//! each run by what its result follows from (resolved stack, job text, seed, program), so that
//! finished rows are recognised whatever else has changed in the sweep.

mod file;
mod job;
mod question;
mod row;
mod session;
mod vars;

pub use job::{Job, JobLoad};
pub use question::{Line, Named, Report};
pub use row::{FinishedRow, program};

use crate::run::{Observer, RunError, RunOptions, UntilSteady};
use crate::stack::document::{Node, Table, Value};
use crate::stack::{Place, Stack, StackError, source};
use nandscape_workload::fio::{Environment, Runtime};
use std::path::Path;
use std::sync::Arc;

/// Runs that one sweep may have.
const RUNS_MAX: usize = 100_000;
/// Why the runs of a sweep have no states.
const STATES: &str = "`nandscape run --state FILE` takes one, and runs that are set beside each other begin \
                      on separate file systems: leave this out";

/// A planned sweep: every case runs with every seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// The points of the grid, in order.
    pub cases: Vec<Case>,
    /// Repetitions.
    pub seeds: Vec<u64>,
    /// What is asked.
    pub report: Report,
    /// What the answers are set against.
    pub lines: Vec<Line>,
    /// What may not be meant as it stands.
    remarks: Vec<String>,
}

/// One point of the grid.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The stack, as the sweep names it.
    pub stack_name: String,
    /// The keys laid over it, and their values as JSON.
    pub keys: Vec<(String, serde_json::Value)>,
    /// The resolved stack.
    pub stack: Stack,
    /// The job.
    pub job: Arc<Job>,
    /// Until when the job goes on, if not to its end.
    pub until_steady: Option<UntilSteady>,
}

impl Sweep {
    /// Reads the sweep file at `path`; the files that it names are relative to its folder. `runtime` of the
    /// command line takes the place of that of the file.
    ///
    /// # Errors
    /// The first thing wrong with it or with a file that it names, and where.
    pub fn load(
        path: &Path,
        runtime: Option<Runtime>,
        environment: &dyn Environment,
    ) -> Result<Self, StackError> {
        let name = path.to_string_lossy();
        let text = environment
            .read(path)
            .map_err(|error| StackError::new(&Place::file(&name), "", error.to_string()))?;
        let place = Place::Argument("--runtime");
        let over = runtime.map(|runtime| {
            let (key_place, value) = (place.clone(), Value::String(runtime.to_string()));
            ("runtime".to_owned(), Node { key_place, place, raw: None, value })
        });
        file::read(&name, &text, over.into_iter().collect(), environment)
    }

    /// The same with sizes of jobs that are scaled to the device of each point ([`JobFile::fit`]).
    ///
    /// [`JobFile::fit`]: nandscape_workload::fio::JobFile::fit
    #[must_use]
    pub fn fit(mut self) -> Self {
        for case in &mut self.cases {
            case.job = Arc::new(case.job.fit());
        }
        self
    }

    /// Reads a sweep from `text`, which messages call `file`.
    ///
    /// # Errors
    /// The first thing wrong with it or with a file that it names, and where.
    pub fn parse(
        file: &str,
        text: &str,
        environment: &dyn Environment,
    ) -> Result<Self, StackError> {
        file::read(file, text, Table::new(), environment)
    }

    /// The same with `over` laid over the file's own tree: tables merge, anything else replaces.
    ///
    /// # Errors
    /// The first thing wrong with either or with a file that they name, and where.
    pub fn parse_under(
        file: &str,
        text: &str,
        over: Table,
        environment: &dyn Environment,
    ) -> Result<Self, StackError> {
        file::read(file, text, over, environment)
    }

    /// The sweep that sets stacks, each with the same `overrides`, beside each other under one job; if one is named,
    /// all on the device of that stack.
    ///
    /// # Errors
    /// The first thing wrong with a stack, and where; or a stack that stands there twice.
    pub fn compare<S: AsRef<str>>(
        stacks: &[String],
        device: Option<&str>,
        overrides: &[S],
        job: Job,
        seeds: u64,
        until_steady: Option<UntilSteady>,
    ) -> Result<Self, StackError> {
        let (name, job) = (job.name.clone(), Arc::new(job));
        let device = device.map(|name| Stack::load(name, overrides)).transpose()?;
        let case = |name: &String| {
            let stack = match &device {
                Some(device) => Stack::load_on(name, device, overrides)?,
                None => Stack::load(name, overrides)?,
            };
            let (stack_name, keys, job) = (name.clone(), Vec::new(), job.clone());
            Ok(Case { stack_name, keys, stack, job, until_steady })
        };
        let cases = stacks.iter().map(case).collect::<Result<_, _>>()?;
        let (seeds, report, lines) = ((1..=seeds).collect(), Report::Usual, Vec::new());
        let remarks = Vec::new();
        Self { name, cases, seeds, report, lines, remarks }.checked(&Place::Argument("compare"), "")
    }

    /// Rejects a grid that is too large, that has a device which cannot be, or that holds the same run
    /// twice.
    fn checked(self, place: &Place, key: &str) -> Result<Self, StackError> {
        let error = |message: String| StackError::new(place, key, message);
        if self.cases.len().checked_mul(self.seeds.len()).is_none_or(|runs| runs > RUNS_MAX) {
            return Err(error(format!("more than {RUNS_MAX} runs")));
        }
        let endless = |case: &&Case| case.until_steady.is_some() && case.job.ends_by_itself();
        if let Some(case) = self.cases.iter().find(endless) {
            let name = &case.job.name;
            let why = format!("{name} defines its own run time, and never runs until it is steady");
            return Err(error(why));
        }
        for Case { stack, .. } in &self.cases {
            stack.check_makes_fs(STATES)?;
            stack.check_device()?;
        }
        let mut points = std::collections::BTreeMap::new();
        for case in &self.cases {
            if let Some(twin) = points.insert(case.id(""), case) {
                let message = format!("duplicate run: {} and {}", twin.label(), case.label());
                return Err(error(message));
            }
        }
        Ok(self)
    }

    /// What of its jobs has no effect here, and what may not be meant as it stands.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let mut notices = self.remarks.clone();
        for case in &self.cases {
            for notice in case.job.notices(&case.stack) {
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
        notices
    }

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.cases.len() * self.seeds.len()
    }

    /// The case and the seed of a run; seeds go fastest.
    ///
    /// # Panics
    /// If there is no such run.
    #[must_use]
    pub fn at(&self, index: usize) -> (&Case, u64) {
        (&self.cases[index / self.seeds.len()], self.seeds[index % self.seeds.len()])
    }

    /// What names each run, in order; `program` stands for the code that runs it.
    #[must_use]
    pub fn ids(&self, program: &str) -> Vec<String> {
        let of_case = |case: &Case| {
            let id = case.id(program);
            self.seeds.iter().map(move |seed| row::run_id(id, *seed)).collect::<Vec<_>>()
        };
        self.cases.iter().flat_map(of_case).collect()
    }

    /// Runs one run; the sweep defines until when its job goes on. Returns its row:
    /// one line of JSON without its end.
    ///
    /// # Errors
    /// Why the run has no result.
    ///
    /// # Panics
    /// If there is no such run.
    pub fn run(
        &self,
        index: usize,
        commit: &str,
        options: RunOptions<'_>,
        observer: &mut dyn Observer,
    ) -> Result<String, RunError> {
        let (case, seed) = self.at(index);
        let options = RunOptions { until_steady: case.until_steady, ..options };
        let outcomes = case.job.run_all(&case.stack, seed, options, observer)?;
        Ok(row::row(case, seed, commit, &outcomes))
    }

    /// The row of a run, made of that of a run of the same name, which `other` may call otherwise: the same
    /// result to the letter. `None` if it is not such a row.
    ///
    /// # Panics
    /// If there is no such run.
    #[must_use]
    pub fn row_of_twin(
        &self,
        index: usize,
        commit: &str,
        (other, twin): (&Self, usize),
        row: &str,
    ) -> Option<String> {
        let ((case, seed), (theirs, their_seed)) = (self.at(index), other.at(twin));
        let same = seed == their_seed && case.id("") == theirs.id("");
        let result = row.strip_prefix(&row::head(theirs, seed, commit)).filter(|_| same)?;
        Some(row::head(case, seed, commit) + result)
    }
}

impl Case {
    /// What distinguishes this case from others, in words.
    #[must_use]
    pub fn label(&self) -> String {
        let keys = self.keys.iter().map(|(key, value)| format!(" {key}={value}"));
        format!("{} {}{}", self.stack_name, self.job.name, keys.collect::<String>())
    }

    /// A hash of all but the seed that its results follow from.
    fn id(&self, program: &str) -> u128 {
        let until = self.until_steady.map_or_else(String::new, |until| format!("\n{until}"));
        let text = format!("{program}\n{}\n{:032x}{until}", self.stack.toml, self.job.hash);
        xxhash_rust::xxh3::xxh3_128(text.as_bytes())
    }
}

/// A stack before it is resolved: what it is called, its tree, and where its file begins.
#[derive(Clone)]
struct Base {
    name: String,
    table: Table,
    place: Place,
}

impl Base {
    fn load(
        name: &str,
        folder: &Path,
        files: &dyn Environment,
        place: &Place,
    ) -> Result<Self, StackError> {
        let (table, place) = source::load_named(name, folder, files, place, "stacks")?;
        Ok(Self { name: name.to_owned(), table, place })
    }
}
