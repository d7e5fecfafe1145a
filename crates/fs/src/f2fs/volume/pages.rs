//! Reads of pages for the parts of a volume: what is not in memory is located and read by the volume.

use super::Volume;
use crate::cache::{Mapping, read_pages};
use crate::contract::{FsError, Result};
use crate::f2fs::inode::Inode;
use crate::vfs::Pages;
use crate::vfs::writeback::FileBacking;
use nandscape_block::SectorData;
use nandscape_rt::BoxFuture;
use std::rc::Weak;

/// Reads pages through the cache.
#[derive(Clone)]
pub(crate) struct PageReader(Weak<Volume>);

impl PageReader {
    pub(in crate::f2fs) fn new(volume: &Weak<Volume>) -> Self {
        Self(volume.clone())
    }

    /// Pages of a file, from memory or from the device. The future is on the heap: few reads wait for the device, and each
    /// future that looks at a node would be as large.
    pub(crate) fn read<'a>(
        &self,
        pages: &'a Mapping<Inode>,
        range: Pages,
    ) -> BoxFuture<'a, Result<Vec<SectorData>>> {
        let backing = self.0.upgrade().map(FileBacking);
        Box::pin(async move {
            let backing = backing.ok_or(FsError::ReadOnly)?;
            read_pages(&backing, pages, u16::MAX, range).await
        })
    }
}
