//! Results from text: one result as `nandscape run --output-format json` writes it, or rows of a sweep,
//! one a line.

use crate::case::Run;
use serde_json::{Map, Value};

/// Keys of results of earlier versions: the object that holds the key (`*`: each entry of a list), the old
/// name, and the name now.
const RENAMED: &[(&str, &str, &str)] = &[
    ("gc", "free_rides", "empty_victims"),
    ("gc", "forced_drains", "forced_flushes"),
    ("buffers/*", "free_rides", "empty_victims"),
    ("reads", "ring_hits", "write_buffer_hits"),
    ("flush", "drained", "drained_sectors"),
    ("map", "no_slot", "all_slots_pinned"),
    ("map/host_lookups", "joined", "joined_loads"),
    ("map/internal_lookups", "joined", "joined_loads"),
    ("host_cpu", "collector", "gc_thread"),
    ("host_cpu/ring_locks/*", "taken", "acquisitions"),
    ("host_cpu/map_lock", "taken", "acquisitions"),
    ("trace", "disordered", "out_of_order"),
    ("trace", "folded", "wrapped"),
    ("trace", "bad_lines", "malformed_lines"),
    ("trace", "late", "issued_late"),
    ("trace", "late_max_ns", "issued_late_max_ns"),
    ("fs", "records", "ijournal_records"),
    ("fs/fsync_times", "thread_ns", "cpu_wait_ns"),
];

/// Words of results of earlier versions, by the key that holds them.
const REWORDED: &[(&str, &str, &str, &str)] = &[("buffers/*", "role", "copies", "gc")];

/// Why a text holds no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is no JSON.
    #[error("{file}:{line}:{column}: not JSON: {why}")]
    NotJson {
        /// The file.
        file: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the parser says.
        why: String,
    },
    /// It is JSON, and neither a result nor a row.
    #[error(
        "{file}:{line}: neither a result (key \"nandscape\") nor a row of a sweep (key \"result\")"
    )]
    NotAResult {
        /// The file.
        file: String,
        /// From 1.
        line: usize,
    },
    /// It is empty.
    #[error("{file}: no result in it")]
    Empty {
        /// The file.
        file: String,
    },
}

/// The runs in `text`, which was found in `file`.
///
/// # Errors
/// The first thing that is not a result, and where.
pub fn read(file: &str, text: &str) -> Result<Vec<Run>, ReadError> {
    let whole = serde_json::from_str::<Value>(text);
    let runs = match whole {
        Ok(value) => vec![run(file, 1, value)?],
        // More than one line of JSON, or none at all: the lines say where it is wrong.
        Err(_) if text.trim_start().lines().next().is_some_and(is_whole) => lines(file, text)?,
        Err(_) if text.trim().is_empty() => Vec::new(),
        Err(error) => return Err(not_json(file, error.line(), &error)),
    };
    match runs.is_empty() {
        true => Err(ReadError::Empty { file: file.to_owned() }),
        false => Ok(runs),
    }
}

fn is_whole(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok()
}

fn lines(file: &str, text: &str) -> Result<Vec<Run>, ReadError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let value =
                serde_json::from_str(line).map_err(|error| not_json(file, at + 1, &error))?;
            run(file, at + 1, value)
        })
        .collect()
}

fn not_json(file: &str, line: usize, error: &serde_json::Error) -> ReadError {
    let (column, message) = (error.column(), error.to_string());
    // The parser's own place is of a line alone.
    let why = message.rsplit_once(" at line ").map_or(message.as_str(), |(why, _)| why).to_owned();
    ReadError::NotJson { file: file.to_owned(), line, column, why }
}

fn run(file: &str, line: usize, mut value: Value) -> Result<Run, ReadError> {
    let not_a_result = || ReadError::NotAResult { file: file.to_owned(), line };
    let row = value.get_mut("result").map(Value::take);
    let mut result = row.clone().unwrap_or_else(|| value.clone());
    result.get_mut("nandscape").into_iter().for_each(update);
    let ours = result.get("nandscape").filter(|ours| ours.is_object()).ok_or_else(not_a_result)?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let keys = value.get("keys").and_then(Value::as_object).into_iter().flatten();
    Ok(Run {
        source: stem(file).to_owned(),
        stack: text(value.get("stack")).or_else(|| text(ours.get("stack"))).unwrap_or_default(),
        job: text(value.get("job")).unwrap_or_else(|| job_names(&result)),
        keys: keys.map(|(key, value)| (key.clone(), value.clone())).collect(),
        seed: ours.get("seed").and_then(Value::as_u64).unwrap_or_default(),
        result,
    })
}

/// Gives keys and words of an earlier version the names that they have now.
fn update(ours: &mut Value) {
    for (path, old, new) in RENAMED {
        each(ours, path, &mut |fields| {
            if let Some(value) = fields.remove(*old) {
                fields.entry(*new).or_insert(value);
            }
        });
    }
    for (path, key, old, new) in REWORDED {
        each(ours, path, &mut |fields| {
            if let Some(word) = fields.get_mut(*key).filter(|word| *word == old) {
                *word = (*new).into();
            }
        });
    }
}

/// Each object at `path` below `value`.
fn each(value: &mut Value, path: &str, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let (key, rest) = path.split_once('/').unwrap_or((path, ""));
    match (key, value) {
        ("", Value::Object(fields)) => change(fields),
        ("*", Value::Array(items)) => items.iter_mut().for_each(|item| each(item, rest, change)),
        (_, Value::Object(fields)) => {
            fields.get_mut(key).into_iter().for_each(|value| each(value, rest, change));
        }
        _ => {}
    }
}

fn job_names(result: &Value) -> String {
    let jobs = result.get("jobs").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<&str> = jobs.filter_map(|job| job["jobname"].as_str()).collect();
    names.join(", ")
}

/// The file's name without folders and without its last extension.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"jobs":[{"jobname":"a"},{"jobname":"b"}],
        "nandscape":{"stack":"pblk","seed":7}}"#;

    fn row(seed: u64) -> String {
        format!(
            r#"{{"run":"x","stack":"s","job":"j","keys":{{"k.a":1}},"result":{{"nandscape":{{"seed":{seed}}}}}}}"#
        )
    }

    fn error(text: &str) -> String {
        read("f.json", text).unwrap_err().to_string()
    }

    #[test]
    fn a_result_is_read() {
        let runs = read("out/r.json", RESULT).unwrap();
        assert_eq!(runs.len(), 1);
        let run = &runs[0];
        let read = (run.source.as_str(), run.stack.as_str(), run.job.as_str(), run.seed);
        assert_eq!(read, ("r", "pblk", "a, b", 7));
    }

    #[test]
    fn rows_are_read_one_a_line() {
        let runs = read("r.jsonl", &format!("{}\n{}\n\n", row(1), row(2))).unwrap();
        assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(runs[0].keys, [("k.a".to_owned(), 1.into())]);
        assert_eq!(read("r.jsonl", &row(3)).unwrap()[0].stack, "s");
    }

    /// A result of an earlier version reads as one of this version, and one of this version stays as it is.
    #[test]
    fn old_keys_have_their_new_names() {
        let old = r#"{"nandscape":{"gc":{"victims":1,"free_rides":2},"map":{"no_slot":3},
            "buffers":[{"role":"copies","free_rides":4},{"role":"normal","free_rides":5}],
            "host_cpu":{"map_lock":{"taken":6},"ring_locks":[{"taken":7}],"collector":{"jobs":8}},
            "fs":{"records":{"count":9},"fsync_times":{"thread_ns":10}},"trace":{"late":11}}}"#;
        let new = r#"{"nandscape":{"gc":{"victims":1,"empty_victims":2},"map":{"all_slots_pinned":3},
            "buffers":[{"role":"gc","empty_victims":4},{"role":"normal","empty_victims":5}],
            "host_cpu":{"map_lock":{"acquisitions":6},"ring_locks":[{"acquisitions":7}],
            "gc_thread":{"jobs":8}},
            "fs":{"ijournal_records":{"count":9},"fsync_times":{"cpu_wait_ns":10}},
            "trace":{"issued_late":11}}}"#;
        let result = |text: &str| read("r.json", text).unwrap().remove(0).result;
        let expected: Value = serde_json::from_str(new).unwrap();
        assert_eq!((result(old), result(new)), (expected.clone(), expected));
    }

    /// Whatever is wrong is said with its place.
    #[test]
    fn errors_have_a_place() {
        assert_eq!(error("{\n  \"jobs\": oops }"), "f.json:2:11: not JSON: expected value");
        assert!(error(&format!("{}\n{{", row(1))).starts_with("f.json:2:1: not JSON"));
        assert!(error("{}").starts_with("f.json:1: neither a result"));
        assert!(error(&format!("{}\n[]", row(1))).starts_with("f.json:2: neither"));
        assert_eq!(error(" \n"), "f.json: no result in it");
    }
}
