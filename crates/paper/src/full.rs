//! A paper under `--full`: the experiments that have `full` run on the paper's own device sizes, and what is left of
//! the paper is what these measure. Points of experiments that replace stacks by name keep their names.

use crate::model::{Measured, Paper, Statement};
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

    /// Leaves the experiments that have `full` with what shows them, and no variant. Statements on the others stay as
    /// not measured.
    pub(crate) fn leave_full(&mut self) {
        self.leave_variants(&[]);
        let experiments = places(&self.experiments, |experiment| experiment.full);
        let is_run = |at: usize| experiments[at].is_some();
        let figures = places(&self.figures, |figure| is_run(figure.experiment));
        let assumptions = places(&self.assumptions, |one| is_run(one.experiment));
        for statement in &mut self.statements {
            let Statement { figure, measured, sensitivity, .. } = statement;
            *figure = figure.and_then(|at| figures[at]);
            sensitivity.retain_mut(|at| moved(at, &assumptions));
            if let Measured::As(measure) = measured {
                let at = measure.experiment;
                if !moved(&mut measure.experiment, &experiments) {
                    let id = &self.experiments[at].id;
                    let why = format!("experiment \"{id}\" is not run under --full");
                    (*measured, *sensitivity) = (Measured::Not(why), Vec::new());
                }
            }
        }
        self.figures.retain_mut(|one| moved(&mut one.experiment, &experiments));
        self.assumptions.retain_mut(|one| moved(&mut one.experiment, &experiments));
        self.extensions.retain_mut(|one| moved(&mut one.experiment, &experiments));
        self.reasons.retain_mut(|one| moved(&mut one.experiment, &experiments));
        self.experiments.retain(|experiment| experiment.full);
    }
}

/// The index of each item among those that stay; `None` for the others.
fn places<T>(all: &[T], stays: impl Fn(&T) -> bool) -> Vec<Option<usize>> {
    let mut next = 0..;
    all.iter().map(|one| stays(one).then(|| next.next()).flatten()).collect()
}

/// Whether what `at` names stays; `at` is its new index then.
fn moved(at: &mut usize, places: &[Option<usize>]) -> bool {
    places[*at].map(|place| *at = place).is_some()
}
