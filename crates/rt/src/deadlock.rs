//! The report when nothing can ever happen again: which task waits for what.

use crate::time::Nanos;
use std::fmt;
use thiserror::Error;

/// Nothing is ready, no timer is left, and work is unfinished.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
pub struct Deadlock {
    /// When.
    pub at: Nanos,
    /// Every task that has not ended.
    pub waiting: Vec<Waiting>,
}

/// A task that waits for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The task's name.
    pub task: String,
    /// What it waits for, for example "mutex `journal`"; several under a select, none when it waits
    /// for something from outside the runtime.
    pub on: Vec<String>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock at {}", self.at)?;
        for (index, waiting) in self.waiting.iter().enumerate() {
            write!(f, "{}{waiting}", if index == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, on } = self;
        let on = if on.is_empty() { "something unnamed".to_owned() } else { on.join(" or ") };
        write!(f, "task `{task}` waits for {on}")
    }
}
