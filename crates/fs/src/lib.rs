//! File systems in their real on-disk formats, over the block contract and nothing below it.
//!
//! [`contract`] says what a file system does, [`cache`] holds the pages that all of them share, and
//! each file system is a module of its own. The crates above use them through [`FsKind`], [`FsConfig`]
//! and [`MountedFs`], whatever their kind.

pub mod bdev;
pub mod cache;
pub mod contract;
mod counts;
mod dump;
pub mod ext4;
pub mod f2fs;
mod image;
mod kind;
mod knob;
pub mod memfs;
mod mkfs;
mod report;
mod rules;
mod vfs;
mod wire;

pub use counts::{CountGroup, FsCounts, FsDetail, FsMemory, FsSpace, FsyncTimes};
pub use dump::Dump;
pub use image::{BlockBytes, ImageError, ImageReader};
pub use kind::{
    ConfigError, FormatError, FormatRequest, Formatted, FsConfig, FsKind, LogSector, MountEnv,
    MountReport, Mounted, MountedFs, Probe, Promises, RecoveryStep,
};
pub use knob::{Knob, KnobUnit, KnobValue, NEVER_NS};
pub use report::{CheckReport, Finding};
pub use rules::{Rule, Where};
