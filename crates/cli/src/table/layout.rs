//! Columns of text as lines: aligned, or in Markdown.

use std::fmt::Write;

/// Lines under their headers; the first `left` columns are set to the left, the others to the right.
pub(crate) fn lay_out(columns: &[(String, Vec<String>)], left: usize) -> Vec<String> {
    let mut lines = vec![String::new(); columns.first().map_or(0, |(_, cells)| cells.len() + 1)];
    for (at, (header, cells)) in columns.iter().enumerate() {
        let all = || std::iter::once(header).chain(cells);
        let width = all().map(|cell| cell.chars().count()).max().unwrap_or(0);
        for (line, cell) in lines.iter_mut().zip(all()) {
            // Writing to a string cannot fail.
            let _ = match at < left {
                true => write!(line, "  {cell:<width$}"),
                false => write!(line, "  {cell:>width$}"),
            };
        }
    }
    lines
}

/// The same in Markdown.
pub(crate) fn markdown(columns: &[(String, Vec<String>)], left: usize) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let of = |cell: &String| cell.replace('|', "\\|");
    let rule = |at: usize| if at < left { "---" } else { "---:" }.to_owned();
    let headers = line(columns.iter().map(|(header, _)| of(header)).collect());
    let mut text = headers + &line((0..columns.len()).map(rule).collect());
    for at in 0..columns.first().map_or(0, |(_, cells)| cells.len()) {
        text += &line(columns.iter().map(|(_, cells)| of(&cells[at])).collect());
    }
    text
}
