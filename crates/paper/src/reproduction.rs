//! A paper with its answers: what it states judged, and every result checked.

use crate::answers::Answers;
use crate::checks::{Checked, check};
use crate::judge::{Judged, judge};
use crate::model::{Kind, Measured, Paper, PlotSpec, Statement};
use crate::verdict::Verdict;
use nandscape_report::Figure;

/// A reproduction.
#[derive(Clone, PartialEq, Debug)]
pub struct Reproduction {
    /// The paper.
    pub paper: Paper,
    /// By experiment.
    pub answers: Vec<Answers>,
    /// By variant, and there by the experiments that it changes.
    pub variants: Vec<Vec<Answers>>,
    /// By statement.
    pub judged: Vec<Judged>,
    /// Every check.
    pub checked: Vec<Checked>,
}

impl Reproduction {
    /// Of these answers, one for each sweep of the paper, in the order of [`Paper::sweeps`].
    #[must_use]
    pub fn new(paper: Paper, answers: Vec<Answers>) -> Self {
        let names: Vec<String> = paper.sweeps().map(|(name, _)| name).collect();
        let checked = check(names.iter().map(String::as_str).zip(&answers));
        let mut all = answers.into_iter();
        let answers: Vec<Answers> = all.by_ref().take(paper.experiments.len()).collect();
        let variants = paper.variants.iter();
        let variants: Vec<Vec<Answers>> =
            variants.map(|variant| all.by_ref().take(variant.sweeps.len()).collect()).collect();
        let judged = judge(&paper, &answers, &variants);
        Self { paper, answers, variants, judged, checked }
    }

    /// Every sweep's name with its answers, in the order of [`Paper::sweeps`].
    pub(crate) fn all_answers(&self) -> impl Iterator<Item = (String, &Answers)> {
        let names = self.paper.sweeps().map(|(name, _)| name);
        names.zip(self.answers.iter().chain(self.variants.iter().flatten()))
    }

    /// Verdicts of all columns that need a reason, and how many of them have one.
    #[must_use]
    pub fn reasons(&self) -> (usize, usize) {
        let own = self.judged.iter().map(|one| (one.judgement.verdict, one.because.is_some()));
        let variants = self.judged.iter().flat_map(|one| one.variants.iter().flatten());
        let variants = variants.map(|one| (one.judgement.verdict, one.because.is_some()));
        let open = own.chain(variants).filter(|(verdict, _)| verdict.needs_reason());
        open.fold((0, 0), |(all, given), (_, reason)| (all + 1, given + usize::from(reason)))
    }

    /// Statements with what became of them.
    pub fn statements(&self) -> impl Iterator<Item = (&Statement, &Judged)> {
        self.paper.statements.iter().zip(&self.judged)
    }

    /// How many statements of this kind have this verdict.
    #[must_use]
    pub fn count(&self, kind: Kind, verdict: Verdict) -> usize {
        let of_kind = self.statements().filter(|(statement, _)| statement.kind() == kind);
        of_kind.filter(|(_, judged)| judged.judgement.verdict == verdict).count()
    }

    /// Results that make no sense, each with its check.
    #[must_use]
    pub fn nonsense(&self) -> Vec<String> {
        let of_check = |checked: &Checked| {
            let name = checked.name;
            let failures = checked.failures.clone().into_iter();
            failures.map(move |failure| format!("{name}: {}: {}", failure.run, failure.why))
        };
        self.checked.iter().flat_map(of_check).collect()
    }

    /// The first figure that no result of its experiment knows: a typing error.
    #[must_use]
    pub fn unknown_path(&self) -> Option<String> {
        let Paper { figures, assumptions, extensions, statements, .. } = &self.paper;
        let drawn = figures.iter().filter_map(|figure| match &figure.metric {
            PlotSpec::Figure(metric) => Some((figure.experiment, metric)),
            PlotSpec::Latency(_) | PlotSpec::Course(_) => None,
        });
        let open = assumptions
            .iter()
            .flat_map(|one| one.metric.iter().map(|metric| (one.experiment, metric)));
        let more = extensions
            .iter()
            .flat_map(|one| one.metric.iter().map(|metric| (one.experiment, metric)));
        let stated = statements.iter().filter_map(|statement| match &statement.measured {
            Measured::As(measure) => Some((measure.experiment, &measure.metric)),
            Measured::Not(_) => None,
        });
        let reasons = self.paper.reasons.iter();
        let reasons =
            reasons.flat_map(|one| one.metric.iter().map(|metric| (one.experiment, metric)));
        let mut all = drawn.chain(open).chain(more).chain(stated).chain(reasons);
        all.find_map(|(experiment, metric)| self.slip_of(experiment, metric))
    }

    fn slip_of(&self, experiment: usize, metric: &Figure) -> Option<String> {
        let unknown_path = self.answers[experiment].column(metric).ok()?.unknown_path()?;
        Some(format!(
            "{}, experiment \"{}\": {unknown_path}",
            self.paper.id, self.paper.experiments[experiment].id
        ))
    }
}
