//! Where something stands in a file that a user wrote or recorded: what errors and notices name.

use std::fmt;
use std::sync::Arc;

/// A place in a job file, a workload or a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file, as the user named it.
    pub file: Arc<str>,
    /// Line, from 1; 0 when the whole file is meant.
    pub line: u32,
    /// Column in characters, from 1; 0 when the whole line is meant.
    pub column: u32,
}

impl Place {
    /// The whole of `file`.
    #[must_use]
    pub fn file(file: &str) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        [self.line, self.column].iter().take_while(|n| **n > 0).try_for_each(|n| write!(f, ":{n}"))
    }
}
