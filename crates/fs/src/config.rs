//! In what terms every kind of file system is configured: its `Config` (`ext4/config.rs`, `f2fs/config.rs`) is made of a
//! request, makes and mounts a file system, and says what was made or recovered, and which choice cannot be met.

use nandscape_block::{AsyncDevice, BlockError};
use nandscape_rt::Handle;
use thiserror::Error;

/// A choice that cannot be met.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("{why}")]
pub struct ConfigError {
    /// The name of the choice, as in `[fs]` of a stack; empty if it is the size of the device.
    pub key: &'static str,
    /// The reason.
    pub why: String,
}

/// What a user may ask of a new file system of any kind; `None`: the kind's default.
#[derive(Clone, Copy, Default, Debug)]
pub struct FormatRequest<'a> {
    /// Volume label.
    pub label: &'a str,
    /// Features by name, turned off by `^` before the name.
    pub features: &'a [String],
    /// Sectors of the journal.
    pub journal_sectors: Option<u64>,
    /// Bytes of volume per inode.
    pub inode_ratio: Option<u64>,
    /// Bytes of an inode.
    pub inode_bytes: Option<u16>,
    /// Percentage of blocks that only root may take.
    pub reserved_percent: Option<u8>,
    /// Segments of a section.
    pub segments_per_section: Option<u32>,
    /// Sections of a zone.
    pub sections_per_zone: Option<u32>,
    /// Percentage of the main area that users do not see.
    pub overprovision: Option<f64>,
    /// Whether there is room for a GC journal.
    pub gc_journal_area: bool,
    /// Source of identity and hash seeds.
    pub seed: u64,
    /// The time, in seconds since 1970.
    pub now_s: i64,
    /// Whether the device reads as zeroes everywhere, because nothing was ever written to it.
    pub fresh: bool,
}

/// A file system that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Formatted {
    /// Its size in sectors.
    pub sectors: u64,
    /// Its inodes.
    pub inodes: u64,
    /// Into how many units the format divides it, and what one and several of them are called.
    pub units: (u64, [&'static str; 2]),
    /// Sectors of its journal; 0 without one.
    pub journal_sectors: u64,
    /// Its features by name.
    pub features: Vec<String>,
}

/// Why no file system was made.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// A choice cannot be met; nothing was written.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
}

/// What a mount stands on.
#[derive(Clone)]
pub struct MountEnv {
    /// The executor of its tasks.
    pub rt: Handle,
    /// Its device.
    pub device: AsyncDevice,
}

/// A step of recovery at mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryStep {
    /// What was done, such as "orphans finished".
    pub name: &'static str,
    /// How often.
    pub count: u64,
}

/// What a mount had to recover, step by step.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MountReport {
    /// The steps in the order in which they ran.
    pub steps: Vec<RecoveryStep>,
}

/// What a file system mounted by a configuration guarantees beyond the contract, or does not, after a
/// power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promises {
    /// An fsync may make one file durable without changes that were made before it to others.
    pub syncs_single_files: bool,
    /// Blocks that a file gained shortly before the cut may show what they held for another file.
    pub may_show_stale_blocks: bool,
    /// What is written over lies where it lay. Otherwise each write gains a file its block, and pages that were
    /// written over show what those that are new may show.
    pub overwrites_in_place: bool,
}
