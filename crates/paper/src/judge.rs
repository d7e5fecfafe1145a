//! Statements held against answers: the verdict on each, and what the open choices do to it.

use crate::answers::Answers;
use crate::model::{Claim, Measure, Measured, Paper, Statement, same};
use crate::verdict::{Judgement, Rule, Verdict};
use nandscape_report::{Mean, plain};
use serde_json::Value;

/// A statement that was judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// What was measured: the mean over the seeds, and its interval.
    pub measured: Option<Mean>,
    /// The verdict and its reason.
    pub judgement: Judgement,
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
    let judgement = weigh(paper, measure, judgement, &alternatives);
    Judged { measured, judgement, alternatives }
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
    let mut values: Vec<&Value> = Vec::new();
    for value in answers.points().iter().map(|point| point.at(&choice.axis)) {
        if !same(value, &choice.chosen) && !values.contains(&value) {
            values.push(value);
        }
    }
    let alternative = |value: &Value| {
        let filter = measure.filter.with(&choice.axis, value);
        let measured = answers.measure(measure, &filter);
        let verdict = rule(statement, measure).judge(measured, &shower(measure)).verdict;
        Alternative { choice: at, value: value.clone(), measured, verdict }
    };
    values.into_iter().map(alternative).collect()
}

/// The verdict once the alternatives are known: what agrees at one choice and disagrees at another
/// cannot be told of a paper that does not say which it used.
fn weigh(
    paper: &Paper,
    measure: &Measure,
    judgement: Judgement,
    alternatives: &[Alternative],
) -> Judgement {
    let Judgement { verdict, reason } = judgement;
    let told = alternatives.iter().map(|other| other.verdict);
    let all: Vec<Verdict> = told.chain([verdict]).collect();
    let both = all.contains(&Verdict::Agrees) && all.contains(&Verdict::Disagrees);
    let others: Vec<String> = paper
        .choices
        .iter()
        .enumerate()
        .filter_map(|(at, choice)| {
            let of_choice = alternatives.iter().filter(|other| other.choice == at);
            let parts: Vec<String> = of_choice.map(|other| sentence(measure, other)).collect();
            let parts = parts.join(", ");
            (!parts.is_empty()).then(|| format!("with another choice of {}: {parts}", choice.title))
        })
        .collect();
    let reason = [vec![reason], others].concat().join("; ");
    match both {
        false => Judgement { verdict, reason },
        true => Judgement::untold(format!(
            "{reason}; the paper does not say which it used, and the statement holds with some only"
        )),
    }
}

fn sentence(measure: &Measure, other: &Alternative) -> String {
    let number =
        other.measured.map_or_else(|| "no number".to_owned(), |mean| measure.shows.show(&mean));
    format!("{number} at {} ({})", plain(&other.value), other.verdict.name())
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
