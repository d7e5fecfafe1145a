//! Creates the files of jobs before a run.
//!
//! As in fio, files that exist and are long enough are used as they are, and shorter ones are created again.
//! Files that a job reads are written whole; others are given blocks only, as fio does with
//! `fallocate=native`.

use super::names::{FILE_MODE, find_file, make_directory};
use crate::fio::{FileLayout, LaidOutFile};
use nandscape_block::{Payload, SECTOR_BYTES, Tag};
use nandscape_fs::contract::{Allocate, Caller, Data, FileSystem, FsError, Ino, Io, Result};

/// Sectors of a write.
const FILL_SECTORS: u64 = 1_024;

/// Creates the files of `layout`, each as long as it is to be, unless there is one; returns their numbers.
///
/// # Errors
/// The index of the file that could not be created, and what the file system returned.
pub async fn create_files(
    fs: &dyn FileSystem,
    layout: &FileLayout,
) -> Result<Vec<Ino>, (usize, FsError)> {
    let mut inodes = Vec::with_capacity(layout.files.len());
    for (index, file) in layout.files.iter().enumerate() {
        inodes.push(create(fs, file).await.map_err(|error| (index, error))?);
    }
    Ok(inodes)
}

/// Creates one file; its number.
async fn create(fs: &dyn FileSystem, file: &LaidOutFile) -> Result<Ino> {
    let root = Caller::default();
    let Some((name, folders)) = file.path.split_last() else { return Err(FsError::NoEntry) };
    let mut parent = fs.root();
    for step in folders {
        parent = make_directory(fs, parent, step).await?;
    }
    match find_file(fs, parent, name.as_bytes()).await? {
        Some(found) if found.size >= file.sectors * SECTOR_BYTES => return Ok(found.ino),
        Some(_) => fs.unlink(root, parent, name.as_bytes()).await?,
        None => {}
    }
    let ino = fs.create(root, parent, name.as_bytes(), FILE_MODE).await?.ino;
    if !file.filled {
        let blocks = Allocate::Reserve { keep_size: false };
        fs.fallocate(root, ino, blocks, 0, file.sectors * SECTOR_BYTES).await?;
        return Ok(ino);
    }
    for first in (0..file.sectors).step_by(FILL_SECTORS as usize) {
        let sectors = FILL_SECTORS.min(file.sectors - first);
        // The engine's tags of version 0, which it never writes itself.
        let payload = Payload::Run(Tag::new(file.base + first));
        let data = Data::Sectors(payload, sectors as u32);
        fs.write_all(root, ino, first * SECTOR_BYTES, data, Io::Direct).await?;
    }
    Ok(ino)
}
