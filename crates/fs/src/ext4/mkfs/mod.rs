//! Making an ext4 file system, with the layout that mke2fs 1.47 chooses.
//!
//! - With mke2fs's defaults and the same identity and time, every byte but the superblock's count of
//!   KiB written is mke2fs's (`tests/ext4_mkfs.rs`). What mke2fs decides by the volume's size alone
//!   is decided the same: inode ratio, journal, a last group that is too small.
//! - Few blocks are written. Inode tables and bitmaps of groups that nothing lies in are left alone,
//!   and the descriptors say so. That needs a volume that reads as zeroes where nothing was written:
//!   one never written, or one that is discarded first; else journal and tables are zeroed.
//! - The superblock is written last, behind a flush: no half-made file system is taken for one.

mod contents;
mod groups;
mod sizes;
mod space;
mod write;

pub use sizes::journal_blocks_by_default;

use super::format::{Feature, Features, FormatError, Superblock, Timestamp};
use crate::mkfs::random_uuid;
use contents::Contents;
use groups::Groups;
use nandscape_block::{AsyncDevice, BlockError};
use nandscape_rt::{BoxFuture, Stream};
use space::Space;
use thiserror::Error;

/// What mke2fs 1.47 turns on for ext4.
pub const DEFAULT_FEATURES: Features = Features::of(&[
    Feature::HAS_JOURNAL,
    Feature::EXT_ATTR,
    Feature::RESIZE_INODE,
    Feature::DIR_INDEX,
    Feature::FILETYPE,
    Feature::EXTENT,
    Feature::BIT64,
    Feature::FLEX_BG,
    Feature::SPARSE_SUPER,
    Feature::LARGE_FILE,
    Feature::HUGE_FILE,
    Feature::DIR_NLINK,
    Feature::EXTRA_ISIZE,
    Feature::METADATA_CSUM,
]);

/// What to make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MkfsOptions {
    /// Features that are on.
    pub features: Features,
    /// Blocks of the file system; `None`: as many as the device has.
    pub blocks: Option<u64>,
    /// Label, up to 16 bytes.
    pub label: String,
    /// Identity.
    pub uuid: [u8; 16],
    /// Seed of directory hashes.
    pub hash_seed: [u8; 16],
    /// Bytes of an inode.
    pub inode_bytes: u16,
    /// Bytes of volume for each inode; `None`: 16,384, or 4,096 below 512 MiB, as mke2fs.
    pub inode_ratio: Option<u64>,
    /// Percentage of blocks that only root may take.
    pub reserved_percent: u8,
    /// Blocks of the journal; `None`: by the size of the volume, as mke2fs.
    pub journal_blocks: Option<u32>,
    /// The time; only seconds are kept.
    pub now: Timestamp,
    /// Whether the device reads as zeroes wherever nothing was written, since it never was.
    pub fresh: bool,
    /// Whether one that is not fresh is discarded first, as mke2fs does; `-E nodiscard`.
    pub discard: bool,
}

impl MkfsOptions {
    /// The defaults, with identity and seed of hashes drawn from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, "ext4 identity");
        Self {
            features: DEFAULT_FEATURES,
            blocks: None,
            label: String::new(),
            uuid: random_uuid(&mut stream),
            hash_seed: random_uuid(&mut stream),
            inode_bytes: 256,
            inode_ratio: None,
            reserved_percent: 5,
            journal_blocks: None,
            now: Timestamp::default(),
            fresh: false,
            discard: true,
        }
    }
}

/// Why no file system was made.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum MkfsError {
    /// Options that contradict each other or the format.
    #[error("{0}")]
    Options(String),
    /// Features that are not supported.
    #[error(transparent)]
    Features(#[from] FormatError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
}

/// The superblock of the file system that [`mkfs`] would make on a device of so many sectors.
///
/// # Errors
/// Options that cannot be met.
pub fn plan(options: &MkfsOptions, sectors: u64) -> Result<Superblock, MkfsError> {
    let sb = sizes::superblock(options, sectors)?;
    Ok(MkfsState::new(sb, options)?.sb)
}

/// The change that a word of mke2fs's `-O` makes: a feature by its name, and whether it is turned on; `^`
/// before the name turns it off.
///
/// # Errors
/// The message if no feature has this name.
pub fn feature_change(word: &str) -> Result<(Feature, bool), String> {
    let name = word.trim_start_matches('^');
    let feature = Features::named(name);
    let feature = feature.ok_or_else(|| format!("no feature of ext4 is called \"{name}\""))?;
    Ok((feature, !word.starts_with('^')))
}

/// What is chosen of a file system, besides its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Its features.
    Features,
    /// Its label.
    Label,
    /// Bytes of an inode.
    InodeBytes,
    /// Bytes of volume for each inode.
    InodeRatio,
    /// What only root may take.
    ReservedPercent,
    /// Blocks of the journal.
    Journal,
}

impl Choice {
    /// In the order in which they are suspected: what takes room before what is merely possible or not.
    const ALL: [Self; 6] = [
        Self::InodeRatio,
        Self::Journal,
        Self::Features,
        Self::Label,
        Self::InodeBytes,
        Self::ReservedPercent,
    ];

    /// The options without this choice.
    fn undone(self, options: &MkfsOptions) -> MkfsOptions {
        let (mut undone, usual) = (options.clone(), MkfsOptions::new(0));
        match self {
            Self::Features => undone.features = usual.features,
            Self::Label => undone.label = usual.label,
            Self::InodeBytes => undone.inode_bytes = usual.inode_bytes,
            Self::InodeRatio => undone.inode_ratio = None,
            Self::ReservedPercent => undone.reserved_percent = usual.reserved_percent,
            Self::Journal => undone.journal_blocks = None,
        }
        undone
    }
}

/// The choice that an error of [`plan`] is about: the one without which there would be none, or another.
/// `None`: the size.
#[must_use]
pub fn at_fault(options: &MkfsOptions, sectors: u64, error: &MkfsError) -> Option<Choice> {
    let remains = |options: &MkfsOptions| plan(options, sectors).err().as_ref() == Some(error);
    Choice::ALL.into_iter().find(|choice| !remains(&choice.undone(options)))
}

/// Makes a file system on a device, and gives its superblock.
///
/// # Errors
/// Options that cannot be met, before anything is written; and what the device says.
pub fn mkfs<'a>(
    device: &'a AsyncDevice,
    options: &'a MkfsOptions,
) -> BoxFuture<'a, Result<Superblock, MkfsError>> {
    Box::pin(make(device, options))
}

async fn make(device: &AsyncDevice, options: &MkfsOptions) -> Result<Superblock, MkfsError> {
    let sb = sizes::superblock(options, device.caps().sectors)?;
    let mut made = MkfsState::new(sb, options)?;
    let zeroed = write::clear(device, &made, options).await?;
    made.groups.seal(&made.sb, zeroed);
    write::write(device, &made).await?;
    Ok(made.sb)
}

/// A file system as it will be written.
struct MkfsState {
    sb: Superblock,
    groups: Groups,
    contents: Contents,
}

impl MkfsState {
    fn new(sb: Superblock, options: &MkfsOptions) -> Result<Self, MkfsError> {
        let mut space = Space::new(sb.blocks_count);
        let full = || MkfsError::Options("the volume is too small".to_owned());
        let mut groups = Groups::place(&sb, &mut space).ok_or_else(full)?;
        let mut sb = Superblock { overhead_clusters: space.used() as u32, ..sb };
        let contents = Contents::place(&mut sb, options, &mut space).ok_or_else(full)?;
        groups.count_free(&mut sb, &space);
        Ok(Self { sb, groups, contents })
    }
}
