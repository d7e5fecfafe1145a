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
mod facts;
mod figure;
mod page;
mod plot;
mod plots;
mod read;
mod student;
mod table;
mod theme;
mod units;

pub use case::Run;
pub use figure::figure;
pub use plot::Plot;
pub use read::{ReadError, read};
pub use student::Mean;
pub use units::show;

use case::Cases;

/// The figures that are reported when nobody says. Those that are zero everywhere are for the reader
/// to leave out.
pub const USUAL: [&str; 8] = [
    "waf.gc",
    "waf.media",
    "write.iops",
    "write.clat_ns.p50",
    "write.clat_ns.p99",
    "read.iops",
    "read.clat_ns.p99",
    "sync.lat_ns.p99",
];

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
    figures: Vec<String>,
    /// Figures that were asked for are shown even if they are zero everywhere.
    chosen: bool,
    cases: Cases,
}

impl Report {
    /// Of these runs, under this title.
    #[must_use]
    pub fn new(title: &str, runs: Vec<Run>) -> Self {
        Self {
            title: title.to_owned(),
            command: None,
            figures: USUAL.map(str::to_owned).into(),
            chosen: false,
            cases: Cases::new(runs),
        }
    }

    /// With the command that makes the same report.
    #[must_use]
    pub fn made_by(mut self, command: &str) -> Self {
        self.command = Some(command.to_owned());
        self
    }

    /// With these figures instead of [`USUAL`], as paths for [`figure`].
    #[must_use]
    pub fn with_figures(mut self, figures: &[&str]) -> Self {
        self.figures = figures.iter().map(|path| (*path).to_owned()).collect();
        self.chosen = true;
        self
    }

    fn kind(&self) -> Kind {
        let numeric = self.cases.axes.iter().any(|axis| axis.is_numeric());
        match self.cases.list.len() {
            0 | 1 => Kind::Run,
            n if n <= COMPARED_MAX && !numeric => Kind::Comparison,
            _ => Kind::Sweep,
        }
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
