//! Tests of the program, in one program, as each program links all that it tests.
//! `cargo test -p nandscape --test suite NAME::` runs those of one file.

mod campaigns;
mod command_line;
mod common;
mod documents;
mod fio_habits;
mod images;
mod interrupts;
mod kept;
mod metrics;
mod outputs;
mod papers;
mod reference;
mod reports;
mod states;
mod sweeps;
mod timeline;
mod traces;
mod whole;
mod workloads;
