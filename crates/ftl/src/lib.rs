//! Flash translation layers. One pblk, many policies: a variant is a [`config::Config`], never a
//! copy of the FTL.

mod common;
pub mod config;
pub mod cpu;
pub mod error;
pub mod pblk;
pub mod stats;

pub use config::Config;
pub use error::FtlError;
pub use pblk::{Capacity, LineReport, LineState, Pblk};
