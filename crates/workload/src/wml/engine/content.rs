//! What is written: content that the workload does not ask for, but which differs from write to write, so that
//! a check of what is read distinguishes them.
//!
//! Whole pages travel as tags, and the ends of a stretch, if it does not end with a page, as parts of
//! such. Such a stretch is several calls of the file system one after the other, though one of the
//! thread.

use nandscape_block::{Payload, SECTOR_BYTES, SectorData, Tag};
use nandscape_fs::contract::{Caller, Data, FileSystem, FsError, Ino, Io, Result};
use std::cell::Cell;

/// Tags from here on are ours.
const FIRST_TAG: u64 = 1 << 48;

/// Where content comes from.
#[derive(Default)]
pub(super) struct Contents {
    pages: Cell<u64>,
}

impl Contents {
    /// As many tags in a row.
    fn next(&self, pages: u64) -> Tag {
        let first = self.pages.get();
        self.pages.set(first + pages);
        Tag::new(FIRST_TAG + first)
    }

    /// What a page holds from `offset` on, which lies in it, up to `end`, which may be its end.
    fn part(&self, offset: u64, end: u64) -> Data {
        let from = (offset % SECTOR_BYTES) as usize;
        Data::Part(SectorData::Tag(self.next(1)), from..from + (end - offset) as usize)
    }

    /// Writes `len` bytes at `offset`.
    pub(super) async fn write(
        &self,
        fs: &dyn FileSystem,
        caller: Caller,
        ino: Ino,
        (offset, len): (u64, u64),
        io: Io,
    ) -> Result<()> {
        let end = offset + len;
        let head = offset.next_multiple_of(SECTOR_BYTES).min(end);
        if head > offset {
            fs.write_all(caller, ino, offset, self.part(offset, head), io).await?;
        }
        let pages = (end - head) / SECTOR_BYTES;
        let sectors = u32::try_from(pages).map_err(|_| FsError::FileTooBig)?;
        if sectors > 0 {
            let data = Data::Sectors(Payload::Run(self.next(pages)), sectors);
            fs.write_all(caller, ino, head, data, io).await?;
        }
        let tail = head + pages * SECTOR_BYTES;
        if tail < end {
            fs.write_all(caller, ino, tail, self.part(tail, end), io).await?;
        }
        Ok(())
    }
}
