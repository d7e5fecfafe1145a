//! ext4 with JBD2: images that e2fsprogs and the Linux kernel accept, and that they made for us.

pub mod format;
pub mod journal;
pub mod mkfs;
