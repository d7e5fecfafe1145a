//! Extended attributes: a header and entries, one after the other, over the inline area of the inode and
//! the node of extended attributes as if they were one piece. Follows Linux's `fs/f2fs/xattr.{h,c}`.
//!
//! - [`XattrArea`] is that piece in memory. The inode's part is written back always, the node's only if
//!   [`XattrArea::needs_node`] says so: what fits the inode has no node.
//! - A changed attribute moves to the end. Entries are 4-byte aligned, and a word of 0 ends them, unless
//!   they fill all the room.
//! - A list that does not end within the bytes that are stored is unsound: reading reports it, and
//!   nothing is changed.

use super::inode::NAME_BYTES_MAX;
use super::node::{NODE_FOOTER_AT, NodeBytes, Unsound};
use crate::wire::record;
use std::ops::Range;
use thiserror::Error;

/// Magic of the header.
pub const XATTR_MAGIC: u32 = 0xf2f5_2011;
/// Bytes of the header; entries follow.
pub const XATTR_HEADER_BYTES: usize = 24;
/// Bytes of attributes in the node of extended attributes (`VALID_XATTR_BLOCK_SIZE`).
pub const XATTR_NODE_BYTES: usize = NODE_FOOTER_AT;
/// Bytes of an entry before its name.
const ENTRY_BYTES: usize = 4;

/// Prefixes of names, by their number on disk. An access control list has no name after its prefix.
const PREFIXES: [(u8, &str); 7] = [
    (1, "user."),
    (2, "system.posix_acl_access"),
    (3, "system.posix_acl_default"),
    (4, "trusted."),
    (5, "lustre."),
    (6, "security."),
    (7, "system.advise"),
];

record! {
    /// What attributes begin with.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct XattrHeader {
        /// 0xf2f52011; anything else: there never was an attribute.
        magic: u32 = 0x0,
        /// Inodes that share the attributes: 1.
        refcount: u32 = 0x4,
    }
}

record! {
    /// What an attribute begins with; name and value follow.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct RawXattr {
        /// Number of the name's prefix.
        name_index: u8 = 0x0,
        /// Bytes of the name.
        name_len: u8 = 0x1,
        /// Bytes of the value.
        value_size: u16 = 0x2,
    }
}

/// An attribute and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Xattr<'a> {
    /// Number of the name's prefix.
    pub index: u8,
    /// The name after the prefix.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The bytes that it takes, filled up to 4.
    pub at: Range<usize>,
}

/// Why an attribute is not set.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum XattrError {
    /// The name is longer than 255 bytes (`ERANGE`).
    #[error("name of an extended attribute is too long")]
    NameTooLong,
    /// The attributes do not fit the inode and one node (`E2BIG`).
    #[error("no room for the extended attribute")]
    NoRoom,
    /// What is stored contradicts itself.
    #[error("{0}")]
    Unsound(Unsound),
}

/// The index of a whole name's prefix, and the name after it; `None` if no prefix fits.
#[must_use]
pub fn split_xattr_name(whole: &[u8]) -> Option<(u8, &[u8])> {
    PREFIXES.iter().find_map(|(index, prefix)| {
        let name = whole.strip_prefix(prefix.as_bytes())?;
        (prefix.ends_with('.') != name.is_empty()).then_some((*index, name))
    })
}

/// The whole name of an attribute; a prefix that is not known stands as its number.
#[must_use]
pub fn whole_xattr_name(index: u8, name: &[u8]) -> Vec<u8> {
    let known = PREFIXES.iter().find(|(known, _)| *known == index);
    let prefix = known.map_or_else(|| format!("{index}:"), |(_, prefix)| (*prefix).to_owned());
    [prefix.as_bytes(), name].concat()
}

/// All extended attributes of an inode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XattrArea {
    /// The inode's part, the node's, and a word of 0.
    bytes: Vec<u8>,
    inline_bytes: usize,
    /// Whether the node's part holds attributes, or has since one was set that the inode had no room for.
    has_node: bool,
}

impl XattrArea {
    /// The attributes of an inode with this inline area ([`super::InodeLayout::inline_xattr`]) and this
    /// node of extended attributes, if it has one.
    #[must_use]
    pub fn new(inline: &[u8], node: Option<&NodeBytes>) -> Self {
        let mut bytes = inline.to_vec();
        bytes.extend_from_slice(node.map_or(&[], |node| &node[..XATTR_NODE_BYTES]));
        bytes.resize(inline.len() + XATTR_NODE_BYTES + ENTRY_BYTES, 0);
        let mut area = Self { bytes, inline_bytes: inline.len(), has_node: node.is_some() };
        if XattrHeader::read(&area.bytes).magic != XATTR_MAGIC {
            XattrHeader { magic: XATTR_MAGIC, refcount: 1 }.write(&mut area.bytes);
        }
        area
    }

    /// Bytes that attributes may take in all (`MIN_OFFSET`).
    const fn room(&self) -> usize {
        self.inline_bytes + XATTR_NODE_BYTES
    }

    /// Bytes that are stored (`XATTR_SIZE`): entries may not go beyond.
    const fn stored(&self) -> usize {
        if self.has_node { self.room() } else { self.inline_bytes }
    }

    /// The attributes in their order. The first error ends them.
    pub fn iter(&self) -> impl Iterator<Item = Result<Xattr<'_>, Unsound>> {
        let mut next = Some(XATTR_HEADER_BYTES);
        std::iter::from_fn(move || {
            let at = next.take()?;
            let entry = self.entry(at)?;
            next = entry.as_ref().ok().map(|entry| entry.at.end);
            Some(entry)
        })
    }

    /// The attribute at a byte; `None` at the end of the list.
    fn entry(&self, at: usize) -> Option<Result<Xattr<'_>, Unsound>> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if rest.first_chunk::<ENTRY_BYTES>().is_none_or(|word| *word == [0; ENTRY_BYTES]) {
            return None;
        }
        let raw = RawXattr::read(rest);
        let name_end = ENTRY_BYTES + usize::from(raw.name_len);
        let value_end = name_end + usize::from(raw.value_size);
        let end = at + value_end.next_multiple_of(4);
        let (name, value) = (rest.get(ENTRY_BYTES..name_end), rest.get(name_end..value_end));
        Some(match (name, value) {
            (Some(name), Some(value)) if end <= self.stored() => {
                Ok(Xattr { index: raw.name_index, name, value, at: at..end })
            }
            _ => Err(Unsound { byte: at, what: "extended attribute runs past the end" }),
        })
    }

    /// Looks for an attribute.
    ///
    /// # Errors
    /// A list that is unsound before the attribute.
    pub fn get(&self, index: u8, name: &[u8]) -> Result<Option<Xattr<'_>>, Unsound> {
        let is_it = |entry: &Result<Xattr<'_>, Unsound>| match entry {
            Ok(entry) => entry.index == index && entry.name == name,
            Err(_) => true,
        };
        self.iter().find(is_it).transpose()
    }

    /// Where the list ends.
    fn end(&self) -> Result<usize, Unsound> {
        self.iter().try_fold(XATTR_HEADER_BYTES, |_, entry| entry.map(|entry| entry.at.end))
    }

    /// Sets an attribute, new or not. Returns whether anything changed: an equal value changes nothing.
    ///
    /// # Errors
    /// A name too long, too little room, an unsound list. Nothing is changed then.
    pub fn set(&mut self, index: u8, name: &[u8], value: &[u8]) -> Result<bool, XattrError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(XattrError::NameTooLong);
        }
        let end = self.end().map_err(XattrError::Unsound)?;
        let old = self.get(index, name).map_err(XattrError::Unsound)?;
        if old.as_ref().is_some_and(|old| old.value == value) {
            return Ok(false);
        }
        let old = old.map(|old| old.at);
        let bytes = (ENTRY_BYTES + name.len() + value.len()).next_multiple_of(4);
        let free = self.room().saturating_sub(end) + old.as_ref().map_or(0, Range::len);
        if bytes > free || value.len() > usize::from(u16::MAX) {
            return Err(XattrError::NoRoom);
        }
        let at = end - old.as_ref().map_or(0, Range::len);
        if let Some(old) = old {
            self.cut(old, end);
        }
        let raw = RawXattr {
            name_index: index,
            name_len: name.len() as u8,
            value_size: value.len() as u16,
        };
        let place = &mut self.bytes[at..at + bytes];
        raw.write(place);
        place[ENTRY_BYTES..][..name.len()].copy_from_slice(name);
        place[ENTRY_BYTES + name.len()..][..value.len()].copy_from_slice(value);
        // What lies after the end of a list is no attribute, whatever it was.
        self.bytes[at + bytes..].fill(0);
        // From here on the room of the node counts, whether the inode has one yet or not.
        self.has_node |= at + bytes > self.inline_bytes;
        Ok(true)
    }

    /// Takes an attribute away. Returns whether it was there.
    ///
    /// # Errors
    /// An unsound list; nothing is changed then.
    pub fn remove(&mut self, index: u8, name: &[u8]) -> Result<bool, Unsound> {
        let end = self.end()?;
        let Some(old) = self.get(index, name)?.map(|old| old.at) else { return Ok(false) };
        self.cut(old, end);
        Ok(true)
    }

    /// Moves what follows `old` up, and clears what becomes free before `end`.
    fn cut(&mut self, old: Range<usize>, end: usize) {
        self.bytes.copy_within(old.end..end, old.start);
        self.bytes[end - old.len()..end].fill(0);
    }

    /// Whether the attributes and the word of 0 that ends them take more than the inode's part. The kernel does not count
    /// that word (`hsize > inline_size`); but roll-forward keeps the node that the last checkpoint has, and a list that
    /// does not end before it would go on there.
    ///
    /// # Errors
    /// An unsound list.
    pub fn needs_node(&self) -> Result<bool, Unsound> {
        Ok(self.end()? + ENTRY_BYTES > self.inline_bytes)
    }

    /// The inode's part, to be written back to its inline area.
    #[must_use]
    pub fn inline_part(&self) -> &[u8] {
        &self.bytes[..self.inline_bytes]
    }

    /// Writes the node's part; the footer stays.
    pub fn write_node(&self, node: &mut NodeBytes) {
        let part = &self.bytes[self.inline_bytes..self.room()];
        node[..XATTR_NODE_BYTES].copy_from_slice(part);
    }
}

#[cfg(test)]
mod tests;
