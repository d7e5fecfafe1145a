//! What a campaign on a file system ran on, as its reports name it.

use crate::args::BaseChoice;
use nandscape_fs::FsKind;
use std::fmt;

/// What a campaign ran on.
pub(super) struct Ground {
    pub(super) kind: FsKind,
    /// How it was mounted: keys and values of `[fs]`.
    pub(super) modes: Vec<(&'static str, &'static str)>,
    pub(super) base: BaseChoice,
    /// Whether each part of the stack is driven to its end.
    pub(super) full: bool,
}

/// The value of a mode that each seed drew.
pub(super) const DRAWN: &str = "drawn";

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        for (key, value) in &self.modes {
            write!(f, ", {key}={value}")?;
        }
        let full = if self.full { ", full" } else { "" };
        writeln!(f, ", base={}{full}", self.base.name())
    }
}
