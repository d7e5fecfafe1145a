//! Call sequences: calls on files, a power cut and what must hold then, in a small language (docs/formats/crash.md, "Call
//! sequences"). [`crate::fs::calls`] runs them; campaigns print their violations in it.

mod language;
mod parse;

pub(crate) use language::Repeated;
pub use language::{Call, Case, Content, Expectation, FileRef, Line, What};
pub use parse::{ParseError, parse};
