//! F2FS in its on-disk format, after Linux's `fs/f2fs`: rooms keep the kernel's names.

mod adaptive;
mod age_threshold;
mod append;
mod appended;
pub mod check;
mod checkpoint;
mod checkpoints;
mod config;
mod counts;
mod cpu;
mod data;
mod dir;
mod direct;
mod discard;
pub mod dump;
mod error;
mod extent;
mod file;
pub mod format;
mod fs;
mod fsync;
mod gc;
mod gc_copy;
mod gc_journal;
mod gc_parts;
mod inline;
mod inode;
mod inodes;
mod knobs;
mod meta;
pub mod mkfs;
mod mount;
mod moves;
mod namei;
mod nat;
mod node;
mod options;
mod orphans;
mod parking;
pub mod raw;
mod recovery;
mod rename;
mod rules;
mod segment;
mod sending;
mod space;
mod timer;
mod victim;
mod volume;
mod xattr;
mod zoned;
mod zones;

pub use append::{AppendCounts, AppendGeometry};
pub use config::{Config, change_features};
pub use counts::Counts;
pub use cpu::{CpuCosts, CpuTimes};
pub use fs::F2fs;
pub use gc_parts::{GcParts, GcWithout};
pub use mount::MountReport;
pub use options::{
    AllocMode, Allocation, DiscardPolicy, FsyncMode, GcCheckpoint, MountOptions, Reclaim,
    SmallVolume, VictimPolicy,
};
pub(crate) use rules::NAMES as RULES;
pub use rules::OmittedRule;
pub use zones::ZoneGeometry;
