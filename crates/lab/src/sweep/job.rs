//! A job of a sweep, with a hash of all that it was read from: its text, the files that it includes and
//! the environment variables that it asks for. Same hash, same job.

use nandscape_workload::fio::{Environment, JobFile, JobFileError, parse};
use std::cell::RefCell;
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// A job file that was understood.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// What tables and rows call it.
    pub name: String,
    /// The job.
    pub file: JobFile,
    /// Of everything that it was read from.
    pub(super) hash: u128,
}

impl Job {
    /// The job in `text`, called `name`; what it includes is relative to `path`, which also stands in
    /// messages.
    ///
    /// # Errors
    /// The first thing wrong with it, and where.
    pub fn parse(
        name: &str,
        path: &str,
        text: &str,
        environment: &dyn Environment,
    ) -> Result<Self, JobFileError> {
        let recorder = Recorder { environment, heard: RefCell::new(text.to_owned()) };
        let file = parse(text, path, &recorder)?;
        let hash = xxh3_128(recorder.heard.into_inner().as_bytes());
        Ok(Self { name: name.to_owned(), file, hash })
    }
}

/// An environment that remembers what was asked of it.
struct Recorder<'a> {
    environment: &'a dyn Environment,
    heard: RefCell<String>,
}

impl Environment for Recorder<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.environment.read(path)?;
        self.heard.borrow_mut().push_str(&format!("\0{}\0{text}", path.display()));
        Ok(text)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.environment.variable(name);
        self.heard.borrow_mut().push_str(&format!("\0{name}={value:?}"));
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
        let hash = |text, world| Job::parse("a", "a.fio", text, &world).unwrap().hash;
        let one = hash(text, World("rw=write\n", "1m"));
        assert_eq!(one, hash(text, World("rw=write\n", "1m")));
        assert_ne!(one, hash(text, World("rw=read\n", "1m")));
        assert_ne!(one, hash(text, World("rw=write\n", "2m")));
        assert_ne!(one, hash("[b]\ninclude more.inc\nsize=${SIZE}\n", World("rw=write\n", "1m")));
    }
}
