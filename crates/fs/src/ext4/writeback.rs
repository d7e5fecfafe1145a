//! Dirty pages on their way to the device: blocks are chosen now, for whole runs at once.
//!
//! The order is ext4's. A run of pages is marked as under way; what it lacks in blocks is taken and
//! mapped in a transaction, to which the file is attached (`data=ordered`), and sent before that
//! transaction can commit; the commit waits for what was sent and needs no transaction for it. Blocks
//! from `fallocate` are known as written only when the data is there.

use super::extents::{Logical, Mapped};
use super::inode::Inode;
use super::options::DataMode;
use super::volume::{PAGE, Volume};
use crate::cache::{Backing, Located, Mapping, WriteRun};
use crate::contract::{FsError, Result};
use nandscape_block::{AsyncDevice, Bio, Flags, Lba, Payload, SectorData};
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

/// Longest run that is written at once, in pages.
const RUN_PAGES: u64 = 2048;
/// Credits for taking and mapping a run: tree, bitmap, descriptor, inode.
const MAP_CREDITS: u32 = 24;

/// The volume as the page cache's backing.
pub(crate) struct Pager(pub(crate) Rc<Volume>);

impl Clone for Pager {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Pager {
    fn inode_of(&self, mapping: &Mapping) -> Result<Rc<Inode>> {
        let number = mapping.owner().file as u32;
        self.0.inodes.borrow().get(&number).map(Rc::clone).ok_or(FsError::NoEntry)
    }
}

impl Backing for Pager {
    fn device(&self) -> &AsyncDevice {
        &self.0.device
    }

    async fn locate(&self, mapping: &Mapping, page: u64, pages: u64) -> Result<Located> {
        let inode = self.inode_of(mapping)?;
        let _map = inode.map_lock.read().await;
        let (start, blocks) = match self.0.map(&inode, page, pages).await? {
            Mapped::Hole(blocks) | Mapped::Blocks { blocks, unwritten: true, .. } => {
                return Ok(Located::Hole(blocks));
            }
            Mapped::Blocks { start, blocks, .. } => (start, blocks),
        };
        if self.0.options.data != DataMode::Journal {
            return Ok(Located::At(Lba(start), blocks));
        }
        // The newest content may still be in the journal only.
        let logged = |block: &u64| self.0.buffers.cached(*block).is_some();
        match (start..start + blocks).position(|block| logged(&block)) {
            Some(0) => {
                let buffer = self.0.buffers.cached(start);
                Ok(buffer.map_or(Located::At(Lba(start), 1), |b| Located::Known(b.content())))
            }
            Some(before) => Ok(Located::At(Lba(start), before as u64)),
            None => Ok(Located::At(Lba(start), blocks)),
        }
    }

    async fn write_back(&self, mapping: &Mapping, pages: u64) -> Result<()> {
        let inode = self.inode_of(mapping)?;
        self.0.send_dirty(&inode, 0..u64::MAX, pages, false).await
    }
}

/// A stretch of a run that lies in one piece on the device.
struct Stretch {
    pages: Logical,
    /// Its blocks were allocated ahead.
    unwritten: bool,
    /// Its blocks are new.
    new: bool,
}

impl Volume {
    /// Sends up to `most` dirty pages of a range to the device, without waiting for them.
    ///
    /// # Errors
    /// The first; the rest is sent all the same. The next sync of the file tells it, too.
    pub(crate) async fn send_dirty(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        range: Range<u64>,
        most: u64,
        sync: bool,
    ) -> Result<()> {
        let (mut left, mut result) = (most, Ok(()));
        while let Some(run) = inode.pages.take_run(range.clone(), left.min(RUN_PAGES)) {
            left -= (run.end() - run.first()).min(left);
            result = result.and(self.send_run(inode, run, sync).await);
            if left == 0 {
                break;
            }
        }
        result
    }

    /// Gives blocks to a run and sends it off. A task of its own sees it to its end.
    async fn send_run(self: &Rc<Self>, inode: &Rc<Inode>, run: WriteRun, sync: bool) -> Result<()> {
        let mut sent = Vec::with_capacity(1);
        let mut at = run.first();
        let mut result = Ok(());
        while at < run.end() && result.is_ok() {
            result = self.send_next(inode, &run, at, sync).await.map(|next| {
                at = next.0.pages.end;
                sent.push(next);
            });
        }
        let known = result.clone();
        let (volume, inode) = (Rc::clone(self), Rc::clone(inode));
        drop(self.rt.spawn("write-back", async move {
            let mut arrived = Vec::with_capacity(sent.len());
            for (stretch, id, arrival) in sent {
                arrived.push((stretch, arrival.await));
                inode.in_flight.arrive(id);
            }
            for (stretch, ended) in arrived {
                result = result.and(volume.conclude(&inode, &stretch, ended).await);
            }
            // Pages that got no block do not need the promise of one any more.
            volume.unpromise(run.settle_promises(at..run.end()));
            run.finish(result.err());
        }));
        known
    }

    /// What is left to do when the data of a stretch has arrived, or has not: blocks that were allocated
    /// ahead hold data now; new ones without it must not show what they held before.
    async fn conclude(&self, inode: &Inode, stretch: &Stretch, arrived: Result<()>) -> Result<()> {
        match arrived {
            Ok(()) if stretch.unwritten => Box::pin(self.mark(inode, &stretch.pages, true)).await,
            Err(error) if stretch.new => {
                Box::pin(self.mark(inode, &stretch.pages, false)).await?;
                Err(error)
            }
            arrived => arrived,
        }
    }

    /// Sends the stretch of a run that begins at page `at`.
    async fn send_next(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        run: &WriteRun,
        at: u64,
        sync: bool,
    ) -> Result<(Stretch, u64, impl Future<Output = Result<()>> + use<>)> {
        let map = inode.map_lock.read().await;
        let mut mapped = self.map(inode, at, run.end() - at).await?;
        drop(map);
        let end = at + mapped.blocks();
        let grows = inode.raw.borrow().size < inode.size.get().min(end * PAGE);
        let (mut tx, mut new) = (None, false);
        if matches!(mapped, Mapped::Hole(_)) || grows {
            let begun = self.begin(MAP_CREDITS, 0).await?;
            let _map = inode.map_lock.write().await;
            mapped = self.map(inode, at, run.end() - at).await?;
            if let Mapped::Hole(pages) = mapped {
                mapped = self.take_for(&begun, inode, at, pages).await?;
                new = true;
            }
            let end = at + mapped.blocks();
            let size = inode.raw.borrow().size.max(inode.size.get().min(end * PAGE));
            inode.raw.borrow_mut().size = size;
            self.write_inode(&begun, inode, true).await?;
            tx = Some(begun);
        }
        let Mapped::Blocks { start, blocks, unwritten } = mapped else {
            return Err(FsError::corrupt("extent tree", format!("inode {}", inode.number)));
        };
        let pages = at..at + blocks;
        // From here to the end of the transaction nothing waits: it cannot commit before the data is
        // on its way.
        self.unpromise(run.settle_promises(pages.clone()));
        let from = (at - run.first()) as usize;
        let data = &run.data()[from..from + blocks as usize];
        let id = inode.in_flight.send();
        let arrived = self.send_blocks(inode, start, data, sync);
        if let Some(tx) = tx {
            if self.options.data == DataMode::Ordered {
                self.order(tx.tid(), inode);
            }
            tx.stop();
        }
        Ok((Stretch { pages, unwritten, new }, id, arrived))
    }

    /// Takes and maps blocks for a hole.
    async fn take_for(
        &self,
        tx: &super::tx::Tx,
        inode: &Inode,
        logical: u64,
        pages: u64,
    ) -> Result<Mapped> {
        let goal = self.goal(inode, logical).await?;
        let taken = self.take_blocks(tx, goal, pages as u32).await?;
        let (start, blocks) = (taken.start, taken.end - taken.start);
        self.map_blocks(tx, inode, logical, taken, false).await?;
        Ok(Mapped::Blocks { start, blocks, unwritten: false })
    }

    /// Submits writes of contiguous blocks of a file.
    pub(super) fn send_blocks(
        &self,
        inode: &Inode,
        start: u64,
        data: &[SectorData],
        sync: bool,
    ) -> impl Future<Output = Result<()>> + use<> {
        let max = self.device.caps().max_sectors as usize;
        let chunk = if max == 0 { data.len().max(1) } else { max };
        let mut lba = start;
        let mut replies = Vec::new();
        for some in data.chunks(chunk) {
            let payload = Payload::of(some);
            let mut bio = Bio::write(Lba(lba), some.len() as u32, payload);
            bio.owner = Some(inode.pages.owner());
            if sync {
                bio = bio.with(Flags::SYNC);
            }
            replies.push(self.device.submit(bio));
            lba += some.len() as u64;
        }
        async move {
            let mut result = Ok(());
            for reply in replies {
                result = result.and(reply.await.map(drop));
            }
            Ok(result?)
        }
    }

    /// Makes it known whether the blocks of pages hold data.
    pub(super) async fn mark(&self, inode: &Inode, pages: &Logical, written: bool) -> Result<()> {
        let mut at = pages.start;
        while at < pages.end {
            let tx = self.begin(MAP_CREDITS, 0).await?;
            let map = inode.map_lock.write().await;
            let mapped = self.map(inode, at, pages.end - at).await?;
            let end = at + mapped.blocks();
            if matches!(mapped, Mapped::Blocks { unwritten, .. } if unwritten == written) {
                self.convert(&tx, inode, &(at..end), !written).await?;
            }
            drop(map);
            self.write_inode(&tx, inode, true).await?;
            tx.stop();
            at = end;
        }
        Ok(())
    }
}
