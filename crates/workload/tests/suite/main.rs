//! Tests of workloads, in one program, as each program links all that it tests.
//! `cargo test -p nandscape-workload --test suite NAME::` runs those of one file.

mod blocks;
mod common;
mod corpus;
mod depth;
mod differential;
mod endings;
mod engine;
mod figures;
mod flowops;
mod iolog;
mod mixes;
mod oracle;
mod parser;
mod parts;
mod passes;
mod pauses;
mod replay;
mod trace;
mod trace_files;
mod turns;
mod verify;
mod wml;
mod zbd;
