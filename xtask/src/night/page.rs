//! The page of the night, `docs/results/night.md`: a table with a row for each part, its last run.

use super::Ended;
use super::parts::Part;
use crate::files::text;
use std::path::Path;

const FILE: &str = "docs/results/night.md";

/// Writes the row of a part, in place of an older one.
///
/// # Errors
/// The page cannot be read or written.
pub(super) fn update(root: &Path, name: &str, row: &str) -> Result<(), String> {
    let file = root.join(FILE);
    let page = crate::files::with_row(&text(&file)?, name, row);
    std::fs::write(&file, page).map_err(|e| format!("{FILE}: {e}"))
}

pub(super) fn row(part: &Part, ended: &Ended) -> String {
    let outcome = if ended.passed { "passed" } else { "failed" };
    format!(
        "| `{}` | {} | {outcome}: {} | {:.0} | {:.0} | `{}` | `{}` |",
        part.name,
        part.what,
        ended.summary.replace('|', "/"),
        ended.wall_s,
        ended.cpu_s,
        ended.commit.get(..12).unwrap_or(&ended.commit),
        part.command(&ended.night)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_ran_and_how_it_ended() {
        let part = Part {
            name: "fuzz".into(),
            what: "new inputs".into(),
            covers: Vec::new(),
            night: "fuzz {night}".into(),
            gate: None,
            passed: None,
        };
        let ended = Ended {
            night: "7".into(),
            part: "fuzz".into(),
            commit: "0123456789abcdef".into(),
            passed: false,
            wall_s: 61.4,
            cpu_s: 120.0,
            summary: "1 finding".into(),
        };
        let expected =
            "| `fuzz` | new inputs | failed: 1 finding | 61 | 120 | `0123456789ab` | `fuzz 7` |";
        assert_eq!(row(&part, &ended), expected);
    }
}
