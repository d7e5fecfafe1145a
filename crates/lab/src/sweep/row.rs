//! Rows of a sweep: one JSON object a run, without anything that differs between two runs of the same
//! (docs/formats/sweep.md).

use super::Case;
use crate::run::{Outcome, VERSION};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_128;

/// What stands for the code in the name of a run.
#[must_use]
pub fn program(commit: &str) -> String {
    format!("{VERSION} {commit}")
}

/// The name of the run of a case with a seed.
pub(super) fn run_id(case: u128, seed: u64) -> String {
    let mut bytes = case.to_le_bytes().to_vec();
    bytes.extend(seed.to_le_bytes());
    format!("{:032x}", xxh3_128(&bytes))
}

/// The row of a run. That of a session has the result of its last step, and under `steps` those of all.
pub(super) fn row(case: &Case, seed: u64, commit: &str, outcomes: &[Outcome]) -> String {
    let mut results: Vec<Value> = outcomes.iter().map(|outcome| result(outcome, commit)).collect();
    let mut last = results.last().cloned().unwrap_or_default();
    let steps = case.job.steps();
    if !steps.is_empty() {
        for (result, step) in results.iter_mut().zip(steps) {
            result["step"] = step.name.clone().into();
        }
        last["steps"] = results.into();
    }
    format!("{}{last}}}", head(case, seed, commit))
}

/// A result without anything that differs between two runs of the same.
fn result(outcome: &Outcome, commit: &str) -> Value {
    let mut result = outcome.to_json(commit);
    let ours = &mut result["nandscape"];
    without_wall_time(ours);
    without_wall_time(&mut ours["precondition"]);
    result
}

/// A row up to its result: what its sweep calls the run.
pub(super) fn head(case: &Case, seed: u64, commit: &str) -> String {
    let names = json!({
        "run": run_id(case.id(&program(commit)), seed),
        "stack": case.stack_name,
        "job": case.job.name,
        "keys": case.keys.iter().cloned().collect::<Map<String, Value>>(),
        "seed": seed,
    });
    let names = names.to_string();
    format!("{},\"result\":", names.strip_suffix('}').unwrap_or(&names))
}

fn without_wall_time(value: &mut Value) {
    if let Value::Object(keys) = value {
        keys.shift_remove("wall_s");
    }
}

/// A row that was read back.
#[derive(Clone, PartialEq, Debug)]
pub struct FinishedRow {
    /// The name of its run.
    pub id: String,
    /// The result, as `nandscape run --output-format json` writes it.
    pub result: Value,
}

impl FinishedRow {
    /// The row in `line`, if it holds one.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut row: Value = serde_json::from_str(line).ok()?;
        let id = row.get("run")?.as_str()?.to_owned();
        let result = row.get_mut("result")?.take();
        result.is_object().then_some(Self { id, result })
    }

    /// Whether a job of this run failed, or its workload ended early.
    #[must_use]
    pub fn failed(&self) -> bool {
        let steps = self.result.get("steps").and_then(Value::as_array);
        failed(&self.result) || steps.is_some_and(|steps| steps.iter().any(failed))
    }
}

fn failed(result: &Value) -> bool {
    let jobs = result.get("jobs").and_then(Value::as_array);
    jobs.is_some_and(|jobs| jobs.iter().any(|job| job["error"] != 0))
        || result.pointer("/nandscape/wml/failure").is_some_and(Value::is_string)
}
