//! Workloads: where the I/O comes from.
//!
//! [`fio`] reads fio's job files; [`engine`] runs them on a [`target`] in virtual time. [`trace`]
//! reads block traces and describes them; [`replay`] issues their requests likewise. [`wml`] reads Filebench's workload
//! files and runs them on a file system. All record the same [`latency`].

mod direction;
pub mod engine;
pub mod fio;
pub mod latency;
pub mod log;
mod permutation;
mod place;
pub mod replay;
pub mod target;
pub mod trace;
pub mod wml;

pub use direction::Direction;
pub use place::Place;
