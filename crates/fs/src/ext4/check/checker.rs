//! The checker of a volume: what it has read of it, and what it has found so far.

use super::space::Space;
use crate::ext4::format::*;
use crate::ext4::raw::{Ext4Image, RawError};
use crate::image::BlockBytes;
use crate::report::CheckReport;
use nandscape_block::{AsyncDevice, BlockError};
use std::collections::BTreeMap;

/// Blocks of a table that are read at once.
const TABLE_RUN_BLOCKS: u64 = 64;

/// What is remembered of an inode in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InodeFacts {
    /// Type of file.
    pub(super) file_type: u16,
    /// What the inode says about its names.
    pub(super) links: u16,
    /// Names that were found, `.` and `..` among them.
    pub(super) names: u32,
    /// Of a directory, the one that holds its name.
    pub(super) parent: Option<u32>,
    /// Of a directory, what its `..` says.
    pub(super) above: Option<u32>,
    /// It waits to be deleted.
    pub(super) orphan: bool,
}

impl InodeFacts {
    pub(super) const fn is_dir(&self) -> bool {
        self.file_type == mode::DIR
    }
}

/// A directory that waits to be looked into.
pub(super) struct Directory {
    pub(super) number: u32,
    pub(super) generation: u32,
    pub(super) indexed: bool,
    /// Runs of its blocks, from its first block on and without a gap.
    pub(super) runs: Vec<Extent>,
}

/// Checks one volume.
pub(super) struct Checker {
    raw: Ext4Image,
    pub(super) sb: Superblock,
    pub(super) groups: Vec<GroupDescriptor>,
    pub(super) space: Space,
    pub(super) inodes: BTreeMap<u32, InodeFacts>,
    pub(super) directories: Vec<Directory>,
    /// Blocks of each group that the format does not keep for itself.
    pub(super) unkept: Vec<u32>,
    /// Inodes that only the list of orphans explains, and what they are without it.
    pub(super) unexplained: Vec<(u32, &'static str)>,
    /// Runs of the journal.
    pub(super) journal: Vec<Extent>,
    /// Its size.
    pub(super) journal_bytes: u64,
    /// Of each block of attributes, how many inodes share it by its own count and by ours.
    pub(super) shared: BTreeMap<u64, (u32, u32)>,
    pub(super) report: CheckReport,
}

impl Checker {
    /// Reads the superblock.
    pub(super) async fn open(device: &AsyncDevice) -> Result<Self, RawError> {
        let raw = Ext4Image::open(device).await?;
        raw.sb.features().check(true)?;
        if raw.sb.has(Feature::HAS_JOURNAL) && raw.sb.journal_inum == 0 {
            let what = "a journal on a separate device".to_owned();
            return Err(FormatError::Incompatible { place: Place::Superblock(0), what }.into());
        }
        Ok(Self {
            space: Space::new(&raw.sb),
            sb: raw.sb.clone(),
            raw,
            groups: Vec::new(),
            inodes: BTreeMap::new(),
            directories: Vec::new(),
            unkept: Vec::new(),
            unexplained: Vec::new(),
            journal: Vec::new(),
            journal_bytes: 0,
            shared: BTreeMap::new(),
            report: CheckReport::default(),
        })
    }

    /// Reads a block that is known to be inside the checker.
    pub(super) async fn read(&self, block: u64) -> Result<BlockBytes, BlockError> {
        self.raw.reader().block(block).await
    }

    /// The blocks of a group's inode table from `from` on, before `to`: as many as are read at once.
    pub(super) async fn read_table(
        &self,
        group: u32,
        from: u64,
        to: u64,
    ) -> Result<Vec<u8>, BlockError> {
        let table = self.groups[group as usize].inode_table;
        self.raw.reader().blocks(table + from, (to - from).min(TABLE_RUN_BLOCKS) as u32).await
    }

    /// Claims blocks for one owner; whether they are in the volume and no other owner's.
    pub(super) fn claim(&mut self, first: u64, blocks: u64, owner: Place) -> bool {
        let end = first.checked_add(blocks).filter(|end| *end <= self.sb.blocks_count);
        let Some(end) = end.filter(|_| first > 0 || matches!(owner, Place::Superblock(0))) else {
            let end = first.saturating_add(blocks);
            let what =
                format!("blocks {first}-{} are not all in the volume", end.saturating_sub(1));
            self.report.find(owner, what);
            return false;
        };
        let twice = self.space.claim(first..end);
        if let Some(twice) = twice {
            self.report.find(owner, format!("block {twice} has more than one owner"));
        }
        twice.is_none()
    }

    pub(super) fn finish(mut self) -> CheckReport {
        self.report.inodes = self.inodes.len() as u64;
        self.report.blocks = self.space.used();
        self.report
    }
}
