//! Results from text: one result as `nandscape run --output-format json` writes it, or rows of a sweep,
//! one a line.

use crate::case::Run;
use serde_json::Value;

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
    let (column, told) = (error.column(), error.to_string());
    // The parser's own place is of a line alone.
    let why = told.rsplit_once(" at line ").map_or(told.as_str(), |(why, _)| why).to_owned();
    ReadError::NotJson { file: file.to_owned(), line, column, why }
}

fn run(file: &str, line: usize, mut value: Value) -> Result<Run, ReadError> {
    let not_a_result = || ReadError::NotAResult { file: file.to_owned(), line };
    let row = value.get_mut("result").map(Value::take);
    let result = row.clone().unwrap_or_else(|| value.clone());
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
        let told = (run.source.as_str(), run.stack.as_str(), run.job.as_str(), run.seed);
        assert_eq!(told, ("r", "pblk", "a, b", 7));
    }

    #[test]
    fn rows_are_read_one_a_line() {
        let runs = read("r.jsonl", &format!("{}\n{}\n\n", row(1), row(2))).unwrap();
        assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(runs[0].keys, [("k.a".to_owned(), 1.into())]);
        assert_eq!(read("r.jsonl", &row(3)).unwrap()[0].stack, "s");
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
