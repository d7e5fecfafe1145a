//! Tests of the lab, in one program, as each program links all that it tests.
//! `cargo test -p nandscape-lab --test suite NAME::` runs those of one file.

mod buffered;
mod cautions;
mod common;
mod corpus;
mod coupled;
mod extends;
mod f2fs;
mod figures;
mod files;
mod flushes;
mod golden;
mod interrupt;
mod jobs;
mod keys;
mod mounted;
mod renamed;
mod replay;
mod run;
mod session;
mod stack;
mod states;
mod steady;
mod sweep;
mod theory;
mod timeline;
mod truth;
mod widths;
mod wml;
mod zones;
