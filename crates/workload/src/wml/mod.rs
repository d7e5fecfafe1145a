//! Filebench's workload model language (WML): text in, [`Workload`] out, and its engine.
//!
//! Follows Filebench 1.5 (parser_gram.y, flowop_library.c, fileset.c), with what its stock files still use of
//! 1.4. Where it differs, it is stricter: an unknown name is an error with its place, and
//! nothing is ignored without a [`WmlNotice`]. docs/formats/wml.md lists everything.

pub mod engine;
mod error;
mod lexer;
mod model;
mod ops;
mod parser;
mod random;
mod resolve;
mod syntax;
mod tree;

pub use error::{At, WmlError, WmlNotice};
pub use model::{
    Arguments, Body, Fileset, Flowop, Number, Period, QuitMode, Thread, Watched, Workload,
};
pub use ops::{Class, OPS, Op, Way};
pub use random::Random;
pub use tree::{Directory, Leaf, Tree, TreeError, leaf_name};

use error::Source;
use std::collections::BTreeSet;
use std::path::Path;

/// Whether a file is a workload: by its name, as Filebench's own are called.
#[must_use]
pub fn is_workload(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "f")
}

/// The variables, without their `$`, that the workload in `text` sets, random ones included.
///
/// # Errors
/// What is no workload, with its place.
pub fn variables(text: &str, name: &str) -> Result<BTreeSet<String>, WmlError> {
    let statements = parser::parse(&Source::new(name, text))?;
    let set = statements.iter().filter_map(|statement| statement.command.variable());
    Ok(set.map(str::to_owned).collect())
}

/// Reads the workload in `text`, which the user calls `name`. `overrides` are variables, without their
/// `$`, that are to have these values instead of those that the file sets.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse(text: &str, name: &str, overrides: &[(String, String)]) -> Result<Workload, WmlError> {
    let source = Source::new(name, text);
    let statements = parser::parse(&source)?;
    resolve::resolve(&source, &statements, overrides)
}
