//! Statements held against answers: the verdict on each, and what the open choices do to it.

use crate::answers::Answers;
use crate::model::{Claim, Measure, Measured, Paper, Statement, same};
use crate::verdict::{Judgement, Rule, Verdict};
use nandscape_report::{Mean, plain, values};
use serde_json::Value;

/// A statement that was judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// What was measured: the mean over the seeds, and its interval.
    pub measured: Option<Mean>,
    /// The verdict and its reason.
    pub judgement: Judgement,
    /// The verdict on our own choices alone.
    pub ours: Verdict,
    /// The same at the alternatives of what the paper leaves open.
    pub alternatives: Vec<Alternative>,
}

/// A statement at another choice.
#[derive(Clone, PartialEq, Debug)]
pub struct Alternative {
    /// The index of the choice.
    pub choice: usize,
    /// The value of its axis.
    pub value: Value,
    /// What was measured there.
    pub measured: Option<Mean>,
    /// The verdict there.
    pub verdict: Verdict,
}

/// Judges all statements of a paper by the answers to its questions.
#[must_use]
pub fn judge(paper: &Paper, answers: &[Answers]) -> Vec<Judged> {
    let judge = |statement: &Statement| match &statement.measured {
        Measured::Not(why) => Judged {
            measured: None,
            judgement: Judgement::untold(why.clone()),
            ours: Verdict::CannotBeTold,
            alternatives: Vec::new(),
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
    let measured = answers[measure.question].measure(measure, &measure.filter);
    let judgement = rule(statement, measure).judge(measured, &shower(measure));
    let choices = statement.across.iter();
    let alternatives: Vec<Alternative> = choices
        .flat_map(|choice| alternatives(paper, answers, (statement, measure), *choice))
        .collect();
    let ours = judgement.verdict;
    let judgement = weigh(paper, measure, judgement, &alternatives);
    Judged { measured, judgement, ours, alternatives }
}

fn rule<'a>(statement: &'a Statement, measure: &Measure) -> Rule<'a> {
    let Statement { claim, tolerance, .. } = statement;
    Rule { claim, tolerance: *tolerance, relative: measure.shows.is_relative() }
}

/// How numbers of a measure are shown.
fn shower(measure: &Measure) -> impl Fn(f64) -> String {
    |number| measure.shows.show(&Mean { mean: number, half_width: None })
}

/// The statement at all values of a choice but the one that is ours.
fn alternatives(
    paper: &Paper,
    answers: &[Answers],
    (statement, measure): (&Statement, &Measure),
    at: usize,
) -> Vec<Alternative> {
    let choice = &paper.choices[at];
    let answers = &answers[choice.question];
    let values = values(answers.points(), &choice.axis).into_iter();
    let others = values.filter(|value| !same(value, &choice.chosen));
    let alternative = |value: &Value| {
        let filter = measure.filter.with(&choice.axis, value);
        let measured = answers.measure(measure, &filter);
        let verdict = rule(statement, measure).judge(measured, &shower(measure)).verdict;
        Alternative { choice: at, value: value.clone(), measured, verdict }
    };
    others.map(alternative).collect()
}

/// The verdict once the alternatives are known: what agrees at one choice and disagrees at another
/// cannot be told of a paper that does not say which it used. The reason names what differs.
fn weigh(
    paper: &Paper,
    measure: &Measure,
    judgement: Judgement,
    alternatives: &[Alternative],
) -> Judgement {
    let Judgement { verdict, mut reason } = judgement;
    let told = alternatives.iter().map(|other| other.verdict);
    let all: Vec<Verdict> = told.chain([verdict]).collect();
    let differ = alternatives.iter().filter(|other| other.verdict != verdict);
    let differ: Vec<String> = differ.map(|other| sentence(paper, measure, other)).collect();
    match (alternatives.len(), differ.is_empty()) {
        (0, _) => {}
        (n, true) => {
            reason.push_str(&format!("; the same at all other choices of what is left open ({n})"))
        }
        (_, false) => reason.push_str(&format!("; otherwise {}", differ.join(", "))),
    }
    match all.contains(&Verdict::Agrees) && all.contains(&Verdict::Disagrees) {
        false => Judgement { verdict, reason },
        true => Judgement::untold(format!("{reason}; the paper does not say which it used")),
    }
}

fn sentence(paper: &Paper, measure: &Measure, other: &Alternative) -> String {
    let choice = &paper.choices[other.choice];
    let number = other.shown(measure);
    let (verdict, value) = (other.verdict.name(), plain(&other.value));
    format!("{number} ({verdict}) with {} {value}", choice.id)
}

impl Alternative {
    /// What was measured, in words.
    fn shown(&self, measure: &Measure) -> String {
        self.measured.map_or_else(|| "no number".to_owned(), |mean| measure.shows.show(&mean))
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
        match (&self.measured, &judged.measured) {
            (Measured::As(measure), Some(mean)) => measure.shows.show(mean),
            _ => "–".to_owned(),
        }
    }

    /// What was measured at an alternative, in words.
    #[must_use]
    pub fn shown_at(&self, other: &Alternative) -> String {
        match &self.measured {
            Measured::As(measure) => other.shown(measure),
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
    use serde_json::json;
    use std::path::Path;

    /// The paper of the tests with made-up answers: write amplification of the fresh device beside the
    /// other, by the depth of the queue.
    fn judged(shallow: f64, deep: f64) -> Judged {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiny");
        let paper = Paper::load(Files::Host, &folder, false).unwrap();
        let answer = |question: &crate::model::Question| {
            let mut answers = Answers::new(&question.sweep);
            for at in 0..answers.points().len() {
                let point = answers.points()[at].clone();
                let fresh = if point.at("var.depth") == &json!(8) { deep } else { shallow };
                let waf = if plain(point.at("stack")) == "empty.toml" { fresh } else { 1.0 };
                answers.add(at, 1, json!({ "nandscape": { "waf": { "gc": waf } } }));
            }
            answers
        };
        let answers: Vec<Answers> = paper.questions.iter().map(answer).collect();
        judge(&paper, &answers).remove(0)
    }

    /// What every choice says alike is the verdict; what they disagree about cannot be told.
    #[test]
    fn open_choices_are_weighed() {
        let alike = judged(0.5, 0.6);
        assert_eq!(alike.judgement.verdict, Verdict::Agrees);
        assert!(
            alike
                .judgement
                .reason
                .ends_with("the same at all other choices of what is left open (1)")
        );
        let torn = judged(0.5, 1.5);
        assert_eq!((torn.judgement.verdict, torn.ours), (Verdict::CannotBeTold, Verdict::Agrees));
        let reason = &torn.judgement.reason;
        assert!(
            reason.contains("otherwise 1.500 (disagrees) with depth 8; the paper does not say"),
            "{reason}"
        );
        let other = judged(1.5, 0.5);
        assert_eq!(
            (other.judgement.verdict, other.ours),
            (Verdict::CannotBeTold, Verdict::Disagrees)
        );
        let fair = judged(0.5, 0.95);
        assert_eq!(fair.judgement.verdict, Verdict::Agrees, "partly is no contradiction");
        assert!(fair.judgement.reason.contains("otherwise 0.950 (partly) with depth 8"));
    }

    /// A number that is missing somewhere is missing.
    #[test]
    fn missing_numbers_cannot_be_told() {
        let nothing = judged(f64::NAN, 0.5);
        assert_eq!(nothing.measured, None);
        assert_eq!(nothing.judgement.verdict, Verdict::CannotBeTold);
    }
}
