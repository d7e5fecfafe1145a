//! Tests of the runtime, in one program, as each program links all that it tests.
//! `cargo test -p nandscape-rt --test suite NAME::` runs those of one file.

mod common;
mod executor;
mod sync;
mod threads;
