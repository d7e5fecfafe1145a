//! Tests of crash campaigns, in one program, as each program links all that it tests.
//! `cargo test -p nandscape-crash --test suite NAME::` runs those of one file.

mod adversary;
mod calls;
mod campaign;
mod checker;
mod corpus;
mod ext4;
mod full;
mod hosts;
mod model;
mod shrinking;
mod ssd;
mod toy;
