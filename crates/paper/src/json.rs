//! A reproduction as JSON: everything that the page shows, for programs (docs/formats/paper.md).

use crate::answers::Answers;
use crate::checks::Checked;
use crate::judge::{Found, Judged};
use crate::model::{Claim, Filter, Measured, Paper, Question, Shown, Statement};
use crate::reproduction::Reproduction;
use nandscape_report::{Figure, Mean};
use serde_json::{Map, Value, json};

impl Reproduction {
    /// Everything.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Paper { id, title, authors, venue, year, claims, .. } = &self.paper;
        json!({
            "id": id, "title": title, "authors": authors, "venue": venue, "year": year,
            "claims": claims,
            "statements": self.statements().map(|(of, judged)| self.statement(of, judged)).collect::<Vec<_>>(),
            "figures": self.figures(),
            "choices": self.choices(),
            "beyond": self.beyond(),
            "questions": self.paper.questions.iter().map(question).collect::<Vec<_>>(),
            "checks": self.checked.iter().map(checked).collect::<Vec<_>>(),
            "notes": self.paper.notes,
        })
    }

    fn statement(&self, statement: &Statement, judged: &Judged) -> Value {
        let figure = statement.figure.map(|at| self.paper.figures[at].id.as_str());
        let shows = match &statement.measured {
            Measured::As(measure) => Some(measure.shows.to_string()),
            Measured::Not(_) => None,
        };
        let across = judged.across.iter().map(|one| {
            json!({
                "choice": self.paper.choices[one.choice].id,
                "chosen": found(&one.chosen),
                "others": one.others.iter().map(found).collect::<Vec<_>>(),
            })
        });
        json!({
            "id": statement.id, "figure": figure, "place": statement.place, "says": statement.says,
            "published": claim(&statement.claim),
            "within": statement.tolerance.within, "partly": statement.tolerance.partly,
            "shows": shows,
            "measured": measured(judged.measured(), &judged.seeds),
            "verdict": judged.judgement.verdict.name(), "reason": judged.judgement.reason, "as_chosen": judged.ours.name(),
            "across": across.collect::<Vec<_>>(),
        })
    }

    fn figures(&self) -> Value {
        let figure = |figure: &crate::model::Figure| {
            let (shows, points) = match &figure.shows {
                Shown::Figure(shows) => {
                    let answers = &self.answers[figure.question];
                    (
                        shows.to_string(),
                        points(answers, &figure.filter, std::slice::from_ref(shows)),
                    )
                }
                Shown::Latency(kind) => (format!("latency_cdf.{kind}"), Value::Null),
            };
            let question = &self.paper.questions[figure.question].id;
            json!({ "id": figure.id, "title": figure.title, "question": question, "shows": shows, "points": points })
        };
        self.paper.figures.iter().map(figure).collect()
    }

    fn choices(&self) -> Value {
        let choice = |choice: &crate::model::Choice| {
            let answers = &self.answers[choice.question];
            json!({
                "id": choice.id, "title": choice.title, "axis": choice.axis, "chosen": choice.chosen,
                "why": choice.why, "points": points(answers, &Filter::default(), &choice.shows),
            })
        };
        self.paper.choices.iter().map(choice).collect()
    }

    fn beyond(&self) -> Value {
        let beyond = |beyond: &crate::model::Beyond| {
            let answers = &self.answers[beyond.question];
            json!({
                "id": beyond.id, "title": beyond.title, "says": beyond.says,
                "points": points(answers, &beyond.filter, &beyond.shows),
            })
        };
        self.paper.beyond.iter().map(beyond).collect()
    }
}

fn claim(claim: &Claim) -> Value {
    match claim {
        Claim::Readings(values) => json!({ "values": values }),
        Claim::AtMost(value) => json!({ "at_most": value }),
        Claim::AtLeast(value) => json!({ "at_least": value }),
        Claim::Between(low, high) => json!({ "between": [low, high] }),
    }
}

/// A statement at a value of a choice.
fn found(found: &Found) -> Value {
    let mut entry = measured(found.measured(), &found.seeds);
    entry["value"] = found.value.clone();
    entry["verdict"] = found.verdict.name().into();
    entry
}

/// What was measured, its mean and seed by seed.
fn measured(of: Option<Mean>, seeds: &[f64]) -> Value {
    let mut entry = mean(of);
    entry["seeds"] = seeds.into();
    entry
}

fn mean(mean: Option<Mean>) -> Value {
    json!({
        "mean": mean.map(|mean| mean.mean),
        "ci95": mean.and_then(|mean| mean.half_width),
    })
}

/// Figures at the points that the filter leaves.
fn points(answers: &Answers, filter: &Filter, shows: &[Figure]) -> Value {
    let columns: Vec<_> = shows.iter().filter_map(|shows| answers.column(shows).ok()).collect();
    let of_point = |at: usize| {
        let figures = columns.iter().map(|column| {
            let mut entry = mean(column.mean(at));
            entry["n"] = column.count(at).into();
            (column.figure().to_string(), entry)
        });
        let mut point = answers.points()[at].to_json();
        point["figures"] = Value::Object(figures.collect::<Map<_, _>>());
        point
    };
    filter.of(answers.points()).into_iter().map(of_point).collect()
}

fn question(question: &Question) -> Value {
    json!({
        "id": question.id, "sweep": question.file, "seeds": question.sweep.seeds,
        "runs": question.sweep.runs(),
    })
}

fn checked(checked: &Checked) -> Value {
    let failures = checked.failures.iter();
    let failures: Vec<Value> =
        failures.map(|failure| json!({ "run": failure.run, "why": failure.why })).collect();
    json!({
        "name": checked.name, "says": checked.says, "looked_at": checked.looked_at,
        "failures": failures,
    })
}
