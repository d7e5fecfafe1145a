//! Extended attributes, behind the fields of an inode and in a separate block.
//! Source: Documentation/filesystems/ext4/attributes.rst.
//!
//! Attributes are read and written all at once: a region is encoded again from the list.

use super::BLOCK_BYTES;
use super::checksum::CsumSeed;
use super::error::{FormatError, Place};
use super::inode::INODE_BYTES_OLD;
use crate::wire::{put_u16, put_u32, record, u16_at, u32_at};
use std::ops::Range;

/// Magic of both kinds of region.
pub const XATTR_MAGIC: u32 = 0xea02_0000;

const ENTRY_BYTES: usize = 16;
/// Bytes of a block before its entries, and of the region in an inode.
const BLOCK_HEAD_BYTES: usize = 32;
const BODY_HEAD_BYTES: usize = 4;

/// Prefixes of names, by their number on disk.
const PREFIXES: [(u8, &str); 6] = [
    (2, "system.posix_acl_access"),
    (3, "system.posix_acl_default"),
    (1, "user."),
    (4, "trusted."),
    (6, "security."),
    (7, "system."),
];

/// An attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Xattr {
    /// Number of the name's prefix.
    pub index: u8,
    /// The name behind the prefix.
    pub name: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

impl Xattr {
    /// An attribute by its whole name; `None` if no prefix fits.
    #[must_use]
    pub fn new(whole: &[u8], value: &[u8]) -> Option<Self> {
        let (index, name) = PREFIXES.iter().find_map(|(index, prefix)| {
            let name = whole.strip_prefix(prefix.as_bytes())?;
            (prefix.ends_with('.') || name.is_empty()).then_some((*index, name))
        })?;
        Some(Self { index, name: name.into(), value: value.into() })
    }

    /// The whole name; a prefix that is not known stands as its number.
    #[must_use]
    pub fn whole_name(&self) -> Vec<u8> {
        let known = PREFIXES.iter().find(|(index, _)| *index == self.index);
        let prefix = known.map_or_else(|| format!("{}:", self.index), |(_, p)| (*p).to_owned());
        [prefix.as_bytes(), &self.name].concat()
    }

    fn entry_bytes(&self) -> usize {
        ENTRY_BYTES + self.name.len().next_multiple_of(4)
    }

    fn value_bytes(&self) -> usize {
        self.value.len().next_multiple_of(4)
    }

    /// The hash that stands beside an attribute in a block.
    fn hash(&self) -> u32 {
        hash(&self.name, &self.value, u32::from)
    }
}

/// The hash of an attribute, given what a byte of its name counts.
fn hash(name: &[u8], value: &[u8], byte: impl Fn(u8) -> u32) -> u32 {
    let name = name.iter().fold(0_u32, |hash, &c| hash.rotate_left(5) ^ byte(c));
    let words = value.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    });
    words.fold(name, |hash, word| hash.rotate_left(16) ^ word)
}

/// An attribute where it stands: in a block, or in the region behind an inode's fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XattrEntry<'a> {
    /// Number of the name's prefix.
    pub index: u8,
    /// The name behind the prefix.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The hash that it says.
    pub hash: u32,
    /// Bytes of the region that the entry takes.
    pub entry_at: Range<usize>,
    /// Bytes of the region that the value takes, filled up.
    pub value_at: Range<usize>,
}

impl XattrEntry<'_> {
    fn to_xattr(&self) -> Xattr {
        Xattr { index: self.index, name: self.name.into(), value: self.value.into() }
    }
}

/// The attributes of a region where they stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XattrRegion<'a> {
    /// All bytes.
    pub bytes: &'a [u8],
    /// Bytes before the first entry.
    pub head_bytes: usize,
    /// The entries.
    pub entries: Vec<XattrEntry<'a>>,
}

impl XattrRegion<'_> {
    fn to_xattrs(&self) -> Vec<Xattr> {
        self.entries.iter().map(XattrEntry::to_xattr).collect()
    }

    /// Whether an entry's hash is that of its name and value, with what fills the value up. Characters of
    /// names were signed in older kernels.
    #[must_use]
    pub fn hash_holds(&self, entry: &XattrEntry<'_>) -> bool {
        let value = self.bytes.get(entry.value_at.clone()).unwrap_or(entry.value);
        let signed = |byte: u8| i32::from(byte as i8) as u32;
        [hash(entry.name, value, u32::from), hash(entry.name, value, signed)].contains(&entry.hash)
    }

    /// Where the four zero bytes behind the entries begin.
    #[must_use]
    pub fn end(&self) -> usize {
        self.entries.last().map_or(self.head_bytes, |entry| entry.entry_at.end)
    }
}

record! {
    /// What a block of attributes begins with.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct XattrHeader {
        /// 0xea020000.
        magic: u32 = 0x0,
        /// Inodes that share the block.
        refcount: u32 = 0x4,
        /// Always 1.
        blocks: u32 = 0x8,
        /// Of all attributes.
        hash: u32 = 0xc,
        /// crc32c of the block's address and content.
        checksum: u32 = 0x10,
    }
}

/// Reads a block of attributes: how many inodes share it, and the attributes.
///
/// # Errors
/// What no sound block holds. The checksum is apart ([`check_xattr_block`]).
pub fn parse_xattr_block(bytes: &[u8], place: Place) -> Result<(u32, Vec<Xattr>), FormatError> {
    xattr_block(bytes, place).map(|(refcount, region)| (refcount, region.to_xattrs()))
}

/// The same, with where the attributes stand.
///
/// # Errors
/// Those of [`parse_xattr_block`].
pub fn xattr_block(bytes: &[u8], place: Place) -> Result<(u32, XattrRegion<'_>), FormatError> {
    let header = XattrHeader::read(bytes);
    if header.magic != XATTR_MAGIC || header.blocks != 1 || header.refcount == 0 {
        return Err(FormatError::corrupt(place, 0, "is not an attribute block"));
    }
    Ok((header.refcount, parse_entries(bytes, BLOCK_HEAD_BYTES, 0, place)?))
}

/// Writes a block of attributes, without its checksum. Whether they fit.
#[must_use]
pub fn encode_xattr_block(bytes: &mut [u8; BLOCK_BYTES], refcount: u32, xattrs: &[Xattr]) -> bool {
    let mut sorted: Vec<&Xattr> = xattrs.iter().collect();
    sorted.sort_by(|a, b| order(a).cmp(&order(b)));
    bytes.fill(0);
    let hashes = |hash: u32, xattr: &&Xattr| hash.rotate_left(16) ^ xattr.hash();
    let nothing_hashed = sorted.iter().any(|xattr| xattr.hash() == 0);
    let hash = if nothing_hashed { 0 } else { sorted.iter().fold(0, hashes) };
    XattrHeader { magic: XATTR_MAGIC, refcount, blocks: 1, hash, checksum: 0 }.write(bytes);
    encode_entries(bytes, BLOCK_HEAD_BYTES, 0, &sorted, Xattr::hash)
}

/// The order of attributes in a block.
fn order(xattr: &Xattr) -> (u8, usize, &[u8]) {
    (xattr.index, xattr.name.len(), &xattr.name)
}

/// Writes the checksum of a block of attributes at this address.
pub fn seal_xattr_block(bytes: &mut [u8; BLOCK_BYTES], block: u64, seed: Option<CsumSeed>) {
    if let Some(seed) = seed {
        let computed = seed.xattr_block(block, bytes);
        put_u32(bytes, 0x10, computed);
    }
}

/// Whether the checksum of a block of attributes at this address holds.
///
/// # Errors
/// [`FormatError::Checksum`].
pub fn check_xattr_block(
    bytes: &[u8; BLOCK_BYTES],
    block: u64,
    seed: Option<CsumSeed>,
    place: Place,
) -> Result<(), FormatError> {
    let Some(seed) = seed else { return Ok(()) };
    FormatError::checksum(place, u32_at(bytes, 0x10), seed.xattr_block(block, bytes))
}

/// Reads the attributes behind the fields of an inode, given all its bytes.
///
/// # Errors
/// What no sound region holds.
pub fn parse_inode_xattrs(
    inode: &[u8],
    extra_isize: u16,
    place: Place,
) -> Result<Vec<Xattr>, FormatError> {
    let region = inode_xattrs(inode, extra_isize, place)?;
    Ok(region.map_or_else(Vec::new, |region| region.to_xattrs()))
}

/// The same, with where the attributes stand; `None` if there is no region for any.
///
/// # Errors
/// Those of [`parse_inode_xattrs`].
pub fn inode_xattrs(
    inode: &[u8],
    extra_isize: u16,
    place: Place,
) -> Result<Option<XattrRegion<'_>>, FormatError> {
    let at = INODE_BYTES_OLD + usize::from(extra_isize);
    // Without extra fields, Linux takes all behind the old ones for unused.
    let region = inode.get(at..).filter(|_| extra_isize > 0).unwrap_or_default();
    let has_any = u32_at(region, 0) == XATTR_MAGIC;
    has_any.then(|| parse_entries(region, BODY_HEAD_BYTES, BODY_HEAD_BYTES, place)).transpose()
}

/// Writes the attributes behind the fields of an inode. Whether they fit; if not, nothing is changed.
/// The inode's checksum covers them.
#[must_use]
pub fn encode_inode_xattrs(inode: &mut [u8], extra_isize: u16, xattrs: &[Xattr]) -> bool {
    if extra_isize == 0 {
        return xattrs.is_empty();
    }
    let at = INODE_BYTES_OLD + usize::from(extra_isize);
    let mut region = inode.get(at..).unwrap_or_default().to_vec();
    region.fill(0);
    let all: Vec<&Xattr> = xattrs.iter().collect();
    if !all.is_empty() {
        put_u32(&mut region, 0, XATTR_MAGIC);
        if !encode_entries(&mut region, BODY_HEAD_BYTES, BODY_HEAD_BYTES, &all, |_| 0) {
            return false;
        }
    }
    let len = region.len();
    inode[at..at + len].copy_from_slice(&region);
    true
}

/// Entries begin behind the head; their values' offsets count from `base`.
fn parse_entries(
    bytes: &[u8],
    head_bytes: usize,
    base: usize,
    place: Place,
) -> Result<XattrRegion<'_>, FormatError> {
    let mut region = XattrRegion { bytes, head_bytes, entries: Vec::new() };
    loop {
        let at = region.end();
        let head = bytes.get(at..).filter(|rest| rest.len() >= 4);
        let head = head.ok_or(FormatError::corrupt(place, at, "attributes do not end"))?;
        if u32_at(head, 0) == 0 {
            return Ok(region);
        }
        region.entries.push(parse_entry(bytes, at, base, place)?);
    }
}

fn parse_entry(
    region: &[u8],
    at: usize,
    base: usize,
    place: Place,
) -> Result<XattrEntry<'_>, FormatError> {
    let corrupt = |what| FormatError::corrupt(place, at, what);
    let head = &region[at..];
    let name_end = ENTRY_BYTES + usize::from(head[0]);
    let name = head.get(ENTRY_BYTES..name_end).ok_or(corrupt("name does not fit"))?;
    if u32_at(head, 4) != 0 {
        return Err(FormatError::Incompatible { place, what: "ea_inode is not supported".into() });
    }
    let from = base + usize::from(u16_at(head, 2));
    let len = u32_at(head, 8) as usize;
    let value = if len == 0 {
        Some(&[][..])
    } else {
        from.checked_add(len).and_then(|end| region.get(from..end))
    };
    Ok(XattrEntry {
        index: head[1],
        name,
        value: value.ok_or(corrupt("value does not fit"))?,
        hash: u32_at(head, 12),
        entry_at: at..at + name_end.next_multiple_of(4),
        value_at: from..from + len.next_multiple_of(4),
    })
}

/// Entries from `at` on, values from the end down; four zero bytes stay between them.
fn encode_entries(
    region: &mut [u8],
    mut at: usize,
    base: usize,
    xattrs: &[&Xattr],
    hash: impl Fn(&Xattr) -> u32,
) -> bool {
    let need: usize = xattrs.iter().map(|x| x.entry_bytes() + x.value_bytes()).sum();
    if at + need + 4 > region.len() {
        return false;
    }
    let mut value_at = region.len();
    for xattr in xattrs {
        value_at -= xattr.value_bytes();
        region[value_at..value_at + xattr.value.len()].copy_from_slice(&xattr.value);
        let entry = &mut region[at..at + xattr.entry_bytes()];
        entry[0] = xattr.name.len() as u8;
        entry[1] = xattr.index;
        put_u16(entry, 2, if xattr.value.is_empty() { 0 } else { (value_at - base) as u16 });
        put_u32(entry, 8, xattr.value.len() as u32);
        put_u32(entry, 12, hash(xattr));
        entry[ENTRY_BYTES..ENTRY_BYTES + xattr.name.len()].copy_from_slice(&xattr.name);
        at += xattr.entry_bytes();
    }
    true
}
