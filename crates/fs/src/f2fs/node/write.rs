//! Node pages on their way to the device (`__write_node_page`, `f2fs_fsync_node_pages`, `f2fs_sync_node_pages`).
//!
//! Each gets the next block of the log of its kind, and its footer says where that log goes on: the warm node log is the
//! chain that roll-forward follows. From the choice of the block to the submission nothing waits, so blocks of a log
//! are submitted in its order.
//!
//! Invariant: what a node's footer carries is what the last checkpoint was sealed with.

use crate::cache::WriteRun;
use crate::contract::Result;
use crate::f2fs::cpu::Work;
use crate::f2fs::format::{
    BLOCK_BYTES, BlockAddr, NatEntry, Nid, NodeFooter, NodeRole, SegmentType, SummaryEntry,
    node_flag,
};
use crate::f2fs::inode::Inode;
use crate::f2fs::operations::Op;
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::volume::Volume;
use nandscape_block::{Flags, SectorData};
use nandscape_rt::invariant;
use std::rc::Rc;

/// Node pages that are submitted together at most.
const BATCH_NODES: usize = 512;

/// Which dirty node pages are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeSet {
    /// All: indirect nodes, then direct nodes of directories, then those of other files.
    All,
    /// Those of one inode: the node of its extended attributes, and itself, after the others.
    Of(u32),
}

/// What the nodes of an fsync are marked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FsyncMarks {
    pub(crate) ino: u32,
    /// Roll-forward must find them.
    pub(crate) fsync: bool,
    /// Roll-forward must make the file's name again.
    pub(crate) dentry: bool,
}

/// Node pages that have their blocks and are to be submitted.
#[derive(Default)]
struct Batch {
    /// Its number among the node writes in flight, from the first block on.
    id: Option<u64>,
    runs: Vec<WriteRun<Inode>>,
    blocks: Vec<(BlockAddr, SectorData)>,
}

/// A write of node pages within an operation.
pub(crate) struct NodeWrite<'a> {
    pub(crate) volume: &'a Rc<Volume>,
    #[allow(dead_code, reason = "held while nodes are placed")]
    pub(crate) op: &'a Op,
    /// Of an fsync.
    pub(crate) marks: Option<FsyncMarks>,
}

impl NodeWrite<'_> {
    /// Numbers of dirty node pages, in the order in which they are written.
    fn dirty_nodes(&self, set: NodeSet) -> Vec<u32> {
        let dirty = self.volume.nodes.dirty.borrow();
        let all = match set {
            NodeSet::All => dirty.iter(),
            NodeSet::Of(ino) => {
                let xattrs =
                    self.volume.inodes.cache.get(ino).map(|inode| inode.raw.borrow().xattr_nid);
                let of_inode = dirty.range((ino, 0)..=(ino, u32::MAX)).map(|one| one.1);
                let mut nodes: Vec<u32> = of_inode.collect();
                nodes.sort_by_key(|nid| (*nid == ino, Some(*nid) == xattrs));
                return nodes;
            }
        };
        let mut nodes: Vec<_> =
            all.map(|&(_, nid)| (self.volume.nodes.log_of_node(nid), nid)).collect();
        nodes.sort_by_key(|(log, nid)| (write_order(*log), *nid));
        nodes.into_iter().map(|(_, nid)| nid).collect()
    }

    /// Submits dirty node pages; does not wait for them. Whether all were submitted: those that an earlier write
    /// is still in flight of are left dirty.
    ///
    /// # Errors
    /// [`FsError::NoSpace`](crate::contract::FsError::NoSpace) if a log finds no free segment, errors of reading the NAT.
    pub(crate) async fn send(self, set: NodeSet) -> Result<bool> {
        let nodes = self.dirty_nodes(set);
        self.send_list(&nodes).await
    }

    /// Submits those of some node pages that are dirty; does not wait for them.
    ///
    /// # Errors
    /// As [`NodeWrite::send`].
    pub(crate) async fn send_list(self, nodes: &[u32]) -> Result<bool> {
        let mut all = true;
        let last = nodes.last().copied();
        let mut left = nodes;
        while !left.is_empty() {
            // An fsync has paid, and holds its file's `extent_lock`.
            if self.marks.is_none() {
                let pages = left.len().min(BATCH_NODES) as u64;
                self.volume.mount.pay(Work::NodeWrites(pages)).await;
            }
            let mut batch = Batch::default();
            let placed = self.place_nodes(&mut batch, &mut left, last).await;
            // What has its blocks is written whatever became of the next: the log goes on after it.
            self.submit(batch);
            all &= placed?;
        }
        Ok(all)
    }

    /// Gives blocks to the first of some node pages, which leave the list.
    async fn place_nodes(
        &self,
        batch: &mut Batch,
        left: &mut &[u32],
        last: Option<u32>,
    ) -> Result<bool> {
        let mut all = true;
        while let Some((&nid, rest)) = left.split_first() {
            *left = rest;
            if self.volume.mount.is_adaptive() {
                self.volume.prepare_log(self.volume.nodes.log_of_node(nid), 1).await?;
            }
            let known = self.volume.nodes.node_entry(Nid(nid)).await?;
            let page = u64::from(nid);
            if let Some(run) = self.volume.nodes.file.pages.take_run(page..page + 1, 1) {
                let is_unmarked =
                    last == Some(nid) && self.volume.mount.omits(OmittedRule::FsyncMark);
                let marks = self.marks.map(|marks| FsyncMarks { fsync: !is_unmarked, ..marks });
                self.place_node(batch, run, known, marks)?;
            } else {
                all &= !self.volume.nodes.file.pages.waiting(&(page..page + 1)).0;
            }
            if batch.runs.len() >= BATCH_NODES {
                break;
            }
        }
        Ok(all)
    }

    /// Gives a node page its block.
    fn place_node(
        &self,
        batch: &mut Batch,
        run: WriteRun<Inode>,
        known: NatEntry,
        marks: Option<FsyncMarks>,
    ) -> Result<()> {
        let nid = Nid(run.first() as u32);
        let content = run.data().first().and_then(SectorData::expand);
        let mut bytes = content.unwrap_or_else(|| Box::new([0; BLOCK_BYTES]));
        let log = self.volume.mount.node_log(&bytes);
        let summary = SummaryEntry { nid, version: 0, ofs_in_node: 0 };
        let now = self.volume.checkpoints.mounted_time();
        let allocated =
            self.volume.segments.borrow_mut().allocate(log, known.block_addr, summary, now)?;
        let mut footer = NodeFooter::parse(&bytes);
        if let Some(journal) = &self.volume.cleaner.journal
            && log == SegmentType::WarmNode
        {
            journal.note_chained(footer.ino);
        }
        // Its attributes continue those of the inode, which is the next block: without that one it does not count.
        let is_part = footer.role() == Some(NodeRole::Xattr);
        footer.set(node_flag::FSYNC, marks.is_some_and(|marks| marks.fsync) && !is_part);
        footer
            .set(node_flag::DENTRY, marks.is_some_and(|marks| marks.dentry && nid.0 == marks.ino));
        footer.cp_ver = self.volume.checkpoints.node_version();
        footer.next_blkaddr = allocated.next.0;
        let ino = Nid(footer.ino);
        footer.encode(&mut bytes);
        self.volume.mount.seal_inode(&mut bytes);
        let at = allocated.at;
        for (segment, summaries) in allocated.into_full() {
            self.volume.segments.meta.keep_summaries(segment, &summaries)?;
        }
        self.volume.nodes.nat.borrow_mut().set(nid, known, at, ino, marks.is_some());
        self.volume.nodes.dirty.borrow_mut().remove(&(ino.0, nid.0));
        if marks.is_some() {
            self.volume.inodes.lists.appended.borrow_mut().insert(ino.0);
        }
        batch.id.get_or_insert_with(|| self.volume.nodes.in_flight.send());
        batch.runs.push(run);
        let copy = self.volume.nodes.copies.borrow_mut().next(nid.0, &bytes);
        batch.blocks.push((at, copy));
        Ok(())
    }

    /// Submits what has its blocks. Those of an fsync belong to its file, as a record of a file in ext4's log does; those
    /// of other writes to none, as ext4's metadata. A task finishes the pages.
    fn submit(&self, batch: Batch) {
        invariant!(
            batch.id.is_some() != batch.runs.is_empty() && batch.runs.len() == batch.blocks.len(),
            "nodes that have their blocks have a number among the writes in flight"
        );
        let Some(id) = batch.id else { return };
        let fsync = self.marks;
        let file = fsync.and_then(|marks| self.volume.inodes.cache.get(marks.ino));
        let owner = file.map(|inode| inode.pages.owner());
        let sync = if fsync.is_some() { Flags::SYNC } else { Flags::NONE };
        let is_ordered = fsync.is_some_and(|marks| self.volume.nodes_follow_data(marks.ino));
        let first = if is_ordered { Flags::PREFLUSH } else { Flags::NONE };
        invariant!(
            is_ordered || fsync.is_none() || !self.volume.mount.requires_order(),
            "with ordered data, nodes of an fsync are durable after the data that they map"
        );
        let arrival = self.volume.writes.write_blocks(
            &self.volume.segments,
            batch.blocks,
            owner,
            (Flags::META | sync, first),
        );
        let volume = Rc::clone(self.volume);
        let arrival = async move {
            let ended = arrival.await;
            volume.nodes.in_flight.arrive(id);
            ended
        };
        self.volume.finish_runs(batch.runs, arrival);
    }
}

/// Which nodes are written first.
const fn write_order(log: SegmentType) -> u8 {
    match log {
        SegmentType::ColdNode => 0,
        SegmentType::HotNode => 1,
        _ => 2,
    }
}
