//! Writes of metadata: blocks of the metadata areas, and what of files a checkpoint vouches for, directory blocks.

use super::data::MovedPages;
use super::format::{BlockAddr, SegNo};
use super::inode::{Inode, META_INO, NODE_INO};
use super::node::{Found, NodeSet, NodeWrite};
use super::operations::Op;
use super::rules::OmittedRule;
use super::volume::Volume;
use crate::cache::WriteRun;
use crate::contract::Result;
use crate::vfs::DataPath;
use nandscape_block::{Flags, SectorData};
use std::future::Future;
use std::rc::Rc;

/// Pages of a directory, or of metadata, that are written at once.
const RUN_PAGES: u64 = 512;
impl Volume {
    /// Submits dirty pages of nodes, of metadata areas, or of a directory, for the flusher.
    pub(super) async fn write_back_metadata(self: &Rc<Self>, inode: &Rc<Inode>) -> Result<()> {
        let op = self.operations.begin().await?;
        match inode.number {
            NODE_INO => {
                let write = NodeWrite { volume: self, op: &op, marks: None };
                write.send(NodeSet::All).await.map(drop)
            }
            META_INO => {
                self.send_meta();
                Ok(())
            }
            _ => self.send_dir(&op, inode).await,
        }
    }

    /// Submits dirty blocks of the metadata areas; does not wait for them.
    pub(crate) fn send_meta(self: &Rc<Self>) {
        let mut pass = self.segments.meta.file.pages.pass_over(0..u64::MAX);
        let ssa =
            self.mount.layout.summary_block(SegNo(0)).map_or(u64::MAX, |first| first.0.into());
        while let Some(run) = pass.take_run(RUN_PAGES) {
            let summaries = run.end().saturating_sub(run.first().max(ssa));
            let sent = &self.checkpoints.summary_blocks;
            sent.set(sent.get() + summaries);
            let blocks = (run.first()..).zip(run.data());
            let blocks =
                blocks.map(|(at, content)| (BlockAddr(at as u32), content.clone())).collect();
            self.submit_metadata(vec![run], blocks);
        }
    }

    /// Gives blocks to the dirty pages of a directory, or of a long symbolic link, and submits them.
    pub(crate) async fn send_dir(self: &Rc<Self>, op: &Op, dir: &Rc<Inode>) -> Result<()> {
        let mut pass = dir.pages.pass_over(0..u64::MAX);
        while let Some(run) = pass.take_run(RUN_PAGES) {
            self.before_place(dir, &(run.first()..run.end())).await;
            let _extents = dir.extent_lock.write().await;
            let mut blocks = Vec::new();
            for (page, content) in (run.first()..run.end()).zip(run.data()) {
                let Found::Node(dnode) = self.nodes.find_dnode(dir, page).await? else { continue };
                let is_noted = self.mount.omits(OmittedRule::GcDirContent)
                    && dir.moving.borrow().contains(&page);
                let (log, _) = self.mount.log_of_pages(dir, page..page + 1);
                let moved = self.move_pages(op, dir, (dnode, log), page, 1).await?;
                if let Some(MovedPages { from, start, .. }) = moved {
                    if is_noted {
                        self.cleaner.note_page(dir, page, from, start);
                    }
                    blocks.push((start, content.clone()));
                }
            }
            self.submit_metadata(vec![run], blocks);
        }
        Ok(())
    }

    /// Submits pages that have their blocks; a task finishes them. An error stops the volume.
    pub(super) fn submit_metadata(
        self: &Rc<Self>,
        runs: Vec<WriteRun<Inode>>,
        blocks: Vec<(BlockAddr, SectorData)>,
    ) {
        let arrival =
            self.writes.write_blocks(&self.segments, blocks, None, (Flags::META, Flags::NONE));
        self.finish_runs(runs, arrival);
    }

    /// Finishes pages when their writes have ended; checkpoints wait for that.
    pub(super) fn finish_runs(
        self: &Rc<Self>,
        runs: Vec<WriteRun<Inode>>,
        arrival: impl Future<Output = Result<()>> + 'static,
    ) {
        let id = self.writes.metadata_in_flight.send();
        let volume = Rc::clone(self);
        drop(self.mount.env.rt.clone().spawn("metadata write-back", async move {
            let ended = arrival.await.map_err(|error| volume.writes.stop(error));
            for run in runs {
                run.finish(ended.clone().err());
            }
            volume.writes.metadata_in_flight.arrive(id);
        }));
    }
}
