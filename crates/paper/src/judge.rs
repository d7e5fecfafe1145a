//! Statements held against answers: the verdict on each, and what the open assumptions do to it.
//!
//! An assumption has an experiment of its own, which may be smaller than the statement's. So an alternative is held
//! against what was chosen in that same experiment, never against the statement's own measurement.

use crate::answers::Answers;
use crate::model::{Column, Measure, Measured, Paper, Statement, same};
use crate::reason::Because;
use crate::statement::shower;
use crate::verdict::{Judgement, Rule, Verdict};
use nandscape_report::{Mean, plain, values};
use serde_json::Value;

/// A statement that was judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// What was measured, seed by seed.
    pub seeds: Vec<f64>,
    /// The verdict and its reason.
    pub judgement: Judgement,
    /// The verdict on our own assumptions alone.
    pub ours: Verdict,
    /// The same along what the paper leaves open.
    pub sensitivity: Vec<Sensitivity>,
    /// Why the verdict is not "agrees", if the paper's folder says.
    pub because: Option<Because>,
    /// Under each variant; `None` where the variant does not change the statement's experiment.
    pub variants: Vec<Option<Verdicts>>,
}

/// A statement under a variant.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdicts {
    /// What was measured, seed by seed.
    pub seeds: Vec<f64>,
    /// The verdict and how the number stands to what is stated.
    pub judgement: Judgement,
    /// Why it is not "agrees", if the paper's folder says.
    pub because: Option<Because>,
}

impl Verdicts {
    /// The mean of what was measured, and its interval.
    #[must_use]
    pub fn measured(&self) -> Option<Mean> {
        Mean::of(&self.seeds)
    }
}

impl Judged {
    /// The mean of what was measured, and its interval.
    #[must_use]
    pub fn measured(&self) -> Option<Mean> {
        Mean::of(&self.seeds)
    }
}

/// A statement along an assumption, all in the assumption's own experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Sensitivity {
    /// The index of the assumption.
    pub assumption: usize,
    /// At the value that is ours.
    pub chosen: Reading,
    /// At all others.
    pub others: Vec<Reading>,
}

/// A statement at a value of an assumption.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// The value of the assumption's axis.
    pub value: Value,
    /// What was measured there, seed by seed.
    pub seeds: Vec<f64>,
    /// The verdict there.
    pub verdict: Verdict,
}

impl Sensitivity {
    /// The alternatives that have another verdict than what was chosen, where neither is inconclusive.
    pub fn moved(&self) -> impl Iterator<Item = &Reading> {
        let conclusive = self.others.iter().filter(|other| self.is_conclusive(other));
        conclusive.filter(|other| other.verdict != self.chosen.verdict)
    }

    /// The alternatives that are inconclusive, or whose chosen value is.
    pub fn inconclusive(&self) -> impl Iterator<Item = &Reading> {
        self.others.iter().filter(|other| !self.is_conclusive(other))
    }

    fn is_conclusive(&self, other: &Reading) -> bool {
        ![self.chosen.verdict, other.verdict].contains(&Verdict::Inconclusive)
    }

    /// Every verdict.
    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.others.iter().chain([&self.chosen]).map(|found| found.verdict)
    }
}

/// Judges all statements of a paper by the answers to its experiments, and to those of each variant.
#[must_use]
pub fn judge(paper: &Paper, answers: &[Answers], variants: &[Vec<Answers>]) -> Vec<Judged> {
    let judge = |(at, statement): (usize, &Statement)| match &statement.measured {
        Measured::Not(why) => {
            let judgement = statement.weigh(Judgement::inconclusive(why.clone()));
            Judged {
                seeds: Vec::new(),
                ours: judgement.verdict,
                judgement,
                sensitivity: Vec::new(),
                because: None,
                variants: vec![None; variants.len()],
            }
        }
        Measured::As(measure) => {
            let mut judged = judge_one(paper, answers, statement, measure);
            let all = Columns { paper, answers, variants };
            judged.because = all.because(at, Column::Base, judged.judgement.verdict);
            let columns = 0..variants.len();
            judged.variants = columns.map(|one| all.judge(at, statement, measure, one)).collect();
            judged
        }
    };
    paper.statements.iter().enumerate().map(judge).collect()
}

/// The answers of every column.
struct Columns<'a> {
    paper: &'a Paper,
    answers: &'a [Answers],
    variants: &'a [Vec<Answers>],
}

impl Columns<'_> {
    /// The answers to an experiment under a variant, if that changes it.
    fn answers(&self, variant: usize, experiment: usize) -> Option<&Answers> {
        let sweeps = &self.paper.variants[variant].sweeps;
        let at = sweeps.iter().position(|(changed, _)| *changed == experiment)?;
        self.variants[variant].get(at)
    }

    fn judge(
        &self,
        at: usize,
        statement: &Statement,
        measure: &Measure,
        variant: usize,
    ) -> Option<Verdicts> {
        let answers = self.answers(variant, measure.experiment)?;
        let seeds = answers.measure(measure, &measure.filter);
        let judgement = judge_numbers(self.paper, statement, measure, &seeds);
        let because = self.because(at, Column::Variant(variant), judgement.verdict);
        Some(Verdicts { seeds, judgement, because })
    }

    /// Why a statement does not agree in a column, with figures of that column where it has them.
    fn because(&self, statement: usize, column: Column, verdict: Verdict) -> Option<Because> {
        if !verdict.needs_reason() {
            return None;
        }
        let at = self.paper.reason(statement, column)?;
        let reason = &self.paper.reasons[at];
        let (answers, column) = match column {
            Column::Variant(variant) => match self.answers(variant, reason.experiment) {
                Some(answers) => (answers, column),
                None => (&self.answers[reason.experiment], Column::Base),
            },
            Column::Base => (&self.answers[reason.experiment], column),
        };
        Some(Because { reason: at, figures: reason.figures(answers), column })
    }
}

fn judge_one(
    paper: &Paper,
    answers: &[Answers],
    statement: &Statement,
    measure: &Measure,
) -> Judged {
    let seeds = answers[measure.experiment].measure(measure, &measure.filter);
    let judgement = judge_numbers(paper, statement, measure, &seeds);
    let assumptions = statement.sensitivity.iter();
    let sensitivity: Vec<Sensitivity> = assumptions
        .map(|assumption| sensitivity(paper, answers, (statement, measure), *assumption))
        .collect();
    let ours = judgement.verdict;
    let judgement = AlternativeResult { paper, measure, seeds: &seeds, sensitivity: &sensitivity }
        .weigh(judgement);
    Judged { seeds, judgement, ours, sensitivity, because: None, variants: Vec::new() }
}

/// The verdict on numbers. What a single seed of a reduced run gave is inconclusive.
fn judge_numbers(
    paper: &Paper,
    statement: &Statement,
    measure: &Measure,
    seeds: &[f64],
) -> Judgement {
    let Statement { claim, tolerance, .. } = statement;
    let rule = Rule { claim, tolerance: *tolerance, relative: measure.metric.is_relative() };
    let judgement = match rule.judge(seeds, &shower(measure)) {
        judgement if seeds.len() == 1 && !paper.one_seed_decides => judgement.of_one_seed(),
        judgement => judgement,
    };
    statement.weigh(judgement)
}

/// The statement at all values of an assumption.
fn sensitivity(
    paper: &Paper,
    answers: &[Answers],
    (statement, measure): (&Statement, &Measure),
    at: usize,
) -> Sensitivity {
    let assumption = &paper.assumptions[at];
    let answers = &answers[assumption.experiment];
    let found = |value: &Value| {
        let filter = measure.filter.with(&assumption.axis, value);
        let seeds = answers.measure(measure, &filter);
        let verdict = judge_numbers(paper, statement, measure, &seeds).verdict;
        Reading { value: value.clone(), seeds, verdict }
    };
    let values = values(answers.points(), &assumption.axis).into_iter();
    let others = values.filter(|value| !same(value, &assumption.chosen));
    Sensitivity {
        assumption: at,
        chosen: found(&assumption.chosen),
        others: others.map(found).collect(),
    }
}

/// A statement's own measurement beside what the assumptions do to it.
struct AlternativeResult<'a> {
    paper: &'a Paper,
    measure: &'a Measure,
    seeds: &'a [f64],
    sensitivity: &'a [Sensitivity],
}

impl AlternativeResult<'_> {
    /// The verdict once the assumptions are known: a statement that agrees at one value of an assumption and
    /// disagrees at another is inconclusive, since the paper does not state which it used. The reason names what
    /// differs, and by what.
    fn weigh(&self, judgement: Judgement) -> Judgement {
        let Judgement { verdict, looks_like, mut reason } = judgement;
        let moved = gathered(self.sensitivity.iter().flat_map(|one| self.moves(one)));
        let alternatives: usize = self.sensitivity.iter().map(|one| one.others.len()).sum();
        let inconclusive = self.sensitivity.iter().flat_map(Sensitivity::inconclusive).count();
        match (alternatives - inconclusive, moved.is_empty()) {
            (0, _) => {}
            (n, true) => reason
                .push_str(&format!("; verdict is insensitive to the unstated parameters ({n})")),
            (_, false) => moved.iter().for_each(|(from, moves)| {
                reason.push_str(&format!("; otherwise{from} {moves}"));
            }),
        }
        if inconclusive > 0 {
            reason.push_str(&format!("; other values that are inconclusive: {inconclusive}"));
        }
        reason.push_str(&self.elsewhere(verdict));
        match self.is_torn(verdict) {
            false => Judgement { verdict, looks_like, reason },
            true => {
                Judgement::inconclusive(format!("{reason}; the paper does not say which it used"))
            }
        }
    }

    /// Whether the assumptions decide between agreement and disagreement. Only experiments that give what was
    /// chosen the same verdict stand beside each other, the statement's own among them: between others it
    /// may be their size that decides.
    fn is_torn(&self, own: Verdict) -> bool {
        Verdict::ALL.into_iter().any(|start| {
            let alike = self.sensitivity.iter().filter(|one| one.chosen.verdict == start);
            let own = (own == start).then_some(own);
            let all: Vec<Verdict> = alike.flat_map(Sensitivity::verdicts).chain(own).collect();
            all.contains(&Verdict::Agrees) && all.contains(&Verdict::Disagrees)
        })
    }

    /// From what an assumption changes the verdict, unless that is the statement's own measurement, and to what.
    fn moves(&self, one: &Sensitivity) -> Vec<(String, String)> {
        let id = &self.paper.assumptions[one.assumption].id;
        let from = match one.chosen.seeds == self.seeds {
            true => String::new(),
            false => format!(", for {},", self.describe(&one.chosen)),
        };
        let to =
            |other: &Reading| format!("{} with {id} {}", self.describe(other), plain(&other.value));
        one.moved().map(|other| (from.clone(), to(other))).collect()
    }

    /// What says that it is the runs, not the assumption, where what was chosen has another verdict in the
    /// assumption's experiment than in the statement's.
    fn elsewhere(&self, own: Verdict) -> String {
        let others = self.sensitivity.iter().filter(|one| one.chosen.verdict != own);
        let of = |one: &Sensitivity| {
            (self.describe(&one.chosen), self.paper.assumptions[one.assumption].id.clone())
        };
        let texts = gathered(others.map(of)).into_iter().map(|(number, ids)| {
            format!("; the runs for {ids}, of another load, size or seeds, give {number} as chosen")
        });
        texts.collect()
    }

    /// A number with its verdict.
    fn describe(&self, found: &Reading) -> String {
        format!("{} ({})", found.shown(self.measure), found.verdict.name())
    }
}

/// All that has the same head, as a list in words.
fn gathered(all: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut lists: Vec<(String, String)> = Vec::new();
    for (head, one) in all {
        match lists.iter_mut().find(|(other, _)| *other == head) {
            Some((_, list)) => list.push_str(&format!(", {one}")),
            None => lists.push((head, one)),
        }
    }
    lists
}

impl Reading {
    /// The mean of what was measured, and its interval.
    #[must_use]
    pub fn measured(&self) -> Option<Mean> {
        Mean::of(&self.seeds)
    }

    /// What was measured, in words.
    fn shown(&self, measure: &Measure) -> String {
        let mean = self.measured();
        mean.map_or_else(|| "no number".to_owned(), |mean| measure.metric.show(&mean))
    }
}

impl Statement {
    /// What was measured, in words.
    #[must_use]
    pub fn shown(&self, judged: &Judged) -> String {
        match (&self.measured, &judged.measured()) {
            (Measured::As(measure), Some(mean)) => measure.metric.show(mean),
            _ => "–".to_owned(),
        }
    }

    /// What was measured under a variant, in words.
    #[must_use]
    pub fn shown_under(&self, verdicts: &Verdicts) -> String {
        match (&self.measured, &verdicts.measured()) {
            (Measured::As(measure), Some(mean)) => measure.metric.show(mean),
            _ => "–".to_owned(),
        }
    }

    /// What was measured at a value of an assumption, in words.
    #[must_use]
    pub fn shown_at(&self, found: &Reading) -> String {
        match &self.measured {
            Measured::As(measure) => found.shown(measure),
            Measured::Not(_) => "–".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Files;
    use nandscape_lab::stack::document::Table;
    use serde_json::json;
    use std::path::Path;

    fn tiny() -> Paper {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiny");
        Paper::load(Files::Host, &folder, crate::model::Size::Plain, &Table::new()).unwrap()
    }

    /// The paper of the tests with made-up answers: write amplification of the fresh device beside the
    /// other, in the statement's own experiment, and in the assumption's where the queue is as chosen and deep.
    fn judged(own: f64, chosen: f64, deep: f64) -> Judged {
        judged_over([&[own], &[chosen], &[deep]])
    }

    /// The same with a number for each seed.
    fn judged_over([own, chosen, deep]: [&[f64]; 3]) -> Judged {
        let paper = tiny();
        let answer = |experiment: &crate::model::Experiment| {
            let mut answers = Answers::new(&experiment.sweep);
            for at in 0..answers.points().len() {
                let point = answers.points()[at].clone();
                let fresh = match point.at("var.depth").as_u64() {
                    None => own,
                    Some(2) => chosen,
                    Some(_) => deep,
                };
                let is_fresh = plain(point.at("stack")) == "empty.toml";
                for (seed, fresh) in (1..).zip(fresh) {
                    let waf = if is_fresh { *fresh } else { 1.0 };
                    answers.add(at, seed, json!({ "nandscape": { "waf": { "gc": waf } } }));
                }
            }
            answers
        };
        let answers: Vec<Answers> = paper.experiments.iter().map(answer).collect();
        judge(&paper, &answers, &[]).remove(0)
    }

    /// Of several points the mean is measured, seed by seed; a seed without a number at one of them has none, as the mean of the
    /// others would be of other points.
    #[test]
    fn seeds_count_with_all_their_points() {
        let paper = tiny();
        let Measured::As(measure) = &paper.statements[0].measured else { panic!() };
        let measure = Measure { metric: "waf.gc".parse().unwrap(), ..measure.clone() };
        let mut answers = Answers::new(&paper.experiments[measure.experiment].sweep);
        let points = answers.points().len();
        assert!(points > 1);
        for at in 0..points {
            for seed in [1, 2].into_iter().filter(|seed| *seed == 1 || at > 0) {
                let waf = seed as f64 + at as f64;
                answers.add(at, seed, json!({ "nandscape": { "waf": { "gc": waf } } }));
            }
        }
        // 1, 2, 3, ... of the first seed.
        let mean = (points as f64 + 1.0) / 2.0;
        assert_eq!(answers.measure(&measure, &crate::model::Filter::default()), [mean]);
    }

    /// Where the assumption's runs give what the statement's gave: what every assumption says alike is the verdict,
    /// and what they disagree about is inconclusive.
    #[test]
    fn open_choices_are_weighed() {
        let alike = judged(0.5, 0.5, 0.6);
        assert_eq!(alike.judgement.verdict, Verdict::Agrees);
        let reason = &alike.judgement.reason;
        let end = "as stated; of one seed; verdict is insensitive to the unstated parameters (1)";
        assert!(reason.ends_with(end), "{reason}");
        let torn = judged(0.5, 0.5, 1.5);
        assert_eq!((torn.judgement.verdict, torn.ours), (Verdict::Inconclusive, Verdict::Agrees));
        let reason = &torn.judgement.reason;
        assert!(
            reason.contains("otherwise 1.500 (disagrees) with depth 8; the paper does not say"),
            "{reason}"
        );
        let other = judged(1.5, 1.5, 0.5);
        assert_eq!(
            (other.judgement.verdict, other.ours),
            (Verdict::Inconclusive, Verdict::Disagrees)
        );
        let fair = judged(0.5, 0.5, 0.95);
        assert_eq!(fair.judgement.verdict, Verdict::Agrees, "partially is no contradiction");
        assert!(fair.judgement.reason.ends_with("otherwise 0.950 (partially) with depth 8"));
    }

    /// An alternative is held against what was chosen in the assumption's own experiment.
    #[test]
    fn a_choice_is_judged_where_it_is_asked() {
        let Judged { sensitivity, judgement, .. } = judged(0.5, 0.6, 0.95);
        let [Sensitivity { chosen, others, .. }] = sensitivity.as_slice() else {
            panic!("{sensitivity:?}")
        };
        let mean = |found: &Reading| found.measured().unwrap().mean;
        assert_eq!((&chosen.value, mean(chosen)), (&json!(2), 0.6));
        assert_eq!(
            others.iter().map(|other| (&other.value, mean(other))).collect::<Vec<_>>(),
            [(&json!(8), 0.95)]
        );
        let end = "otherwise, for 0.600 (agrees), 0.950 (partially) with depth 8";
        assert!(judgement.reason.ends_with(end), "{}", judgement.reason);
    }

    /// Smaller runs that change a verdict whatever is chosen change nothing, and the reason says so.
    #[test]
    fn the_size_of_runs_is_no_choice() {
        let smaller = "the runs for depth, of another load, size or seeds, give";
        for (small, words) in [(0.95, "0.950 (partially)"), (1.5, "1.500 (disagrees)")] {
            let Judged { judgement, ours, .. } = judged(0.5, small, small);
            assert_eq!((judgement.verdict, ours), (Verdict::Agrees, Verdict::Agrees), "{small}");
            let end = format!("unstated parameters (1); {smaller} {words} as chosen");
            assert!(judgement.reason.ends_with(&end), "{}", judgement.reason);
        }
        let both = judged(0.5, 0.95, 1.5).judgement;
        assert_eq!(both.verdict, Verdict::Agrees, "no runs of one size agree and disagree");
        let moved = "otherwise, for 0.950 (partially), 1.500 (disagrees) with depth 8";
        assert!(
            both.reason.ends_with(&format!("{moved}; {smaller} 0.950 (partially) as chosen")),
            "{}",
            both.reason
        );
    }

    /// An alternative that the seeds leave open is no other verdict, and no agreement either.
    #[test]
    fn what_seeds_leave_open_is_no_other_verdict() {
        let even: &[f64] = &[0.5, 0.5];
        let Judged { judgement, sensitivity, .. } = judged_over([even, even, &[0.7, 1.3]]);
        assert_eq!(judgement.verdict, Verdict::Agrees);
        assert!(judgement.reason.ends_with("; other values that are inconclusive: 1"));
        assert_eq!((sensitivity[0].moved().count(), sensitivity[0].inconclusive().count()), (0, 1));
        let Judged { judgement, ours, sensitivity, .. } = judged_over([&[0.7, 1.3], even, even]);
        assert_eq!((judgement.verdict, ours), (Verdict::Inconclusive, Verdict::Inconclusive));
        assert_eq!((sensitivity[0].moved().count(), sensitivity[0].inconclusive().count()), (0, 0));
    }

    /// What an assumption alone turns from disagreement into agreement is inconclusive, whatever the statement's
    /// own runs say.
    #[test]
    fn smaller_runs_may_be_torn() {
        for own in [0.5, 0.95, 1.5] {
            let Judged { judgement, .. } = judged(own, 1.5, 0.5);
            assert_eq!(judgement.verdict, Verdict::Inconclusive, "{own}");
            assert!(
                judgement.reason.contains(" 0.500 (agrees) with depth 8"),
                "{}",
                judgement.reason
            );
        }
    }

    /// Assumptions stand beside each other where what was chosen has the same verdict, and only there.
    #[test]
    fn choices_are_compared_from_the_same_start() {
        use Verdict::{Agrees, Disagrees, Partially};
        let paper = tiny();
        let Measured::As(measure) = &paper.statements[0].measured else { panic!("it is measured") };
        let found = |verdict| Reading { value: json!(0), seeds: Vec::new(), verdict };
        let torn = |own: Verdict, moves: [(Verdict, Verdict); 2]| {
            let sensitivity = moves.map(|(chosen, other)| Sensitivity {
                assumption: 0,
                chosen: found(chosen),
                others: vec![found(other)],
            });
            AlternativeResult { paper: &paper, measure, seeds: &[], sensitivity: &sensitivity }
                .is_torn(own)
        };
        assert!(torn(Partially, [(Partially, Agrees), (Partially, Disagrees)]));
        assert!(torn(Agrees, [(Partially, Agrees), (Partially, Disagrees)]));
        assert!(torn(Agrees, [(Agrees, Agrees), (Agrees, Disagrees)]));
        assert!(!torn(Agrees, [(Agrees, Partially), (Partially, Disagrees)]));
        assert!(!torn(Agrees, [(Disagrees, Disagrees), (Partially, Agrees)]));
    }

    /// What starts from the same number is one list.
    #[test]
    fn lists_have_one_head() {
        let all = [("a", "1"), ("b", "2"), ("a", "3")];
        let all = all.map(|(head, one)| (head.to_owned(), one.to_owned()));
        let lists = gathered(all.into_iter());
        let lists: Vec<_> =
            lists.iter().map(|(head, list)| (head.as_str(), list.as_str())).collect();
        assert_eq!(lists, [("a", "1, 3"), ("b", "2")]);
    }

    /// A number that is missing somewhere is missing.
    #[test]
    fn missing_numbers_are_inconclusive() {
        let nothing = judged(f64::NAN, f64::NAN, 0.5);
        assert_eq!(nothing.measured(), None);
        assert_eq!(nothing.judgement.verdict, Verdict::Inconclusive);
    }
}
