//! Reads over a cached map: sectors are served in order, and one whose mapping is not in RAM waits for
//! its block.

use super::Pblk;
use super::mapcache::Access;
use crate::error::FtlError;
use nandscape_block::{
    Bio, BlockError, Completion, Done, Flags, Payload, Reply, SectorData, Submit, Token,
};
use nandscape_media::OpenChannel;
use nandscape_rt::Nanos;
use std::collections::BTreeMap;

/// A read that waits for mappings.
#[derive(Debug)]
pub(super) struct PendingRead {
    bio: Bio,
    token: Token,
    /// Sectors served.
    next: u32,
    /// Sectors looked up.
    looked: u32,
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
    fn add(&mut self, block: u32, read: PendingRead) {
        self.len += 1;
        self.waiting.entry(block).or_default().push(read);
    }

    /// Those that wait for a block.
    fn take(&mut self, block: u32) -> Vec<PendingRead> {
        let reads = self.waiting.remove(&block).unwrap_or_default();
        self.len -= reads.len();
        reads
    }

    fn all(self) -> impl Iterator<Item = PendingRead> {
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

impl<M: OpenChannel> Pblk<M> {
    /// Serves a read, which may have to wait for mappings.
    pub(super) fn read_mapped(&mut self, bio: Bio, token: Token) -> Submit {
        if self.progress.stopped.is_some() {
            return Submit::Done(self.read(&bio));
        }
        self.stats.host.read += u64::from(bio.sectors);
        let mut read = PendingRead {
            bio,
            token,
            next: 0,
            looked: 0,
            end: self.flash.now,
            error: None,
            data: Vec::new(),
        };
        match self.continue_read(&mut read) {
            Ok(true) => return Submit::Done(read.done()),
            Ok(false) => self.park(read),
            Err(error) => return Submit::Done(Done::new(self.flash.now, Err(error.into()))),
        }
        self.pump();
        Submit::Pending
    }

    /// Serves sectors of a read until one's mapping is missing. Whether all are served.
    fn continue_read(&mut self, read: &mut PendingRead) -> Result<bool, FtlError> {
        while read.next < read.bio.sectors {
            let Some(mapping) = &mut self.mapping else { break };
            let access = Access::of(false, read.bio.flags);
            let range = read.next..read.bio.sectors;
            let part =
                mapping.ready(read.bio.lba, range, &mut read.looked, (access, 0), self.flash.now);
            if part == 0 {
                return Ok(false);
            }
            self.serve_part(read, part)?;
        }
        Ok(true)
    }

    /// Serves the next `part` sectors of a read.
    fn serve_part(&mut self, read: &mut PendingRead, part: u32) -> Result<(), FtlError> {
        let keeps = self.rules.run.keep_content && !read.bio.flags.has(Flags::NO_DATA);
        let first = read.bio.lba.plus(u64::from(read.next));
        let (end, error) = self.flash.read_sectors(&mut self.stats, first, part)?;
        if keeps {
            read.data.extend((0..part).map(|index| self.content(first.plus(u64::from(index)))));
        }
        read.end = read.end.max(end);
        read.error = read.error.take().or(error);
        read.next += part;
        Ok(())
    }

    /// Serves all reads that wait, from a table that nobody changes any more.
    pub(super) fn serve_waiting(&mut self) {
        let Some(mapping) = &mut self.mapping else { return };
        for mut read in std::mem::take(&mut mapping.reads).all() {
            let rest = read.bio.sectors - read.next;
            let done = match self.serve_part(&mut read, rest) {
                Ok(()) => read.done(),
                Err(error) => Done::new(self.flash.now, Err(error.into())),
            };
            self.done.push(Completion { token: read.token, done });
        }
    }

    fn park(&mut self, read: PendingRead) {
        if let Some(mapping) = &mut self.mapping {
            let block = mapping.cache.block_of(read.bio.lba.plus(u64::from(read.next)));
            mapping.reads.add(block, read);
        }
    }

    /// Reads that wait for this block go on.
    pub(super) fn resume_reads(&mut self, block: u32) -> Result<(), FtlError> {
        let Some(mapping) = &mut self.mapping else { return Ok(()) };
        for mut read in mapping.reads.take(block) {
            if self.continue_read(&mut read)? {
                self.done.push(Completion { token: read.token, done: read.done() });
            } else {
                self.park(read);
            }
        }
        Ok(())
    }
}

impl PendingRead {
    /// The outcome, when all is served.
    fn done(&mut self) -> Done {
        let data = std::mem::take(&mut self.data);
        let result = match self.error.take() {
            Some(error) => Err(error),
            None if data.is_empty() => Ok(Reply::None),
            None => Ok(Reply::Data(Payload::collect(data))),
        };
        Done::new(self.end, result)
    }
}
