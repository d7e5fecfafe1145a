//! ext4 with JBD2: images that e2fsprogs and the Linux kernel accept, and that they made for us.
//!
//! [`mod@format`] knows bytes, [`journal`] makes changes of several blocks one, and the rest here is the
//! file system in operation. `Meta` (`meta`) has the metadata that all files share, with the `Allocator`; extent trees
//! (`extents`) and directories (`dir`) are its methods. A `Volume` has `Meta`, inodes in memory, the list of orphans and
//! records of files (`file_commit`); its methods are operations: on names (`namei`, `rename`), content (`data_path`, which
//! answers what `crate::vfs` asks; `logged`, `fallocate`, `truncate`), attributes (`xattr`), and mounts (`mount`,
//! `recovery`). [`mkfs`] makes file systems and [`check`] and [`dump`] examine them; they share only the formats with the
//! rest.

pub mod check;
pub mod dump;
pub mod format;
pub mod journal;
pub mod mkfs;
pub mod raw;

mod config;
mod counts;
mod data_path;
mod dir;
mod error;
mod extents;
mod fallocate;
mod file_commit;
mod flags;
mod found_extents;
mod fs;
mod inode;
mod inodes;
mod knobs;
mod live_log;
mod logged;
mod meta;
mod mount;
mod namei;
mod options;
mod orphan;
mod orphan_file;
mod recovery;
mod rename;
mod rules;
mod sync;
mod system_zone;
#[cfg(test)]
mod tests;
mod truncate;
mod tx;
mod volume;
mod xattr;

pub use config::Config;
pub use counts::Counts;
pub use fs::Ext4;
pub(crate) use live_log::live_log;
pub use mount::MountReport;
pub use options::{Commit, DataMode, MountOptions};
pub use rules::OmittedRule;
pub(crate) use rules::RULES;
