//! The page of long campaigns, `docs/results/campaigns.md`: a table whose rows the campaigns write.

use super::rows::Row;
use super::state::Found;
use crate::files;
use std::path::Path;

/// Writes the row of a campaign, in place of an older one.
pub(super) fn update(file: &Path, row: &Row, commit: &str, found: &Found) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(failed)?;
    let text = files::with_row(&text, row.name, &line(row, commit, found));
    std::fs::write(file, text).map_err(failed)
}

fn line(row: &Row, commit: &str, found: &Found) -> String {
    let Found { seeds, cuts, cuts_in_recovery, .. } = found;
    let command = row.arguments(row.first, row.whole()).join(" ");
    format!(
        "| `{}` | {} seeds, {} cuts ({} during recovery), no violation | `{}` | `{command}` |",
        row.name,
        grouped(*seeds),
        grouped(*cuts),
        grouped(*cuts_in_recovery),
        commit.get(..12).unwrap_or(commit)
    )
}

/// With commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_command_and_commit() {
        let row = Row::all_named("pblk-10000")[0];
        let found = Found { seeds: 10_000, cuts: 52_838, cuts_in_recovery: 11_276, violations: 0 };
        let expected = "| `pblk-10000` | 10,000 seeds, 52,838 cuts (11,276 during recovery), no \
                        violation | `0123456789ab` | `crash --first 1 --seeds 10000` |";
        assert_eq!(line(&row, "0123456789abcdef", &found), expected);
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
