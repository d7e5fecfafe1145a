//! Runs put in order: a case is a stack with a job and keys, run once or with several seeds; an axis is
//! what differs between cases.

use crate::figure::figure;
use crate::student::Mean;
use serde_json::Value;

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
}

/// Something that differs between cases.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    /// `stack`, `job`, `file` or a key.
    pub(crate) name: String,
    /// Its values, each once, in the order of the runs.
    pub(crate) values: Vec<Value>,
}

impl Axis {
    /// Whether all values are numbers.
    pub(crate) fn is_numeric(&self) -> bool {
        self.values.iter().all(Value::is_number)
    }

    /// The name without the tables that the key is in.
    pub(crate) fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

/// Runs that differ in nothing but their seed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Case {
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

    /// The figure at `path` over all seeds; `None` if no run has it.
    pub(crate) fn mean(&self, path: &str) -> Option<Mean> {
        let found = self.runs.iter().filter_map(|run| figure(&run.result, path).flatten());
        Mean::of(&found.collect::<Vec<_>>())
    }
}

/// All cases, and what differs between them.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cases {
    pub(crate) axes: Vec<Axis>,
    pub(crate) list: Vec<Case>,
}

/// Names and values of all that a run is told by.
type Coordinates = Vec<(String, Value)>;

impl Cases {
    /// Groups `runs`, keeping their order.
    pub(crate) fn new(runs: Vec<Run>) -> Self {
        let mut coordinates: Vec<Coordinates> = runs.iter().map(coordinates).collect();
        if has_twins(&runs, &coordinates) {
            for (all, run) in coordinates.iter_mut().zip(&runs) {
                all.insert(0, ("file".to_owned(), run.source.as_str().into()));
            }
        }
        let axes = axes(&coordinates);
        let mut list: Vec<Case> = Vec::new();
        for (run, coordinates) in runs.into_iter().zip(&coordinates) {
            let values: Vec<Value> = axes.iter().map(|axis| at(coordinates, &axis.name)).collect();
            match list.iter_mut().find(|case| case.values == values) {
                Some(case) => case.runs.push(run),
                None => {
                    let label = label(&axes, &values, &run);
                    list.push(Case { values, label, runs: vec![run] });
                }
            }
        }
        Self { axes, list }
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

fn coordinates(run: &Run) -> Coordinates {
    let own = [("stack", &run.stack), ("job", &run.job)];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value.as_str().into()));
    own.chain(run.keys.iter().cloned()).collect()
}

/// Whether two runs differ in neither coordinates nor seed.
fn has_twins(runs: &[Run], coordinates: &[Coordinates]) -> bool {
    let mut names: Vec<String> = (runs.iter().zip(coordinates))
        .map(|(run, coordinates)| format!("{} {coordinates:?}", run.seed))
        .collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// The value under `name`; null where a run knows nothing of it.
fn at(coordinates: &Coordinates, name: &str) -> Value {
    let found = coordinates.iter().find(|(other, _)| other == name);
    found.map_or(Value::Null, |(_, value)| value.clone())
}

/// What has more than one value, in the order in which runs name it.
fn axes(coordinates: &[Coordinates]) -> Vec<Axis> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in coordinates.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let axis = |name: &String| {
        let mut values: Vec<Value> = Vec::new();
        for value in coordinates.iter().map(|all| at(all, name)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Axis { name: name.clone(), values }
    };
    names.into_iter().map(axis).filter(|axis| axis.values.len() > 1).collect()
}

fn label(axes: &[Axis], values: &[Value], run: &Run) -> String {
    let part = |(axis, value): (&Axis, &Value)| match axis.name.as_str() {
        "stack" | "job" | "file" => plain(value),
        _ => format!("{} {}", axis.short_name(), plain(value)),
    };
    match axes {
        [] => run.stack.clone(),
        [axis] => Some(plain(&values[0]))
            .filter(|_| !axis.is_numeric())
            .unwrap_or_else(|| part((axis, &values[0]))),
        _ => axes.iter().zip(values).map(part).collect::<Vec<_>>().join(", "),
    }
}

/// Text without its quotes, other values as they are, nothing as a dash.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
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
        let mean = cases.list[1].mean("waf.gc").unwrap();
        assert!(mean.mean == 2.0 && mean.half_width.is_some());
    }

    /// Two results of the same stack and seed are told apart by their files.
    #[test]
    fn twins_are_told_by_their_files() {
        let cases = Cases::new(vec![run("old", "pblk", 10, 1), run("new", "pblk", 10, 1)]);
        let labels: Vec<_> = cases.list.iter().map(|case| case.label.as_str()).collect();
        assert_eq!(labels, ["old", "new"]);
    }
}
