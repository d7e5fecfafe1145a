//! The ballast: a file that takes the room of a volume that the writers are not to have, with content that is known.

use super::model::show_content;
use super::tree::{Fs, PAGE, Tree};
use crate::device::drive::CheckFailure;
use nandscape_block::{Payload, SectorData, Tag};
use nandscape_fs::contract::{Caller, Data, FsError, Io};

const BALLAST: &str = "ballast";
/// Pages of a write.
const WINDOW: u64 = 32;

/// How large it is in a new volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ballast {
    /// Blocks that it is to leave.
    pub(super) spare: u64,
    /// Its bytes.
    pub(super) size: u64,
}

/// Holds the ballast against what was written.
pub(super) fn check(tree: &Tree) -> Result<(), CheckFailure> {
    let ballast = tree.get(BALLAST).ok_or_else(|| CheckFailure::new("the ballast is gone"))?;
    let mut pages = (1..).zip(&ballast.pages);
    match pages.find(|(tag, page)| **page != SectorData::Tag(Tag::new(*tag))) {
        None => Ok(()),
        Some((tag, page)) => Err(CheckFailure::new(format!(
            "ballast, page {}: {}, expected tag {tag:x}",
            tag - 1,
            show_content(page)
        ))),
    }
}

/// Bytes of the ballast.
pub(super) async fn size(fs: &Fs) -> Result<u64, FsError> {
    Ok(fs.lookup(Caller::default(), fs.root(), BALLAST.as_bytes()).await?.size)
}

/// Writes the ballast: all that is free but for what the writers are to have.
pub(super) async fn fill(fs: &Fs, spare: u64) -> Result<(), FsError> {
    let me = Caller::default();
    let pages = fs.statfs(me).await?.free.saturating_sub(spare);
    let file = fs.create(me, fs.root(), BALLAST.as_bytes(), 0o600).await?.ino;
    for first in (0..pages).step_by(WINDOW as usize) {
        let count = WINDOW.min(pages - first) as u32;
        let data = Data::Sectors(Payload::Run(Tag::new(1 + first)), count);
        match fs.write_all(me, file, first * PAGE, data, Io::Buffered).await {
            Err(FsError::NoSpace) => break,
            other => other?,
        }
    }
    fs.fsync(me, file).await
}

/// Writes the ballast between pages that are void afterwards: whatever is moved of an erase unit to free it is ballast.
pub(super) async fn fill_between(fs: &Fs, spare: u64) -> Result<(), FsError> {
    let (me, void) = (Caller::default(), "void");
    let pages = fs.statfs(me).await?.free.saturating_sub(spare + 2 * WINDOW);
    let file = fs.create(me, fs.root(), BALLAST.as_bytes(), 0o600).await?.ino;
    let beside = fs.create(me, fs.root(), void.as_bytes(), 0o600).await?.ino;
    for first in (0..pages).step_by(WINDOW as usize) {
        let count = WINDOW.min(pages - first) as u32;
        for (ino, at) in [(file, first), (beside, 0)] {
            let data = Data::Sectors(Payload::Run(Tag::new(1 + first)), count);
            match fs.write_all(me, ino, at * PAGE, data, Io::Direct).await {
                Err(FsError::NoSpace) => break,
                other => other?,
            }
        }
    }
    fs.unlink(me, fs.root(), void.as_bytes()).await?;
    fs.fsync(me, file).await
}
