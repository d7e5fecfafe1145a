//! The account of a volume's space: what is free and what files have is all there is. It is the same whenever nothing waits
//! to be written and no file without a name is open, so that a block or an inode that is lost shows at once.

use super::tree::{Fs, identity};
use crate::device::drive::CheckFailure;
use nandscape_fs::FsKind;
use nandscape_fs::contract::{Attr, Caller, FsError, Ino, Kind};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

/// Units of 512 bytes, in which `Attr::blocks` counts, of a block.
const UNITS: u64 = 8;
/// Lengths at which content in an inode of F2FS counts as a whole block, as much as a block beside the inode.
const LIKE_A_BLOCK: RangeInclusive<u64> = 3_585..=3_700;
/// Names asked for at once.
const NAMES: usize = 256;

/// What is free, and what files, directories and symbolic links have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    free_blocks: u64,
    used_blocks: u64,
    free_inodes: u64,
    used_inodes: u64,
    /// Blocks of those in use that may be parts of inodes.
    unclear: u64,
    kind: FsKind,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { free_blocks, used_blocks, free_inodes, used_inodes, .. } = self;
        write!(
            f,
            "{free_blocks} blocks are free and files have {used_blocks}, {free_inodes} inodes are free and \
             {used_inodes} are in use"
        )
    }
}

impl Account {
    /// Walks through everything that has a name, the root included.
    pub(crate) async fn of(fs: &Fs, kind: FsKind) -> Result<Self, FsError> {
        let me = Caller::default();
        let root = fs.getattr(me, fs.root()).await?;
        let mut seen = BTreeSet::from([identity(&root)]);
        let mut left = vec![root.ino];
        let (mut used_blocks, mut unclear) = (0, 0);
        let mut count = |attr: &Attr| {
            // What lies in an inode counts as if it lay beside it; a directory beside it has whole blocks. A node of extended
            // attributes is one more.
            let may_be_inline = kind == FsKind::F2fs
                && [UNITS, 2 * UNITS].contains(&attr.blocks)
                && LIKE_A_BLOCK.contains(&attr.size);
            match attr.kind {
                Kind::Directory if may_be_inline => return,
                _ => unclear += u64::from(may_be_inline),
            }
            used_blocks += attr.blocks / UNITS;
        };
        count(&root);
        while let Some(dir) = left.pop() {
            for ino in leads_to(fs, dir).await? {
                let attr = fs.getattr(me, ino).await?;
                if !seen.insert(identity(&attr)) {
                    continue;
                }
                count(&attr);
                if attr.kind == Kind::Directory {
                    left.push(ino);
                }
            }
        }
        let stat = fs.statfs(me).await?;
        Ok(Self {
            free_blocks: stat.free,
            used_blocks,
            free_inodes: stat.files_free,
            used_inodes: seen.len() as u64,
            unclear,
            kind,
        })
    }

    /// The same of this volume, now.
    pub(crate) async fn again(&self, fs: &Fs) -> Result<Self, FsError> {
        Self::of(fs, self.kind).await
    }

    /// Blocks and inodes that are there at all. Those of F2FS take a block each, and there are as many as blocks.
    const fn all(&self) -> (u64, u64) {
        let Self { free_blocks, used_blocks, free_inodes, used_inodes, kind, .. } = *self;
        match kind {
            FsKind::Ext4 => (free_blocks + used_blocks, free_inodes + used_inodes),
            FsKind::F2fs => (free_blocks + used_blocks + used_inodes, 0),
        }
    }

    /// Holds an account against the one of the new volume.
    ///
    /// # Errors
    /// Something was lost, or is there twice.
    pub(crate) fn check(&self, new: &Self) -> Result<(), CheckFailure> {
        let (all, unclear) = (self.all(), self.unclear);
        let blocks = (all.0 - unclear..=all.0).contains(&new.all().0);
        match blocks && all.1 == new.all().1 {
            true => Ok(()),
            false => Err(CheckFailure::new(format!(
                "space is lost: {self}; when the volume was new {new}"
            ))),
        }
    }

    /// Holds an account of an empty volume against the one of the new volume.
    ///
    /// # Errors
    /// Something is not free again.
    pub(crate) fn check_empty(&self, new: &Self) -> Result<(), CheckFailure> {
        match self == new {
            true => Ok(()),
            false => Err(CheckFailure::new(format!(
                "not all space came back: {self}; when the volume was new {new}"
            ))),
        }
    }
}

/// What the names in a directory lead to, but for `.` and `..`.
async fn leads_to(fs: &Fs, dir: Ino) -> Result<Vec<Ino>, FsError> {
    let (mut found, mut cookie) = (Vec::new(), 0);
    loop {
        let entries = fs.readdir(Caller::default(), dir, cookie, NAMES).await?;
        let Some(last) = entries.last() else { return Ok(found) };
        cookie = last.cookie;
        let others = entries.iter().filter(|entry| entry.name != b"." && entry.name != b"..");
        found.extend(others.map(|entry| entry.ino));
    }
}

/// Removes everything below the root but `lost+found`.
pub(crate) async fn remove_all(fs: &Fs) -> Result<(), FsError> {
    let me = Caller::default();
    // Directories in the order in which they are to be removed: each behind what is in it.
    let (mut order, mut left) = (Vec::new(), vec![fs.root()]);
    while let Some(dir) = left.pop() {
        let mut cookie = 0;
        let mut entries = Vec::new();
        loop {
            let some = fs.readdir(me, dir, cookie, NAMES).await?;
            let Some(last) = some.last() else { break };
            cookie = last.cookie;
            entries.extend(some);
        }
        for entry in entries {
            match (&entry.name[..], entry.kind) {
                (b"." | b"..", _) => {}
                (b"lost+found", _) if dir == fs.root() => {}
                (_, Kind::Directory) => {
                    order.push((dir, entry.name));
                    left.push(entry.ino);
                }
                _ => fs.unlink(me, dir, &entry.name).await?,
            }
        }
    }
    for (dir, name) in order.into_iter().rev() {
        fs.rmdir(me, dir, &name).await?;
    }
    Ok(())
}
