//! Tests of reports, in one program, as each program links all that it tests.
//! `cargo test -p nandscape-report --test suite NAME::` runs those of one file.

mod figures;
mod report;
