//! A part of a paper: variants or experiments are left out, and with experiments all that shows them. What stays
//! refers to the experiments, figures, assumptions and variants that stay, whatever their places were; no statement
//! is left out, but may be not measured.

use crate::model::{Column, Measured, Paper, Statement};

impl Paper {
    /// Leaves the variants of these names.
    pub fn leave_variants(&mut self, names: &[String]) {
        self.retain_variants(|id| names.iter().any(|name| name == id));
    }

    /// Leaves the experiments that have `full` with what shows them, and no variant. Statements on the others stay as
    /// not measured.
    pub(crate) fn leave_full(&mut self) {
        self.leave_variants(&[]);
        let stays: Vec<bool> = self.experiments.iter().map(|experiment| experiment.full).collect();
        self.leave_experiments(&stays, "--full");
    }

    /// Leaves out extensions, and the experiments and variants that show nothing else.
    pub fn leave_extensions(&mut self) {
        self.extensions.clear();
        let mut stays = vec![false; self.experiments.len()];
        let measured = self.statements.iter().filter_map(|statement| match &statement.measured {
            Measured::As(measure) => Some(measure.experiment),
            Measured::Not(_) => None,
        });
        let figures = self.figures.iter().map(|one| one.experiment);
        let assumptions = self.assumptions.iter().map(|one| one.experiment);
        let reasons = self.reasons.iter().map(|one| one.experiment);
        for at in measured.chain(figures).chain(assumptions).chain(reasons) {
            stays[at] = true;
        }
        self.leave_experiments(&stays, "--no-extensions");
    }

    /// Leaves the experiments that stay, and what shows them; `under` is the option that asks for it.
    fn leave_experiments(&mut self, stays: &[bool], under: &str) {
        let experiments = places(stays, |stays| *stays);
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
                    let why = format!("experiment \"{id}\" is not run under {under}");
                    (*measured, *sensitivity) = (Measured::Not(why), Vec::new());
                }
            }
        }
        self.figures.retain_mut(|one| moved(&mut one.experiment, &experiments));
        self.assumptions.retain_mut(|one| moved(&mut one.experiment, &experiments));
        self.extensions.retain_mut(|one| moved(&mut one.experiment, &experiments));
        self.reasons.retain_mut(|one| moved(&mut one.experiment, &experiments));
        for variant in &mut self.variants {
            variant.sweeps.retain_mut(|(at, _)| moved(at, &experiments));
        }
        let empty: Vec<String> = self
            .variants
            .iter()
            .filter(|one| one.sweeps.is_empty())
            .map(|one| one.id.clone())
            .collect();
        self.retain_variants(|id| !empty.iter().any(|empty| empty == id));
        let mut stays = stays.iter();
        self.experiments.retain(|_| stays.next().is_some_and(|stays| *stays));
    }

    fn retain_variants(&mut self, stays: impl Fn(&str) -> bool) {
        let variants = places(&self.variants, |variant| stays(&variant.id));
        for columns in self.reasons.iter_mut().filter_map(|reason| reason.columns.as_mut()) {
            columns.retain_mut(|column| match column {
                Column::Base => true,
                Column::Variant(at) => moved(at, &variants),
            });
        }
        self.variants.retain(|variant| stays(&variant.id));
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
