//! Reads over a cached map: sectors are served in order, and one whose mapping is not in RAM waits for
//! its block.

use super::counts::PblkCounts;
use super::flash::Flash;
use super::intake::Buffers;
use crate::error::FtlError;
use nandscape_block::{Bio, BlockError, Done, Flags, Payload, Reply, SectorData, Token};
use nandscape_media::OpenChannel;
use nandscape_rt::Nanos;
use std::collections::BTreeMap;

/// A read that waits for mappings.
#[derive(Debug)]
pub(super) struct PendingRead {
    pub(super) bio: Bio,
    pub(super) token: Token,
    /// Sectors served.
    pub(super) next: u32,
    /// Sectors looked up.
    pub(super) looked: u32,
    /// When the data served so far arrive.
    end: Nanos,
    error: Option<BlockError>,
    data: Vec<SectorData>,
}

/// Reads that wait, by the block that they wait for.
#[derive(Debug, Default)]
pub(super) struct Reads {
    waiting: BTreeMap<u32, Vec<PendingRead>>,
    len: usize,
}

impl Reads {
    pub(super) fn add(&mut self, block: u32, read: PendingRead) {
        self.len += 1;
        self.waiting.entry(block).or_default().push(read);
    }

    /// Those that wait for a block.
    pub(super) fn take(&mut self, block: u32) -> Vec<PendingRead> {
        let reads = self.waiting.remove(&block).unwrap_or_default();
        self.len -= reads.len();
        reads
    }

    pub(super) fn all(self) -> impl Iterator<Item = PendingRead> {
        self.waiting.into_values().flatten()
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Every read that waits, given up.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = Token> + use<> {
        std::mem::take(self).all().map(|read| read.token)
    }
}

/// What a read looks at.
pub(super) struct Reader<'a, M> {
    pub(super) flash: &'a mut Flash<M>,
    pub(super) buffers: &'a Buffers,
    pub(super) stats: &'a mut PblkCounts,
}

impl PendingRead {
    /// A read that comes in.
    pub(super) const fn new(bio: Bio, token: Token, now: Nanos) -> Self {
        Self { bio, token, next: 0, looked: 0, end: now, error: None, data: Vec::new() }
    }

    /// Serves the next `part` sectors.
    pub(super) fn serve_part<M: OpenChannel>(
        &mut self,
        reader: &mut Reader<'_, M>,
        keeps_content: bool,
        part: u32,
    ) -> Result<(), FtlError> {
        let keeps = keeps_content && !self.bio.flags.has(Flags::NO_DATA);
        let first = self.bio.lba.plus(u64::from(self.next));
        let (end, error) = reader.flash.read_sectors(reader.stats, first, part)?;
        if keeps {
            let content =
                |index| reader.flash.content(reader.buffers, first.plus(u64::from(index)));
            self.data.extend((0..part).map(content));
        }
        self.end = self.end.max(end);
        self.error = self.error.take().or(error);
        self.next += part;
        Ok(())
    }

    /// The outcome, when all is served.
    pub(super) fn done(&mut self) -> Done {
        let data = std::mem::take(&mut self.data);
        let result = match self.error.take() {
            Some(error) => Err(error),
            None if data.is_empty() => Ok(Reply::None),
            None => Ok(Reply::Data(Payload::collect(data))),
        };
        Done::new(self.end, result)
    }
}
