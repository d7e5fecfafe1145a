//! A job of a sweep, with a hash of all that it was read from: its text, the files that it includes, and
//! the variables that it asks for. Same hash, same job.

use crate::run::{Observer, Outcome, RunError, RunOptions, run, run_workload};
use crate::stack::Stack;
use nandscape_workload::fio::{self, Environment, JobFile, JobFileError, Runtime};
use nandscape_workload::wml::{self, WmlError, Workload};
use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// A job that was understood.
#[derive(Clone, Debug)]
pub struct Job {
    /// What tables and rows call it.
    pub name: String,
    /// What it does.
    pub load: JobLoad,
    /// Of everything that it was read from.
    pub(super) hash: u128,
}

/// What a job does.
#[derive(Clone, Debug)]
pub enum JobLoad {
    /// The jobs of a file of fio's.
    Fio(JobFile),
    /// A workload of Filebench's.
    Filebench(Workload),
    /// Jobs of a session, one after the other on the same device.
    Session(Vec<Arc<Job>>),
}

impl PartialEq for Job {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.hash) == (&other.name, other.hash)
    }
}

impl Job {
    /// The job file of fio's in `text`, called `name`; what it includes is relative to `path`, which also
    /// stands in messages. `runtime` takes the place of what it says.
    ///
    /// # Errors
    /// The first thing wrong with it, and where.
    pub fn fio(
        name: &str,
        path: &str,
        text: &str,
        environment: &dyn Environment,
        runtime: Option<Runtime>,
    ) -> Result<Self, JobFileError> {
        let recorder = Recorder { environment, content: RefCell::new(text.to_owned()) };
        let file = fio::parse_for(text, path, &recorder, runtime)?;
        let hash = hash(recorder.content.into_inner(), runtime);
        Ok(Self { name: name.to_owned(), load: JobLoad::Fio(file), hash })
    }

    /// The workload of Filebench's in `text`, called `name`, with these values of variables that it sets;
    /// `runtime` takes the place of what it says.
    ///
    /// # Errors
    /// The first thing wrong with it, and where.
    pub fn filebench(
        name: &str,
        path: &str,
        text: &str,
        variables: &[(String, String)],
        runtime: Option<Runtime>,
    ) -> Result<Self, WmlError> {
        let mut workload = wml::parse(text, path, variables)?;
        workload.length = runtime.map(Runtime::time).or(workload.length);
        let values = variables.iter().map(|(name, value)| format!("\0${name}={value:?}"));
        let content = text.to_owned() + &values.collect::<String>();
        let (load, hash) = (JobLoad::Filebench(workload), hash(content, runtime));
        Ok(Self { name: name.to_owned(), load, hash })
    }

    /// The same with sizes that are scaled to the device; only jobs of fio's have such.
    #[must_use]
    pub fn fit(&self) -> Self {
        let load = match self.load.clone() {
            JobLoad::Fio(file) => JobLoad::Fio(file.fit()),
            JobLoad::Session(steps) => {
                JobLoad::Session(steps.iter().map(|step| Arc::new(step.fit())).collect())
            }
            other @ JobLoad::Filebench(_) => other,
        };
        let hash = xxh3_128(format!("{:032x}\0fit", self.hash).as_bytes());
        Self { name: self.name.clone(), load, hash }
    }

    /// Whether it defines its own run time, so that it cannot go on until it is steady.
    #[must_use]
    pub const fn ends_by_itself(&self) -> bool {
        matches!(self.load, JobLoad::Filebench(_) | JobLoad::Session(_))
    }

    /// What of it has no effect on `stack`.
    pub(super) fn notices(&self, stack: &Stack) -> Vec<String> {
        match &self.load {
            JobLoad::Fio(file) => {
                let notices = file.notices.iter().filter(|notice| stack.applies_to(notice));
                notices.map(ToString::to_string).collect()
            }
            JobLoad::Filebench(workload) => {
                workload.notices.iter().map(ToString::to_string).collect()
            }
            JobLoad::Session(steps) => steps.iter().flat_map(|step| step.notices(stack)).collect(),
        }
    }

    /// Runs one that is no session.
    pub(super) fn run(
        &self,
        stack: &Stack,
        seed: u64,
        options: RunOptions<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, RunError> {
        match &self.load {
            JobLoad::Fio(file) => run(stack, file, seed, options, observer),
            JobLoad::Filebench(workload) => run_workload(stack, workload, seed, options, observer),
            JobLoad::Session(_) => Err(RunError::Job("a session within a session".to_owned())),
        }
    }
}

/// Of all that a job was read from.
fn hash(mut content: String, runtime: Option<Runtime>) -> u128 {
    content.extend(runtime.map(|runtime| format!("\0runtime={runtime}")));
    xxh3_128(content.as_bytes())
}

/// An environment that remembers what was asked of it.
struct Recorder<'a> {
    environment: &'a dyn Environment,
    content: RefCell<String>,
}

impl Environment for Recorder<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.environment.read(path)?;
        self.content.borrow_mut().push_str(&format!("\0{}\0{text}", path.display()));
        Ok(text)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.environment.variable(name);
        self.content.borrow_mut().push_str(&format!("\0{name}={value:?}"));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file is the same text, every variable the same value.
    struct World(&'static str, &'static str);

    impl Environment for World {
        fn read(&self, _: &Path) -> io::Result<String> {
            Ok(self.0.to_owned())
        }
        fn variable(&self, _: &str) -> Option<String> {
            Some(self.1.to_owned())
        }
    }

    /// A job is another one when its text, an included file or a variable differs.
    #[test]
    fn all_that_a_job_is_read_from_counts() {
        let text = "[a]\ninclude more.inc\nsize=${SIZE}\n";
        let within =
            |text, world, runtime| Job::fio("a", "a.fio", text, &world, runtime).unwrap().hash;
        let hash = |text, world| within(text, world, None);
        let one = hash(text, World("rw=write\n", "1m"));
        assert_eq!(one, hash(text, World("rw=write\n", "1m")));
        assert_ne!(one, hash(text, World("rw=read\n", "1m")));
        assert_ne!(one, hash(text, World("rw=write\n", "2m")));
        assert_ne!(one, hash("[b]\ninclude more.inc\nsize=${SIZE}\n", World("rw=write\n", "1m")));
        let limited = |time: &str| within(text, World("rw=write\n", "1m"), time.parse().ok());
        assert_ne!(one, limited("1s"));
        assert_ne!(limited("1s"), limited("2s"));
        assert_eq!(limited("1s"), limited("1000ms"));
    }
}
