//! Listing a directory, so that a name which stays is listed exactly once whatever happens to others: the cookie of a
//! name is the slot after its last one, counted from the directory's first block, and names keep their slots.
//!
//! In a directory whose first level has several buckets (`dir_level`) names move when they leave the inode; as long as
//! they are there they are listed all at once, and nothing is listed after them.

use super::{Holder, dir_pages};
use crate::contract::{DirEntry, Ino, Kind, Result};
use crate::f2fs::error::corrupt;
use crate::f2fs::format::{DENTRY_BLOCK_SLOTS, Dentries, file_type, slots_of};
use crate::f2fs::inode::Inode;
use crate::f2fs::nat::Nodes;

/// The kind of file that an entry says.
const fn kind_of(entry: u8) -> Kind {
    match entry {
        file_type::REGULAR => Kind::File,
        file_type::DIR => Kind::Directory,
        file_type::SYMLINK => Kind::Symlink,
        _ => Kind::Special,
    }
}

/// Adds up to `count` names from slot `from` on; `first` is the cookie of the slot 0.
fn collect(
    names: &Dentries<&[u8]>,
    (first, from): (u64, usize),
    count: usize,
    entries: &mut Vec<DirEntry>,
) -> Result<()> {
    let mut slot = from;
    while slot < names.slots() && entries.len() < count {
        if !names.is_taken(slot) || names.raw(slot).name_len == 0 {
            // The middle of a name that was added where another one had been listed.
            slot += 1;
            continue;
        }
        let entry = names.entry(slot).map_err(|unsound| corrupt(unsound.what, first))?;
        slot += slots_of(entry.name.len());
        entries.push(DirEntry {
            cookie: first + slot as u64,
            ino: Ino(entry.ino.0.into()),
            kind: kind_of(entry.file_type),
            name: entry.name.to_vec(),
        });
    }
    Ok(())
}

impl Nodes {
    /// About `count` names after `cookie` (`f2fs_readdir`). The caller holds the directory's `i_rwsem`.
    pub(crate) async fn list(
        &self,
        dir: &Inode,
        cookie: u64,
        count: usize,
    ) -> Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        let count = count.max(1);
        let per_block = DENTRY_BLOCK_SLOTS as u64;
        let slot = (cookie % per_block) as usize;
        if dir.has_inline_names() {
            let moves = dir.raw.borrow().dir_level > 0;
            let count = if moves { usize::MAX } else { count };
            if cookie < per_block {
                let look = |names: Dentries<&[u8]>| collect(&names, (0, slot), count, &mut entries);
                self.read_names(dir, Holder::Inode, look).await?.unwrap_or(Ok(()))?;
            }
            if moves && let Some(last) = entries.last_mut() {
                last.cookie = u64::MAX;
            }
            return Ok(entries);
        }
        let (mut page, mut from) = (cookie / per_block, slot);
        while page < dir_pages(dir) && entries.len() < count {
            let first = page * per_block;
            let look = |names: Dentries<&[u8]>| collect(&names, (first, from), count, &mut entries);
            match self.read_names(dir, Holder::Page(page), look).await? {
                Ok(collected) => {
                    collected?;
                    page += 1;
                }
                Err(pages) => page = page.saturating_add(pages),
            }
            from = 0;
        }
        Ok(entries)
    }
}
