//! Results as one self-contained HTML file that works offline, and its plots as stand-alone Vega-Lite
//! specifications.
//!
//! The JSON of a result (docs/formats/result.md) and the rows of a sweep (docs/formats/sweep.md) are all
//! that a report is made from, so any result file becomes a report, whenever and wherever. Keys that a
//! result lacks leave out what would have been drawn from them; nothing is made up. A report is a
//! function of its input: no date, no clock.
//!
//! Plots are Vega-Lite 6 specifications (vega.github.io/vega-lite) with their data in them.

mod case;
mod caution;
mod chart;
mod column;
mod document;
mod escape;
mod facts;
mod figure;
pub mod metrics;
mod page;
mod path;
mod plot;
mod plots;
mod point;
mod read;
mod results;
mod student;
mod table;
mod theme;
mod units;

pub use case::Run;
pub use caution::Cautions;
pub use chart::{Chart, Mark, Shape};
pub use column::Column;
pub use document::{Cell, Document, Row, Tone};
pub use figure::{Figure, FigureError, Line};
pub use path::COURSES;
pub use plot::Plot;
pub use plots::describe_figure as describe;
pub use point::{Axis, Point, axes, distinctions, label, plain, values};
pub use read::{ReadError, read};
pub use student::Mean;

use case::Cases;

/// What the results are of: it decides what is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// One stack and job, perhaps repeated over seeds.
    Run,
    /// A few of them, drawn in one colour each.
    Comparison,
    /// Many, or some along an axis of numbers: only figures are drawn.
    Sweep,
}

/// Cases that are drawn in one colour each, at most.
const COMPARED_MAX: usize = 8;

/// Results, and what is to be said of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    title: String,
    command: Option<String>,
    columns: Vec<Column>,
    lines: Vec<Line>,
    /// Figures that were asked for are shown even if they are zero everywhere.
    chosen: bool,
    cases: Cases,
}

impl Report {
    /// Of these runs, under this title.
    #[must_use]
    pub fn new(title: &str, runs: Vec<Run>) -> Self {
        let cases = Cases::new(runs);
        let columns = Column::usual(cases.list.len());
        Self {
            title: title.to_owned(),
            command: None,
            columns: columns.into_iter().map(|column| cases.fill(column)).collect(),
            lines: Vec::new(),
            chosen: false,
            cases,
        }
    }

    /// With the command that makes the same report.
    #[must_use]
    pub fn made_by(mut self, command: &str) -> Self {
        self.command = Some(command.to_owned());
        self
    }

    /// With these figures instead of the usual ones.
    ///
    /// # Errors
    /// One is relative to what no point has.
    pub fn with_figures(
        mut self,
        figures: impl IntoIterator<Item = Figure>,
    ) -> Result<Self, FigureError> {
        let points = self.cases.points();
        let column = |figure| Ok(self.cases.fill(Column::new(figure, &points)?));
        self.columns = figures.into_iter().map(column).collect::<Result<_, _>>()?;
        self.chosen = true;
        Ok(self)
    }

    /// With these values drawn and named beside the figures that they are of.
    #[must_use]
    pub fn with_lines(mut self, lines: Vec<Line>) -> Self {
        self.lines = lines;
        self
    }

    /// The first of the figures that no result knows.
    #[must_use]
    pub fn unknown_path(&self) -> Option<FigureError> {
        self.columns.iter().find_map(Column::unknown_path)
    }

    /// Figures that are worth a look: those that were asked for, or that are not zero everywhere.
    fn visible_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| self.chosen || column.is_informative())
    }

    fn kind(&self) -> Kind {
        let numeric = self.cases.axes.iter().any(|axis| axis.is_numeric());
        match self.cases.list.len() {
            0 | 1 => Kind::Run,
            n if n <= COMPARED_MAX && !numeric => Kind::Comparison,
            _ => Kind::Sweep,
        }
    }

    /// What a reader needs to believe the results: each fact with its name.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        let facts = facts::facts(self).into_iter();
        facts.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What to be careful about, each with the runs that it is of.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.cautions().list()
    }

    fn cautions(&self) -> Cautions {
        let mut all = Cautions::default();
        for case in &self.cases.list {
            let mut add = |run: &Run| all.add(&case.point, &case.label, run.seed, &run.result);
            case.runs.iter().for_each(&mut add);
        }
        all
    }

    /// The plots, in the order of the page.
    #[must_use]
    pub fn plots(&self) -> Vec<Plot> {
        plots::sections(self).into_iter().flat_map(|section| section.plots).collect()
    }

    /// The page.
    #[must_use]
    pub fn html(&self) -> String {
        page::page(self)
    }
}
