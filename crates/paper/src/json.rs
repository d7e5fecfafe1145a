//! A reproduction as JSON: everything that the page shows, for programs (docs/formats/paper.md).

use crate::answers::Answers;
use crate::checks::Checked;
use crate::judge::{Found, Judged};
use crate::model::{Claim, Experiment, Filter, Measured, Paper, Shown, Statement};
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
            "assumptions": self.assumptions(),
            "extensions": self.extensions(),
            "experiments": self.paper.experiments.iter().map(experiment).collect::<Vec<_>>(),
            "checks": self.checked.iter().map(checked).collect::<Vec<_>>(),
            "notes": self.paper.notes,
        })
    }

    fn statement(&self, statement: &Statement, judged: &Judged) -> Value {
        let figure = statement.figure.map(|at| self.paper.figures[at].id.as_str());
        let metric = match &statement.measured {
            Measured::As(measure) => Some(measure.metric.to_string()),
            Measured::Not(_) => None,
        };
        let sensitivity = judged.sensitivity.iter().map(|one| {
            json!({
                "assumption": self.paper.assumptions[one.assumption].id,
                "chosen": found(&one.chosen),
                "others": one.others.iter().map(found).collect::<Vec<_>>(),
            })
        });
        json!({
            "id": statement.id, "figure": figure, "place": statement.place, "text": statement.text,
            "published": claim(&statement.claim),
            "within": statement.tolerance.within, "partially": statement.tolerance.partially,
            "metric": metric,
            "measured": measured(judged.measured(), &judged.seeds),
            "verdict": judged.judgement.verdict.name(), "reason": judged.judgement.reason, "verdict_as_assumed": judged.ours.name(),
            "sensitivity": sensitivity.collect::<Vec<_>>(),
        })
    }

    fn figures(&self) -> Value {
        let figure = |figure: &crate::model::Figure| {
            let (metric, points) = match &figure.metric {
                Shown::Figure(metric) => {
                    let answers = &self.answers[figure.experiment];
                    (
                        metric.to_string(),
                        points(answers, &figure.filter, std::slice::from_ref(metric)),
                    )
                }
                Shown::Latency(kind) => (format!("latency_cdf.{kind}"), Value::Null),
            };
            let experiment = &self.paper.experiments[figure.experiment].id;
            json!({ "id": figure.id, "title": figure.title, "experiment": experiment, "metric": metric, "points": points })
        };
        self.paper.figures.iter().map(figure).collect()
    }

    fn assumptions(&self) -> Value {
        let assumption = |assumption: &crate::model::Assumption| {
            let answers = &self.answers[assumption.experiment];
            json!({
                "id": assumption.id, "title": assumption.title, "axis": assumption.axis, "chosen": assumption.chosen,
                "why": assumption.why, "points": points(answers, &Filter::default(), &assumption.metric),
            })
        };
        self.paper.assumptions.iter().map(assumption).collect()
    }

    fn extensions(&self) -> Value {
        let extension = |extension: &crate::model::Extension| {
            let answers = &self.answers[extension.experiment];
            json!({
                "id": extension.id, "title": extension.title, "text": extension.text,
                "points": points(answers, &extension.filter, &extension.metric),
            })
        };
        self.paper.extensions.iter().map(extension).collect()
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

/// A statement at a value of an assumption.
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
fn points(answers: &Answers, filter: &Filter, metric: &[Figure]) -> Value {
    let columns: Vec<_> = metric.iter().filter_map(|metric| answers.column(metric).ok()).collect();
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

fn experiment(experiment: &Experiment) -> Value {
    json!({
        "id": experiment.id, "sweep": experiment.file, "seeds": experiment.sweep.seeds,
        "runs": experiment.sweep.runs(),
    })
}

fn checked(checked: &Checked) -> Value {
    let failures = checked.failures.iter();
    let failures: Vec<Value> =
        failures.map(|failure| json!({ "run": failure.run, "why": failure.why })).collect();
    json!({
        "name": checked.name, "text": checked.text, "runs_checked": checked.runs_checked,
        "failures": failures,
    })
}
