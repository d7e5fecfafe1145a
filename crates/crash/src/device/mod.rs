//! Campaigns on a block device alone: load, power cut, recovery, and the comparison with the reference
//! model.

pub(crate) mod campaign;
pub(crate) mod drive;
mod history;
pub(crate) mod host;
pub mod matrix;
pub mod model;
pub(crate) mod reduced;
pub mod resets;
pub mod subject;
pub(crate) mod target;
pub mod trigger;
