//! Tests of media, in one program, as each program links all that it tests.
//! `cargo test -p nandscape-media --test suite NAME::` runs those of one file.

mod ceilings;
mod common;
mod device;
mod power_cut;
mod priority;
mod rules;
mod snapshot;
mod store;
