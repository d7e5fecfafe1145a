//! F2FS in its on-disk format, after Linux's `fs/f2fs`: rooms keep the kernel's names.

mod checkpoint;
mod data;
mod discard;
mod error;
mod extent;
mod file;
pub mod format;
mod fs;
mod fsync;
mod gc;
mod inline;
mod inode;
mod inodes;
mod meta;
mod mount;
mod names_stub;
mod node;
mod options;
mod recovery;
mod rules;
mod segment;
mod space;
mod timer;
mod volume;

pub use fs::F2fs;
pub use mount::MountReport;
pub use options::{Allocation, DiscardPolicy, FsyncMode, MountOptions};
pub use rules::OmittedRule;
