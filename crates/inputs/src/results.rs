//! Results and rows of sweeps, and the report of what is one: its facts, plots and page, with the figures that the input
//! asks for.

use crate::input::Files;
use nandscape_report::{Figure, Report, read};

/// The name of the text that has figures, one per line.
const FIGURES: &str = "--figure";
/// Figures that are drawn.
const FIGURES_MAX: usize = 4;

/// Reads results, and makes the report of them.
pub fn results(input: &[u8]) {
    let Some(mut files) = Files::of(input) else { return };
    let figures = files.take(FIGURES).lines().filter_map(|line| line.parse::<Figure>().ok());
    let figures: Vec<Figure> = figures.take(FIGURES_MAX).collect();
    let Ok(mut runs) = read("results.jsonl", files.first) else { return };
    for (name, text) in files.others() {
        runs.extend(read(name, text).into_iter().flatten());
    }
    let report = Report::new("fuzz", runs);
    drop((report.facts(), report.warnings()));
    report.plots().iter().for_each(|plot| drop(plot.standalone()));
    drop(report.html());
    if let Ok(report) = report.with_figures(figures) {
        drop((report.unknown_path(), report.html()));
    }
}
