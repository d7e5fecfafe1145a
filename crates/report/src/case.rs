//! Runs put in order: a case is a stack with a job and keys, run once or with several seeds; an axis is
//! what differs between cases.

use crate::column::Column;
use crate::point::{Axis, Point, axes, distinction};
use serde_json::Value;
use std::collections::BTreeMap;

/// One run: its result, and what it was a run of.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Where its result was found; tells runs apart that nothing else does.
    pub source: String,
    /// The stack, as the user names it.
    pub stack: String,
    /// The job, likewise.
    pub job: String,
    /// Keys of a sweep's grid with their values.
    pub keys: Vec<(String, Value)>,
    /// The seed.
    pub seed: u64,
    /// The result.
    pub result: Value,
}

impl Run {
    /// The key of ours in the result.
    pub(crate) fn ours(&self) -> &Value {
        &self.result["nandscape"]
    }

    fn point(&self) -> Point {
        Point::new(&self.stack, &self.job, &self.keys)
    }
}

/// Runs that differ in nothing but their seed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Case {
    /// What its runs are of.
    pub(crate) point: Point,
    /// By axis.
    pub(crate) values: Vec<Value>,
    /// What tells it from the others, in words.
    pub(crate) label: String,
    /// At least one.
    pub(crate) runs: Vec<Run>,
}

impl Case {
    /// The run whose course is drawn.
    pub(crate) fn first(&self) -> &Run {
        &self.runs[0]
    }
}

/// All cases, and what differs between them.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cases {
    pub(crate) axes: Vec<Axis>,
    pub(crate) list: Vec<Case>,
}

impl Cases {
    /// Groups `runs`, keeping their order.
    pub(crate) fn new(runs: Vec<Run>) -> Self {
        let mut points: Vec<Point> = runs.iter().map(Run::point).collect();
        if has_twins(&runs, &points) {
            let pairs = points.into_iter().zip(&runs);
            points = pairs.map(|(point, run)| point.in_file(&run.source)).collect();
        }
        let axes = axes(&points);
        let mut list: Vec<Case> = Vec::new();
        let mut places = BTreeMap::new();
        for (run, point) in runs.into_iter().zip(points) {
            let values: Vec<Value> = axes.iter().map(|axis| point.at(&axis.name).clone()).collect();
            let place =
                *places.entry(Value::from(values.clone()).to_string()).or_insert(list.len());
            match list.get_mut(place) {
                Some(case) => case.runs.push(run),
                None => {
                    let label = distinction(&axes, &point);
                    list.push(Case { point, values, label, runs: vec![run] });
                }
            }
        }
        Self { axes, list }
    }

    /// The point of each case.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.list.iter().map(|case| case.point.clone()).collect()
    }

    /// The same figure with the results of all runs.
    pub(crate) fn fill(&self, mut column: Column) -> Column {
        for (at, case) in self.list.iter().enumerate() {
            case.runs.iter().for_each(|run| column.add(at, run.seed, &run.result));
        }
        column
    }

    /// Every run.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.list.iter().flat_map(|case| &case.runs)
    }

    /// How often cases were run at most.
    pub(crate) fn seeds(&self) -> usize {
        self.list.iter().map(|case| case.runs.len()).max().unwrap_or(0)
    }
}

/// Whether two runs differ in neither point nor seed.
fn has_twins(runs: &[Run], points: &[Point]) -> bool {
    let named = runs.iter().zip(points);
    let mut names: Vec<String> =
        named.map(|(run, point)| format!("{} {point:?}", run.seed)).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(source: &str, stack: &str, op: u64, seed: u64) -> Run {
        Run {
            source: source.into(),
            stack: stack.into(),
            job: "job".into(),
            keys: vec![("ftl.op_percent".into(), op.into())],
            seed,
            result: json!({ "nandscape": { "waf": { "gc": seed as f64 } } }),
        }
    }

    /// Seeds of a case are repetitions; what differs otherwise is an axis.
    #[test]
    fn runs_become_cases() {
        let runs =
            [10, 20].into_iter().flat_map(|op| [1, 3].map(|seed| run("a", "pblk", op, seed)));
        let cases = Cases::new(runs.collect());
        assert_eq!(
            cases.axes,
            [Axis { name: "ftl.op_percent".into(), values: vec![10.into(), 20.into()] }]
        );
        assert_eq!(cases.list.len(), 2);
        assert_eq!(cases.list[1].label, "op_percent 20");
        let waf = Column::new("waf.gc".parse().unwrap(), &cases.points()).unwrap();
        let mean = cases.fill(waf).mean(1).unwrap();
        assert!(mean.mean == 2.0 && mean.half_width.is_some());
    }

    /// Two results of the same stack and seed are distinguished by their files.
    #[test]
    fn twins_are_named_by_their_files() {
        let cases = Cases::new(vec![run("old", "pblk", 10, 1), run("new", "pblk", 10, 1)]);
        let labels: Vec<_> = cases.list.iter().map(|case| case.label.as_str()).collect();
        assert_eq!(labels, ["old", "new"]);
    }
}
