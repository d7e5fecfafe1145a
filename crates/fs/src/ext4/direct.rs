//! Content past the page cache. What the cache holds of the range is written back first, and a write
//! makes the cache forget it.

use super::extents::{Logical, Mapped};
use super::inode::Inode;
use super::volume::{PAGE, Volume};
use crate::contract::{Caller, Data, FsError, Result};
use nandscape_block::{Bio, Lba, Payload, Reply, SectorData, Tag};
use nandscape_rt::combine::join_all;
use std::rc::Rc;

/// Credits for taking and mapping blocks.
const MAP_CREDITS: u32 = 24;
/// Blocks taken in one transaction.
const MAP_BLOCKS: u64 = 32_767;

impl Volume {
    /// Reads from the device.
    pub(crate) async fn read_direct(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        offset: u64,
        len: u64,
    ) -> Result<Data> {
        if !offset.is_multiple_of(PAGE) {
            return Err(FsError::Invalid("direct I/O begins at multiples of 4,096"));
        }
        let end = offset.saturating_add(len).min(inode.size.get());
        if offset >= end {
            return Ok(Data::Bytes(Vec::new()));
        }
        let pages = offset / PAGE..end.div_ceil(PAGE);
        self.write_out_range(inode, &pages).await?;
        let mut replies = Vec::new();
        let mut at = pages.start;
        while at < pages.end {
            let (count, reply) = self.read_stretch(inode, &(at..pages.end)).await?;
            replies.push((count, reply));
            at += count;
        }
        let mut content = Vec::new();
        for (count, reply) in replies {
            match reply {
                None => content.extend((0..count).map(|_| SectorData::Tag(Tag::ZERO))),
                Some(reply) => {
                    let reply = reply.await?;
                    let payload = if let Reply::Data(data) = reply { data } else { Payload::None };
                    content.extend((0..count as u32).map(|index| payload.sector(index)));
                }
            }
        }
        Ok(Data::from_pages(content, 0, (end - offset) as usize))
    }

    /// Submits the read of the first stretch of a range; nothing to submit where it reads as zeroes.
    async fn read_stretch(
        &self,
        inode: &Inode,
        range: &Logical,
    ) -> Result<(
        u64,
        Option<impl Future<Output = Result<Reply, nandscape_block::BlockError>> + use<>>,
    )> {
        let _map = inode.map_lock.read().await;
        let max = u64::from(self.device.caps().max_sectors);
        let most = range.end - range.start;
        let most = if max == 0 { most } else { most.min(max) };
        Ok(match self.map(inode, range.start, most).await? {
            Mapped::Blocks { start, blocks, unwritten: false } => {
                let mut bio = Bio::read(Lba(start), blocks as u32);
                bio.owner = Some(inode.pages.owner());
                (blocks, Some(self.device.submit(bio)))
            }
            mapped => (mapped.blocks(), None),
        })
    }

    /// Writes to the device. The caller holds the inode's lock, alone if the file grows on
    /// disk.
    pub(crate) async fn write_direct(
        self: &Rc<Self>,
        caller: Caller,
        inode: &Rc<Inode>,
        offset: u64,
        data: &Data,
    ) -> Result<u64> {
        let len = data.len();
        if !offset.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return Err(FsError::Invalid("direct I/O goes by multiples of 4,096"));
        }
        let end = self.check_extent_of_file(inode, offset, len)?;
        inode.check_write(offset)?;
        let pages = offset / PAGE..end / PAGE;
        inode.pages.set_writer(caller.thread, caller.core);
        self.write_out_range(inode, &pages).await?;
        self.unpromise(inode.pages.discard(pages.clone()));
        let grows = inode.grows_on_disk(offset, len);
        if grows {
            self.begin_to_grow(inode).await?;
        }
        let written = self.write_past_cache(caller, inode, &pages, data).await;
        match written {
            Ok(()) if grows => self.end_growing(inode, end).await?,
            // What was to be behind the old end is not the file's.
            Err(_) if grows => self.cut_blocks(inode).await?,
            _ => {}
        }
        written?;
        self.touch_file(inode).await?;
        Ok(len)
    }

    /// Gives blocks to pages and writes them.
    async fn write_past_cache(
        self: &Rc<Self>,
        caller: Caller,
        inode: &Rc<Inode>,
        pages: &Logical,
        data: &Data,
    ) -> Result<()> {
        self.reserve_range(caller, inode, pages).await?;
        self.write_mapped(inode, pages, &sectors_of(data)).await?;
        // Reads that ran beside the write may have brought old content into the cache.
        inode.pages.written(pages.clone()).await;
        self.unpromise(inode.pages.discard(pages.clone()));
        Ok(())
    }

    /// Until the length on disk says so, what is written behind it is not the file's: after a power cut
    /// it must not show when the file grows again. So the file is an orphan meanwhile.
    async fn begin_to_grow(&self, inode: &Rc<Inode>) -> Result<()> {
        let tx = self.begin(6, 0).await?;
        self.add_orphan(&tx, inode).await?;
        self.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(())
    }

    /// The file has its new length.
    async fn end_growing(&self, inode: &Rc<Inode>, end: u64) -> Result<()> {
        let tx = self.begin(8, 0).await?;
        inode.set_size(inode.size.get().max(end));
        {
            let mut raw = inode.raw.borrow_mut();
            raw.size = raw.size.max(end);
        }
        self.remove_orphan(&tx, inode).await?;
        self.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(())
    }

    /// Writes pages that all have blocks.
    async fn write_mapped(
        &self,
        inode: &Rc<Inode>,
        pages: &Logical,
        data: &[SectorData],
    ) -> Result<()> {
        let mut replies = Vec::new();
        let mut unwritten = Vec::new();
        let mut at = pages.start;
        let mut result = Ok(());
        while at < pages.end && result.is_ok() {
            let map = inode.map_lock.read().await;
            match self.map(inode, at, pages.end - at).await {
                Ok(Mapped::Blocks { start, blocks, unwritten: new }) => {
                    let from = (at - pages.start) as usize;
                    let some = &data[from..from + blocks as usize];
                    replies.push(self.send_blocks(inode, start, some, true));
                    if new {
                        unwritten.push(at..at + blocks);
                    }
                    at += blocks;
                }
                Ok(Mapped::Hole(_)) => {
                    let place = format!("inode {}", inode.number);
                    result = Err(FsError::corrupt("extent tree", place));
                }
                Err(error) => result = Err(error),
            }
            drop(map);
        }
        // Whatever went wrong, nothing is under way any more when the caller goes on.
        for ended in join_all(replies).await {
            result = result.and(ended);
        }
        result?;
        for pages in unwritten {
            self.mark(inode, &pages, true).await?;
        }
        Ok(())
    }

    /// Gives blocks, that read as zeroes, to what has none in a range.
    pub(crate) async fn reserve_range(
        &self,
        caller: Caller,
        inode: &Inode,
        range: &Logical,
    ) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let map = inode.map_lock.read().await;
            let mapped = self.map(inode, at, range.end - at).await?;
            drop(map);
            if let Mapped::Hole(blocks) = mapped {
                at += self.reserve_some(caller, inode, &(at..at + blocks)).await?;
            } else {
                at += mapped.blocks();
            }
        }
        Ok(())
    }

    /// One step of it; returns how many blocks it got on.
    async fn reserve_some(&self, caller: Caller, inode: &Inode, range: &Logical) -> Result<u64> {
        let wanted = (range.end - range.start).min(MAP_BLOCKS);
        let room = self.room(caller, wanted)?;
        let tx = self.begin(MAP_CREDITS, 0).await?;
        let map = inode.map_lock.write().await;
        let mapped = self.map(inode, range.start, wanted).await?;
        let Mapped::Hole(wanted) = mapped else { return Ok(mapped.blocks()) };
        let goal = self.goal(inode, range.start).await?;
        let taken = self.take_blocks(&tx, goal, wanted as u32).await?;
        drop(room);
        let blocks = taken.end - taken.start;
        self.map_blocks(&tx, inode, range.start, taken, true).await?;
        drop(map);
        self.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(blocks)
    }
}

/// The sectors of data that is whole sectors long.
fn sectors_of(data: &Data) -> Vec<SectorData> {
    match data {
        Data::Sectors(payload, sectors) => (0..*sectors).map(|i| payload.sector(i)).collect(),
        Data::Bytes(bytes) => {
            let payload = Payload::from_bytes(bytes).unwrap_or_default();
            (0..bytes.len() as u32 / PAGE as u32).map(|index| payload.sector(index)).collect()
        }
        Data::Part(content, _) => vec![content.clone()],
    }
}
