//! What a batch of migrations changes in memory: the address of a page in its node, or of a node in the NAT; valid bits of
//! the old and the new place; the summary of the new one; what is known of the file's extents. No data is read or written.
//!
//! A record is *stale* if its block is not what was moved any more: it was freed or written elsewhere since, or its owner
//! has another address by now. It is skipped: the discard of the old address reaches the copy. That is asked again after
//! the node was read, and from then on nothing waits, so that what is found holds.

use crate::contract::{FsError, Result};
use crate::f2fs::cpu::Work;
use crate::f2fs::error::corrupt;
use crate::f2fs::format::{
    AddrSlots, BlockAddr, Nid, NodeFooter, SummaryBlock, SummaryEntry, SummaryKind, first_page,
};
use crate::f2fs::inode::Inode;
use crate::f2fs::operations::Op;
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::segment::{Block, MovedTo};
use crate::f2fs::segment_manager::SegmentManager;
use crate::f2fs::volume::Volume;
use nandscape_rt::combine::join_all;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Where a block lay, and where it lies.
type Record = (BlockAddr, BlockAddr);

/// A batch: its identity, and where each block lay and lies.
pub(super) type Batch = (u64, Vec<(BlockAddr, BlockAddr)>);

/// What became of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    MovedData,
    MovedNode,
    Stale,
    /// It was in effect already.
    Known,
}

/// The page that a moved block belongs to.
struct PageAt {
    nid: Nid,
    addrs: AddrSlots,
    slot: u32,
    inode: Rc<Inode>,
    page: u64,
}

/// Brings what the device has moved to memory.
pub(super) struct Migration<'a> {
    pub(super) volume: &'a Rc<Volume>,
}

impl Migration<'_> {
    /// Applies a batch.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if a slot is missing; what was applied stays so. Those of metadata.
    pub(super) async fn apply_batch(&self, records: &[Record]) -> Result<()> {
        let mut left = records;
        while !left.is_empty() {
            // What was moved on is applied after its first move.
            let mut news = BTreeSet::new();
            let apart = left.iter().take_while(|(old, new)| {
                let is_apart = !news.contains(old);
                news.insert(*new);
                is_apart
            });
            let (some, rest) = left.split_at(apart.count());
            let mut sorted = some.to_vec();
            sorted.sort_unstable();
            self.apply_sorted(&sorted).await?;
            left = rest;
        }
        Ok(())
    }

    /// Reads what records will be looked up in: summaries together, then the nodes that lead to moved data together. One
    /// read after the other would make the host slower than a busy device.
    pub(super) async fn read_ahead(&self, batches: &[Batch]) -> Result<()> {
        let records = || batches.iter().flat_map(|(_, records)| records);
        self.volume.segments.read_ahead_summaries(records()).await?;
        self.read_ahead_nodes(records()).await
    }

    async fn read_ahead_nodes(&self, records: impl Iterator<Item = &Record>) -> Result<()> {
        let mut nodes = BTreeSet::new();
        for (old, _) in records {
            if self.volume.segments.borrow().is_valid(*old)
                && !self.volume.segments.is_node_segment(*old)
            {
                nodes.insert(self.volume.segments.summary_at_place(*old).await?.nid);
            }
        }
        let count = self.volume.nodes.read_nodes(nodes).await;
        self.volume
            .segments
            .append
            .iter()
            .for_each(|append| append.count(|counts| counts.nodes_read += count));
        Ok(())
    }

    async fn apply_sorted(&self, records: &[Record]) -> Result<()> {
        let op = self.volume.operations.begin().await?;
        self.volume.mount.pay(Work::Records(records.len() as u64)).await;
        for record in records {
            let outcome = self.apply(&op, *record).await?;
            self.volume.segments.append.iter().for_each(|append| {
                append.count(|counts| match outcome {
                    Outcome::MovedData => counts.moved_data += 1,
                    Outcome::MovedNode => counts.moved_nodes += 1,
                    Outcome::Stale => counts.stale += 1,
                    Outcome::Known => counts.known += 1,
                });
            });
        }
        Ok(())
    }

    /// Applies a record.
    async fn apply(&self, op: &Op, (old, new): Record) -> Result<Outcome> {
        if !self.volume.segments.borrow().is_valid(old) {
            return self.skip(op, (old, new)).await;
        }
        match self.volume.segments.is_node_segment(old) {
            true => self.apply_node(op, (old, new)).await,
            false => self.apply_data(op, (old, new)).await,
        }
    }

    /// A record of a block that is not valid: stale, unless a checkpoint has it already.
    async fn skip(&self, _op: &Op, (_, new): Record) -> Result<Outcome> {
        if self.volume.segments.borrow().is_valid(new) {
            return Ok(Outcome::Known);
        }
        if self.volume.mount.omits(OmittedRule::UpcallStale) {
            let no_owner = SummaryEntry::default();
            let kind = crate::f2fs::format::SegmentType::ColdData;
            self.volume
                .segments
                .adopt_block((new, kind), no_owner, self.volume.checkpoints.mounted_time())
                .await?;
        }
        Ok(Outcome::Stale)
    }

    async fn apply_data(&self, _op: &Op, (old, new): Record) -> Result<Outcome> {
        let entry = self.volume.segments.summary_at_place(old).await?;
        loop {
            let Some(place) = self.page_at(old, &entry).await? else { return Ok(Outcome::Stale) };
            if !self.volume.segments.load_summary(new).await? {
                return Ok(Outcome::Stale);
            }
            // From here on nothing waits.
            let address = self
                .volume
                .nodes
                .file
                .pages
                .with_bytes(place.nid.0.into(), |bytes| place.addrs.get(bytes, place.slot));
            let Some(address) = address else { continue };
            if !self.volume.mount.omits(OmittedRule::UpcallRecheck)
                && (address != old || !self.volume.segments.borrow().is_valid(old))
            {
                return Ok(Outcome::Stale);
            }
            if !self.volume.segments.has_summary(new)? {
                continue;
            }
            let moved = self.volume.segments.borrow_mut().relocate(old, new)?;
            let set = |bytes: &mut Block| place.addrs.set(bytes, place.slot, new);
            if self.volume.nodes.edit_loaded(place.nid, set).is_none() {
                return Err(corrupt("node left memory", place.nid.0));
            }
            self.volume.segments.note_summary(moved, entry)?;
            place.inode.note_migrated(place.page, new);
            return Ok(Outcome::MovedData);
        }
    }

    async fn apply_node(&self, _op: &Op, (old, new): Record) -> Result<Outcome> {
        let entry = self.volume.segments.summary_at_place(old).await?;
        loop {
            if self.volume.nodes.node_entry(entry.nid).await?.block_addr != old {
                return Ok(Outcome::Stale);
            }
            if !self.volume.segments.load_summary(new).await? {
                return Ok(Outcome::Stale);
            }
            // From here on nothing waits.
            let Some(known) = self.volume.nodes.nat.borrow().known(entry.nid) else { continue };
            if known.block_addr != old {
                return Ok(Outcome::Stale);
            }
            if !self.volume.segments.has_summary(new)? {
                continue;
            }
            let moved = self.volume.segments.borrow_mut().relocate(old, new)?;
            self.volume.nodes.nat.borrow_mut().relocate(entry.nid, known, new);
            self.volume
                .segments
                .note_summary(moved, SummaryEntry { nid: entry.nid, version: 0, ofs_in_node: 0 })?;
            return Ok(Outcome::MovedNode);
        }
    }

    /// The page that a valid block of data belongs to, if it still does.
    async fn page_at(&self, old: BlockAddr, entry: &SummaryEntry) -> Result<Option<PageAt>> {
        let known = self.volume.nodes.node_entry(entry.nid).await?;
        if known.block_addr == BlockAddr::NULL || known.version != entry.version {
            return Ok(None);
        }
        let gone = |error| if error == FsError::NoEntry { Ok(None) } else { Err(error) };
        let footer = match self.volume.nodes.read_node(entry.nid, NodeFooter::parse).await {
            Ok(footer) => footer,
            Err(error) => return gone(error),
        };
        let inode = match self.volume.inode(footer.ino).await {
            Ok(inode) => inode,
            Err(error) => return gone(error),
        };
        let layout = inode.layout.get();
        let addrs = if footer.is_inode() { layout.addrs() } else { AddrSlots::DIRECT };
        let first = first_page(footer.offset(), layout.addr_count());
        let slot = u32::from(entry.ofs_in_node);
        let page = first.map(|first| first + u64::from(slot));
        let is_there = self.volume.segments.borrow().is_valid(old) && slot < addrs.count();
        Ok(page.filter(|_| is_there).map(|page| PageAt {
            nid: entry.nid,
            addrs,
            slot,
            inode,
            page,
        }))
    }
}

impl SegmentManager {
    pub(crate) async fn read_ahead_summaries(
        &self,
        records: impl Iterator<Item = &Record>,
    ) -> Result<()> {
        let mut blocks = BTreeSet::new();
        {
            let segments = self.borrow();
            for (old, new) in records.filter(|(old, _)| segments.is_valid(*old)) {
                let places = [*old, *new].into_iter().filter_map(|at| segments.segment_of(at));
                let written = places.filter(|(segment, offset)| {
                    segments.is_used(*segment) && segments.open_summary(*segment, *offset).is_none()
                });
                blocks.extend(
                    written.filter_map(|(segment, _)| self.mount.layout.summary_block(segment)),
                );
            }
        }
        let absent = |block: &BlockAddr| self.meta.file.pages.peek(block.0.into()).is_none();
        let absent: Vec<_> = blocks.into_iter().filter(absent).collect();
        let reads = absent.into_iter().map(|block| self.meta.read(block, |_| ()));
        join_all(reads.collect::<Vec<_>>()).await.into_iter().collect()
    }

    /// Whether the segment of a block holds nodes.
    pub(crate) fn is_node_segment(&self, at: BlockAddr) -> bool {
        let segments = self.borrow();
        let segment = segments.segment_of(at).and_then(|(segment, _)| segments.segment(segment));
        segment.is_some_and(|segment| segment.kind.is_node())
    }

    /// What the summaries say of a block.
    pub(crate) async fn summary_at_place(&self, at: BlockAddr) -> Result<SummaryEntry> {
        let outside = || corrupt("block outside of the address space", at.0);
        let place = self.borrow().segment_of(at);
        let (segment, offset) = place.ok_or_else(outside)?;
        if let Some(entry) = self.borrow().open_summary(segment, offset) {
            return Ok(entry);
        }
        let block = self.mount.summary_block(segment)?;
        self.meta.read(block, |bytes| SummaryEntry::read_at(bytes, offset as usize)).await
    }

    /// Brings the summaries of the segment that a block was moved to into memory, unless they begin with it. `false` for a
    /// place that the device cannot have moved it to.
    pub(crate) async fn load_summary(&self, new: BlockAddr) -> Result<bool> {
        let (is_own, place, is_used) = {
            let segments = self.borrow();
            let section = segments.section_at(new);
            let own = section.zip(segments.space());
            let is_own = own.is_some_and(|(section, space)| space.is_device_owned(section.region));
            let place = segments.segment_of(new).map(|(segment, _)| segment);
            (is_own, place, place.is_some_and(|segment| segments.is_used(segment)))
        };
        if let Some(segment) = place.filter(|_| is_used && is_own) {
            let block = self.mount.summary_block(segment)?;
            self.meta.read(block, |_| ()).await?;
        }
        Ok(is_own)
    }

    /// Whether they are there, or begin with it.
    pub(crate) fn has_summary(&self, new: BlockAddr) -> Result<bool> {
        let segments = self.borrow();
        let Some((segment, _)) = segments.segment_of(new) else { return Ok(true) };
        let block = self.mount.summary_block(segment)?;
        Ok(!segments.is_used(segment)
            || self.meta.file.pages.with_bytes(block.0.into(), |_| ()).is_some())
    }

    /// The summary of a moved block at its new place.
    pub(crate) fn note_summary(&self, moved: MovedTo, entry: SummaryEntry) -> Result<()> {
        let MovedTo { segment, offset, kind, is_first } = moved;
        if is_first {
            let kind = if kind.is_node() { SummaryKind::Node } else { SummaryKind::Data };
            let mut summaries = SummaryBlock::new(kind);
            summaries.entries[offset as usize] = entry;
            self.meta.keep_summaries(segment, &summaries)?;
            return Ok(());
        }
        let block = self.mount.summary_block(segment)?;
        let set = |bytes: &mut Block| entry.write_at(bytes, offset as usize);
        let is_there = self.meta.file.pages.edit_bytes(block.0.into(), set);
        is_there.map(drop).ok_or_else(|| corrupt("summaries left memory", segment.0))
    }
}
