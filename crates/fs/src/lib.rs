//! File systems in their real on-disk formats, over the block contract and nothing below it.
//!
//! [`contract`] says what a file system does, [`cache`] holds the pages that all of them share, and
//! each file system is a module of its own.

pub mod cache;
pub mod contract;
pub mod ext4;
