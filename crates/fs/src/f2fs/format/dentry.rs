//! Names in a directory: a bitmap of slots, an entry of 11 bytes per slot, and 8 bytes of name per slot.
//! A name takes as many slots as its length asks for; the entry is that of the first. Follows Linux's
//! `fs/f2fs/dir.c` and `inline.c`.
//!
//! - A dentry block has 214 slots; in an inode there are as many as the inline area has room for. Both are
//!   one view, [`Dentries`], over any kind of bytes.
//! - Whatever the bytes, nothing outside the view is read or written: an entry whose name would run past
//!   the last slot is reported by [`Dentries::iter`], and found by no search.
//! - Adding and removing a name touch its entry, its name and its bits, and nothing else.

use super::inode::{NAME_BYTES_MAX, mode};
use super::name_hash;
use super::node::Unsound;
use super::{BLOCK_BYTES, Nid};
use crate::wire::{put_u16, record};
use nandscape_rt::invariant;

/// Slots of a dentry block.
pub const DENTRY_BLOCK_SLOTS: usize = 214;
/// Bytes of name per slot.
pub const SLOT_BYTES: usize = 8;
/// Bytes of an entry.
const ENTRY_BYTES: usize = 11;
/// Levels of hashing at most.
pub const DIR_LEVELS_MAX: u32 = 63;
/// The level from which on the number of buckets stays, and buckets have four blocks.
const LEVELS_THAT_DOUBLE: u32 = DIR_LEVELS_MAX / 2;

/// Types of file, as in an entry.
pub mod file_type {
    /// Not known.
    pub const UNKNOWN: u8 = 0;
    /// Regular file.
    pub const REGULAR: u8 = 1;
    /// Directory.
    pub const DIR: u8 = 2;
    /// Character device.
    pub const CHAR: u8 = 3;
    /// Block device.
    pub const BLOCK: u8 = 4;
    /// Named pipe.
    pub const FIFO: u8 = 5;
    /// Socket.
    pub const SOCKET: u8 = 6;
    /// Symbolic link.
    pub const SYMLINK: u8 = 7;

    /// The type of a file with this mode.
    #[must_use]
    pub const fn of_mode(mode: u16) -> u8 {
        use super::mode as m;
        match mode & m::TYPE {
            m::REGULAR => REGULAR,
            m::DIR => DIR,
            m::CHAR => CHAR,
            m::BLOCK => BLOCK,
            m::FIFO => FIFO,
            m::SOCKET => SOCKET,
            m::SYMLINK => SYMLINK,
            _ => UNKNOWN,
        }
    }
}

record! {
    /// An entry as it is stored.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct RawDentry {
        /// Hash of the name ([`name_hash`]).
        hash_code: u32 = 0x0,
        /// Inode that the name leads to.
        ino: u32 = 0x4,
        /// Bytes of the name.
        name_len: u16 = 0x8,
        /// See [`file_type`].
        file_type: u8 = 0xa,
    }
}

/// A name and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dentry<'a> {
    /// Its first slot.
    pub slot: usize,
    /// The hash that the entry says.
    pub hash: u32,
    /// The inode that it leads to.
    pub ino: Nid,
    /// See [`file_type`].
    pub file_type: u8,
    /// The name.
    pub name: &'a [u8],
}

/// Slots that a name of `length` bytes takes (`GET_DENTRY_SLOTS`).
#[must_use]
pub const fn slots_of(length: usize) -> usize {
    length.div_ceil(SLOT_BYTES)
}

/// Where the parts of a view lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Parts {
    slots: usize,
    entries_at: usize,
    names_at: usize,
}

impl Parts {
    const BLOCK: Self = Self {
        slots: DENTRY_BLOCK_SLOTS,
        entries_at: 30,
        names_at: 30 + DENTRY_BLOCK_SLOTS * ENTRY_BYTES,
    };

    /// Those of an inline area of so many bytes (`NR_INLINE_DENTRY`, `INLINE_RESERVED_SIZE`): as many
    /// slots as fit with a bit each; what remains lies between the bitmap and the entries.
    const fn inline(bytes: usize) -> Self {
        let slots = bytes * 8 / ((ENTRY_BYTES + SLOT_BYTES) * 8 + 1);
        let names_at = bytes - slots * SLOT_BYTES;
        Self { slots, entries_at: names_at - slots * ENTRY_BYTES, names_at }
    }
}

/// Names in a dentry block or in an inode, over bytes that may be changed or not.
#[derive(Clone, Copy, Debug)]
pub struct Dentries<B> {
    bytes: B,
    parts: Parts,
}

impl<B: AsRef<[u8]>> Dentries<B> {
    /// The names of a dentry block. Bytes that are missing from its 4,096 read as 0.
    #[must_use]
    pub fn block(bytes: B) -> Self {
        invariant!(bytes.as_ref().len() == BLOCK_BYTES, "names lie in a block");
        Self { bytes, parts: Parts::BLOCK }
    }

    /// The names in an inode: `bytes` are its inline area ([`super::InodeLayout::inline_data`]).
    #[must_use]
    pub fn inline(bytes: B) -> Self {
        let parts = Parts::inline(bytes.as_ref().len());
        Self { bytes, parts }
    }

    /// How many slots there are.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.parts.slots
    }

    /// Whether a slot is taken; one beyond the last is not.
    #[must_use]
    pub fn is_taken(&self, slot: usize) -> bool {
        let byte = self.bytes.as_ref().get(slot / 8).copied().unwrap_or_default();
        slot < self.parts.slots && byte >> (slot % 8) & 1 == 1
    }

    /// The first slot from `from` on that is taken (`taken`) or free; the number of slots if there is none.
    fn next(&self, from: usize, taken: bool) -> usize {
        let mut slot = from;
        while slot < self.parts.slots {
            let byte = self.bytes.as_ref().get(slot / 8).copied().unwrap_or_default();
            let wanted = if taken { byte } else { !byte };
            let ahead = wanted >> (slot % 8);
            if ahead != 0 {
                return (slot + ahead.trailing_zeros() as usize).min(self.parts.slots);
            }
            slot = slot / 8 * 8 + 8;
        }
        self.parts.slots
    }

    /// The entry of a slot, whatever it says.
    #[must_use]
    pub fn raw(&self, slot: usize) -> RawDentry {
        if slot >= self.parts.slots {
            return RawDentry::default();
        }
        let at = self.parts.entries_at + slot * ENTRY_BYTES;
        RawDentry::read(self.bytes.as_ref().get(at..at + ENTRY_BYTES).unwrap_or_default())
    }

    /// The name that starts at a slot.
    ///
    /// # Errors
    /// An entry without a name, or with one that does not fit.
    pub fn entry(&self, slot: usize) -> Result<Dentry<'_>, Unsound> {
        let raw = self.raw(slot);
        let byte = self.parts.entries_at + slot.min(self.parts.slots) * ENTRY_BYTES + 8;
        let unsound = |what| Unsound { byte, what };
        let length = usize::from(raw.name_len);
        if length == 0 {
            return Err(unsound("entry without a name"));
        }
        if length > NAME_BYTES_MAX || slot + slots_of(length) > self.parts.slots {
            return Err(unsound("name does not fit its slots"));
        }
        let at = self.parts.names_at + slot * SLOT_BYTES;
        let name = self.bytes.as_ref().get(at..at + length);
        let name = name.ok_or_else(|| unsound("name is cut short"))?;
        let (hash, ino, file_type) = (raw.hash_code, Nid(raw.ino), raw.file_type);
        Ok(Dentry { slot, hash, ino, file_type, name })
    }

    /// All names from slot `from` on, and entries that are unsound; after one of these it goes on with the
    /// next slot.
    pub fn iter_from(&self, from: usize) -> impl Iterator<Item = Result<Dentry<'_>, Unsound>> {
        let mut slot = from;
        std::iter::from_fn(move || {
            slot = self.next(slot, true);
            if slot >= self.parts.slots {
                return None;
            }
            let entry = self.entry(slot);
            slot += entry.map_or(1, |entry| slots_of(entry.name.len()));
            Some(entry)
        })
    }

    /// All names, in the order of slots.
    pub fn iter(&self) -> impl Iterator<Item = Result<Dentry<'_>, Unsound>> {
        self.iter_from(0)
    }

    /// Looks for a name with its hash (`f2fs_find_target_dentry`).
    #[must_use]
    pub fn find(&self, name: &[u8], hash: u32) -> Option<Dentry<'_>> {
        let mut slot = 0;
        loop {
            slot = self.next(slot, true);
            if slot >= self.parts.slots {
                return None;
            }
            let raw = self.raw(slot);
            if raw.hash_code == hash && usize::from(raw.name_len) == name.len() {
                match self.entry(slot) {
                    Ok(entry) if entry.name == name => return Some(entry),
                    _ => {}
                }
            }
            slot += slots_of(raw.name_len.into()).max(1);
        }
    }

    /// The first slot of a run of `slots` free ones (`f2fs_room_for_filename`).
    #[must_use]
    pub fn room_for(&self, slots: usize) -> Option<usize> {
        let mut from = 0;
        loop {
            let start = self.next(from, false);
            if start >= self.parts.slots {
                return None;
            }
            let end = self.next(start, true);
            if end - start >= slots {
                return Some(start);
            }
            from = end + 1;
        }
    }

    /// Whether no slot is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next(0, true) >= self.parts.slots
    }

    /// Whether no name but "." and ".." is there (`f2fs_empty_dir`): the first two slots are those of a
    /// directory's first block, and of no other.
    #[must_use]
    pub fn is_empty_but_dots(&self) -> bool {
        self.next(2, true) >= self.parts.slots
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Dentries<B> {
    /// Writes a name at free slots that [`Dentries::room_for`] found (`f2fs_update_dentry`). What does not
    /// fit is not written.
    pub fn insert(&mut self, slot: usize, name: &[u8], hash: u32, ino: Nid, file_type: u8) {
        let slots = slots_of(name.len());
        let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && slot + slots <= self.parts.slots;
        invariant!(fits, "{} bytes fit at slot {slot}", name.len());
        if !fits {
            return;
        }
        let raw = RawDentry { hash_code: hash, ino: ino.0, name_len: name.len() as u16, file_type };
        let at = self.parts.entries_at + slot * ENTRY_BYTES;
        let bytes = self.bytes.as_mut();
        raw.write(bytes.get_mut(at..at + ENTRY_BYTES).unwrap_or_default());
        for more in 1..slots {
            put_u16(bytes, at + more * ENTRY_BYTES + 8, 0);
        }
        let at = self.parts.names_at + slot * SLOT_BYTES;
        if let Some(place) = bytes.get_mut(at..at + name.len()) {
            place.copy_from_slice(name);
        }
        (slot..slot + slots).for_each(|slot| self.mark(slot, true));
    }

    /// Lets a name lead to another inode (`f2fs_set_link`).
    pub fn set_target(&mut self, slot: usize, ino: Nid, file_type: u8) {
        let raw = RawDentry { ino: ino.0, file_type, ..self.raw(slot) };
        let at = self.parts.entries_at + slot * ENTRY_BYTES;
        if slot < self.parts.slots {
            raw.write(self.bytes.as_mut().get_mut(at..at + ENTRY_BYTES).unwrap_or_default());
        }
    }

    /// Takes away the name that starts at a slot: its bits are cleared, its bytes stay
    /// (`f2fs_delete_entry`).
    pub fn remove(&mut self, slot: usize) {
        let slots = slots_of(self.raw(slot).name_len.into());
        (slot..slot + slots).for_each(|slot| self.mark(slot, false));
    }

    /// Writes "." and ".." of a new directory to an empty view (`f2fs_do_make_empty_dir`).
    pub fn init_dots(&mut self, ino: Nid, parent: Nid) {
        self.insert(0, b".", name_hash(b"."), ino, file_type::DIR);
        self.insert(1, b"..", name_hash(b".."), parent, file_type::DIR);
    }

    fn mark(&mut self, slot: usize, taken: bool) {
        let bit = 1 << (slot % 8);
        if slot < self.parts.slots
            && let Some(byte) = self.bytes.as_mut().get_mut(slot / 8)
        {
            *byte = if taken { *byte | bit } else { *byte & !bit };
        }
    }
}

/// Buckets of a level of hashing (`dir_buckets`). `dir_level` is the directory's
/// ([`super::Inode::dir_level`]).
#[must_use]
pub const fn dir_buckets(level: u32, dir_level: u8) -> u32 {
    let doublings = level.saturating_add(dir_level as u32);
    if doublings < LEVELS_THAT_DOUBLE { 1 << doublings } else { 1 << (LEVELS_THAT_DOUBLE - 1) }
}

/// Blocks of a bucket (`bucket_blocks`).
#[must_use]
pub const fn bucket_blocks(level: u32) -> u32 {
    if level < LEVELS_THAT_DOUBLE { 2 } else { 4 }
}

/// The page of a directory at which a bucket of a level begins (`dir_block_index`). Levels beyond the last
/// begin where the last ends.
#[must_use]
pub fn dir_block_index(level: u32, dir_level: u8, bucket: u32) -> u64 {
    let blocks = |level, buckets: u32| u64::from(buckets) * u64::from(bucket_blocks(level));
    let below =
        (0..level.min(DIR_LEVELS_MAX)).map(|level| blocks(level, dir_buckets(level, dir_level)));
    below.sum::<u64>() + blocks(level, bucket)
}

#[cfg(test)]
mod tests;
