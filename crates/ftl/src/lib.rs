//! Flash translation layers. One pblk, many policies: a variant is a [`pblk::config::Config`], never a
//! copy of the FTL.

pub mod error;
pub mod pblk;

pub use error::FtlError;
pub use pblk::config::Config;
pub use pblk::{Capacity, LineReport, LineState, Pblk};
