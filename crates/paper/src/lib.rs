//! Papers reproduced: what a paper asks becomes sweeps, what it states becomes verdicts, and every run is
//! checked for physical sense whatever the paper says.
//!
//! A paper is a folder of files (docs/formats/paper.md). Published numbers stand in its `published.toml`
//! and nowhere else; nothing here knows any. All is a function of files and results: no clock, no date,
//! so two reproductions are the same to the byte. The caller owns the threads that run the sweeps.

mod answers;
pub mod checks;
mod file;
mod full;
mod json;
mod judge;
mod leave;
mod library;
mod model;
mod page;
mod published;
mod read;
mod reason;
mod reproduction;
mod stacks;
mod statement;
mod text;
mod variant;
pub mod verdict;

pub use answers::{Answer, Answers};
pub use judge::{Judged, Reading, Sensitivity, Verdicts, judge};
pub use library::{Files, shipped};
pub use model::{
    Assumption, Column, Contradiction, Experiment, Extension, Figure, Filter, Form, Kind, Measure,
    Measured, Paper, PlotSpec, PublishedValue, Reason, Size, Statement, Variant,
};
pub use nandscape_lab::stack::StackError;
pub use page::{Maker, page};
pub use reason::Because;
pub use reproduction::Reproduction;
