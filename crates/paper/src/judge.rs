//! Statements held against answers: the verdict on each, and what the open choices do to it.
//!
//! A choice has a question of its own, which may be smaller than the statement's. So an alternative is held
//! against what was chosen in that same question, never against the statement's own measurement.

use crate::answers::Answers;
use crate::model::{Claim, Measure, Measured, Paper, Statement, same};
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
    /// The verdict on our own choices alone.
    pub ours: Verdict,
    /// The same along what the paper leaves open.
    pub across: Vec<Sensitivity>,
}

impl Judged {
    /// The mean of what was measured, and its interval.
    #[must_use]
    pub fn measured(&self) -> Option<Mean> {
        Mean::of(&self.seeds)
    }
}

/// A statement along a choice, all in the choice's own question.
#[derive(Clone, PartialEq, Debug)]
pub struct Sensitivity {
    /// The index of the choice.
    pub choice: usize,
    /// At the value that is ours.
    pub chosen: Found,
    /// At all others.
    pub others: Vec<Found>,
}

/// A statement at a value of a choice.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// The value of the choice's axis.
    pub value: Value,
    /// What was measured there, seed by seed.
    pub seeds: Vec<f64>,
    /// The verdict there.
    pub verdict: Verdict,
}

impl Sensitivity {
    /// The alternatives that have another verdict than what was chosen, where both can be told.
    pub fn moved(&self) -> impl Iterator<Item = &Found> {
        let told = self.others.iter().filter(|other| self.tells(other));
        told.filter(|other| other.verdict != self.chosen.verdict)
    }

    /// The alternatives of which nobody can say whether they change the verdict.
    pub fn unsure(&self) -> impl Iterator<Item = &Found> {
        self.others.iter().filter(|other| !self.tells(other))
    }

    fn tells(&self, other: &Found) -> bool {
        ![self.chosen.verdict, other.verdict].contains(&Verdict::CannotBeTold)
    }

    /// Every verdict.
    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.others.iter().chain([&self.chosen]).map(|found| found.verdict)
    }
}

/// Judges all statements of a paper by the answers to its questions.
#[must_use]
pub fn judge(paper: &Paper, answers: &[Answers]) -> Vec<Judged> {
    let judge = |statement: &Statement| match &statement.measured {
        Measured::Not(why) => Judged {
            seeds: Vec::new(),
            judgement: Judgement::untold(why.clone()),
            ours: Verdict::CannotBeTold,
            across: Vec::new(),
        },
        Measured::As(measure) => judge_one(paper, answers, statement, measure),
    };
    paper.statements.iter().map(judge).collect()
}

fn judge_one(
    paper: &Paper,
    answers: &[Answers],
    statement: &Statement,
    measure: &Measure,
) -> Judged {
    let seeds = answers[measure.question].measure(measure, &measure.filter);
    let judgement = rule(statement, measure).judge(&seeds, &shower(measure));
    let choices = statement.across.iter();
    let across: Vec<Sensitivity> =
        choices.map(|choice| sensitivity(paper, answers, (statement, measure), *choice)).collect();
    let ours = judgement.verdict;
    let judgement = Weighed { paper, measure, seeds: &seeds, across: &across }.weigh(judgement);
    Judged { seeds, judgement, ours, across }
}

fn rule<'a>(statement: &'a Statement, measure: &Measure) -> Rule<'a> {
    let Statement { claim, tolerance, .. } = statement;
    Rule { claim, tolerance: *tolerance, relative: measure.shows.is_relative() }
}

/// How numbers of a measure are shown.
fn shower(measure: &Measure) -> impl Fn(f64) -> String {
    |number| measure.shows.show(&Mean { mean: number, half_width: None })
}

/// The statement at all values of a choice.
fn sensitivity(
    paper: &Paper,
    answers: &[Answers],
    (statement, measure): (&Statement, &Measure),
    at: usize,
) -> Sensitivity {
    let choice = &paper.choices[at];
    let answers = &answers[choice.question];
    let found = |value: &Value| {
        let filter = measure.filter.with(&choice.axis, value);
        let seeds = answers.measure(measure, &filter);
        let verdict = rule(statement, measure).judge(&seeds, &shower(measure)).verdict;
        Found { value: value.clone(), seeds, verdict }
    };
    let values = values(answers.points(), &choice.axis).into_iter();
    let others = values.filter(|value| !same(value, &choice.chosen));
    Sensitivity { choice: at, chosen: found(&choice.chosen), others: others.map(found).collect() }
}

/// A statement's own measurement beside what the choices do to it.
struct Weighed<'a> {
    paper: &'a Paper,
    measure: &'a Measure,
    seeds: &'a [f64],
    across: &'a [Sensitivity],
}

impl Weighed<'_> {
    /// The verdict once the choices are known: what agrees at one choice and disagrees at another cannot be
    /// told of a paper that does not say which it used. The reason names what differs, and by what.
    fn weigh(&self, judgement: Judgement) -> Judgement {
        let Judgement { verdict, mut reason } = judgement;
        let moved = gathered(self.across.iter().flat_map(|one| self.moves(one)));
        let alternatives: usize = self.across.iter().map(|one| one.others.len()).sum();
        let unsure = self.across.iter().flat_map(Sensitivity::unsure).count();
        match (alternatives - unsure, moved.is_empty()) {
            (0, _) => {}
            (n, true) => reason.push_str(&format!(
                "; no other choice of what is left open changes the verdict ({n})"
            )),
            (_, false) => moved.iter().for_each(|(from, moves)| {
                reason.push_str(&format!("; otherwise{from} {moves}"));
            }),
        }
        if unsure > 0 {
            reason.push_str(&format!("; of other choices {unsure} cannot be told"));
        }
        reason.push_str(&self.elsewhere(verdict));
        match self.is_torn(verdict) {
            false => Judgement { verdict, reason },
            true => Judgement::untold(format!("{reason}; the paper does not say which it used")),
        }
    }

    /// Whether the choices decide between agreement and disagreement. Only questions that give what was
    /// chosen the same verdict stand beside each other, the statement's own among them: between others it
    /// may be their size that decides.
    fn is_torn(&self, own: Verdict) -> bool {
        Verdict::ALL.into_iter().any(|start| {
            let alike = self.across.iter().filter(|one| one.chosen.verdict == start);
            let own = (own == start).then_some(own);
            let all: Vec<Verdict> = alike.flat_map(Sensitivity::verdicts).chain(own).collect();
            all.contains(&Verdict::Agrees) && all.contains(&Verdict::Disagrees)
        })
    }

    /// From what a choice changes the verdict, unless that is the statement's own measurement, and to what.
    fn moves(&self, one: &Sensitivity) -> Vec<(String, String)> {
        let id = &self.paper.choices[one.choice].id;
        let from = match one.chosen.seeds == self.seeds {
            true => String::new(),
            false => format!(", for {},", self.told(&one.chosen)),
        };
        let to = |other: &Found| format!("{} with {id} {}", self.told(other), plain(&other.value));
        one.moved().map(|other| (from.clone(), to(other))).collect()
    }

    /// What says that it is the runs, not the choice, where what was chosen has another verdict in the
    /// choice's question than in the statement's.
    fn elsewhere(&self, own: Verdict) -> String {
        let others = self.across.iter().filter(|one| one.chosen.verdict != own);
        let of =
            |one: &Sensitivity| (self.told(&one.chosen), self.paper.choices[one.choice].id.clone());
        let told = gathered(others.map(of)).into_iter().map(|(number, ids)| {
            format!("; the runs for {ids}, of another load, size or seeds, give {number} as chosen")
        });
        told.collect()
    }

    /// A number with its verdict.
    fn told(&self, found: &Found) -> String {
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

impl Found {
    /// The mean of what was measured, and its interval.
    #[must_use]
    pub fn measured(&self) -> Option<Mean> {
        Mean::of(&self.seeds)
    }

    /// What was measured, in words.
    fn shown(&self, measure: &Measure) -> String {
        let mean = self.measured();
        mean.map_or_else(|| "no number".to_owned(), |mean| measure.shows.show(&mean))
    }
}

impl Statement {
    /// What is stated, as numbers in words.
    #[must_use]
    pub fn published(&self) -> String {
        match &self.measured {
            Measured::As(measure) => self.claim.text(&shower(measure)),
            Measured::Not(_) => self.claim.text(&|number| number.to_string()),
        }
    }

    /// What was measured, in words.
    #[must_use]
    pub fn shown(&self, judged: &Judged) -> String {
        match (&self.measured, &judged.measured()) {
            (Measured::As(measure), Some(mean)) => measure.shows.show(mean),
            _ => "–".to_owned(),
        }
    }

    /// What was measured at a value of a choice, in words.
    #[must_use]
    pub fn shown_at(&self, found: &Found) -> String {
        match &self.measured {
            Measured::As(measure) => found.shown(measure),
            Measured::Not(_) => "–".to_owned(),
        }
    }

    /// The numbers that are stated, whichever way.
    #[must_use]
    pub fn numbers(&self) -> Vec<f64> {
        match &self.claim {
            Claim::Readings(values) => values.clone(),
            Claim::AtMost(value) | Claim::AtLeast(value) => vec![*value],
            Claim::Between(low, high) => vec![*low, *high],
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
        Paper::load(Files::Host, &folder, false, &Table::new()).unwrap()
    }

    /// The paper of the tests with made-up answers: write amplification of the fresh device beside the
    /// other, in the statement's own question, and in the choice's where the queue is as chosen and deep.
    fn judged(own: f64, chosen: f64, deep: f64) -> Judged {
        judged_over([&[own], &[chosen], &[deep]])
    }

    /// The same with a number for each seed.
    fn judged_over([own, chosen, deep]: [&[f64]; 3]) -> Judged {
        let paper = tiny();
        let answer = |question: &crate::model::Question| {
            let mut answers = Answers::new(&question.sweep);
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
        let answers: Vec<Answers> = paper.questions.iter().map(answer).collect();
        judge(&paper, &answers).remove(0)
    }

    /// Where the choice's runs give what the statement's gave: what every choice says alike is the verdict,
    /// and what they disagree about cannot be told.
    #[test]
    fn open_choices_are_weighed() {
        let alike = judged(0.5, 0.5, 0.6);
        assert_eq!(alike.judgement.verdict, Verdict::Agrees);
        let reason = &alike.judgement.reason;
        let end =
            "as stated; of one seed; no other choice of what is left open changes the verdict (1)";
        assert!(reason.ends_with(end), "{reason}");
        let torn = judged(0.5, 0.5, 1.5);
        assert_eq!((torn.judgement.verdict, torn.ours), (Verdict::CannotBeTold, Verdict::Agrees));
        let reason = &torn.judgement.reason;
        assert!(
            reason.contains("otherwise 1.500 (disagrees) with depth 8; the paper does not say"),
            "{reason}"
        );
        let other = judged(1.5, 1.5, 0.5);
        assert_eq!(
            (other.judgement.verdict, other.ours),
            (Verdict::CannotBeTold, Verdict::Disagrees)
        );
        let fair = judged(0.5, 0.5, 0.95);
        assert_eq!(fair.judgement.verdict, Verdict::Agrees, "partly is no contradiction");
        assert!(fair.judgement.reason.ends_with("otherwise 0.950 (partly) with depth 8"));
    }

    /// An alternative is held against what was chosen in the choice's own question.
    #[test]
    fn a_choice_is_judged_where_it_is_asked() {
        let Judged { across, judgement, .. } = judged(0.5, 0.6, 0.95);
        let [Sensitivity { chosen, others, .. }] = across.as_slice() else { panic!("{across:?}") };
        let mean = |found: &Found| found.measured().unwrap().mean;
        assert_eq!((&chosen.value, mean(chosen)), (&json!(2), 0.6));
        assert_eq!(
            others.iter().map(|other| (&other.value, mean(other))).collect::<Vec<_>>(),
            [(&json!(8), 0.95)]
        );
        let end = "otherwise, for 0.600 (agrees), 0.950 (partly) with depth 8";
        assert!(judgement.reason.ends_with(end), "{}", judgement.reason);
    }

    /// Smaller runs that change a verdict whatever is chosen change nothing, and the reason says so.
    #[test]
    fn the_size_of_runs_is_no_choice() {
        let smaller = "the runs for depth, of another load, size or seeds, give";
        for (small, words) in [(0.95, "0.950 (partly)"), (1.5, "1.500 (disagrees)")] {
            let Judged { judgement, ours, .. } = judged(0.5, small, small);
            assert_eq!((judgement.verdict, ours), (Verdict::Agrees, Verdict::Agrees), "{small}");
            let end = format!("changes the verdict (1); {smaller} {words} as chosen");
            assert!(judgement.reason.ends_with(&end), "{}", judgement.reason);
        }
        let both = judged(0.5, 0.95, 1.5).judgement;
        assert_eq!(both.verdict, Verdict::Agrees, "no runs of one size agree and disagree");
        let moved = "otherwise, for 0.950 (partly), 1.500 (disagrees) with depth 8";
        assert!(
            both.reason.ends_with(&format!("{moved}; {smaller} 0.950 (partly) as chosen")),
            "{}",
            both.reason
        );
    }

    /// An alternative that the seeds leave open is no other verdict, and no agreement either.
    #[test]
    fn what_seeds_leave_open_is_no_other_verdict() {
        let even: &[f64] = &[0.5, 0.5];
        let Judged { judgement, across, .. } = judged_over([even, even, &[0.7, 1.3]]);
        assert_eq!(judgement.verdict, Verdict::Agrees);
        assert!(judgement.reason.ends_with("; of other choices 1 cannot be told"));
        assert_eq!((across[0].moved().count(), across[0].unsure().count()), (0, 1));
        let Judged { judgement, ours, across, .. } = judged_over([&[0.7, 1.3], even, even]);
        assert_eq!((judgement.verdict, ours), (Verdict::CannotBeTold, Verdict::CannotBeTold));
        assert_eq!((across[0].moved().count(), across[0].unsure().count()), (0, 0));
    }

    /// What a choice alone turns from disagreement into agreement cannot be told, whatever the statement's
    /// own runs say.
    #[test]
    fn smaller_runs_may_be_torn() {
        for own in [0.5, 0.95, 1.5] {
            let Judged { judgement, .. } = judged(own, 1.5, 0.5);
            assert_eq!(judgement.verdict, Verdict::CannotBeTold, "{own}");
            assert!(
                judgement.reason.contains(" 0.500 (agrees) with depth 8"),
                "{}",
                judgement.reason
            );
        }
    }

    /// Choices stand beside each other where what was chosen has the same verdict, and only there.
    #[test]
    fn choices_are_compared_from_the_same_start() {
        use Verdict::{Agrees, Disagrees, Partly};
        let paper = tiny();
        let Measured::As(measure) = &paper.statements[0].measured else { panic!("it is measured") };
        let found = |verdict| Found { value: json!(0), seeds: Vec::new(), verdict };
        let torn = |own: Verdict, moves: [(Verdict, Verdict); 2]| {
            let across = moves.map(|(chosen, other)| Sensitivity {
                choice: 0,
                chosen: found(chosen),
                others: vec![found(other)],
            });
            Weighed { paper: &paper, measure, seeds: &[], across: &across }.is_torn(own)
        };
        assert!(torn(Partly, [(Partly, Agrees), (Partly, Disagrees)]));
        assert!(torn(Agrees, [(Partly, Agrees), (Partly, Disagrees)]));
        assert!(torn(Agrees, [(Agrees, Agrees), (Agrees, Disagrees)]));
        assert!(!torn(Agrees, [(Agrees, Partly), (Partly, Disagrees)]));
        assert!(!torn(Agrees, [(Disagrees, Disagrees), (Partly, Agrees)]));
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
    fn missing_numbers_cannot_be_told() {
        let nothing = judged(f64::NAN, f64::NAN, 0.5);
        assert_eq!(nothing.measured(), None);
        assert_eq!(nothing.judgement.verdict, Verdict::CannotBeTold);
    }
}
