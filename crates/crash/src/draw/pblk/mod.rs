//! What a seed chooses about pblk.

pub mod composition;
pub(crate) mod config;
pub mod maps;
pub(crate) mod widths;
