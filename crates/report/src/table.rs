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
    let device = has_devices(report).then(|| "device".to_owned());
    let headers: Vec<String> =
        headers(report).into_iter().chain(device.clone()).chain(figures).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let row = |(at, case): (usize, &Case)| {
        let cells = columns.iter().map(|column| cell(report, column, at));
        let device = device.iter().map(|_| device_label(case));
        labels(case).into_iter().chain(device).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = cases.iter().enumerate().take(LINES_MAX).map(row).collect();
    let heads = headers.len() - columns.len();
    let mut out = grid(&headers, &rows, heads);
    let _ = write!(out, "<p class=\"note\">{}</p>", note(report));
    for line in &report.lines {
        let _ = write!(out, "<p class=\"note\">{}</p>", escape(&line.to_string()));
    }
    out
}

/// A table of text, which scrolls where it is too wide; the first `heads` cells of a row name it.
pub(crate) fn grid(headers: &[&str], rows: &[Vec<String>], heads: usize) -> String {
    let mut out = String::from("<div class=\"scroll\"><table><thead><tr>");
    for (at, header) in headers.iter().enumerate() {
        let class = if at < heads { " class=\"words\"" } else { "" };
        out.push_str(&format!("<th scope=\"col\"{class}>{}</th>", escape(header)));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = match at < heads {
                true => write!(out, "<th scope=\"row\">{}</th>", escape(cell)),
                false => write!(out, "<td>{}</td>", escape(cell)),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out
}

/// Whether lines say on which device they are, as those of `compare` do: where stacks are compared, and where devices differ.
fn has_devices(report: &Report) -> bool {
    let known = report.cases.runs().any(|run| run.ours()["device_label"].is_string());
    known && (report.kind() == Kind::Comparison || report.cautions().devices_differ())
}

fn device_label(case: &Case) -> String {
    case.first().ours()["device_label"].as_str().unwrap_or("–").to_owned()
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
    first.map_or(text.clone(), |first| format!("{text} (×{})", number(mean.mean / first.mean)))
}

fn note(report: &Report) -> String {
    let cases = report.cases.list.len();
    let mut note = match report.cases.seeds() {
        0 | 1 => String::new(),
        2 => "Means over two seeds, with their range in brackets. ".to_owned(),
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
