//! A paper under `--full`: the experiments that have `full` run on the paper's own device sizes, and what is left of
//! the paper is what these measure. Points of experiments that replace stacks by name keep their names.

use crate::model::Paper;
use crate::read::{Manner, ReadRequest};
use crate::stacks::lay;
use nandscape_lab::stack::StackError;
use nandscape_lab::stack::reader::Section;

/// The experiments at full size; those without `full` stay as they are until [`Paper::leave_full`], since what names
/// them is read and checked in any case.
pub(crate) fn full_sized(
    root: &Section<'_>,
    all: Vec<ReadRequest>,
    manner: Manner<'_>,
) -> Result<Vec<ReadRequest>, StackError> {
    if all.iter().all(|asked| asked.full.is_none()) {
        return Err(root.reject("experiment", "none has `full`, so --full has nothing to run"));
    }
    let full = |asked: ReadRequest| match asked.full.clone() {
        Some(over) => Ok(asked.under(lay(&asked, over, manner)?)),
        None => Ok(asked),
    };
    all.into_iter().map(full).collect()
}

impl Paper {
    /// Whether any experiment runs under `--full`.
    #[must_use]
    pub fn has_full(&self) -> bool {
        self.experiments.iter().any(|experiment| experiment.full)
    }
}
