//! Tests of FTLs, in one program, as each program links all that it tests.
//! `cargo test -p nandscape-ftl --test suite NAME::` runs those of one file.

mod common;
mod coupled;
mod device;
mod firmware;
mod idle;
mod interval;
mod pblk;
mod zoned;
