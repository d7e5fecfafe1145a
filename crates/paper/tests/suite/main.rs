//! Tests of papers, in one program, as each program links all that it tests.
//! `cargo test -p nandscape-paper --test suite NAME::` runs those of one file.

mod common;
mod files;
mod reproduction;
