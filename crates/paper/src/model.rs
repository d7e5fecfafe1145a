//! What a paper's folder says, as plain types. Whatever is named exists: experiments, axes, values, assumptions.

use nandscape_lab::sweep::Sweep;
use nandscape_report::{Figure as Metric, Point, plain};
use serde_json::Value;
use std::collections::BTreeSet;

/// What the paper is called as it stands, among its variants.
pub(crate) const BASE: &str = "base";

/// The size at which the experiments of a paper run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// That of the sweep files.
    Plain,
    /// The smaller one of `--quick`.
    Quick,
    /// That of the paper's own devices, of `--full`.
    Full,
}

/// A paper, ready to be reproduced.
#[derive(Clone, PartialEq, Debug)]
pub struct Paper {
    /// The name of its folder.
    pub id: String,
    /// What the command line calls it: its id if it ships, else its folder.
    pub name: String,
    /// Its title, as printed.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// Where it appeared.
    pub venue: String,
    /// And when.
    pub year: u64,
    /// What it claims, in a sentence of ours.
    pub claims: String,
    /// What its figures do not mean at this size.
    pub caution: Option<String>,
    /// Whether what a single seed gave has a verdict: only where the paper's folder itself asks for one at its own scale.
    pub one_seed_decides: bool,
    /// What is run.
    pub experiments: Vec<Experiment>,
    /// What is drawn.
    pub figures: Vec<Figure>,
    /// What it leaves open.
    pub assumptions: Vec<Assumption>,
    /// What is run in addition to what the paper states.
    pub extensions: Vec<Extension>,
    /// The same experiments on other platforms, sessions or states.
    pub variants: Vec<Variant>,
    /// What it states.
    pub statements: Vec<Statement>,
    /// Why verdicts are not "agrees".
    pub reasons: Vec<Reason>,
    /// What we decided, and why.
    pub notes: String,
}

/// A sweep whose results figures and statements are of.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// Its name.
    pub id: String,
    /// The grid of runs.
    pub sweep: Sweep,
    /// The sweep file, as the paper's folder names it.
    pub file: String,
    /// Whether it runs under `--full`.
    pub full: bool,
}

/// Experiments of the paper with several keys changed together.
#[derive(Clone, PartialEq, Debug)]
pub struct Variant {
    /// Its name.
    pub id: String,
    /// What it is.
    pub title: String,
    /// Why it is asked.
    pub why: String,
    /// The size of its load: a name that its experiments know, or `full`.
    pub scale: String,
    /// The sweep of each experiment that it changes, with the index of that.
    pub sweeps: Vec<(usize, Sweep)>,
}

/// The paper as it stands, or a variant of it: a column of the table of verdicts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Column {
    /// As it stands.
    Base,
    /// The variant with this index.
    Variant(usize),
}

/// Why verdicts are not "agrees", with figures that show it.
#[derive(Clone, PartialEq, Debug)]
pub struct Reason {
    /// Its name.
    pub id: String,
    /// The indices of the statements.
    pub statements: Vec<usize>,
    /// The columns that it explains; `None`: all.
    pub columns: Option<Vec<Column>>,
    /// The reason, in a sentence.
    pub text: String,
    /// The index of the experiment that shows it.
    pub experiment: usize,
    /// The points that show it.
    pub filter: Filter,
    /// The figures there.
    pub metric: Vec<Metric>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Groups of bars.
    Bars,
    /// Lines along an axis.
    Lines,
    /// Distribution functions of latency.
    Cdf,
    /// Lines over the time of a run.
    Time,
}

/// Values of axes that points must have; an axis that is not named may have any.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Filter(pub Vec<(String, Vec<Value>)>);

impl Filter {
    /// Whether the point has them.
    #[must_use]
    pub fn holds(&self, point: &Point) -> bool {
        self.0.iter().all(|(axis, values)| {
            let own = point.at(axis);
            values.iter().any(|value| same(own, value))
        })
    }

    /// The points that it leaves, by their place among `points`.
    #[must_use]
    pub fn of(&self, points: &[Point]) -> Vec<usize> {
        (0..points.len()).filter(|at| self.holds(&points[*at])).collect()
    }

    /// The same with this value of an axis instead of any other.
    #[must_use]
    pub fn with(&self, axis: &str, value: &Value) -> Self {
        let others = self.0.iter().filter(|(name, _)| name != axis).cloned();
        Self(others.chain([(axis.to_owned(), vec![value.clone()])]).collect())
    }
}

/// Whether two values are the same, as people write them: 10 is 10.0 is "10".
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    let numbers = one.as_f64().zip(other.as_f64());
    numbers.map_or_else(|| plain(one) == plain(other), |(one, other)| one == other)
}

/// A figure of the paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its number or name there.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The index of its experiment.
    pub experiment: usize,
    /// Its form.
    pub form: Form,
    /// What is drawn; of a distribution the kind of request.
    pub metric: PlotSpec,
    /// The axis that lies across.
    pub x: Option<String>,
    /// The axis that colours show.
    pub color: Option<String>,
    /// The points that are drawn.
    pub filter: Filter,
}

/// What a figure draws.
#[derive(Clone, PartialEq, Debug)]
pub enum PlotSpec {
    /// A figure of sweeps and reports.
    Figure(Metric),
    /// The distribution of the latency of `read`, `write`, `trim` or `sync`.
    Latency(String),
    /// A number of the series of a run.
    Course(&'static str),
}

/// Something that the paper leaves open.
#[derive(Clone, PartialEq, Debug)]
pub struct Assumption {
    /// Its name.
    pub id: String,
    /// What it is.
    pub title: String,
    /// What we chose.
    pub chosen: Value,
    /// Why.
    pub why: String,
    /// The index of the experiment whose axis holds the alternatives.
    pub experiment: usize,
    /// That axis.
    pub axis: String,
    /// The figures that show what it does.
    pub metric: Vec<Metric>,
}

/// A figure that the paper does not have.
#[derive(Clone, PartialEq, Debug)]
pub struct Extension {
    /// Its name.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What to read out of it; may be empty.
    pub text: String,
    /// The index of its experiment.
    pub experiment: usize,
    /// Its form.
    pub form: Form,
    /// What is drawn.
    pub metric: Vec<Metric>,
    /// The axis that lies across.
    pub x: Option<String>,
    /// The axis that colours show.
    pub color: Option<String>,
    /// The points that are drawn.
    pub filter: Filter,
}

/// Something that the paper states.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Its name.
    pub id: String,
    /// The index of the figure that it is about.
    pub figure: Option<usize>,
    /// Where it stands.
    pub place: String,
    /// The statement in our words.
    pub text: String,
    /// What that is as a number; none if it is not one that could be measured.
    pub claim: PublishedValue,
    /// How far off still counts.
    pub tolerance: Tolerance,
    /// How it is measured.
    pub measured: Measured,
    /// What stands for the paper's load where that could not be run; the verdict is "inconclusive" then.
    pub surrogate: Option<String>,
    /// What the paper does not give, and decides the number; the verdict is "inconclusive" then.
    pub undecidable: Option<String>,
    /// What of the authors' own data excludes the statement, which is the verdict then.
    pub contradicted: Option<Contradiction>,
    /// Why its number is no result: it was fitted, or holds by definition. Such statements are counted apart.
    pub input: Option<String>,
    /// The indices of the assumptions along which it is measured, too.
    pub sensitivity: Vec<usize>,
}

/// Data of the authors that exclude one of their statements.
#[derive(Clone, PartialEq, Debug)]
pub struct Contradiction {
    /// Where they stand.
    pub place: String,
    /// What they are, in a sentence.
    pub text: String,
    /// The number that they give in place of what is stated.
    pub value: f64,
}

/// What a statement is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A result to be reproduced.
    Reproduction,
    /// A number that was fitted, or holds by definition.
    Input,
}

/// How a statement is measured.
#[derive(Clone, PartialEq, Debug)]
pub enum Measured {
    /// So.
    As(Measure),
    /// Not at all, for this reason.
    Not(String),
}

/// A number out of the answers to an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// The index of the experiment.
    pub experiment: usize,
    /// The points that count.
    pub filter: Filter,
    /// The figure there; of several points their mean.
    pub metric: Metric,
}

/// What a paper states, as numbers.
#[derive(Clone, PartialEq, Debug)]
pub enum PublishedValue {
    /// One of these: several are ways to read the same sentence.
    Readings(Vec<f64>),
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// From the one to the other.
    Between(f64, f64),
}

impl Paper {
    /// Asks every experiment with the seeds from 1 to `last`, whatever its sweep says.
    pub fn ask_with_seeds(&mut self, last: u64) {
        let variants = self.variants.iter_mut().flat_map(|variant| &mut variant.sweeps);
        let own = self.experiments.iter_mut().map(|experiment| &mut experiment.sweep);
        own.chain(variants.map(|(_, sweep)| sweep))
            .for_each(|sweep| sweep.seeds = (1..=last).collect());
        self.one_seed_decides = false;
    }

    /// Whether a variant has this name, or `base`, which is the paper without one.
    #[must_use]
    pub fn has_variant(&self, name: &str) -> bool {
        name == BASE || self.variants.iter().any(|variant| variant.id == name)
    }

    /// What is said of a name that no variant has.
    #[must_use]
    pub fn unknown_variant(&self, name: &str) -> String {
        let ids = self.variants.iter().map(|variant| variant.id.as_str());
        let ids = std::iter::once(BASE).chain(ids).collect::<Vec<_>>().join(", ");
        format!("{} has no variant \"{name}\"; it has {ids}", self.id)
    }

    /// Every sweep, those of experiments first, each with what its rows are called.
    pub fn sweeps(&self) -> impl Iterator<Item = (String, &Sweep)> {
        let own = self.experiments.iter().map(|one| (one.id.clone(), &one.sweep));
        let variants = self.variants.iter().flat_map(|variant| {
            variant
                .sweeps
                .iter()
                .map(|(at, sweep)| (format!("{}-{}", self.experiments[*at].id, variant.id), sweep))
        });
        own.chain(variants)
    }

    /// What a column is called.
    #[must_use]
    pub fn column_name(&self, column: Column) -> &str {
        match column {
            Column::Base => BASE,
            Column::Variant(at) => &self.variants[at].id,
        }
    }

    /// How many statements are of this kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.statements.iter().filter(|statement| statement.kind() == kind).count()
    }

    /// Runs of all experiments and variants.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.sweeps().map(|(_, sweep)| sweep.runs()).sum()
    }

    /// Runs that differ; what several experiments ask for is run once.
    #[must_use]
    pub fn distinct_runs(&self) -> usize {
        distinct_runs(std::iter::once(self))
    }
}

/// Runs of all these papers that differ.
pub(crate) fn distinct_runs<'a>(papers: impl Iterator<Item = &'a Paper>) -> usize {
    let sweeps = papers.flat_map(Paper::sweeps);
    sweeps.flat_map(|(_, sweep)| sweep.ids("")).collect::<BTreeSet<_>>().len()
}

/// How far off still counts, relative to what is stated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// As agreement.
    pub within: f64,
    /// As agreement in part.
    pub partially: f64,
    /// Whether it is the side of 1 that counts for agreement in part, where a figure is relative.
    pub direction: bool,
}
