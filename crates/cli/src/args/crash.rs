//! Power cuts under a file system.

use super::fs::KindChoice;
use super::whole;
use clap::{Args, ValueEnum};

/// What means nothing to a campaign on a file system. What needs one is refused beside these too: a
/// requirement that conflicts with what is given is one that clap does not insist on.
const NOT_ON_FS: [&str; 6] = ["seeds", "faults", "unreadable", "odd", "composition", "matrix"];

/// Which file system, and how it is mounted.
#[derive(Args, Clone, Debug)]
pub(crate) struct CrashFsArgs {
    /// Put a file system on each device, run a load on files, and judge files and names
    #[arg(long, value_enum, conflicts_with_all = NOT_ON_FS)]
    pub(crate) fs: Option<KindChoice>,
    /// Data mode of the file system [default: the stack's, else ordered]
    #[arg(long, value_enum, requires = "fs", conflicts_with_all = NOT_ON_FS)]
    data: Option<DataChoice>,
    /// What an fsync commits [default: the stack's, else jbd2]
    #[arg(long, value_enum, requires = "fs", conflicts_with_all = NOT_ON_FS)]
    commit: Option<CommitChoice>,
    /// e2fsck judges one in so many cuts, and recovers a copy that must show the same files
    #[arg(long, value_name = "K", requires = "fs", conflicts_with_all = NOT_ON_FS,
        value_parser = whole::<1, { u64::MAX }>)]
    pub(crate) oracle_every: Option<u64>,
}

impl CrashFsArgs {
    /// The modes that were asked for: keys and values of `[fs]`.
    pub(crate) fn choices(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let data = self.data.map(|data| match data {
            DataChoice::Ordered => "ordered",
            DataChoice::Journal => "journal",
            DataChoice::Writeback => "writeback",
        });
        let commit = self.commit.map(|commit| match commit {
            CommitChoice::Jbd2 => "jbd2",
            CommitChoice::Ijournal => "ijournal",
        });
        let data = data.map(|data| ("data", data));
        data.into_iter().chain(commit.map(|commit| ("commit", commit)))
    }
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
enum CommitChoice {
    /// What everybody changed
    Jbd2,
    /// A record of the one file, where that will do
    Ijournal,
}
