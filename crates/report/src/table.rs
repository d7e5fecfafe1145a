//! The table of figures: a line a case, a column a figure, each a mean over the seeds with its 95 %
//! confidence, and in a comparison its ratio to the first line.

use crate::case::Case;
use crate::column::Column;
use crate::escape::escape;
use crate::point::plain;
use crate::units::number;
use crate::{Kind, Report};
use std::fmt::Write;

/// Lines at most; the rows themselves have the rest.
const LINES_MAX: usize = 1_000;

/// The table as HTML.
pub(crate) fn table(report: &Report) -> String {
    let cases = &report.cases.list;
    let columns: Vec<&Column> = report.visible_columns().collect();
    let figures = columns.iter().map(|column| column.figure().to_string());
    let mut out = String::from("<div class=\"scroll\"><table><thead><tr>");
    for header in headers(report).into_iter().chain(figures) {
        out.push_str(&format!("<th scope=\"col\">{}</th>", escape(&header)));
    }
    out.push_str("</tr></thead><tbody>");
    for (at, case) in cases.iter().enumerate().take(LINES_MAX) {
        out.push_str("<tr>");
        for label in labels(case) {
            let _ = write!(out, "<th scope=\"row\">{}</th>", escape(&label));
        }
        for column in &columns {
            let _ = write!(out, "<td>{}</td>", cell(report, column, at));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    let _ = write!(out, "<p class=\"note\">{}</p>", note(report));
    for line in &report.lines {
        let _ = write!(out, "<p class=\"note\">{}</p>", escape(&line.to_string()));
    }
    out
}

fn headers(report: &Report) -> Vec<String> {
    match report.cases.axes.as_slice() {
        [] => vec!["stack".to_owned()],
        axes => axes.iter().map(|axis| axis.name.clone()).collect(),
    }
}

fn labels(case: &Case) -> Vec<String> {
    if case.values.is_empty() {
        vec![case.label.clone()]
    } else {
        case.values.iter().map(plain).collect()
    }
}

fn cell(report: &Report, column: &Column, at: usize) -> String {
    let Some(mean) = column.mean(at) else { return "–".to_owned() };
    let text = column.figure().show(&mean);
    let compared = report.kind() == Kind::Comparison && !column.figure().is_relative();
    let first = column.mean(0).filter(|first| first.mean != 0.0 && compared);
    first.map_or(text.clone(), |first| {
        format!("{text} <span class=\"ratio\">×{}</span>", number(mean.mean / first.mean))
    })
}

fn note(report: &Report) -> String {
    let cases = report.cases.list.len();
    let mut note = match report.cases.seeds() {
        0 | 1 => String::new(),
        seeds => format!(
            "Means over {seeds} seeds, ± half the width of the 95 % confidence interval (Student’s t). "
        ),
    };
    if report.kind() == Kind::Comparison {
        note.push_str("× is the ratio to the first line. ");
    }
    if cases > LINES_MAX {
        let _ =
            write!(note, "{} more lines are left out here; the rows have them.", cases - LINES_MAX);
    }
    note
}
