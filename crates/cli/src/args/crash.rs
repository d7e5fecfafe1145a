//! Power cuts under a file system.

use super::fs::KindChoice;
use super::whole;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use nandscape_crash::rule_names;
use nandscape_fs::FsKind;

/// What means nothing to a campaign on a file system. What needs one is refused beside these too: a
/// requirement that conflicts with what is given is one that clap does not insist on.
const NOT_ON_FS: [&str; 6] =
    ["seeds", "faults", "unreadable", "edge_cases", "composition", "matrix"];

/// Which file system, and how it is mounted.
#[derive(Args, Clone, Debug)]
pub(crate) struct CrashFsArgs {
    /// Put a file system on each device, run a load on files, and verify files and names
    #[arg(long, value_enum, conflicts_with_all = NOT_ON_FS)]
    pub(crate) fs: Option<KindChoice>,
    /// The device below the file system
    #[arg(long, value_enum, default_value = "flash", requires = "fs", conflicts_with_all = NOT_ON_FS)]
    pub(crate) base: BaseChoice,
    /// Same as --set fs.data=MODE
    #[arg(long, value_enum, hide = true, requires = "fs", conflicts_with_all = NOT_ON_FS)]
    data: Option<DataChoice>,
    /// Same as --set fs.commit=MODE
    #[arg(long, value_enum, hide = true, requires = "fs", conflicts_with_all = NOT_ON_FS)]
    commit: Option<CommitChoice>,
    /// Cross-check every K-th cut with e2fsck, which also recovers a copy that must show the same files, or fsck.f2fs
    #[arg(long, value_name = "K", requires = "fs", conflicts_with_all = NOT_ON_FS,
        value_parser = whole::<1, { u64::MAX }>)]
    pub(crate) oracle_every: Option<u64>,
    /// Damage copies of every K-th cut's image: checksums of the journal and the volume must detect it
    /// (0: never) [default: 20]
    #[arg(long, value_name = "K", requires = "fs", conflicts_with_all = NOT_ON_FS)]
    pub(crate) damage_every: Option<u64>,
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

/// What is below a file system.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum BaseChoice {
    /// An FTL over media: drawn, or that of --stack
    Flash,
    /// A device in memory that does whatever the crash model permits: completions out of order, flushes
    /// that cover nothing in flight, power cuts that keep any subset
    Adversary,
    /// The same with zones, behind a part that is writable at random: for f2fs
    AdversaryZoned,
}

impl BaseChoice {
    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Flash => "flash",
            Self::Adversary => "adversary",
            Self::AdversaryZoned => "adversary-zoned",
        }
    }
}

/// How data and journal go together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum DataChoice {
    /// New data is on the device before the metadata that points to it
    Ordered,
    /// Data is journalled
    Journal,
    /// No order between data and metadata
    Writeback,
}

/// What an fsync commits.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum CommitChoice {
    /// Commit the whole running transaction (JBD2)
    Jbd2,
    /// Per-file journal record where possible (iJournaling)
    Ijournal,
}

/// Every rule that some kind can leave out; which kinds are involved is seen later.
pub(super) fn rules() -> PossibleValuesParser {
    let of_fs = FsKind::ALL.into_iter().flat_map(|kind| kind.rules().iter().copied());
    PossibleValuesParser::new(rule_names().chain(of_fs))
}
