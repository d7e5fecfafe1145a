//! A figure at every point: the numbers of all seeds, and for relative figures the point that each is
//! set against.
//!
//! A relative figure is paired seed by seed, so that what all points of a seed share cancels out, and
//! mean and confidence interval are of the ratios.

use crate::figure::{Figure, FigureError, Reference, quotient};
use crate::point::{Point, axes, coordinates, plain};
use crate::student::Mean;
use serde_json::Value;
use std::collections::BTreeMap;

/// The figures that are reported by default: of all jobs, whatever they are called, and of what a
/// Filebench workload did.
const USUAL: [&str; 13] = [
    "waf.total",
    "waf.gc",
    "wml.summary.ops_per_s",
    "wml.summary.latency_mean_ns",
    "all.write.iops",
    "all.write.clat_ns.p50",
    "all.write.clat_ns.p99",
    "all.read.iops",
    "all.read.clat_ns.p99",
    "all.trim.iops",
    "all.sync.lat_ns.mean",
    "all.sync.lat_ns.p50",
    "all.sync.lat_ns.p99",
];

/// A figure at every point.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    figure: Figure,
    /// Paths of it that no result knew so far.
    unknown: Vec<String>,
    /// Of relative figures: by point, the point that it is relative to.
    partners: Option<Vec<Option<usize>>>,
    /// By point: seeds, and what the figure is there before it is relative to anything.
    numbers: Vec<Vec<(u64, f64)>>,
    /// By point: seeds, and what the figures of others are relative to.
    bases: Vec<Vec<(u64, f64)>>,
}

impl Column {
    /// Of `figure` at these points, without results as yet.
    ///
    /// # Errors
    /// The figure is relative to what no point has.
    pub fn new(figure: Figure, points: &[Point]) -> Result<Self, FigureError> {
        let partners =
            figure.reference().map(|reference| partners(points, reference)).transpose()?;
        Ok(Self { partners, ..Self::absolute(figure, points.len()) })
    }

    /// Those that are reported by default. It is for the reader to leave out what is zero
    /// everywhere.
    #[must_use]
    pub fn usual(points: usize) -> Vec<Self> {
        USUAL.map(|path| Self::absolute(Figure::at(path), points)).into()
    }

    fn absolute(figure: Figure, points: usize) -> Self {
        let unknown = figure.paths().cloned().collect();
        let numbers = vec![Vec::new(); points];
        Self { figure, unknown, partners: None, bases: numbers.clone(), numbers }
    }

    /// Takes in the result of a run at `point`.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn add(&mut self, point: usize, seed: u64, result: &Value) {
        self.unknown.retain(|path| crate::path::look_up(result, path).is_none());
        self.numbers[point].extend(self.figure.within(result).map(|number| (seed, number)));
        self.bases[point].extend(self.figure.base(result).map(|number| (seed, number)));
    }

    /// The figure.
    #[must_use]
    pub const fn figure(&self) -> &Figure {
        &self.figure
    }

    /// A path of it that no result knows: a typing error.
    #[must_use]
    pub fn unknown_path(&self) -> Option<FigureError> {
        self.unknown.first().map(|path| FigureError::NoPath { path: path.clone() })
    }

    /// How many results are behind the figure at `point`.
    #[must_use]
    pub fn count(&self, point: usize) -> usize {
        self.samples(point).len()
    }

    /// The figure at `point` over all seeds; `None` if no run has it.
    #[must_use]
    pub fn mean(&self, point: usize) -> Option<Mean> {
        Mean::of(&self.samples(point))
    }

    /// The figure at all points, in order.
    pub fn means(&self) -> impl Iterator<Item = Option<Mean>> {
        (0..self.numbers.len()).map(|point| self.mean(point))
    }

    /// Whether it is anything but zero somewhere.
    #[must_use]
    pub fn is_informative(&self) -> bool {
        self.means().flatten().any(|mean| mean.mean != 0.0)
    }

    fn samples(&self, point: usize) -> Vec<f64> {
        self.by_seed(point).into_iter().map(|(_, number)| number).collect()
    }

    /// The figure at `point` for each seed that has it.
    #[must_use]
    pub fn by_seed(&self, point: usize) -> Vec<(u64, f64)> {
        let own = self.numbers.get(point).into_iter().flatten();
        let Some(partners) = &self.partners else { return own.copied().collect() };
        let Some(partner) = partners.get(point).copied().flatten() else { return Vec::new() };
        let of_seed = |seed: u64| self.bases[partner].iter().find(|(other, _)| *other == seed);
        own.filter_map(|(seed, number)| Some((*seed, quotient(*number, of_seed(*seed)?.1)?)))
            .collect()
    }
}

/// By point, the one that has the value of the reference and differs in nothing else.
fn partners(points: &[Point], reference: &Reference) -> Result<Vec<Option<usize>>, FigureError> {
    check(points, reference)?;
    let axis = reference.axis.as_str();
    let others: Vec<String> = axes(points).into_iter().map(|axis| axis.name).collect();
    let others: Vec<&str> = (others.iter().map(String::as_str))
        .filter(|other| *other != axis && !goes_along(points, axis, other))
        .collect();
    let place =
        |point: &Point| others.iter().map(|other| point.at(other).to_string()).collect::<Vec<_>>();
    let found = points.iter().enumerate().filter(|(_, point)| reference.is_of(point));
    let found: BTreeMap<_, _> = found.map(|(at, point)| (place(point), at)).collect();
    Ok(points.iter().map(|point| found.get(&place(point)).copied()).collect())
}

fn check(points: &[Point], reference: &Reference) -> Result<(), FigureError> {
    let Reference { axis, value, .. } = reference.clone();
    let all = coordinates(points);
    let Some(of_axis) = all.iter().find(|other| other.name == axis) else {
        let known = all.into_iter().map(|other| other.name).collect();
        return Err(FigureError::NoAxis { axis, known });
    };
    let known = || of_axis.values.iter().map(plain).collect();
    let found = points.iter().any(|point| reference.is_of(point));
    if found { Ok(()) } else { Err(FigureError::NoValue { axis, value, known: known() }) }
}

impl Reference {
    /// Whether the point has this value.
    fn is_of(&self, point: &Point) -> bool {
        let value = point.at(&self.axis);
        let number = || value.as_f64().is_some_and(|number| self.value.parse() == Ok(number));
        !value.is_null() && (plain(value) == self.value || number())
    }
}

/// Whether one value of the grid sets both keys: they are in one table, and a reader who knows the one
/// knows the other.
fn goes_along(points: &[Point], key: &str, other: &str) -> bool {
    let table = |key: &str| key.split_once('.').map(|(table, _)| table.to_owned());
    let pairs = points.iter().map(|point| (point.at(key).to_string(), point.at(other)));
    let known: BTreeMap<_, _> = pairs.clone().collect();
    table(key).is_some()
        && table(key) == table(other)
        && pairs.into_iter().all(|(value, other)| known.get(&value) == Some(&other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A column of these points and their results, `x` by seed.
    fn column(figure: &str, runs: &[(Point, &[(u64, f64)])]) -> Result<Column, FigureError> {
        let points: Vec<Point> = runs.iter().map(|(point, _)| point.clone()).collect();
        let mut column = Column::new(figure.parse()?, &points)?;
        for (at, (_, seeds)) in runs.iter().enumerate() {
            for (seed, x) in *seeds {
                column.add(at, *seed, &json!({ "nandscape": { "x": x } }));
            }
        }
        Ok(column)
    }

    fn point(stack: &str, keys: &[(&str, Value)]) -> Point {
        let keys: Vec<_> =
            keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Point::new(stack, "job", &keys)
    }

    fn means(column: &Column) -> Vec<Option<f64>> {
        column.means().map(|mean| mean.map(|mean| mean.mean)).collect()
    }

    /// A figure may be set against another number of its partner, at its partner too.
    #[test]
    fn another_number_may_be_the_base() {
        let points = [point("a", &[]), point("b", &[])];
        let mut column = Column::new("x / y @ stack=a".parse().unwrap(), &points).unwrap();
        column.add(0, 1, &json!({ "nandscape": { "x": 1, "y": 8 } }));
        column.add(1, 1, &json!({ "nandscape": { "x": 2, "y": null } }));
        assert_eq!(means(&column), [Some(0.125), Some(0.25)]);
    }

    /// Ratios are of runs with the same seed, and the interval is that of the ratios: where all
    /// points of a seed share its luck, the ratio is exact.
    #[test]
    fn pairs_have_the_same_seed() {
        let runs = [
            (point("a", &[]), &[(1, 10.0), (2, 20.0), (3, 30.0)][..]),
            (point("b", &[]), &[(3, 15.0), (2, 10.0), (1, 5.0), (9, 1.0)]),
        ];
        let column = column("x / stack=a", &runs).unwrap();
        let of_column: Vec<_> =
            column.means().flatten().map(|mean| (mean.mean, mean.half_width)).collect();
        assert_eq!(of_column, [(1.0, Some(0.0)), (0.5, Some(0.0))]);
        assert_eq!(column.count(1), 3, "seed 9 has no partner");
    }

    /// The partner differs in the one axis; where there is none, or it is zero, there is no figure.
    #[test]
    fn partners_differ_in_one_axis() {
        let op = |stack: &str, op: f64| point(stack, &[("ftl.op", op.into())]);
        let runs = [
            (op("a", 10.0), &[(1, 4.0)][..]),
            (op("a", 20.0), &[(1, 0.0)]),
            (op("b", 10.0), &[(1, 2.0)]),
            (op("b", 20.0), &[(1, 6.0)]),
            (op("b", 30.0), &[(1, 5.0)]),
        ];
        let to_stack = column("x / stack=a", &runs).unwrap();
        assert_eq!(means(&to_stack), [Some(1.0), None, Some(0.5), None, None]);
        let to_op = column("x / ftl.op=10", &runs).unwrap();
        assert_eq!(means(&to_op), [Some(1.0), Some(0.0), Some(1.0), Some(3.0), Some(2.5)]);
    }

    /// Keys that one value of the grid sets change together; stacks never bring keys along.
    #[test]
    fn keys_of_one_value_go_along() {
        let share = |share: u64, rest: u64, x| {
            (point("a", &[("var.share", share.into()), ("var.rest", rest.into())]), x)
        };
        let runs = [share(10, 90, &[(1, 2.0)][..]), share(50, 50, &[(1, 8.0)])];
        assert_eq!(means(&column("x / var.share=10", &runs).unwrap()), [Some(1.0), Some(4.0)]);
        let apart = [
            (point("a", &[("ftl.op", 10.into())]), &[(1, 2.0)][..]),
            (point("b", &[("ftl.op", 20.into())]), &[(1, 8.0)]),
        ];
        assert_eq!(means(&column("x / stack=a", &apart).unwrap()), [Some(1.0), None]);
    }

    /// Axes and values that are not there are named beside those that are; one value is an axis, too.
    #[test]
    fn references_must_be_there() {
        let runs = [(point("a", &[("k", "100%".into())]), &[(1, 2.0)][..])];
        let error = |figure| column(figure, &runs).unwrap_err().to_string();
        assert_eq!(
            error("x / stak=a"),
            "\"stak\" is no axis of the results; they have stack, job, k"
        );
        assert_eq!(error("x / k=50%"), "no point has k=50%; there are 100%");
        assert_eq!(means(&column("x / k=100%", &runs).unwrap()), [Some(1.0)]);
        let unknown_path = column("x / y", &runs).unwrap().unknown_path().unwrap().to_string();
        assert!(unknown_path.starts_with("\"y\" is nowhere in the results"), "{unknown_path}");
    }
}
