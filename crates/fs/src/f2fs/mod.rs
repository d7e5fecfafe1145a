//! F2FS in its on-disk format, after Linux's `fs/f2fs`: rooms keep the kernel's names.

pub mod format;
pub mod mkfs;
