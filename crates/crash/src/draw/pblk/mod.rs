//! What a seed chooses about pblk, and the matrix of its compositions.

pub mod composition;
pub(crate) mod config;
pub mod maps;
pub mod matrix;
pub(crate) mod widths;
