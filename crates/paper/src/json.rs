//! A reproduction as JSON: everything that the page shows, for programs (docs/formats/paper.md).

use crate::answers::Answers;
use crate::checks::Checked;
use crate::judge::{Judged, Reading, Verdicts};
use crate::model::{
    Column, Contradiction, Experiment, Filter, Kind, Measured, Paper, PlotSpec, PublishedValue,
    Statement, Variant,
};
use crate::page::Maker;
use crate::reason::Because;
use crate::reproduction::Reproduction;
use crate::verdict::Verdict;
use nandscape_report::{Figure, Mean};
use serde_json::{Map, Value, json};

impl Reproduction {
    /// Everything.
    #[must_use]
    pub fn to_json(&self, maker: &Maker) -> Value {
        let Paper { id, title, authors, venue, year, claims, .. } = &self.paper;
        json!({
            "id": id, "title": title, "authors": authors, "venue": venue, "year": year,
            "claims": claims, "caution": self.paper.caution,
            "counts": { "reproductions": self.counts(Kind::Reproduction), "inputs": self.counts(Kind::Input) },
            "statements": self.statements().map(|(of, judged)| self.statement(of, judged, maker)).collect::<Vec<_>>(),
            "variants": self.paper.variants.iter().map(|one| variant(one, &self.paper)).collect::<Vec<_>>(),
            "figures": self.figures(),
            "assumptions": self.assumptions(),
            "extensions": self.extensions(),
            "experiments": self.paper.experiments.iter().map(experiment).collect::<Vec<_>>(),
            "checks": self.checked.iter().map(checked).collect::<Vec<_>>(),
            "notes": self.paper.notes,
        })
    }

    /// How many statements of a kind have each verdict.
    fn counts(&self, kind: Kind) -> Value {
        let of = |verdict: Verdict| (verdict.name().to_owned(), self.count(kind, verdict).into());
        Value::Object(Verdict::ALL.into_iter().map(of).collect())
    }

    fn statement(&self, statement: &Statement, judged: &Judged, maker: &Maker) -> Value {
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
        let variants = judged.variants.iter().enumerate().filter_map(|(at, one)| {
            one.as_ref().map(|one| self.under(Column::Variant(at), one, maker))
        });
        json!({
            "id": statement.id, "figure": figure, "place": statement.place, "text": statement.text,
            "input": statement.input,
            "published": claim(&statement.claim),
            "contradicted": statement.contradicted.as_ref().map(contradicted),
            "within": statement.tolerance.within, "partially": statement.tolerance.partially,
            "metric": metric,
            "measured": measured(judged.measured(), &judged.seeds),
            "verdict": judged.judgement.verdict.name(), "looks_like": judged.judgement.looks_like.map(Verdict::name), "comparison": judged.judgement.reason, "verdict_as_assumed": judged.ours.name(),
            "reason": self.because(judged.because.as_ref(), maker),
            "variants": variants.collect::<Vec<_>>(),
            "sensitivity": sensitivity.collect::<Vec<_>>(),
        })
    }

    /// A statement under a variant.
    fn under(&self, column: Column, one: &Verdicts, maker: &Maker) -> Value {
        let mut entry = measured(one.measured(), &one.seeds);
        entry["variant"] = self.paper.column_name(column).into();
        entry["verdict"] = one.judgement.verdict.name().into();
        entry["looks_like"] = one.judgement.looks_like.map(Verdict::name).into();
        entry["comparison"] = one.judgement.reason.clone().into();
        entry["reason"] = self.because(one.because.as_ref(), maker);
        entry
    }

    /// Why a verdict is not "agrees"; null if the paper's folder does not say.
    fn because(&self, because: Option<&Because>, maker: &Maker) -> Value {
        let Some(Because { reason, figures, column }) = because else { return Value::Null };
        let reason = &self.paper.reasons[*reason];
        let shown = figures.iter().map(|(name, value)| json!({ "figure": name, "value": value }));
        json!({
            "id": reason.id, "text": reason.text, "figures": shown.collect::<Vec<_>>(),
            "command": maker.command_of(&self.paper, *column),
        })
    }

    fn figures(&self) -> Value {
        let figure = |figure: &crate::model::Figure| {
            let (metric, points) = match &figure.metric {
                PlotSpec::Figure(metric) => {
                    let answers = &self.answers[figure.experiment];
                    (
                        metric.to_string(),
                        points(answers, &figure.filter, std::slice::from_ref(metric)),
                    )
                }
                PlotSpec::Latency(kind) => (format!("latency_cdf.{kind}"), Value::Null),
                PlotSpec::Course(key) => (format!("series.{key}"), Value::Null),
            };
            let experiment = &self.paper.experiments[figure.experiment].id;
            let variants = match &figure.metric {
                PlotSpec::Figure(metric) => {
                    let metric = std::slice::from_ref(metric);
                    self.variant_points(figure.experiment, &figure.filter, metric)
                }
                PlotSpec::Latency(_) | PlotSpec::Course(_) => Value::Null,
            };
            json!({
                "id": figure.id, "title": figure.title, "experiment": experiment, "metric": metric,
                "points": points, "variants": variants,
            })
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
                "variants": self.variant_points(extension.experiment, &extension.filter, &extension.metric),
            })
        };
        self.paper.extensions.iter().map(extension).collect()
    }
}

impl Reproduction {
    /// The points of an experiment under each variant that changes it.
    fn variant_points(&self, experiment: usize, filter: &Filter, metric: &[Figure]) -> Value {
        let variants = self.paper.variants.iter().zip(&self.variants);
        let entry = |(variant, answers): (&Variant, &Vec<Answers>)| {
            let at = variant.sweeps.iter().position(|(at, _)| *at == experiment)?;
            let points = points(&answers[at], filter, metric);
            Some(json!({ "variant": variant.id, "points": points }))
        };
        variants.filter_map(entry).collect()
    }
}

fn variant(variant: &Variant, paper: &Paper) -> Value {
    let Variant { id, title, why, scale, sweeps } = variant;
    let of = |(at, sweep): &(usize, nandscape_lab::sweep::Sweep)| {
        let Experiment { id, file, .. } = &paper.experiments[*at];
        json!({ "id": id, "sweep": file, "seeds": sweep.seeds, "runs": sweep.runs() })
    };
    let experiments = sweeps.iter().map(of).collect::<Vec<_>>();
    json!({ "id": id, "title": title, "why": why, "scale": scale, "experiments": experiments })
}

fn contradicted(one: &Contradiction) -> Value {
    let Contradiction { place, text, value } = one;
    json!({ "place": place, "text": text, "value": value })
}

fn claim(claim: &PublishedValue) -> Value {
    match claim {
        PublishedValue::Readings(values) => json!({ "values": values }),
        PublishedValue::AtMost(value) => json!({ "at_most": value }),
        PublishedValue::AtLeast(value) => json!({ "at_least": value }),
        PublishedValue::Between(low, high) => json!({ "between": [low, high] }),
    }
}

/// A statement at a value of an assumption.
fn found(found: &Reading) -> Value {
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
