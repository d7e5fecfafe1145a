//! Descriptor blocks: a tag for each of the copies that follow, naming its home block.

use super::{Checksums, Codec, HEADER_BYTES, Header, Kind, be32, put32};
use crate::ext4::format::{after_block, crc32c, of_pattern};
use crate::ext4::journal::tid::Tid;
use nandscape_block::{SectorBytes, SectorData};

/// Bytes of the UUID behind the first tag.
const UUID_BYTES: usize = 16;
const ESCAPED: u32 = 1;
const SAME_UUID: u32 = 2;
const LAST: u32 = 8;

/// Where one copy belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// The home block.
    pub block: u64,
    /// The copy's first word is the magic, and zeroes in the log.
    pub escaped: bool,
    /// Of the copy, as many bits of it as the tag keeps; 0 without checksums.
    pub checksum: u32,
}

impl Tag {
    /// The tag of a copy as it lies in the log.
    #[must_use]
    pub fn new(codec: &Codec, tid: Tid, block: u64, copy: &SectorData, escaped: bool) -> Self {
        let sum = codec.copy_register(tid).and_then(|register| sum(copy, register));
        Self::summed(codec, block, sum, escaped)
    }

    /// The same, with the copy's CRC-32C from [`Codec::copy_register`] on.
    pub(in crate::ext4::journal) fn summed(
        codec: &Codec,
        block: u64,
        sum: Option<u32>,
        escaped: bool,
    ) -> Self {
        let mask = if codec.checksums == Checksums::V2 { 0xffff } else { u32::MAX };
        Self { block, escaped, checksum: sum.unwrap_or(0) & mask }
    }

    /// Whether a copy read from the log is the one that was tagged, as far as the checksum shows.
    #[must_use]
    pub fn holds(&self, codec: &Codec, tid: Tid, copy: &SectorData) -> bool {
        *self == Self::new(codec, tid, self.block, copy, self.escaped)
    }
}

/// The CRC-32C of a content from a register on; none of what is not kept.
pub(in crate::ext4::journal) fn sum(content: &SectorData, register: u32) -> Option<u32> {
    match content {
        SectorData::Bytes(bytes) => Some(crc32c(register, &bytes[..])),
        SectorData::Tag(tag) => Some(after_block(register, of_pattern(*tag))),
        other => other.expand().map(|bytes| crc32c(register, &bytes[..])),
    }
}

impl Codec {
    /// Copies that one descriptor describes. The kernel ends a descriptor when another tag and
    /// another UUID would not fit, so up to 16 bytes stay free.
    #[must_use]
    pub const fn descriptor_copies(&self) -> usize {
        let room = self.records_end() - HEADER_BYTES - UUID_BYTES;
        (room - UUID_BYTES) / self.tag_bytes()
    }
}

/// A descriptor block in the making.
pub struct Descriptor<'a> {
    codec: &'a Codec,
    block: &'a mut SectorBytes,
    /// Where the next tag goes.
    at: usize,
    /// Where the last one went.
    last: usize,
}

impl<'a> Descriptor<'a> {
    /// One without tags, out of zeroes.
    #[must_use]
    pub fn new(codec: &'a Codec, tid: Tid, block: &'a mut SectorBytes) -> Self {
        Header { kind: Kind::Descriptor, tid }.put(block);
        Self { codec, block, at: HEADER_BYTES, last: HEADER_BYTES }
    }

    /// Adds a tag. At most [`Codec::descriptor_copies`] fit.
    pub fn push(&mut self, tag: &Tag) {
        let first = self.at == HEADER_BYTES;
        let same = if first { 0 } else { SAME_UUID };
        self.put(tag, same | if tag.escaped { ESCAPED } else { 0 });
        self.last = self.at;
        self.at += self.codec.tag_bytes() + if first { UUID_BYTES } else { 0 };
    }

    fn put(&mut self, tag: &Tag, flags: u32) {
        let (codec, at, block) = (self.codec, self.at, &mut self.block[..]);
        put32(block, at, tag.block as u32);
        if codec.checksums == Checksums::V3 {
            put32(block, at + 4, flags);
            put32(block, at + 8, if codec.wide { (tag.block >> 32) as u32 } else { 0 });
            put32(block, at + 12, tag.checksum);
        } else {
            put32(block, at + 4, tag.checksum << 16 | flags);
            if codec.wide {
                put32(block, at + 8, (tag.block >> 32) as u32);
            }
        }
    }

    /// Marks the last tag, and ends the block. Returns how many bytes are in use, the checksum left out.
    pub fn finish(self) -> usize {
        let flags = be32(self.block, self.last + 4);
        put32(self.block, self.last + 4, flags | LAST);
        self.codec.seal_tail(self.block, self.at);
        self.at
    }
}

/// The tags of a descriptor block, in the order of the copies that follow it.
pub struct Tags<'a> {
    codec: &'a Codec,
    block: &'a SectorBytes,
    at: usize,
}

impl<'a> Tags<'a> {
    /// The tags of a block whose header says that it is a descriptor; up to the block's end, if none
    /// is marked as the last.
    #[must_use]
    pub const fn parse(codec: &'a Codec, block: &'a SectorBytes) -> Self {
        Self { codec, block, at: HEADER_BYTES }
    }

    /// Whether the block's checksum holds, if it has one.
    #[must_use]
    pub fn checksum_holds(&self) -> bool {
        self.codec.tail_holds(self.block)
    }
}

impl Iterator for Tags<'_> {
    type Item = Tag;

    fn next(&mut self) -> Option<Tag> {
        let (codec, at) = (self.codec, self.at);
        if at + codec.tag_bytes() > codec.records_end() {
            return None;
        }
        let word = |offset| be32(self.block, at + offset);
        let v3 = codec.checksums == Checksums::V3;
        let flags = if v3 { word(4) } else { word(4) & 0xffff };
        let high = if codec.wide { u64::from(word(8)) << 32 } else { 0 };
        let checksum = match codec.checksums {
            Checksums::None => 0,
            Checksums::V2 => word(4) >> 16,
            Checksums::V3 => word(12),
        };
        let uuid = if flags & SAME_UUID == 0 { UUID_BYTES } else { 0 };
        let end = flags & LAST != 0;
        self.at = if end { super::BLOCK_BYTES } else { at + codec.tag_bytes() + uuid };
        let block = high | u64::from(word(0));
        Some(Tag { block, escaped: flags & ESCAPED != 0, checksum })
    }
}
