//! How far a campaign is: a file with one line per finished batch, appended when the batch has ended. What
//! was interrupted goes on after the last whole line.

use crate::files;
use serde_json::{Value, json};
use std::ops::AddAssign;
use std::path::Path;

/// What a batch found, or several.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Found {
    pub(super) seeds: u64,
    pub(super) cuts: u64,
    pub(super) cuts_in_recovery: u64,
    pub(super) violations: u64,
}

impl AddAssign for Found {
    fn add_assign(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.cuts += other.cuts;
        self.cuts_in_recovery += other.cuts_in_recovery;
        self.violations += other.violations;
    }
}

/// A finished batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Batch {
    /// The commit that the program was built from.
    pub(super) commit: String,
    pub(super) first: u64,
    pub(super) found: Found,
}

impl Batch {
    /// What `nandscape crash --output-format json` printed.
    pub(super) fn of_report(text: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(text).ok()?;
        let counts = &json["counts"];
        Some(Self {
            commit: json["commit"].as_str()?.into(),
            first: json["first_seed"].as_u64()?,
            found: Found {
                seeds: json["seeds"].as_u64()?,
                cuts: counts["cuts"].as_u64()?,
                cuts_in_recovery: counts["cuts_in_recovery"].as_u64()?,
                violations: json["violations"].as_array()?.len() as u64,
            },
        })
    }

    fn line(&self) -> String {
        let Found { seeds, cuts, cuts_in_recovery, violations } = &self.found;
        let json = json!({
            "commit": self.commit,
            "first": self.first,
            "seeds": seeds,
            "cuts": cuts,
            "cuts_in_recovery": cuts_in_recovery,
            "violations": violations,
        });
        json.to_string()
    }

    fn of_line(line: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(line).ok()?;
        let number = |key: &str| json[key].as_u64();
        Some(Self {
            commit: json["commit"].as_str()?.into(),
            first: number("first")?,
            found: Found {
                seeds: number("seeds")?,
                cuts: number("cuts")?,
                cuts_in_recovery: number("cuts_in_recovery")?,
                violations: number("violations")?,
            },
        })
    }
}

/// The finished batches of a campaign, if it was begun.
pub(super) fn read(file: &Path) -> Result<Vec<Batch>, String> {
    parse(&files::log(file)?)
        .ok_or_else(|| format!("{}: not the state of a campaign", file.display()))
}

fn parse(text: &str) -> Option<Vec<Batch>> {
    text.lines().map(Batch::of_line).collect()
}

/// Adds a batch to the state.
pub(super) fn append(file: &Path, batch: &Batch) -> Result<(), String> {
    files::append(file, &batch.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(first: u64) -> Batch {
        let found = Found { seeds: 5, cuts: 20, cuts_in_recovery: 3, violations: 0 };
        Batch { commit: "abc".into(), first, found }
    }

    #[test]
    fn what_was_written_is_read() {
        let text = batch(1).line() + "\n" + &batch(6).line() + "\n";
        assert_eq!(parse(&text), Some(vec![batch(1), batch(6)]));
        assert_eq!(parse("{}\n"), None);
        assert_eq!(parse(""), Some(Vec::new()));
    }

    #[test]
    fn reports_are_read() {
        let report = r#"{ "commit": "abc", "first_seed": 6, "seeds": 5, "violations": [],
            "counts": { "cuts": 20, "cuts_in_recovery": 3 } }"#;
        assert_eq!(Batch::of_report(report), Some(batch(6)));
        assert_eq!(Batch::of_report("{}"), None);
    }
}
