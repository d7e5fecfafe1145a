//! What a sweep asks: figures to report, and lines to set beside them. The lab keeps them as texts
//! with their places, for readers of results; no run depends on them.

use crate::stack::reader::Section;
use crate::stack::{Place, StackError};
use std::fmt::Display;

/// The figures that a sweep asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Report {
    /// Not stated; a selection.
    Usual,
    /// As the sweep says.
    Chosen(Vec<Named>),
}

/// A figure as it was named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// As it stands there.
    pub text: String,
    /// Where.
    pub place: Place,
    /// Under which key; empty for an argument.
    pub key: &'static str,
}

/// A value that a figure is set against, such as a published one.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The figure.
    pub figure: Named,
    /// Its value.
    pub value: f64,
    /// What it is.
    pub label: String,
}

impl Named {
    /// What is wrong with it, at its place.
    #[must_use]
    pub fn error(&self, why: impl Display) -> StackError {
        StackError::new(&self.place, self.key, why.to_string())
    }
}

/// Reads `[[line]]`.
pub(super) fn read_lines(root: &mut Section<'_>) -> Result<Vec<Line>, StackError> {
    root.entries("line")?.into_iter().map(read_line).collect()
}

fn read_line(mut line: Section<'_>) -> Result<Line, StackError> {
    let text = line.required("figure")?;
    let place = line.place_of("figure").clone();
    let figure = Named { text, place, key: "line.figure" };
    let (value, label) = (line.required("value")?, line.required("label")?);
    line.close()?;
    Ok(Line { figure, value, label })
}
