//! What a sweep asks: figures to report, and lines to set beside them. The lab keeps them as texts
//! with their places, for whoever reads results to understand; no run depends on them.

use crate::stack::document::{Node, Value};
use crate::stack::reader::Section;
use crate::stack::{Place, StackError};
use std::fmt::Display;

/// The figures that a sweep asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Report {
    /// Nobody said; a selection.
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
    let Some(node) = root.node("line") else { return Ok(Vec::new()) };
    let Value::Array(nodes) = &node.value else {
        let found = node.value.describe();
        return Err(root.reject("line", format!("expected [[line]] tables, found {found}")));
    };
    nodes.iter().map(read_line).collect()
}

fn read_line(node: &Node) -> Result<Line, StackError> {
    let Value::Table(table) = &node.value else {
        let message = format!("expected [[line]] tables, found {}", node.value.describe());
        return Err(StackError::new(&node.place, "line", message));
    };
    let mut line = Section::entry(table, "line", &node.place);
    let text = line.required("figure")?;
    let place = table.get("figure").map_or(&node.place, |node| &node.place).clone();
    let figure = Named { text, place, key: "line.figure" };
    let (value, label) = (line.required("value")?, line.required("label")?);
    line.close()?;
    Ok(Line { figure, value, label })
}
