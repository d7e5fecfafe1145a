//! The checker of a volume: what it has read of it, and what it has reached so far.

use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, RawError, RawInode};
use crate::report::CheckReport;
use nandscape_block::{AsyncDevice, BlockError};
use std::collections::{BTreeMap, BTreeSet};

/// Summaries that are kept at once.
const SUMMARIES_KEPT: usize = 256;

/// What the SIT says of a segment, believed or not.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Segment {
    /// Its valid blocks.
    pub(super) map: ValidMap,
    /// The log that wrote it; `None` if there is no such log.
    pub(super) log: Option<SegmentType>,
    /// Blocks that something leads to.
    pub(super) reached: ValidMap,
}

/// An inode that was reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) inode_type: u16,
    /// What it says about its names.
    pub(super) links: u32,
    /// Names that were found.
    pub(super) names: u32,
    pub(super) is_orphan: bool,
}

/// A directory that waits to be looked into.
pub(super) struct Waiting {
    pub(super) inode: RawInode,
}

/// Checks one volume.
pub(super) struct Checker {
    pub(super) image: F2fsImage,
    pub(super) segments: Vec<Segment>,
    /// Entries of nodes in use.
    pub(super) nat: BTreeMap<Nid, NatEntry>,
    pub(super) reached: BTreeSet<Nid>,
    pub(super) inodes: BTreeMap<Nid, Seen>,
    pub(super) waiting: Vec<Waiting>,
    /// Blocks in use, reserved ones included.
    pub(super) blocks: u64,
    pub(super) report: CheckReport,
    summaries: BTreeMap<SegNo, Option<SummaryBlock>>,
    unsound_summaries: BTreeSet<SegNo>,
}

impl Checker {
    /// Opens the volume; what opening passes over is found.
    pub(super) async fn open(device: &AsyncDevice) -> Result<Self, RawError> {
        let image = F2fsImage::open(device).await?;
        image.sb.check_supported(image.sb_copy)?;
        let mut report = CheckReport::default();
        image.problems.iter().for_each(|problem| report.unsound(problem));
        let place = Place::Checkpoint(image.pack);
        for (flag, what) in [(CP_ERROR, "the error flag is set"), (CP_FSCK, "the fsck flag is set")]
        {
            if image.checkpoint.has(flag) {
                report.find(place, what);
            }
        }
        let segments = vec![Segment::default(); image.layout.main_segments() as usize];
        Ok(Self {
            image,
            segments,
            nat: BTreeMap::new(),
            reached: BTreeSet::new(),
            inodes: BTreeMap::new(),
            waiting: Vec::new(),
            blocks: 0,
            report,
            summaries: BTreeMap::new(),
            unsound_summaries: BTreeSet::new(),
        })
    }

    /// Whether blocks of a GC journal count, which is a finding; as is a record of one that does not fit.
    pub(super) async fn waits_for_replay(&mut self) -> Result<bool, RawError> {
        if let Err(error) = self.image.sb.check_gc_journal(self.image.sb_copy) {
            self.report.unsound(&error);
        }
        let blocks = self.image.gc_journal_blocks().await?.len();
        if blocks > 0 {
            let what = format!("is marked: {blocks} blocks of the GC journal wait for a mount");
            self.report.find(Place::Superblock(self.image.sb_copy), what);
        }
        Ok(blocks > 0)
    }

    /// A part that cannot be read is a finding; the device's errors end the check.
    pub(super) fn passed<T>(
        &mut self,
        result: Result<T, RawError>,
    ) -> Result<Option<T>, BlockError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(RawError::Device(error)) => Err(error),
            Err(RawError::Format(error)) => {
                self.report.unsound(&error);
                Ok(None)
            }
        }
    }

    /// Claims a block for `owner`: the SIT has to know it, of a segment of nodes or of data, and it belongs to
    /// no other. Whether it is claimed for the first time.
    pub(super) fn claim(&mut self, addr: BlockAddr, is_node: bool, owner: Place) -> bool {
        let Some((segno, offset)) = self.image.segment_of(addr) else {
            self.report.find(owner, format!("block {} is outside the main area", addr.0));
            return false;
        };
        let Some(segment) = self.segments.get_mut(segno.0 as usize) else { return false };
        if !segment.map.get(offset) {
            let what = format!("block {} is free by the SIT", addr.0);
            self.report.find(owner, what);
        }
        if segment.log.is_some_and(|log| log.is_node() != is_node) {
            let [has, should] = if is_node { ["data", "nodes"] } else { ["nodes", "data"] };
            let what = format!("is of {has}, and holds {should}");
            self.report.find(Place::Segment(segno), what);
            // Once per segment.
            segment.log = None;
        }
        let is_first = !segment.reached.set(offset);
        if is_first {
            self.blocks += 1;
        } else {
            let what = format!("block {} has more than one owner", addr.0);
            self.report.find(owner, what);
        }
        is_first
    }

    /// Whether the summary of a block says what leads to it: the node's number, and of data (`slot`) the
    /// node's version and the slot there. What it says else is a finding at `owner`.
    pub(super) async fn check_summary(
        &mut self,
        addr: BlockAddr,
        entry: SummaryEntry,
        kind: SummaryKind,
        owner: Place,
    ) -> Result<(), BlockError> {
        let Some((segno, offset)) = self.image.segment_of(addr) else { return Ok(()) };
        if self.summaries.len() >= SUMMARIES_KEPT {
            self.summaries.clear();
        }
        if !self.summaries.contains_key(&segno) {
            let summary = match self.image.summary(segno).await {
                Ok(summary) => Some(summary),
                Err(RawError::Device(error)) => return Err(error),
                Err(RawError::Format(error)) => {
                    if self.unsound_summaries.insert(segno) {
                        self.report.unsound(&error);
                    }
                    None
                }
            };
            self.summaries.insert(segno, summary);
        }
        let Some(Some(summary)) = self.summaries.get(&segno) else { return Ok(()) };
        if summary.kind != kind {
            if self.unsound_summaries.insert(segno) {
                let what =
                    if kind == SummaryKind::Node { "is not of nodes" } else { "is not of data" };
                self.report.find(Place::Summary(segno), what);
            }
            return Ok(());
        }
        let Some(found) = summary.entries.get(offset as usize).copied() else { return Ok(()) };
        let agrees = match kind {
            SummaryKind::Node => found.nid == entry.nid,
            SummaryKind::Data => found == entry,
        };
        if !agrees {
            let what = format!(
                "summary of block {} says node {}, version {}, slot {}",
                addr.0, found.nid.0, found.version, found.ofs_in_node
            );
            self.report.find(owner, what);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> CheckReport {
        self.report.inodes = self.inodes.len() as u64;
        let is_dir = |seen: &&Seen| seen.inode_type == mode::DIR;
        self.report.directories = self.inodes.values().filter(is_dir).count() as u64;
        self.report.blocks = self.blocks;
        self.report
    }
}
