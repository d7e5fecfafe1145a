//! What a seed chooses about pblk, and the matrix of its compositions.

pub mod composition;
pub mod maps;
pub mod matrix;
