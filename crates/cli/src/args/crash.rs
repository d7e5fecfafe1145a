//! Power cuts, on devices alone and under a file system.

use super::fs::KindChoice;
use super::{JobsArgs, ListFormat, OutputArgs, seed, whole};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use nandscape_crash::composition::Pins;
use nandscape_crash::fs::calls::LENGTH_MAX;
use nandscape_crash::{FtlKind, Reduction, ftl_kinds};
use std::path::PathBuf;
use std::str::FromStr;

/// `nandscape crash`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Each seed chooses a small device, a load, faults, and the instants at which power fails, also while \
the device recovers. After each power cut a reference model judges what the device returns. The first \
violation is printed with its events and scenario, the others on a line each (--verbose prints all in \
full), each with a command that reproduces it: --first SEED --seeds 1. What is printed in full is also \
minimised: rounds, operations and faults without which the violation still shows are left out, and the \
events of what is left are printed, with a command that runs just that (--no-shrink omits this). The exit \
code is 1 if there was a violation. Ctrl-C ends the campaign with what it has found, and exit code 130.

A composition is ROUTING/FLUSH-SCOPE/LINE-SET/GC-STREAM/MAP/WIDTHS, with * where the seed may choose; \
what is left out at the end is the seed's, too. MAP is resident, lru, hotness, hotness-journal or dftl, \
the cached ones also with -serial: one miss at a time. WIDTHS is usual, as a name that ends with MAP \
has it, or wide: a number of lines for each stream, which the seed draws. A matrix runs only compositions that --composition \
permits. docs/formats/crash.md describes the JSON.

Rules for --omit: those of the FTL and, with --fs, of the file system; --rules lists them.

Examples:
  nandscape crash --seeds 10000 --jobs 2
  nandscape crash --omit erase-rule --max-violations 5 --verbose
  nandscape crash --stack pblk --faults 1000
  nandscape crash --edge-cases --seeds 5000 --jobs 2     unusual devices
  nandscape crash --ftl zoned --seeds 1000               zoned SSDs of any policy, with cuts and faults
  nandscape crash --stack ssd --omit buffer-save --set ftl.buffer.power_safe=true
  nandscape crash --unreadable 100                       one in 100 writes loses a sector
  nandscape crash --stack mine.toml --seeds 200 --output-format json
  nandscape crash --first 4711 --seeds 1                 reproduce the violation of seed 4711
  nandscape crash --omit erase-rule                      is a broken FTL detected?
  nandscape crash --rules --fs f2fs --stack zns          what --omit can leave out there
  nandscape crash --rules=csv > rules.csv                all that --omit knows
  nandscape crash --composition '*/submitted-only/*/*'   is Linux 4.13's flush detected?
  nandscape crash --matrix all --jobs 2                  every composition, 50 cuts each
  nandscape crash --matrix pairs --jobs 2                a few that meet each other, 1000 cuts each
  nandscape crash --matrix pairs --output-format json --output pairs.json
  nandscape crash --matrix all --composition '*/*/*/data/dftl-serial'
  nandscape crash --composition '*/*/units-2/*/*/wide'   streams of several lines each
  nandscape crash --omit stale-map --composition '*/*/*/*/lru'
  nandscape crash --composition per-core+journal+fsync-aware/file-ring/units-2/own/dftl
  nandscape crash --fs ext4 --stack js-pblk --set fs.data=journal --cuts 2000
  nandscape crash --fs ext4 --stack pblk --cuts 200 --oracle-every 10   with e2fsck as oracle
  nandscape crash --fs ext4 --set fs.commit=ijournal --cuts 2000
  nandscape crash --fs ext4 --first 17 --seeds 1         reproduce the violation of seed 17
  nandscape crash --fs ext4 --base adversary --cuts 5000 on a device that does the worst it may
  nandscape crash --fs ext4 --omit missing-revoke        is a broken journal detected?
  nandscape crash --fs f2fs --cuts 2000                  on a small conventional SSD
  nandscape crash --fs f2fs --base adversary --set fs.data_order=ordered --cuts 5000
  nandscape crash --fs f2fs --cuts 200 --oracle-every 10 with fsck.f2fs as oracle
  nandscape crash --fs ext4 --calls examples/crashmonkey.calls   known call sequences
  nandscape crash --fs f2fs --set fs.fsync_mode=strict --enumerate 2   all sequences of two calls
  nandscape crash --fs ext4 --full --seeds 1000          does space end, and come back, as it should?")]
pub(crate) struct CrashArgs {
    /// A stack whose device is scaled down and whose policies all seeds keep; without one, each seed chooses its FTL too
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) stack: Option<String>,
    /// The kind of FTL whose policies and sizes each seed draws, where no stack is given [default: pblk, below f2fs pagemap]
    #[arg(long, value_name = "KIND", conflicts_with = "stack", value_parser = PossibleValuesParser::new(ftl_kinds().map(FtlKind::name)))]
    pub(crate) ftl: Option<String>,
    /// Change a key of the stack, or with --fs a mode such as fs.data (may be repeated)
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Number of seeds [default: 1000, with --fs as many as --cuts takes]; with --enumerate so many of the sequences,
    /// drawn by --first [default: all]
    #[arg(long, value_parser = whole::<1, { u64::MAX }>)]
    pub(crate) seeds: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = seed)]
    pub(crate) first: u64,
    /// Inject program and erase failures with probability 1/ONE_IN (0: none) [default: each seed chooses]
    #[arg(long, value_name = "ONE_IN")]
    pub(crate) faults: Option<u32>,
    /// Inject uncorrectable (UECC) sectors into writes with probability 1/ONE_IN (0: none) [default: each seed
    /// chooses, or none with --faults]
    #[arg(long, value_name = "ONE_IN")]
    pub(crate) unreadable: Option<u32>,
    /// Stress extreme configurations: unusual write constraints, almost no spare space, buffer or cache, low
    /// endurance, failures of up to every third program
    #[arg(long, alias = "odd", conflicts_with = "faults")]
    pub(crate) edge_cases: bool,
    /// Cut power mostly while the device writes for itself: copies of garbage collection, mapping blocks, a log
    #[arg(long)]
    pub(crate) background_cuts: bool,
    /// Disable a safety rule of the FTL or the file system to validate the checker (mutation test)
    #[arg(long, alias = "broken", value_name = "RULE")]
    pub(crate) omit: Option<String>,
    /// List the rules for --omit, of the kinds that --stack, --ftl and --fs name, and run nothing
    #[arg(long, value_name = "FORMAT", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "normal")]
    pub(crate) rules: Option<ListFormat>,
    /// Fix routing, flush scope, line set, stream of GC copies and map, or some of them
    #[arg(long, value_name = "NAME")]
    pub(crate) composition: Option<Given>,
    /// Run legal compositions in turn, instead of what the seeds draw
    #[arg(long, value_enum, conflicts_with_all = ["stack", "set", "seeds"])]
    pub(crate) matrix: Option<Which>,
    /// Power cuts: for each composition of a matrix [default: 50 for all, 1000 for pairs]; with --fs in total
    /// [default: 200]; on the way of each sequence of --calls [default: at each request] or --enumerate [default: 4]
    #[arg(long, value_parser = whole::<1, 1_000_000>)]
    pub(crate) cuts: Option<u64>,
    #[command(flatten)]
    pub(crate) on_fs: CrashFsArgs,
    /// Stop after N failing seeds [default: 10, with --omit 1]
    #[arg(long, value_name = "N", value_parser = whole::<1, 1_000_000>)]
    pub(crate) max_violations: Option<u64>,
    /// Do not search for the least part of the seed's run that shows the violation
    #[arg(long)]
    pub(crate) no_shrink: bool,
    /// Run this part of the seed's run alone, as reproduce lines of minimised violations name it; with --seeds 1
    #[arg(long, value_name = "PART", requires = "seeds", conflicts_with_all = ["matrix", "max_violations"])]
    pub(crate) only: Option<Reduction>,
    /// Print every violation in full, with its events and scenario, not only the first
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The choices of `--composition`, and its words.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) pins: Pins,
    pub(crate) words: String,
}

impl FromStr for Given {
    type Err = String;

    fn from_str(words: &str) -> Result<Self, String> {
        Ok(Self { pins: words.parse()?, words: words.to_owned() })
    }
}

/// Which compositions.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Which {
    /// Every legal one
    All,
    /// A few in which any two choices meet
    Pairs,
}

/// What means nothing to a campaign on a file system. What needs one is refused beside these too: a
/// requirement that conflicts with what is given is one that clap does not insist on.
const NOT_ON_FS: [&str; 6] =
    ["faults", "unreadable", "edge_cases", "background_cuts", "composition", "matrix"];

/// Which file system, and how it is mounted.
#[derive(Args, Clone, Debug)]
pub(crate) struct CrashFsArgs {
    /// Put a file system on each device, run a load on files, and verify files and names
    #[arg(long, value_enum, conflicts_with_all = NOT_ON_FS)]
    pub(crate) fs: Option<KindChoice>,
    /// Make the call sequences of FILE (`-`: standard input) on a fresh volume, cut power on the way and at their end,
    /// and check what they say must hold (docs/formats/crash.md)
    #[arg(long, value_name = "FILE", requires = "fs", conflicts_with_all = NOT_ON_FS)]
    pub(crate) calls: Option<PathBuf>,
    /// Make all sequences of N calls on a few files and directories, each call with or without a sync after it
    #[arg(long, value_name = "N", requires = "fs", conflicts_with_all = NOT_ON_FS,
        conflicts_with = "calls", value_parser = clap::value_parser!(u32).range(1..=LENGTH_MAX as i64))]
    pub(crate) enumerate: Option<u32>,
    /// Drive blocks, inodes, directories, attributes, the journal or checkpoint, and the device to their ends and back
    #[arg(long, requires = "fs", conflicts_with_all = NOT_ON_FS, conflicts_with_all = ["calls", "enumerate"])]
    pub(crate) full: bool,
    /// The device below the file system [default: flash; with --calls or --enumerate and without --stack, adversary]
    #[arg(long, value_enum, requires = "fs", conflicts_with_all = NOT_ON_FS)]
    base: Option<BaseChoice>,
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

impl CrashArgs {
    /// What is below a file system.
    pub(crate) fn base(&self) -> BaseChoice {
        let CrashFsArgs { base, calls, enumerate, .. } = &self.on_fs;
        let has_sequences = calls.is_some() || enumerate.is_some();
        base.unwrap_or(match has_sequences && self.stack.is_none() {
            true => BaseChoice::Adversary,
            false => BaseChoice::Flash,
        })
    }
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
