//! Runs of `nandscape crash`, by the program that tests use: with debug assertions and overflow checks.

use crate::repository::{Repository, cores};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;

/// The program, and where it runs: files of stacks are relative to the repository.
pub(super) struct Crash {
    root: PathBuf,
    binary: PathBuf,
}

/// A run that ended.
pub(super) struct Ran {
    /// Its arguments.
    pub(super) args: String,
    /// Whether there was no violation.
    pub(super) passed: bool,
}

impl Crash {
    /// # Errors
    /// The program does not build.
    pub(super) fn build(repository: &Repository) -> Result<Self, String> {
        Ok(Self { binary: repository.checked_binary()?, root: repository.root().to_owned() })
    }

    /// One run on one core, whose report is printed when it has ended.
    ///
    /// # Errors
    /// It cannot be started, or ends without having looked.
    pub(super) fn run(&self, args: String) -> Result<Ran, String> {
        let mut command = Command::new(&self.binary);
        command.current_dir(&self.root).arg("crash").args(args.split(' ')).args(["--jobs", "1"]);
        let output = command.output().map_err(|e| format!("{}: {e}", self.binary.display()))?;
        let Output { status, stdout, stderr } = output;
        let (report, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        println!("crash {args}\n{report}");
        match status.code() {
            Some(0) => Ok(Ran { args, passed: true }),
            Some(1) => Ok(Ran { args, passed: false }),
            _ => Err(format!("crash {args}: {status}\n{errors}")),
        }
    }

    /// These runs, in this order, one per core at a time.
    ///
    /// # Errors
    /// One of them cannot be carried out.
    #[expect(clippy::disallowed_methods, reason = "campaigns are processes; threads wait for them")]
    pub(super) fn run_all(&self, runs: Vec<String>) -> Result<Vec<Ran>, String> {
        let left = Mutex::new(VecDeque::from(runs));
        let next = || left.lock().map_err(|e| e.to_string()).map(|mut left| left.pop_front());
        let work = || -> Result<Vec<Ran>, String> {
            let mut ran = Vec::new();
            while let Some(args) = next()? {
                ran.push(self.run(args)?);
            }
            Ok(ran)
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..cores()).map(|_| scope.spawn(work)).collect();
            let ended = workers.into_iter().map(|worker| {
                worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned()))
            });
            Ok(ended.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        })
    }
}
