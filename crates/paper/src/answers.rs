//! The answers to an experiment: results by point and seed, and what figures are there.

use crate::model::{Filter, Measure, Take};
use nandscape_lab::sweep::Sweep;
use nandscape_report::{Column, Figure, FigureError, Point};
use serde_json::Value;
use std::collections::BTreeSet;

/// The results of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Answers {
    points: Vec<Point>,
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

/// The points of a sweep, in order.
pub(crate) fn points(sweep: &Sweep) -> Vec<Point> {
    let cases = sweep.cases.iter();
    cases.map(|case| Point::new(&case.stack_name, &case.job.name, &case.keys)).collect()
}

impl Answers {
    /// None as yet.
    #[must_use]
    pub fn new(sweep: &Sweep) -> Self {
        let points = points(sweep);
        let results = vec![Vec::new(); points.len()];
        Self { points, seeds: sweep.seeds.clone(), runs: sweep.ids(""), results }
    }

    /// Takes in the result of a run at `point`, with one of the sweep's seeds.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn add(&mut self, point: usize, seed: u64, result: Value) {
        self.results[point].push((seed, result));
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

    /// What is measured, seed by seed: what is taken of the points that `filter` leaves. A seed without a
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
        all.map(|all| take(measure.take, &all)).collect()
    }
}

fn take(take: Take, numbers: &[f64]) -> f64 {
    match take {
        Take::Mean => numbers.iter().sum::<f64>() / numbers.len() as f64,
        Take::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Take::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
    }
}
