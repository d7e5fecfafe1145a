//! The table of figures: a line a case, a column a figure, each a mean over the seeds with its 95 %
//! confidence, and in a comparison its ratio to the first line.

use crate::case::{Case, plain};
use crate::page::escape;
use crate::units::{number, show};
use crate::{Kind, Report};
use std::fmt::Write;

/// Lines at most; the rows themselves have the rest.
const LINES_MAX: usize = 1_000;

/// The table as HTML.
pub(crate) fn table(report: &Report) -> String {
    let cases = &report.cases.list;
    let paths = worth_a_column(report);
    let mut out = String::from("<div class=\"scroll\"><table><thead><tr>");
    for header in headers(report).iter().map(String::as_str).chain(paths.iter().copied()) {
        out.push_str(&format!("<th scope=\"col\">{}</th>", escape(header)));
    }
    out.push_str("</tr></thead><tbody>");
    for case in cases.iter().take(LINES_MAX) {
        out.push_str("<tr>");
        for label in labels(case) {
            let _ = write!(out, "<th scope=\"row\">{}</th>", escape(&label));
        }
        for path in &paths {
            let _ = write!(out, "<td>{}</td>", cell(report, case, path));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    let _ = write!(out, "<p class=\"note\">{}</p>", note(report));
    out
}

/// Figures that some case has, and that are not zero everywhere unless they were asked for.
fn worth_a_column(report: &Report) -> Vec<&str> {
    let told = |path: &&str| {
        let mut means = report.cases.list.iter().filter_map(|case| case.mean(path));
        report.chosen || means.any(|mean| mean.mean != 0.0)
    };
    report.figures.iter().map(String::as_str).filter(told).collect()
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

fn cell(report: &Report, case: &Case, path: &str) -> String {
    let Some(mean) = case.mean(path) else { return "–".to_owned() };
    let text = show(path, &mean);
    let first = report.cases.list.first().and_then(|first| first.mean(path));
    let first = first.filter(|first| first.mean != 0.0 && report.kind() == Kind::Comparison);
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
