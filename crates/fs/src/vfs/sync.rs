//! Making files durable: write-back, then what leads to the data, then the device.

use super::writeback::writepages;
use super::{DataPath, InodeCache, Pages};
use crate::contract::Result;
use nandscape_block::Bio;
use std::rc::Rc;

/// Writes all dirty pages of a file and waits for them.
pub(crate) async fn write_out<V: DataPath>(volume: &Rc<V>, file: &Rc<V::File>) -> Result<()> {
    if !volume.is_data(file) {
        return file.pages.take_error();
    }
    let sent = write_out_range(volume, file, &(0..u64::MAX)).await;
    file.pages.take_error().and(sent)
}

/// Writes the dirty pages of a range and waits for them, whatever becomes of some.
pub(crate) async fn write_out_range<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    pages: &Pages,
) -> Result<()> {
    let mut result = Ok(());
    for _ in 0..volume.sync_passes() {
        let pass = file.pages.pass_over(pages.clone());
        result = result.and(writepages(volume, file, pass, u64::MAX, true).await);
        if volume.sync_waits() {
            file.pages.written(pages.clone()).await;
        }
    }
    result
}

/// Makes a file durable; `data_only` leaves out attributes that reading does not need.
pub(crate) async fn sync_file<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    data_only: bool,
) -> Result<()> {
    let env = volume.env();
    let began = env.rt.now();
    write_out(volume, file).await?;
    let written = env.rt.now();
    let flushed = volume.commit_file(file, data_only).await?;
    let committed = env.rt.now();
    if !flushed {
        flush_file(volume, file).await?;
    }
    let mut times = env.fsync_times.get();
    times.data_ns += (written - began).0;
    times.commit_ns += (committed - written).0;
    times.flush_ns += (env.rt.now() - committed).0;
    env.fsync_times.set(times);
    Ok(())
}

/// Makes the data of one file durable. What leads to it is already.
async fn flush_file<V: DataPath>(volume: &Rc<V>, file: &Rc<V::File>) -> Result<()> {
    let owner = Some(file.pages.owner());
    let flush = Bio { owner, scope: volume.flush_scope(), ..Bio::flush() };
    volume.env().device.submit(flush).await?;
    Ok(())
}

/// Makes everything durable, including what others have submitted.
///
/// # Errors
/// The first; of all else, what can be made durable is.
pub(crate) async fn sync_all<V: DataPath>(
    volume: &Rc<V>,
    inodes: &InodeCache<V::File>,
) -> Result<()> {
    let env = volume.env();
    let mut result = Ok(());
    for file in env.cache.dirty_files() {
        result = result.and(write_out(volume, &file).await);
    }
    let mut busy = inodes.all();
    busy.retain(|file| file.pages.is_busy());
    for file in busy {
        result = result.and(write_out(volume, &file).await);
    }
    volume.commit_all().await?;
    env.device.flush().await?;
    result
}
