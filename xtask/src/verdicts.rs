//! `cargo xtask verdicts LABEL=FILE...`: the verdicts of several reproductions of the same papers beside each
//! other, as a Markdown table with one row per statement and one column per reproduction.
//!
//! FILE is the `paper.json` of `nandscape paper --out DIR` (docs/formats/paper.md). Verdicts that differ from the
//! first column's are bold, so a changed model shows at a glance. A statement that a file lacks is an error. Files
//! with the same label are one reproduction, of which each file has some papers. Keys and verdicts of earlier
//! versions are read, too.

use serde_json::Value;

/// Verdicts that had another name in earlier versions, and their names now.
const RENAMED: [(&str, &str); 2] = [("partly", "partially"), ("cannot be told", "inconclusive")];

/// A reproduction with its column's header.
pub(crate) struct Column {
    label: String,
    papers: Vec<Value>,
}

impl Column {
    /// Reads `LABEL=FILE`.
    pub(crate) fn read(argument: &str) -> Result<Self, String> {
        let (label, file) =
            argument.split_once('=').ok_or_else(|| format!("{argument}: expected LABEL=FILE"))?;
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        Self::parse(label, &text).map_err(|error| format!("{file}: {error}"))
    }

    /// Columns with the same label as one, at the place of the first.
    pub(crate) fn merge(columns: Vec<Self>) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::new();
        for column in columns {
            match merged.iter_mut().find(|one| one.label == column.label) {
                Some(one) => one.papers.extend(column.papers),
                None => merged.push(column),
            }
        }
        merged
    }

    fn parse(label: &str, text: &str) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let papers = json["papers"].as_array().ok_or("no key \"papers\"")?.clone();
        Ok(Self { label: label.to_owned(), papers })
    }

    fn statement(&self, paper: &str, id: &str) -> Option<&Value> {
        let paper = self.papers.iter().find(|one| one["id"] == paper)?;
        paper["statements"].as_array()?.iter().find(|one| one["id"] == id)
    }
}

/// The table of `columns`, of which there is at least one.
pub(crate) fn table(columns: &[Column]) -> Result<String, String> {
    let Some(first) = columns.first() else { return Err("no reproduction given".to_owned()) };
    let labels = columns.iter().map(|column| format!(" {} |", column.label)).collect::<String>();
    let rule = "---|".repeat(columns.len());
    let mut text = format!("| Paper | Statement |{labels}\n|---|---|{rule}\n");
    for paper in &first.papers {
        let id = paper["id"].as_str().ok_or("a paper without \"id\"")?;
        for statement in paper["statements"].as_array().ok_or("a paper without \"statements\"")? {
            text.push_str(&row(id, statement, columns)?);
        }
    }
    Ok(text)
}

fn row(paper: &str, statement: &Value, columns: &[Column]) -> Result<String, String> {
    let id = statement["id"].as_str().ok_or("a statement without \"id\"")?;
    let text = statement["text"].as_str().or_else(|| statement["says"].as_str());
    let mut row = format!("| {paper} | {} |", text.unwrap_or(id));
    for column in columns {
        let other = column.statement(paper, id);
        let other = other.ok_or_else(|| format!("{} lacks {paper}, {id}", column.label))?;
        let verdict = verdict(other);
        let moved = verdict != self::verdict(statement);
        let verdict = if moved { format!("**{verdict}**") } else { verdict.to_owned() };
        row.push_str(&format!(" {} {verdict} |", measured(&other["measured"])));
    }
    Ok(row + "\n")
}

/// The verdict on a statement, under its name now.
fn verdict(of: &Value) -> &str {
    let verdict = of["verdict"].as_str().unwrap_or("none");
    RENAMED.iter().find(|(old, _)| *old == verdict).map_or(verdict, |(_, now)| now)
}

/// A mean with half the width of its interval, three significant digits of the mean.
fn measured(of: &Value) -> String {
    let Some(mean) = of["mean"].as_f64() else { return "no number".to_owned() };
    let digits = match mean.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    match of["ci95"].as_f64() {
        Some(half) => format!("{mean:.digits$} ± {half:.digits$}"),
        None => format!("{mean:.digits$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(label: &str, verdict: &str) -> Column {
        let text = format!(
            r#"{{"papers": [{{"id": "p", "statements": [{{"id": "s", "text": "faster", "verdict": "{verdict}",
                "measured": {{"mean": 1.5, "ci95": 0.25}}}}]}}]}}"#
        );
        Column::parse(label, &text).unwrap()
    }

    /// A verdict that moved is marked, one that did not is not.
    #[test]
    fn moved_verdicts_are_bold() {
        let columns = [column("before", "agrees"), column("a", "agrees"), column("b", "disagrees")];
        let text = table(&columns).unwrap();
        let row =
            "| p | faster | 1.50 ± 0.25 agrees | 1.50 ± 0.25 agrees | 1.50 ± 0.25 **disagrees** |";
        assert_eq!(text.lines().last().unwrap(), row);
    }

    /// A file under the temporary folder, until it is dropped.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str, text: &str) -> Self {
            let name = format!("verdicts-{}-{name}.json", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, text).unwrap();
            Self(path)
        }

        fn argument(&self, label: &str) -> String {
            format!("{label}={}", self.0.display())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Rows are the first file's statements, in its order; each column is its own file's.
    #[test]
    fn files_become_a_table() {
        let paper = |mean: f64, verdict: &str| {
            format!(
                r#"{{"papers": [{{"id": "p", "statements": [
                {{"id": "s", "text": "faster", "verdict": "{verdict}",
                    "measured": {{"mean": {mean}, "ci95": 0.25}}}},
                {{"id": "t", "verdict": "agrees", "measured": {{"mean": 123.4}}}},
                {{"id": "u", "text": "none", "verdict": "inconclusive"}}]}}]}}"#
            )
        };
        let before = Scratch::new("before", &paper(12.34, "agrees"));
        let after = Scratch::new("after", &paper(0.5, "disagrees"));
        let columns = [before.argument("before"), after.argument("after")];
        let columns = columns.map(|argument| Column::read(&argument).unwrap());
        let expected = "\
            | Paper | Statement | before | after |\n\
            |---|---|---|---|\n\
            | p | faster | 12.3 ± 0.2 agrees | 0.500 ± 0.250 **disagrees** |\n\
            | p | t | 123 agrees | 123 agrees |\n\
            | p | none | no number inconclusive | no number inconclusive |\n";
        assert_eq!(table(&columns).unwrap(), expected);
    }

    /// What is no reproduction is refused with the file's name.
    #[test]
    fn what_is_no_reproduction_is_refused() {
        let refused = |argument: &str| Column::read(argument).err().unwrap_or_default();
        assert_eq!(refused("paper.json"), "paper.json: expected LABEL=FILE");
        assert!(refused("a=/no/such/file").starts_with("/no/such/file: "));
        for (text, why) in [("{", "EOF while parsing"), ("{}", "no key \"papers\"")] {
            let file = Scratch::new("refused", text);
            let expected = format!("{}: {why}", file.0.display());
            let found = refused(&file.argument("a"));
            assert!(found.starts_with(&expected), "{found}");
        }
        assert_eq!(table(&[]).unwrap_err(), "no reproduction given");
    }

    /// Earlier versions named keys and verdicts differently; that moves no verdict.
    #[test]
    fn names_of_earlier_versions_are_read() {
        let old = r#"{"papers": [{"id": "p", "statements": [{"id": "s", "says": "slower", "verdict": "partly",
            "measured": {"mean": 2.0, "ci95": null}}]}]}"#;
        let columns = [Column::parse("before", old).unwrap(), column("now", "partially")];
        let row = "| p | slower | 2.00 partially | 1.50 ± 0.25 partially |";
        assert_eq!(table(&columns).unwrap().lines().last().unwrap(), row);
    }

    /// A reproduction may be in several files, each with some of its papers.
    #[test]
    fn files_of_one_label_are_one_column() {
        let mut other = column("now", "disagrees");
        other.papers[0]["id"] = "q".into();
        let mut before = column("before", "agrees");
        before.papers.push(other.papers[0].clone());
        let columns = Column::merge(vec![before, column("now", "agrees"), other]);
        let text = table(&columns).unwrap();
        assert_eq!(columns.len(), 2);
        assert!(text.ends_with("| q | faster | 1.50 ± 0.25 disagrees | 1.50 ± 0.25 disagrees |\n"));
    }

    /// Reproductions of different papers cannot stand beside each other.
    #[test]
    fn a_statement_that_is_missing_is_an_error() {
        let mut other = column("b", "agrees");
        other.papers.clear();
        assert_eq!(table(&[column("a", "agrees"), other]).unwrap_err(), "b lacks p, s");
    }
}
