//! Dirty pages on their way to the device.
//!
//! A run of pages is marked as in flight; the file system gives blocks to it, part by part, and submits
//! each part ([`DataPath::place`]). A task per run waits for the device and finishes the run.

use super::{DataPath, FileCore, Pages};
use crate::cache::{Backing, PageLocation, WriteBack, WriteRun, WritebackPass};
use crate::contract::{FsError, Result};
use nandscape_block::{AsyncDevice, Bio, BlockError, Flags, Lba, Payload, Reply, SectorData};
use nandscape_rt::{Handle, invariant};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// Longest run that is written at once, in pages, where the file system has no reason for less.
pub(crate) const RUN_PAGES: u64 = 2048;

/// A volume as the page cache sees it.
pub(crate) struct FileBacking<V: DataPath>(pub(crate) Rc<V>);

impl<V: DataPath> Clone for FileBacking<V> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<V: DataPath> Backing for FileBacking<V> {
    type File = V::File;

    fn device(&self) -> &AsyncDevice {
        &self.0.env().device
    }

    fn is_metadata(&self, file: &Rc<V::File>) -> bool {
        !self.0.is_data(file)
    }

    async fn locate(&self, file: &Rc<V::File>, page: u64, pages: u64) -> Result<PageLocation> {
        self.0.locate(file, page, pages).await
    }

    fn submit_read(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<V> {
        self.0.submit_read(bio)
    }
}

impl<V: DataPath> WriteBack for FileBacking<V> {
    async fn write_back(&self, file: &Rc<V::File>, pages: u64) -> Result<()> {
        self.0.write_back(file, pages).await
    }
}

/// Part of a run that was submitted. Only [`submit`] makes one.
pub(crate) struct Submitted<P> {
    placed: P,
    /// The page after its last.
    end: u64,
    id: u64,
    arrival: Pin<Box<dyn Future<Output = Result<()>>>>,
}

/// Submits `pages` of a run to the blocks from `start` on, and then calls `close`, which ends what the
/// blocks were given in.
///
/// This is a plain function so that nothing can wait between the conversion of reservations, the
/// submission and the end of the transaction: the transaction cannot commit before the data is in
/// flight, which `data=ordered` relies on.
pub(crate) fn submit<V: DataPath>(
    volume: &V,
    file: &V::File,
    run: &WriteRun<V::File>,
    (pages, start): (Pages, u64),
    sync: bool,
    placed: V::Placed,
    close: impl FnOnce(),
) -> Submitted<V::Placed> {
    invariant!(
        run.first() <= pages.start && pages.start < pages.end && pages.end <= run.end(),
        "pages {pages:?} that are submitted are of their run"
    );
    volume.env().space.unreserve(run.convert_reservations(pages.clone()));
    let from = (pages.start - run.first()) as usize;
    let data = &run.data()[from..from + (pages.end - pages.start) as usize];
    let id = file.in_flight.send();
    let arrival = write_blocks(volume, file, start, data, sync);
    close();
    Submitted { placed, end: pages.end, id, arrival: Box::pin(arrival) }
}

impl<P> Submitted<P> {
    /// What the file system placed.
    pub(crate) const fn placed(&self) -> &P {
        &self.placed
    }

    /// The same part of a run; a task waits for its arrival and calls `arrived` at once, whatever the rest of the run
    /// waits for.
    pub(crate) fn watched(self, rt: &Handle, arrived: impl FnOnce() + 'static) -> Self {
        let Self { placed, end, id, arrival } = self;
        let watcher = rt.spawn("part of a run", async move {
            let ended = arrival.await;
            arrived();
            ended
        });
        let lost = || Err(FsError::from(BlockError::PowerLost));
        let arrival = Box::pin(async move { watcher.await.unwrap_or_else(|_| lost()) });
        Self { placed, end, id, arrival }
    }

    /// Pages up to `end` that need no write of their own; for those between it and `at` none is in flight.
    pub(crate) fn without_write<F>(file: &FileCore<F>, placed: P, end: u64) -> Self {
        let id = file.in_flight.send();
        Self { placed, end, id, arrival: Box::pin(std::future::ready(Ok(()))) }
    }
}

/// Room for a run of pages. What was set aside for it is given back when this is dropped.
pub(crate) struct Room {
    pages: u64,
    aside: Option<Rc<Cell<u64>>>,
}

impl Room {
    /// Room for so many pages, of which nothing is set aside.
    pub(crate) const fn new(pages: u64) -> Self {
        Self { pages, aside: None }
    }

    /// Room for so many pages, which are added to what is set aside.
    pub(crate) fn set_aside(pages: u64, aside: &Rc<Cell<u64>>) -> Self {
        aside.set(aside.get() + pages);
        Self { pages, aside: Some(Rc::clone(aside)) }
    }

    const fn pages(&self) -> u64 {
        self.pages
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            aside.set(aside.get() - self.pages);
        }
    }
}

/// Submits up to `most` dirty pages of a pass to the device, without waiting for them.
///
/// # Errors
/// The first; the rest is submitted all the same. The next sync of the file reports it, too.
pub(crate) async fn writepages<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    mut pass: WritebackPass<V::File>,
    most: u64,
    sync: bool,
) -> Result<()> {
    let (mut left, mut result) = (most, Ok(()));
    while left > 0 {
        // Kept until the run has its blocks.
        let room = volume.before_run().await?;
        let Some(run) = pass.take_run(left.min(room.pages())) else { break };
        left -= (run.end() - run.first()).min(left);
        result = result.and(write_run(volume, file, run, sync).await);
    }
    result
}

/// Places a run and submits it. A task finishes it.
pub(crate) async fn write_run<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    run: WriteRun<V::File>,
    sync: bool,
) -> Result<()> {
    volume.before_place(file, &(run.first()..run.end())).await;
    let mut sent = Vec::with_capacity(1);
    let mut at = run.first();
    let mut result = Ok(());
    while at < run.end() && result.is_ok() {
        result = volume.place(file, &run, at, sync).await.map(|submitted| {
            invariant!(submitted.end > at, "placing pages from {at} on goes on behind them");
            at = submitted.end;
            sent.push(submitted);
        });
    }
    let known = result.clone();
    let (volume, file) = (Rc::clone(volume), Rc::clone(file));
    drop(volume.env().rt.clone().spawn("write-back", async move {
        let mut arrived = Vec::with_capacity(sent.len());
        for Submitted { placed, id, arrival, .. } in sent {
            arrived.push((placed, arrival.await));
            file.in_flight.arrive(id);
        }
        for (placed, ended) in arrived {
            result = result.and(volume.write_done(&file, &placed, ended).await);
        }
        // Pages that got no block do not need their reservations any more.
        volume.env().space.unreserve(run.convert_reservations(at..run.end()));
        run.finish(result.err());
    }));
    known
}

/// Submits writes of contiguous blocks of a file, in bios as large as the device takes.
pub(crate) fn write_blocks<V: DataPath>(
    volume: &V,
    file: &V::File,
    start: u64,
    data: &[SectorData],
    sync: bool,
) -> impl Future<Output = Result<()>> + use<V> {
    let max = volume.env().device.caps().max_sectors as usize;
    let placement = volume.placement(file, start);
    let chunk = if max == 0 { data.len().max(1) } else { max };
    let mut lba = start;
    let mut replies = Vec::new();
    for some in data.chunks(chunk) {
        let payload = Payload::of(some);
        let mut bio = Bio::write(Lba(lba), some.len() as u32, payload);
        bio.owner = Some(file.pages.owner());
        bio.placement = placement;
        if sync {
            bio = bio.with(Flags::SYNC);
        }
        replies.push(volume.submit(bio));
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
