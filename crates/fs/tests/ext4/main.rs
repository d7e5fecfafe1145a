//! ext4 as a whole and its parts against reference models, e2fsprogs and the running kernel.
//!
//! One test program of many modules and one kind of device ([`common::device`]): each further one
//! would compile the whole file system once more.

mod chattr;
mod check;
mod common;
mod differ;
mod foreign;
mod format;
mod fsx;
mod growth;
mod hostile;
mod ijournal;
mod journal;
mod kind;
mod mkfs;
mod posix;
mod races;
mod replay;
mod tree;
