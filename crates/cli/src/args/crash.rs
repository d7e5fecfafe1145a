//! Power cuts under a file system.

use super::whole;
use clap::{Args, ValueEnum};
use nandscape_fs::ext4::DataMode;

/// What means nothing to a campaign on a file system. What needs one is refused beside these too: a
/// requirement that conflicts with what is given is one that clap does not insist on.
const NOT_ON_FS: [&str; 6] = ["seeds", "faults", "unreadable", "odd", "composition", "matrix"];

/// Which file system, and how it is mounted.
#[derive(Args, Clone, Debug)]
pub(crate) struct CrashFsArgs {
    /// Put a file system on each device, run a load on files, and judge files and names
    #[arg(long, value_enum, conflicts_with_all = NOT_ON_FS)]
    pub(crate) fs: Option<FileSystemChoice>,
    /// Data mode of the file system [default: the stack's, else ordered]
    #[arg(long, value_enum, requires = "fs", conflicts_with_all = NOT_ON_FS)]
    data: Option<DataChoice>,
    /// What an fsync commits [default: the stack's, else jbd2]
    #[arg(long, value_enum, requires = "fs", conflicts_with_all = NOT_ON_FS)]
    pub(crate) commit: Option<CommitChoice>,
    /// e2fsck judges one in so many cuts, and recovers a copy that must show the same files
    #[arg(long, value_name = "K", requires = "fs", conflicts_with_all = NOT_ON_FS,
        value_parser = whole::<1, { u64::MAX }>)]
    pub(crate) oracle_every: Option<u64>,
}

impl CrashFsArgs {
    pub(crate) fn data(&self) -> Option<DataMode> {
        self.data.map(|data| match data {
            DataChoice::Ordered => DataMode::Ordered,
            DataChoice::Journal => DataMode::Journal,
            DataChoice::Writeback => DataMode::Writeback,
        })
    }
}

/// A file system.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum FileSystemChoice {
    /// ext4 with JBD2
    Ext4,
}

/// How data and journal go together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum DataChoice {
    /// New data is on the device before what leads to it
    Ordered,
    /// Data goes through the journal
    Journal,
    /// Data may come later than what leads to it
    Writeback,
}

/// What an fsync commits.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum CommitChoice {
    /// What everybody changed
    Jbd2,
    /// A record of the one file, where that will do
    Ijournal,
}
