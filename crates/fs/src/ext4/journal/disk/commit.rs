//! Commit blocks: what lies before one in the log, back to the commit before it, is a transaction.

use super::{BLOCK_BYTES, Checksums, Codec, Header, Kind, be32, put32};
use crate::ext4::journal::tid::Tid;
use nandscape_block::SectorBytes;

const CHECKSUM_AT: usize = 0x10;
const SECONDS_AT: usize = 0x30;
const NANOSECONDS_AT: usize = 0x38;

/// When a transaction was committed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Commit {
    /// Seconds since 1970.
    pub seconds: u64,
    /// And nanoseconds.
    pub nanoseconds: u32,
}

impl Commit {
    /// Bytes of the block that are in use.
    pub const USED_BYTES: usize = NANOSECONDS_AT + 4;

    /// Makes the commit block of a transaction out of zeroes.
    pub fn encode(&self, codec: &Codec, tid: Tid, block: &mut SectorBytes) {
        Header { kind: Kind::Commit, tid }.put(block);
        block[SECONDS_AT..SECONDS_AT + 8].copy_from_slice(&self.seconds.to_be_bytes());
        put32(block, NANOSECONDS_AT, self.nanoseconds);
        codec.seal(block, CHECKSUM_AT, Self::USED_BYTES);
    }

    /// The time in a block whose header says that it is a commit.
    #[must_use]
    pub fn parse(block: &SectorBytes) -> Self {
        let seconds = u64::from(be32(block, SECONDS_AT)) << 32;
        Self {
            seconds: seconds | u64::from(be32(block, SECONDS_AT + 4)),
            nanoseconds: be32(block, NANOSECONDS_AT),
        }
    }

    /// Bytes whose change its checksum always shows: those in use, and four that fill up Linux's structure.
    pub const CHECKED_BYTES: usize = Self::USED_BYTES + 4;

    /// Whether the block's checksum holds, if it has one. As in Linux it also does if it holds with zeroes for
    /// what is behind: a device whose sectors are smaller may have written the first one alone.
    #[must_use]
    pub fn checksum_holds(codec: &Codec, block: &SectorBytes) -> bool {
        let mut used = [0; BLOCK_BYTES];
        used[..Self::CHECKED_BYTES].copy_from_slice(&block[..Self::CHECKED_BYTES]);
        let holds = |block: &SectorBytes| {
            be32(block, CHECKSUM_AT) == codec.block_checksum(block, CHECKSUM_AT)
        };
        codec.checksums == Checksums::None || holds(block) || holds(&used)
    }
}
