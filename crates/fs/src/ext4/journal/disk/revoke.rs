//! Revoke blocks: home blocks whose copies in this transaction and before it must not be replayed,
//! because the blocks were freed and may hold something else since.

use super::{Codec, HEADER_BYTES, Header, Kind, be32, put32};
use crate::ext4::journal::tid::Tid;
use nandscape_block::SectorBytes;

/// Bytes before the first record: the header, and the count of bytes in use.
const RECORDS_AT: usize = HEADER_BYTES + 4;

impl Codec {
    /// Records that fit into one block.
    #[must_use]
    pub const fn block_revokes(&self) -> usize {
        (self.records_end() - RECORDS_AT) / self.revoke_bytes()
    }
}

/// Makes a revoke block of these home blocks, at most [`Codec::block_revokes`], out of zeroes. Returns
/// how many bytes are in use, the checksum left out.
pub fn encode(codec: &Codec, tid: Tid, blocks: &[u64], bytes: &mut SectorBytes) -> usize {
    Header { kind: Kind::Revoke, tid }.put(bytes);
    let mut at = RECORDS_AT;
    for &block in blocks {
        if codec.wide {
            bytes[at..at + 8].copy_from_slice(&block.to_be_bytes());
        } else {
            put32(bytes, at, block as u32);
        }
        at += codec.revoke_bytes();
    }
    put32(bytes, HEADER_BYTES, at as u32);
    codec.seal_tail(bytes, at);
    at
}

/// The home blocks that a revoke block names.
pub struct Revokes<'a> {
    codec: &'a Codec,
    block: &'a SectorBytes,
    at: usize,
    end: usize,
}

impl<'a> Revokes<'a> {
    /// The records of a block whose header says that it holds revokes; `None` when its count is
    /// more than a block holds.
    #[must_use]
    pub fn parse(codec: &'a Codec, block: &'a SectorBytes) -> Option<Self> {
        let end = be32(block, HEADER_BYTES) as usize;
        (end <= codec.records_end()).then_some(Self { codec, block, at: RECORDS_AT, end })
    }

    /// Whether the block's checksum holds, if it has one.
    #[must_use]
    pub fn checksum_holds(&self) -> bool {
        self.codec.tail_holds(self.block)
    }
}

impl Iterator for Revokes<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let at = self.at;
        self.at += self.codec.revoke_bytes();
        if self.at > self.end {
            return None;
        }
        let first = u64::from(be32(self.block, at));
        Some(if self.codec.wide {
            first << 32 | u64::from(be32(self.block, at + 4))
        } else {
            first
        })
    }
}
