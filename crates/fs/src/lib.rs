//! File systems in their real on-disk formats, over the block contract and nothing below it.
//!
//! [`contract`] says what a file system does, [`cache`] holds the pages that all of them share, and
//! each file system is a module of its own. The crates above use them through [`FsKind`], [`FsConfig`]
//! and [`MountedFs`], whatever their kind.

pub mod bdev;
pub mod cache;
mod config;
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

pub use config::{
    ConfigError, FormatError, FormatRequest, Formatted, MountEnv, MountReport, Promises,
    RecoveryStep,
};
pub use counts::{CountGroup, FsMemory, FsSpace, FsyncTimes};
pub use dump::Dump;
pub use image::{BlockBytes, ImageError, ImageReader, LogSector, Probe};
pub use kind::{FsConfig, FsCounts, FsDetail, FsKind, Mounted, MountedFs};
pub use knob::{Knob, KnobUnit, KnobValue, NEVER_NS};
pub use report::{CheckReport, Finding};
pub use rules::{Rule, Where};
