//! Content past the page cache. What the cache holds of the range is written back first, and a write
//! makes the cache forget it.

use super::sync::write_out_range;
use super::writeback::write_blocks;
use super::{DataPath, Mapped, PAGE, Pages};
use crate::contract::{Caller, Data, FsError, Result};
use nandscape_block::{Bio, BlockError, Lba, Payload, Reply, SectorData, Tag};
use nandscape_rt::combine::in_turn;
use nandscape_rt::invariant;
use std::rc::Rc;

/// Reads from the device.
pub(crate) async fn read<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    offset: u64,
    len: u64,
) -> Result<Data> {
    if !offset.is_multiple_of(PAGE) {
        return Err(FsError::Invalid("direct I/O begins at multiples of 4,096"));
    }
    let end = offset.saturating_add(len).min(file.size.get());
    if offset >= end {
        return Ok(Data::Bytes(Vec::new()));
    }
    let pages = offset / PAGE..end.div_ceil(PAGE);
    let _in_place = volume.keep_in_place(file).await;
    write_out_range(volume, file, &pages).await?;
    let mut replies = Vec::new();
    let mut at = pages.start;
    while at < pages.end {
        let (count, reply) = read_extent(volume, file, &(at..pages.end)).await?;
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

/// Submits the read of the first extent of a range; nothing to submit where it reads as zeroes.
async fn read_extent<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    range: &Pages,
) -> Result<(u64, Option<impl Future<Output = Result<Reply, BlockError>> + use<V>>)> {
    let _extents = volume.lock_map(file, range.start).await;
    let device = &volume.env().device;
    let max = u64::from(device.caps().max_sectors);
    let most = range.end - range.start;
    let most = if max == 0 { most } else { most.min(max) };
    Ok(match volume.map(file, range.start, most).await? {
        Mapped::Blocks { start, blocks, unwritten: false } => {
            let mut bio = Bio::read(Lba(start), blocks as u32);
            bio.owner = Some(file.pages.owner());
            (blocks, Some(volume.submit_read(bio)))
        }
        mapped => (mapped.blocks(), None),
    })
}

/// Writes to the device. The caller holds the file's `i_rwsem`, exclusively if the file grows on disk.
pub(super) async fn write<V: DataPath>(
    volume: &Rc<V>,
    caller: Caller,
    file: &Rc<V::File>,
    offset: u64,
    data: &Data,
) -> Result<u64> {
    let len = data.len();
    if !offset.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
        return Err(FsError::Invalid("direct I/O goes by multiples of 4,096"));
    }
    let end = volume.check_range(file, offset, len)?;
    volume.check_write(file, offset)?;
    let pages = offset / PAGE..end / PAGE;
    file.pages.set_writer(caller.thread, caller.core);
    write_out_range(volume, file, &pages).await?;
    volume.env().space.unreserve(file.pages.discard(pages.clone()));
    let grows = volume.grows_on_disk(file, offset, len);
    if grows {
        volume.begin_growth(file).await?;
    }
    let written = write_past_cache(volume, caller, file, &pages, data).await;
    match written {
        Ok(()) if grows => volume.end_growth(file, end).await?,
        Err(_) if grows => volume.abandon_growth(file).await?,
        _ => {}
    }
    written?;
    invariant!(
        file.size.get() >= end,
        "inode {}: what was written past the cache lies before the end",
        file.ino().0
    );
    volume.touch(file).await?;
    Ok(len)
}

/// Writes pages, and makes the cache forget them.
async fn write_past_cache<V: DataPath>(
    volume: &Rc<V>,
    caller: Caller,
    file: &Rc<V::File>,
    pages: &Pages,
    data: &Data,
) -> Result<()> {
    volume.write_direct(caller, file, pages, &sectors_of(data)).await?;
    // Reads that ran beside the write may have brought old content into the cache.
    file.pages.written(pages.clone()).await;
    volume.env().space.unreserve(file.pages.discard(pages.clone()));
    Ok(())
}

/// Gives blocks to pages that have none, and writes all where they lie then: of a file system that writes in place.
pub(super) async fn write_in_place<V: DataPath>(
    volume: &Rc<V>,
    caller: Caller,
    file: &Rc<V::File>,
    pages: &Pages,
    data: &[SectorData],
) -> Result<()> {
    volume.preallocate(caller, file, pages).await?;
    write_mapped(volume, file, pages, data).await
}

/// Writes pages that all have blocks.
async fn write_mapped<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    pages: &Pages,
    data: &[SectorData],
) -> Result<()> {
    let mut replies = Vec::new();
    let mut unwritten = Vec::new();
    let mut at = pages.start;
    let mut result = Ok(());
    while at < pages.end && result.is_ok() {
        let extents = volume.lock_map(file, at).await;
        match volume.map(file, at, pages.end - at).await {
            Ok(Mapped::Blocks { start, blocks, unwritten: new }) => {
                let from = (at - pages.start) as usize;
                let some = &data[from..from + blocks as usize];
                replies.push(write_blocks(&**volume, file, start, some, true));
                if new {
                    unwritten.push(at..at + blocks);
                }
                at += blocks;
            }
            Ok(Mapped::Hole(_)) => {
                let place = format!("inode {}", file.ino().0);
                result = Err(FsError::corrupt("extent tree", place));
            }
            Err(error) => result = Err(error),
        }
        drop(extents);
    }
    // Whatever went wrong, nothing is in flight any more when the caller goes on.
    for ended in in_turn(replies).await {
        result = result.and(ended);
    }
    result?;
    for pages in unwritten {
        volume.mark_written(file, &pages).await?;
    }
    Ok(())
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
