//! The answers to an experiment: results by point and seed, and what figures are there.

use crate::model::{Filter, Measure};
use nandscape_lab::sweep::{Case, Sweep};
use nandscape_report::{Column, Figure, FigureError, Point};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// The results of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Answers {
    points: Vec<Point>,
    /// By case of the sweep, its points: one, or one for each step of a session.
    cases: Vec<Range<usize>>,
    seeds: Vec<u64>,
    /// What names each run, by point and seed; runs that several experiments share have one name.
    runs: Vec<String>,
    /// By point: seeds with their results.
    results: Vec<Vec<(u64, Value)>>,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Answer<'a> {
    /// What names the run.
    pub run: &'a str,
    /// Its point.
    pub point: &'a Point,
    /// Its seed.
    pub seed: u64,
    /// Its result.
    pub result: &'a Value,
}

/// The results of all experiments, each with its experiment's name. A run that several of them share comes once.
pub(crate) fn each_run<'a>(
    all: impl Iterator<Item = (&'a str, &'a Answers)>,
) -> Vec<(&'a str, Answer<'a>)> {
    let mut seen = BTreeSet::new();
    let of_experiment = |(experiment, answers): (&'a str, &'a Answers)| {
        answers.results().map(move |answer| (experiment, answer))
    };
    all.flat_map(of_experiment).filter(|(_, answer)| seen.insert(answer.run)).collect()
}

/// The points of a sweep, in order. Each step of a session is one, whose job is the step.
pub(crate) fn points(sweep: &Sweep) -> Vec<Point> {
    sweep.cases.iter().flat_map(points_of).collect()
}

fn points_of(case: &Case) -> Vec<Point> {
    let point = |job: &str| Point::new(&case.stack_name, job, &case.keys);
    match case.job.steps() {
        [] => vec![point(&case.job.name)],
        steps => steps.iter().map(|step| point(&step.name)).collect(),
    }
}

impl Answers {
    /// None as yet.
    #[must_use]
    pub fn new(sweep: &Sweep) -> Self {
        let ids = sweep.ids("");
        let (mut points, mut cases, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        for (case, ids) in sweep.cases.iter().zip(ids.chunks(sweep.seeds.len().max(1))) {
            let first = points.len();
            for (step, point) in points_of(case).into_iter().enumerate() {
                points.push(point);
                runs.extend(ids.iter().map(|id| format!("{id} {step}")));
            }
            cases.push(first..points.len());
        }
        let results = vec![Vec::new(); points.len()];
        Self { points, cases, seeds: sweep.seeds.clone(), runs, results }
    }

    /// Takes in the result of a run of a case, with one of the sweep's seeds.
    ///
    /// # Panics
    /// If there is no such case.
    pub fn add(&mut self, case: usize, seed: u64, mut result: Value) {
        let points = self.cases[case].clone();
        match result.get_mut("steps").map(Value::take) {
            Some(Value::Array(steps)) => {
                points.zip(steps).for_each(|(at, step)| self.results[at].push((seed, step)));
            }
            _ => points.for_each(|at| self.results[at].push((seed, result.clone()))),
        }
    }

    /// The points.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Every result, in the order of the sweep.
    pub fn results(&self) -> impl Iterator<Item = Answer<'_>> {
        let runs = self.runs.chunks(self.seeds.len().max(1));
        self.points.iter().zip(runs).zip(&self.results).flat_map(move |((point, runs), results)| {
            results.iter().filter_map(move |(seed, result)| {
                let at = self.seeds.iter().position(|other| other == seed)?;
                Some(Answer { run: &runs[at], point, seed: *seed, result })
            })
        })
    }

    /// The result of the first seed, by point.
    pub fn firsts<'a>(&'a self) -> impl Iterator<Item = (&'a Point, Option<&'a Value>)> {
        let first = |results: &'a Vec<(u64, Value)>| results.first().map(|(_, result)| result);
        self.points.iter().zip(self.results.iter().map(first))
    }

    /// A figure at all points.
    ///
    /// # Errors
    /// It is relative to what no point has.
    pub fn column(&self, figure: &Figure) -> Result<Column, FigureError> {
        let mut column = Column::new(figure.clone(), &self.points)?;
        for (at, results) in self.results.iter().enumerate() {
            results.iter().for_each(|(seed, result)| column.add(at, *seed, result));
        }
        Ok(column)
    }

    /// What is measured, seed by seed: the mean of the points that `filter` leaves. A seed without a
    /// number at one of them has none.
    #[must_use]
    pub fn measure(&self, measure: &Measure, filter: &Filter) -> Vec<f64> {
        let Ok(column) = self.column(&measure.metric) else { return Vec::new() };
        let at = filter.of(&self.points).into_iter();
        let by_point: Vec<Vec<(u64, f64)>> = at.map(|at| column.by_seed(at)).collect();
        let of_seed = |seed: &u64| {
            let of = |numbers: &Vec<(u64, f64)>| {
                numbers.iter().find(|(other, _)| other == seed).map(|(_, number)| *number)
            };
            by_point.iter().map(of).collect::<Option<Vec<f64>>>()
        };
        let all = self.seeds.iter().filter_map(of_seed).filter(|all| !all.is_empty());
        all.map(|all| all.iter().sum::<f64>() / all.len() as f64).collect()
    }
}
