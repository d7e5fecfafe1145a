//! The `[fs]` section of a stack file: the file system between workload and FTL, how it is made and how it
//! is mounted. Names of features and choices of sizes are mke2fs's, those of times and dirty ratios
//! Linux's.

use super::document::Value;
use super::place::StackError;
use super::reader::{Section, Size, Span, Words};
use super::resolved::titled;
use super::{Fsync, Hints, Host};
use nandscape_block::SECTOR_BYTES;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::ext4::format::{Feature, Features};
use nandscape_fs::ext4::mkfs::{self, Choice, DEFAULT_FEATURES, MkfsOptions};
use nandscape_fs::ext4::{Commit, DataMode, MountOptions};
use nandscape_media::PayloadMode;
use nandscape_rt::Nanos;

/// Page cache of a host that a stack does not describe.
pub(super) const MEMORY_BYTES: u64 = 4 << 30;
/// The least page cache.
pub(crate) const MEMORY_BYTES_MIN: u64 = 1 << 20;
/// Share of the log that all records may have.
const RECORDS_DIVISOR_MIN: u32 = 2;

/// Keys that say how a file system is made.
const MKFS_KEYS: [&str; 5] = ["features", "journal", "inode_ratio", "reserved_percent", "discard"];

const KIND: Words<()> = Words { here: &[("ext4", ())], later: &["f2fs"] };
const DATA: Words<DataMode> = Words {
    here: &[
        ("ordered", DataMode::Ordered),
        ("journal", DataMode::Journal),
        ("writeback", DataMode::Writeback),
    ],
    later: &[],
};
const COMMIT: Words<bool> = Words { here: &[("jbd2", false), ("ijournal", true)], later: &[] };

/// `[fs]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FsStack {
    /// How it is made; identity and seeds are set when a run begins. `None`: it is on the device.
    pub mkfs: Option<MkfsOptions>,
    /// How it is mounted, likewise.
    pub mount: MountOptions,
    /// Keys that are not as they would be if nothing was said.
    chosen: Vec<&'static str>,
}

impl FsStack {
    /// Its name.
    pub const KIND: &str = "ext4";

    /// The same for a run on a device that is fresh or not: identity and seeds are drawn from the run's
    /// seed.
    #[must_use]
    pub fn for_run(&self, seed: u64, fresh: bool) -> Self {
        let MkfsOptions { uuid, hash_seed, .. } = MkfsOptions::new(seed);
        let mut run = self.clone();
        run.mkfs = run.mkfs.map(|mkfs| MkfsOptions { uuid, hash_seed, fresh, ..mkfs });
        run.mount.seed = seed;
        run
    }

    /// Whether records leave JBD2 enough of a log of so many blocks.
    fn has_room_for_records(&self, log_blocks: u32) -> bool {
        let Commit::Ijournal { slots, slot_blocks } = self.mount.commit else { return true };
        let wanted = u64::from(slots) * u64::from(slot_blocks);
        wanted <= u64::from(log_blocks / RECORDS_DIVISOR_MIN)
    }

    /// The name of its data mode.
    #[must_use]
    pub fn data(&self) -> &'static str {
        data_name(self.mount.data)
    }

    /// The name of what an fsync commits.
    #[must_use]
    pub const fn commit(&self) -> &'static str {
        commit_name(self.mount.commit)
    }
}

/// The name of a data mode.
#[must_use]
pub fn data_name(data: DataMode) -> &'static str {
    DATA.here.iter().find(|(_, mode)| *mode == data).map_or("", |(name, _)| name)
}

/// The name of what an fsync commits.
#[must_use]
pub const fn commit_name(commit: Commit) -> &'static str {
    if matches!(commit, Commit::Jbd2) { "jbd2" } else { "ijournal" }
}

/// Reads the section; nothing without one.
pub(super) fn read(
    mut fs: Section<'_>,
    host: &Host,
    payload: PayloadMode,
) -> Result<(Option<FsStack>, String), StackError> {
    if fs.is_absent() {
        return Ok((None, String::new()));
    }
    fs.choice("kind", FsStack::KIND, &KIND)?;
    fs.check("kind", payload != PayloadMode::None, "needs media.payload = \"tags\" or \"bytes\"")?;
    let data = fs.choice("data", "ordered", &DATA)?;
    let commit = read_commit(&mut fs, host)?;
    let commit_interval = fs.or("commit_interval", Span(Nanos::from_secs(5)))?.0;
    fs.check("commit_interval", commit_interval > Nanos::ZERO, "must be more than nothing")?;
    let cache = read_cache(&mut fs, host)?;
    let mkfs = read_mkfs(&mut fs)?;
    let mount = MountOptions { data, commit, commit_interval, cache, ..MountOptions::default() };
    let chosen = fs.chosen().to_vec();
    Ok((Some(FsStack { mkfs, mount, chosen }), titled("fs", fs)?))
}

/// What an fsync commits, and the room for it.
fn read_commit(fs: &mut Section<'_>, host: &Host) -> Result<Commit, StackError> {
    if !fs.choice("commit", "jbd2", &COMMIT)? {
        fs.refuse(&["records"], "goes with commit = \"ijournal\" only")?;
        return Ok(Commit::Jbd2);
    }
    let given = blocks(fs, "records")?;
    fs.check("records", given.is_none_or(|blocks| blocks > 1), "must be at least 8KiB")?;
    let slot_blocks = given.unwrap_or(0);
    Ok(Commit::Ijournal { slots: host.cores_or_default(), slot_blocks })
}

fn read_cache(fs: &mut Section<'_>, host: &Host) -> Result<CacheConfig, StackError> {
    let default = CacheConfig::default();
    let mut percent = |key, default: u8| -> Result<u8, StackError> {
        let percent: u32 = fs.or(key, default.into())?;
        fs.check(key, (1..=100).contains(&percent), "must be 1 to 100 percent of host.memory")?;
        Ok(percent as u8)
    };
    let background_percent = percent("dirty_background_percent", default.background_percent)?;
    let dirty_percent = percent("dirty_percent", default.dirty_percent)?;
    let ordered = background_percent < dirty_percent;
    fs.check("dirty_percent", ordered, "must be more than dirty_background_percent")?;
    let period = fs.or("writeback_period", Span(default.period))?.0;
    fs.check("writeback_period", period > Nanos::ZERO, "must be more than nothing")?;
    let age = fs.or("writeback_age", Span(default.age))?.0;
    let ahead = Size(u64::from(default.read_ahead_pages) * SECTOR_BYTES);
    let Size(ahead) = fs.or("read_ahead", ahead)?;
    fs.check("read_ahead", ahead <= 1 << 30, "must be at most 1GiB")?;
    let pages = host.memory_bytes.unwrap_or(MEMORY_BYTES) / SECTOR_BYTES;
    let read_ahead_pages = (ahead / SECTOR_BYTES) as u32;
    Ok(CacheConfig { pages, background_percent, dirty_percent, period, age, read_ahead_pages })
}

/// How a file system is made; nothing where the one on the device is mounted.
fn read_mkfs(fs: &mut Section<'_>) -> Result<Option<MkfsOptions>, StackError> {
    let make: Option<bool> = fs.unwritten("make")?;
    if let Some(make) = make {
        fs.write_unless("true", "make", &make.to_string());
    }
    if make == Some(false) {
        fs.refuse(&MKFS_KEYS, "says how a file system is made: with make = false none is")?;
        return Ok(None);
    }
    let features = read_features(fs)?;
    let journal_blocks = blocks(fs, "journal")?;
    let inode_ratio = fs.optional("inode_ratio")?.map(|Size(bytes)| bytes);
    let reserved: u32 = fs.or("reserved_percent", 5)?;
    fs.check("reserved_percent", reserved <= 50, "must be 0 to 50")?;
    let reserved_percent = reserved as u8;
    let discard = fs.or("discard", true)?;
    let defaults = MkfsOptions::new(0);
    let sizes = MkfsOptions { journal_blocks, inode_ratio, ..defaults };
    Ok(Some(MkfsOptions { features, reserved_percent, discard, ..sizes }))
}

/// A size in whole blocks, if given.
fn blocks(fs: &mut Section<'_>, key: &'static str) -> Result<Option<u32>, StackError> {
    let Some(Size(bytes)) = fs.optional(key)? else { return Ok(None) };
    let blocks = u32::try_from(bytes / SECTOR_BYTES).ok();
    let blocks = blocks.filter(|_| bytes.is_multiple_of(SECTOR_BYTES));
    blocks.map(Some).ok_or_else(|| fs.reject(key, "must be whole blocks of 4 KiB, below 16TiB"))
}

/// mke2fs's defaults with the list's changes: names turn features on, or off with ^ in front.
fn read_features(fs: &mut Section<'_>) -> Result<Features, StackError> {
    let mut features = DEFAULT_FEATURES;
    let Some(node) = fs.node("features") else { return Ok(features) };
    let Value::Array(names) = &node.value else {
        let found = node.value.describe();
        let expected = "expected a list of features such as [\"^metadata_csum\"]";
        return Err(fs.reject("features", format!("{expected}, found {found}")));
    };
    let mut words = Vec::new();
    for name in names {
        let Value::String(word) = &name.value else {
            let found = name.value.describe();
            return Err(fs.reject("features", format!("expected names of features, found {found}")));
        };
        let (feature, on) = named(word).map_err(|why| fs.reject("features", why))?;
        features.set(feature, on);
        words.push(format!("\"{word}\""));
    }
    fs.write_unless("[]", "features", &format!("[{}]", words.join(", ")));
    Ok(features)
}

fn named(word: &str) -> Result<(Feature, bool), String> {
    let bare = word.trim_start_matches('^');
    let known = Features::named(bare);
    let feature = known.ok_or_else(|| format!("no feature of ext4 is called \"{bare}\""))?;
    Ok((feature, !word.starts_with('^')))
}

/// Refuses what a file system says itself.
pub(super) fn check_alone(hints: &Hints) -> Result<(), (&'static str, &'static str)> {
    if hints.journal_range.is_some() {
        return Err((
            "hints.journal_range",
            "a file system flags its journal itself: leave this out, or [fs]",
        ));
    }
    if hints.fsync != Fsync::Device {
        return Err((
            "hints.fsync",
            "a file system says itself what an fsync covers: leave this out, or [fs]",
        ));
    }
    Ok(())
}

/// The key that makes a choice.
const fn key(choice: Choice) -> &'static str {
    match choice {
        Choice::InodeRatio => "fs.inode_ratio",
        Choice::Journal => "fs.journal",
        Choice::Features => "fs.features",
        // These no key chooses.
        Choice::Label | Choice::InodeBytes | Choice::ReservedPercent => "fs",
    }
}

impl super::Stack {
    /// Refuses, for this reason, what `[fs]` asks for besides `keys`: whatever is not as it would be if
    /// nothing was said.
    ///
    /// # Errors
    /// The first such key.
    pub fn check_fs_keys(&self, keys: &[&str], why: &str) -> Result<(), StackError> {
        let chosen = self.fs.iter().flat_map(|fs| &fs.chosen);
        let other = chosen.copied().find(|key| !keys.contains(key));
        other.map_or(Ok(()), |key| Err(self.error(&format!("fs.{key}"), why)))
    }

    /// Refuses a file system that is to be on the device already, with this advice.
    ///
    /// # Errors
    /// `fs.make`.
    pub(crate) fn check_makes_fs(&self, advice: &str) -> Result<(), StackError> {
        match &self.fs {
            Some(fs) if fs.mkfs.is_none() => {
                let why = format!("false needs a device with a file system: {advice}");
                Err(self.error("fs.make", &why))
            }
            _ => Ok(()),
        }
    }

    /// Whether the file system, if one is made, can be made on a device of so many sectors.
    ///
    /// # Errors
    /// The key at fault.
    pub(crate) fn check_fs(&self, sectors: u64) -> Result<(), StackError> {
        let Some((fs, mkfs)) = self.fs.as_ref().and_then(|fs| Some((fs, fs.mkfs.as_ref()?))) else {
            return Ok(());
        };
        mkfs::plan(mkfs, sectors).map_err(|error| {
            self.error(mkfs::at_fault(mkfs, sectors, &error).map_or("fs", key), &error.to_string())
        })?;
        let by_default = || mkfs::journal_blocks_by_default(sectors);
        if !fs.has_room_for_records(mkfs.journal_blocks.unwrap_or_else(by_default)) {
            let why = "the records of all cores may have half of the journal";
            return Err(self.error("fs.records", why));
        }
        Ok(())
    }
}
