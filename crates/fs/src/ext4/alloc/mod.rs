//! Who gets which block and which inode number.

pub(crate) mod bits;
mod blocks;
mod inodes;
mod space;
