//! Inodes: a node block whose first bytes are the fields of a file, and whose rest is shared by extra
//! attributes, addresses, inline content and inline extended attributes. Follows `struct f2fs_inode` and
//! `fs/f2fs/inode.c` of Linux.
//!
//! - [`InodeLayout`] says which part of an inode is what. It is made from any bytes and never leads
//!   outside the 923 address words; [`check_inode`] says whether the bytes may be believed.
//! - Extra attributes that `extra_isize` leaves out read as 0 and are not written.
//! - The checksum covers the whole block, footer included, so it is sealed after the last change.

use super::node::{
    ADDRS_PER_INODE, AddrSlots, INODE_ADDRS_AT, NODE_FOOTER_AT, NodeBytes, NodeFooter, Unsound,
};
use super::{BlockAddr, ChecksumSeed, Feature, Features, INODE_CHECKSUM_AT};
use crate::wire::{put_u32, record, u16_at, u32_at};
use std::ops::Range;

/// Bytes of the longest name.
pub const NAME_BYTES_MAX: usize = 255;
/// Words that inline extended attributes take by default (`DEFAULT_INLINE_XATTR_ADDRS`).
pub const INLINE_XATTR_WORDS: u32 = 50;
/// Bytes of all extra attributes that are known (`F2FS_TOTAL_EXTRA_ATTR_SIZE`).
pub const EXTRA_BYTES_MAX: u32 = 36;
/// Words before inline data or inline dentries (`DEF_INLINE_RESERVED_SIZE`).
const INLINE_RESERVED_WORDS: u32 = 1;
/// Words that inline dentries need at least (`MIN_INLINE_DENTRY_SIZE`).
const INLINE_DENTRY_WORDS_MIN: u32 = 10;
/// Where the inline flags stand.
const INLINE_AT: usize = 0x3;
/// Where the generation stands.
const GENERATION_AT: usize = 0x44;
/// Where the size of extra attributes stands.
const EXTRA_ISIZE_AT: usize = 0x168;
/// Where the words of inline extended attributes are counted.
const INLINE_XATTR_SIZE_AT: usize = 0x16a;

/// Bits of [`Inode::inline`].
pub mod inline {
    /// Extended attributes in the last words of the inode.
    pub const XATTR: u8 = 0x1;
    /// Content in the inode.
    pub const DATA: u8 = 0x2;
    /// Names in the inode.
    pub const DENTRY: u8 = 0x4;
    /// The content is not empty.
    pub const DATA_EXIST: u8 = 0x8;
    /// "." and ".." are not stored.
    pub const DOTS: u8 = 0x10;
    /// The first words are extra attributes.
    pub const EXTRA_ATTR: u8 = 0x20;
    /// Cleaning leaves the file in its place.
    pub const PIN_FILE: u8 = 0x40;
    /// Blocks that compression saved were given back.
    pub const COMPRESS_RELEASED: u8 = 0x80;
}

/// Bits of [`Inode::advise`].
pub mod advise {
    /// Data are cold.
    pub const COLD: u8 = 0x1;
    /// The parent that the inode names may be another.
    pub const LOST_PINO: u8 = 0x2;
    /// Encrypted.
    pub const ENCRYPT: u8 = 0x4;
    /// The name is encrypted.
    pub const ENC_NAME: u8 = 0x8;
    /// Blocks are kept beyond the size.
    pub const KEEP_SIZE: u8 = 0x10;
    /// Data are hot.
    pub const HOT: u8 = 0x20;
    /// Guarded by a Merkle tree.
    pub const VERITY: u8 = 0x40;
}

/// Bits of [`Inode::flags`].
pub mod inode_flag {
    /// Compressed.
    pub const COMPRESSED: u32 = 0x4;
    /// Written synchronously.
    pub const SYNC: u32 = 0x8;
    /// Not changed at all.
    pub const IMMUTABLE: u32 = 0x10;
    /// Appended to only.
    pub const APPEND: u32 = 0x20;
    /// Reads leave no time.
    pub const NOATIME: u32 = 0x80;
    /// Directory that is written synchronously.
    pub const DIRSYNC: u32 = 0x1_0000;
    /// Files made in it belong to its project.
    pub const PROJINHERIT: u32 = 0x2000_0000;
    /// Names are compared without case.
    pub const CASEFOLD: u32 = 0x4000_0000;
}

/// Types of file, as in [`Inode::mode`].
pub mod mode {
    /// The bits of the type.
    pub const TYPE: u16 = 0xf000;
    /// Named pipe.
    pub const FIFO: u16 = 0x1000;
    /// Character device.
    pub const CHAR: u16 = 0x2000;
    /// Directory.
    pub const DIR: u16 = 0x4000;
    /// Block device.
    pub const BLOCK: u16 = 0x6000;
    /// Regular file.
    pub const REGULAR: u16 = 0x8000;
    /// Symbolic link.
    pub const SYMLINK: u16 = 0xa000;
    /// Socket.
    pub const SOCKET: u16 = 0xc000;
}

record! {
    /// The fields of an inode. Addresses and node numbers lie after them ([`InodeLayout`],
    /// [`super::inode_nid`]).
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Inode {
        /// Type and permissions.
        mode: u16 = 0x0,
        /// See [`advise`].
        advise: u8 = 0x2,
        /// See [`inline`].
        inline: u8 = 0x3,
        /// Owner.
        uid: u32 = 0x4,
        /// Group.
        gid: u32 = 0x8,
        /// Names.
        links: u32 = 0xc,
        /// Bytes.
        size: u64 = 0x10,
        /// Blocks of the file: data that are written or reserved, and nodes, the inode included.
        blocks: u64 = 0x18,
        /// Last access, in seconds.
        atime: u64 = 0x20,
        /// Last change of the inode, in seconds.
        ctime: u64 = 0x28,
        /// Last change of the content, in seconds.
        mtime: u64 = 0x30,
        /// Nanoseconds of the last access.
        atime_nsec: u32 = 0x38,
        /// Nanoseconds of the last change of the inode.
        ctime_nsec: u32 = 0x3c,
        /// Nanoseconds of the last change of the content.
        mtime_nsec: u32 = 0x40,
        /// Distinguishes uses of one inode number.
        generation: u32 = 0x44,
        /// Of a directory its levels of hashing; of a pinned file (16 bits) how often cleaning passed it.
        current_depth: u32 = 0x48,
        /// Node of extended attributes; 0: none.
        xattr_nid: u32 = 0x4c,
        /// See [`inode_flag`].
        flags: u32 = 0x50,
        /// Inode of the directory that names the file.
        pino: u32 = 0x54,
        /// Bytes of the name.
        namelen: u32 = 0x58,
        /// The name, for recovery.
        name: [u8; 255] = 0x5c,
        /// The level at which hashing of the directory begins.
        dir_level: u8 = 0x15b,
        /// Largest extent: first page.
        ext_fofs: u32 = 0x15c,
        /// Its first block.
        ext_blk: u32 = 0x160,
        /// Its blocks; 0: none.
        ext_len: u32 = 0x164,
    }
}

record! {
    /// The extra attributes of an inode.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct ExtraAttrs {
        /// Bytes of the extra attributes.
        extra_isize: u16 = 0x168,
        /// Words of inline extended attributes.
        inline_xattr_size: u16 = 0x16a,
        /// Project.
        projid: u32 = 0x16c,
        /// crc32 of the block.
        inode_checksum: u32 = 0x170,
        /// When the file was made, in seconds.
        crtime: u64 = 0x174,
        /// Nanoseconds of that.
        crtime_nsec: u32 = 0x17c,
        /// Blocks that compression saves.
        compr_blocks: u64 = 0x180,
        /// Algorithm of compression.
        compress_algorithm: u8 = 0x188,
        /// Logarithm of the pages of a cluster.
        log_cluster_size: u8 = 0x189,
    }
}

/// The features of a volume that decide how its inodes are read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct InodeFeatures {
    /// `extra_attr`.
    pub extra_attr: bool,
    /// `flexible_inline_xattr`.
    pub flexible_inline_xattr: bool,
    /// `inode_checksum`.
    pub inode_checksum: bool,
}

impl From<Features> for InodeFeatures {
    fn from(features: Features) -> Self {
        Self {
            extra_attr: features.has(Feature::EXTRA_ATTR),
            flexible_inline_xattr: features.has(Feature::FLEXIBLE_INLINE_XATTR),
            inode_checksum: features.has(Feature::INODE_CHECKSUM),
        }
    }
}

/// Which part of an inode is what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InodeLayout {
    /// Words of extra attributes, at the front of the address words.
    extra: u32,
    /// Words kept for extended attributes, at their end.
    xattr: u32,
    /// Whether extended attributes lie there (`F2FS_INLINE_XATTR`).
    has_xattr: bool,
}

impl InodeLayout {
    /// The layout of a new inode: so many bytes of extra attributes, so many words of inline extended
    /// attributes, kept and used if `has_xattr`.
    #[must_use]
    pub fn new(extra_bytes: u32, xattr_words: u32, has_xattr: bool) -> Self {
        let extra = (extra_bytes / 4).min(ADDRS_PER_INODE);
        Self { extra, xattr: xattr_words.min(ADDRS_PER_INODE - extra), has_xattr }
    }

    /// The layout that the bytes of an inode ask for, cut to what fits.
    #[must_use]
    pub fn of(node: &NodeBytes, features: InodeFeatures) -> Self {
        let flags = node[INLINE_AT];
        let extra = match flags & inline::EXTRA_ATTR {
            0 => 0,
            _ => u32::from(u16_at(node, EXTRA_ISIZE_AT)),
        };
        let xattr = match features.flexible_inline_xattr {
            true => u32::from(u16_at(node, INLINE_XATTR_SIZE_AT)),
            false if flags & (inline::XATTR | inline::DENTRY) != 0 => INLINE_XATTR_WORDS,
            false => 0,
        };
        Self::new(extra, xattr, flags & inline::XATTR != 0)
    }

    /// Bytes of extra attributes.
    #[must_use]
    pub const fn extra_bytes(self) -> u32 {
        4 * self.extra
    }

    /// The addresses of data.
    #[must_use]
    pub const fn addrs(self) -> AddrSlots {
        AddrSlots::of_inode(self.extra, self.xattr)
    }

    /// How many addresses there are (`ADDRS_PER_INODE`).
    #[must_use]
    pub const fn addr_count(self) -> u32 {
        self.addrs().count()
    }

    /// Where inline data or inline dentries lie (`inline_data_addr`, `MAX_INLINE_DATA`).
    #[must_use]
    pub const fn inline_data(self) -> Range<usize> {
        let words = self.addr_count().saturating_sub(INLINE_RESERVED_WORDS);
        let at = INODE_ADDRS_AT + 4 * (self.extra + INLINE_RESERVED_WORDS) as usize;
        at..at + 4 * words as usize
    }

    /// Bytes of the largest content that stays in the inode.
    #[must_use]
    pub fn inline_data_bytes(self) -> usize {
        self.inline_data().len()
    }

    /// Where inline extended attributes lie (`inline_xattr_addr`); empty without them.
    #[must_use]
    pub const fn inline_xattr(self) -> Range<usize> {
        let end = INODE_ADDRS_AT + 4 * ADDRS_PER_INODE as usize;
        let words = if self.has_xattr { self.xattr } else { 0 };
        end - 4 * words as usize..end
    }

    /// Whether extra attributes reach byte `end` of the block (`F2FS_FITS_IN_INODE`).
    const fn reaches(self, end: usize) -> bool {
        INODE_ADDRS_AT + self.extra_bytes() as usize >= end
    }
}

impl Default for Inode {
    fn default() -> Self {
        Self::read(&[])
    }
}

impl Inode {
    /// Reads the fields of an inode, whatever they say ([`check_inode`]).
    #[must_use]
    pub fn parse(node: &NodeBytes) -> Self {
        Self::read(node)
    }

    /// Writes the fields over the bytes of an inode; the checksum is that of before.
    pub fn encode(&self, node: &mut NodeBytes) {
        self.write(node);
    }

    /// The type of file, one of [`mode`]'s.
    #[must_use]
    pub const fn file_type(&self) -> u16 {
        self.mode & mode::TYPE
    }

    /// Whether it is a directory.
    #[must_use]
    pub const fn is_dir(&self) -> bool {
        self.file_type() == mode::DIR
    }

    /// Whether it is a regular file.
    #[must_use]
    pub const fn is_regular(&self) -> bool {
        self.file_type() == mode::REGULAR
    }

    /// Whether it is a symbolic link.
    #[must_use]
    pub const fn is_symlink(&self) -> bool {
        self.file_type() == mode::SYMLINK
    }

    /// Whether a bit of [`inline`] is set.
    #[must_use]
    pub const fn has_inline(&self, flag: u8) -> bool {
        self.inline & flag != 0
    }

    /// The name that the inode keeps for recovery; cut to what there is.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name[..(self.namelen as usize).min(NAME_BYTES_MAX)]
    }

    /// Changes the name that the inode keeps; one that is too long is cut. Bytes after it stay.
    pub fn set_name(&mut self, name: &[u8]) {
        let length = name.len().min(NAME_BYTES_MAX);
        self.name[..length].copy_from_slice(&name[..length]);
        self.namelen = length as u32;
    }
}

impl ExtraAttrs {
    /// Reads the extra attributes of an inode; all 0 without them.
    #[must_use]
    pub fn parse(node: &NodeBytes, layout: InodeLayout) -> Self {
        Self::read(&node[..INODE_ADDRS_AT + layout.extra_bytes() as usize])
    }

    /// Writes those extra attributes that the layout has; the checksum is that of before.
    pub fn encode(&self, node: &mut NodeBytes, layout: InodeLayout) {
        let kept = u32_at(node, INODE_CHECKSUM_AT);
        let end = INODE_ADDRS_AT + layout.extra_bytes() as usize;
        self.write(&mut node[..end]);
        put_u32(&mut node[..end], INODE_CHECKSUM_AT, kept);
    }
}

/// Major and minor number of a device (`__get_inode_rdev`).
#[must_use]
pub fn device_number(node: &NodeBytes, layout: InodeLayout) -> (u32, u32) {
    let word = |slot| layout.addrs().get(node, slot).0;
    match (word(0), word(1)) {
        (0, new) => (new >> 8 & 0xfff, new & 0xff | new >> 12 & 0xfff00),
        (old, _) => (old >> 8 & 0xff, old & 0xff),
    }
}

/// Whether an inode carries a checksum (`f2fs_enable_inode_chksum`).
fn is_summed(node: &NodeBytes, features: InodeFeatures) -> bool {
    let footer = NodeFooter::parse(node);
    features.inode_checksum
        && footer.is_inode()
        && node[INLINE_AT] & inline::EXTRA_ATTR != 0
        && InodeLayout::of(node, features).reaches(INODE_CHECKSUM_AT + 4)
}

/// The checksum of an inode. `seed` is the volume's (crc32 of its UUID).
fn computed(node: &NodeBytes, seed: u32) -> u32 {
    ChecksumSeed(seed).inode(node, NodeFooter::parse(node).ino, u32_at(node, GENERATION_AT))
}

/// Writes the checksum of an inode, if it carries one. `seed` is the volume's (crc32 of its UUID).
pub fn seal_inode(node: &mut NodeBytes, features: InodeFeatures, seed: u32) {
    if is_summed(node, features) {
        let sum = computed(node, seed);
        put_u32(node, INODE_CHECKSUM_AT, sum);
    }
}

/// The checksum that an inode carries and the one that its bytes give; `None` if it carries none.
#[must_use]
pub fn inode_checksums(node: &NodeBytes, features: InodeFeatures, seed: u32) -> Option<(u32, u32)> {
    is_summed(node, features).then(|| (u32_at(node, INODE_CHECKSUM_AT), computed(node, seed)))
}

/// Whether a volume with these features may use an inode (`sanity_check_inode`, and what
/// `do_read_inode` refuses). `is_data` says whether an address is a block of the main area.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_inode(
    node: &NodeBytes,
    features: InodeFeatures,
    is_data: impl Fn(BlockAddr) -> bool,
) -> Result<(), Unsound> {
    let unsound = |byte, what| Err(Unsound { byte, what });
    let (inode, footer) = (Inode::parse(node), NodeFooter::parse(node));
    if inode.blocks == 0 {
        return unsound(0x18, "has no blocks");
    }
    if !footer.is_inode() {
        return unsound(NODE_FOOTER_AT, "is the node of another inode");
    }
    check_sizes(node, features)?;
    let last = inode.ext_blk.checked_add(inode.ext_len.saturating_sub(1));
    let in_main = |addr: Option<u32>| addr.is_some_and(|addr| is_data(BlockAddr(addr)));
    if inode.ext_len != 0 && !(in_main(Some(inode.ext_blk)) && in_main(last)) {
        return unsound(0x15c, "has its largest extent outside the main area");
    }
    if inode.has_inline(inline::DATA) && !inode.is_regular() && !inode.is_symlink() {
        return unsound(INLINE_AT, "has inline data, but is neither a file nor a symbolic link");
    }
    if inode.has_inline(inline::DENTRY) && !inode.is_dir() {
        return unsound(INLINE_AT, "has inline dentries, but is not a directory");
    }
    match inode.file_type() {
        mode::FIFO
        | mode::CHAR
        | mode::DIR
        | mode::BLOCK
        | mode::REGULAR
        | mode::SYMLINK
        | mode::SOCKET => Ok(()),
        _ => unsound(0, "has an unknown file type"),
    }
}

/// Whether extra attributes and inline extended attributes have sizes that the features allow.
fn check_sizes(node: &NodeBytes, features: InodeFeatures) -> Result<(), Unsound> {
    const XATTR_WORDS_MAX: u32 =
        ADDRS_PER_INODE - EXTRA_BYTES_MAX / 4 - INLINE_RESERVED_WORDS - INLINE_DENTRY_WORDS_MIN;
    let unsound = |byte, what| Err(Unsound { byte, what });
    let flags = node[INLINE_AT];
    let has_extra = flags & inline::EXTRA_ATTR != 0;
    if features.flexible_inline_xattr && !has_extra {
        return unsound(INLINE_AT, "has no extra attributes, which flexible_inline_xattr asks for");
    }
    if !has_extra {
        return Ok(());
    }
    if !features.extra_attr {
        return unsound(INLINE_AT, "has extra attributes without the feature extra_attr");
    }
    let extra = u32::from(u16_at(node, EXTRA_ISIZE_AT));
    if extra > EXTRA_BYTES_MAX || !extra.is_multiple_of(4) {
        return unsound(EXTRA_ISIZE_AT, "size of extra attributes is out of range");
    }
    let xattr = u32::from(u16_at(node, INLINE_XATTR_SIZE_AT));
    let is_used = features.flexible_inline_xattr && flags & inline::XATTR != 0;
    if is_used && !(1..=XATTR_WORDS_MAX).contains(&xattr) {
        return unsound(INLINE_XATTR_SIZE_AT, "size of inline extended attributes is out of range");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
