//! Points: what distinguishes runs, and the axes along which they differ.

use serde_json::Value;
use std::fmt;

/// What a run is of but for its seed: the names of its coordinates with their values.
#[derive(Clone, PartialEq, Debug)]
pub struct Point(Vec<(String, Value)>);

/// Something that differs between points.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// `stack`, `job`, `file` or a key.
    pub name: String,
    /// Its values, each once, in the order of the points.
    pub values: Vec<Value>,
}

impl Point {
    /// A stack with a job, and the keys of a sweep's grid.
    #[must_use]
    pub fn new(stack: &str, job: &str, keys: &[(String, Value)]) -> Self {
        let own = [("stack", stack), ("job", job)];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
        Self(own.chain(keys.iter().cloned()).collect())
    }

    /// The same, distinguished by the file that it is in.
    pub(crate) fn in_file(mut self, file: &str) -> Self {
        self.0.insert(0, ("file".to_owned(), file.into()));
        self
    }

    /// The value under `name`; null where the point knows nothing of it.
    #[must_use]
    pub fn at(&self, name: &str) -> &Value {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map_or(&Value::Null, |(_, value)| value)
    }

    /// All but what is under `name`, in words.
    pub(crate) fn without(&self, name: &str) -> String {
        Self(self.0.iter().filter(|(other, _)| other != name).cloned().collect()).to_string()
    }

    /// Its values under their names.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.iter().cloned().collect())
    }

    /// Whether whatever else either knows is the same for both.
    #[must_use]
    pub fn differs_only_in(&self, axis: &str, other: &Self) -> bool {
        let names = self.names().chain(other.names()).filter(|name| *name != axis);
        names.into_iter().all(|name| self.at(name) == other.at(name))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// Its values, in words: `pblk, overwrite.fio, op_percent 20`.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            f.write_str(&in_words(name, &plain(value)))?;
        }
        Ok(())
    }
}

impl Axis {
    /// Whether all values are numbers.
    pub(crate) fn is_numeric(&self) -> bool {
        self.values.iter().all(Value::is_number)
    }

    /// The name without the tables that the key is in.
    pub(crate) fn short_name(&self) -> &str {
        short(&self.name)
    }
}

/// `op_percent` of `ftl.op_percent`.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A value as it is shown, after its name unless it tells by itself what it is of.
pub(crate) fn in_words(name: &str, shown: &str) -> String {
    match name {
        "stack" | "job" | "file" => shown.to_owned(),
        key => format!("{} {shown}", short(key)),
    }
}

/// What tells a point from the others, which differ along these axes.
pub(crate) fn distinction(axes: &[Axis], point: &Point) -> String {
    let part = |axis: &Axis| in_words(&axis.name, &plain(point.at(&axis.name)));
    match axes {
        [] => plain(point.at("stack")),
        [axis] if !axis.is_numeric() => plain(point.at(&axis.name)),
        _ => axes.iter().map(part).collect::<Vec<_>>().join(", "),
    }
}

/// What tells each point from the others.
#[must_use]
pub fn distinctions(points: &[Point]) -> Vec<String> {
    let axes = axes(points);
    points.iter().map(|point| distinction(&axes, point)).collect()
}

/// The value of `axis` at a point as plots and tables show it: of files that stacks and jobs come from the
/// stem alone, as long as that distinguishes all points.
#[must_use]
pub fn label(points: &[Point], axis: &str, point: &Point) -> String {
    let own = plain(point.at(axis));
    let short = stem(&own).to_owned();
    let is_file = matches!(axis, "stack" | "job");
    let twin = |other: &Point| {
        let other = plain(other.at(axis));
        other != own && stem(&other) == short
    };
    if is_file && !points.iter().any(twin) { short } else { own }
}

/// `stacks/pblk.toml` as `pblk`; what is no name of a file stays.
pub(crate) fn stem(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    let ends = [".toml", ".fio", ".f"];
    ends.iter().find_map(|end| file.strip_suffix(end)).unwrap_or(name)
}

/// What has more than one value, in the order in which points name it.
#[must_use]
pub fn axes(points: &[Point]) -> Vec<Axis> {
    coordinates(points).into_iter().filter(|axis| axis.values.len() > 1).collect()
}

/// Everything that points name, even if all have the same value.
pub(crate) fn coordinates(points: &[Point]) -> Vec<Axis> {
    let names = each_once(points.iter().flat_map(Point::names)).into_iter();
    let axis = |name: &str| Axis {
        name: name.to_owned(),
        values: values(points, name).into_iter().cloned().collect(),
    };
    names.map(axis).collect()
}

/// The values of an axis, each once, in the order of the points; null is one where a point knows nothing
/// of it.
#[must_use]
pub fn values<'a>(points: &'a [Point], axis: &str) -> Vec<&'a Value> {
    each_once(points.iter().map(|point| point.at(axis)))
}

/// What comes, without what came before.
pub(crate) fn each_once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// Text without its quotes, other values as they are, nothing as a dash.
#[must_use]
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values keep the order in which points name them; one that knows nothing of an axis has a value, too.
    #[test]
    fn values_come_once() {
        let point = |op: u64| Point::new("pblk", "a.fio", &[("op".into(), op.into())]);
        let points = [point(20), point(10), Point::new("pblk", "a.fio", &[]), point(20)];
        assert_eq!(values(&points, "op"), [&20.into(), &10.into(), &Value::Null]);
        assert_eq!(axes(&points).len(), 1, "stack and job are the same for all");
    }

    /// Names are as short as they can be without two points sharing one.
    #[test]
    fn labels_are_short_and_tell_points_apart() {
        let point = |stack: &str| Point::new(stack, "jobs/a.fio", &[("k".into(), "b.toml".into())]);
        let points = ["stacks/pblk.toml", "js-4.16", "x/js.toml", "y/js.toml"].map(point);
        let labels = |axis| points.each_ref().map(|point| label(&points, axis, point));
        assert_eq!(labels("stack"), ["pblk", "js-4.16", "x/js.toml", "y/js.toml"]);
        assert_eq!(labels("job"), ["a", "a", "a", "a"]);
        assert_eq!(labels("k"), ["b.toml", "b.toml", "b.toml", "b.toml"]);
    }
}
