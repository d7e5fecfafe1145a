//! The laboratory: stack files, runs, sweeps, and what they result in. Everything here runs on the virtual
//! clock; wall time comes in through [`run::Observer`], from the owner of a real clock.

pub mod run;
pub mod stack;
pub mod state;
pub mod sweep;
pub mod timeline;

pub use nandscape_block::SECTOR_BYTES;
pub use nandscape_ftl::{FtlKind, OmittedRule};
pub use nandscape_workload as workload;
