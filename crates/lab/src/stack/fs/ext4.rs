//! The keys of `[fs]` for ext4. Names of features and choices of sizes are mke2fs's, those of times and
//! dirty ratios Linux's.

use super::super::Host;
use super::super::cache::{self, Defaults};
use super::super::place::StackError;
use super::super::reader::{Section, Size, Span, Words};
use nandscape_block::SECTOR_BYTES;
use nandscape_fs::ext4::mkfs::{self, DEFAULT_FEATURES, MkfsOptions};
use nandscape_fs::ext4::{Commit, Config, DataMode, MountOptions};
use nandscape_rt::Nanos;

/// Keys that say how a file system is made.
const MKFS_KEYS: [&str; 5] = ["features", "journal", "inode_ratio", "reserved_percent", "discard"];

/// Keys whose values a device can be too small for, or that contradict each other.
pub(super) const CHECKED_KEYS: [&str; 4] = ["inode_ratio", "journal", "features", "ijournal_area"];

const DATA: Words<DataMode> = Words {
    here: &[
        ("ordered", DataMode::Ordered),
        ("journal", DataMode::Journal),
        ("writeback", DataMode::Writeback),
    ],
};
const COMMIT: Words<bool> = Words { here: &[("jbd2", false), ("ijournal", true)] };

/// Reads the keys.
pub(super) fn read(fs: &mut Section<'_>, host: &Host) -> Result<Config, StackError> {
    let data = fs.choice("data", "ordered", &DATA)?;
    let commit = read_commit(fs, host)?;
    let commit_interval = fs.or("commit_interval", Span(Nanos::from_secs(5)))?.0;
    fs.check("commit_interval", commit_interval > Nanos::ZERO, "must be greater than 0")?;
    let cache = cache::read(fs, host.memory_or_default(), Defaults::Written)?;
    let format = read_mkfs(fs)?;
    let mount = MountOptions { data, commit, commit_interval, cache, ..MountOptions::default() };
    Ok(Config { format, mount })
}

/// What an fsync commits, and the room for it.
fn read_commit(fs: &mut Section<'_>, host: &Host) -> Result<Commit, StackError> {
    let is_per_file = fs.choice("commit", "jbd2", &COMMIT)?;
    let areas: Option<u32> = fs.optional("ijournal_areas")?;
    fs.check("ijournal_areas", areas != Some(0), "must be at least 1")?;
    if !is_per_file {
        fs.refuse(&["ijournal_area"], "goes with commit = \"ijournal\" only")?;
        return Ok(Commit::Jbd2);
    }
    let given = blocks(fs, "ijournal_area")?;
    fs.check("ijournal_area", given.is_none_or(|blocks| blocks > 1), "must be at least 8KiB")?;
    let slot_blocks = given.unwrap_or(0);
    let slots = areas.unwrap_or_else(|| host.cores_or_default());
    Ok(Commit::Ijournal { slots, slot_blocks })
}

/// How a file system is made; nothing where the one on the device is mounted.
fn read_mkfs(fs: &mut Section<'_>) -> Result<Option<MkfsOptions>, StackError> {
    if !super::read_format(fs, &MKFS_KEYS)? {
        return Ok(None);
    }
    let features = super::read_features(fs, DEFAULT_FEATURES, |mut features, word| {
        let (feature, on) = mkfs::feature_change(word)?;
        features.set(feature, on);
        Ok(features)
    })?;
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
