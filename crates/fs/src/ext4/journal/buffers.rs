//! The cache of metadata blocks.
//!
//! Which of them stay in memory is [`BlockCache`]'s matter. Home writes are grouped: neighbours travel in
//! one bio.

use super::buffer::{Buffer, State};
use super::error::JournalError;
use crate::vfs::{BlockCache, CachedBlock};
use nandscape_block::{AsyncDevice, Bio, Flags, Lba, Owner, Payload, SectorData, Tag};
use nandscape_rt::Handle;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

struct Inner {
    device: AsyncDevice,
    buffers: BlockCache<u64, Buffer>,
    /// Content of blocks that were never written.
    zeroes: SectorData,
}

/// The cache of metadata blocks over a device. Cheap to clone; clones are the same cache.
pub struct Buffers(Rc<Inner>);

impl Clone for Buffers {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Buffers {
    /// A cache that keeps about `limit` buffers, more only while a journal needs them.
    #[must_use]
    pub fn new(rt: &Handle, device: AsyncDevice, limit: usize) -> Self {
        Self(Rc::new(Inner {
            device,
            buffers: BlockCache::new(rt, limit, "a metadata block"),
            zeroes: SectorData::Bytes(Arc::from(Tag::ZERO.expand())),
        }))
    }

    /// The device below.
    #[must_use]
    pub fn device(&self) -> &AsyncDevice {
        &self.0.device
    }

    /// How many buffers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.buffers.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A block, read from the device if it is not in memory.
    ///
    /// # Errors
    /// [`JournalError::Io`] when it cannot be read; nothing is kept of it then.
    pub async fn get(&self, block: u64) -> Result<Rc<Buffer>, JournalError> {
        self.0.buffers.get(block, async |block| self.read(block).await).await
    }

    /// A block that is in memory, without reading it.
    #[must_use]
    pub fn cached(&self, block: u64) -> Option<Rc<Buffer>> {
        self.0.buffers.find(block).filter(|buffer| !buffer.is_reading())
    }

    /// Drops buffers that nothing holds on to, whatever the limit.
    pub fn drop_clean(&self) {
        self.0.buffers.drop_idle();
    }

    /// The buffer of a block whose old content does not matter; new ones are of zeroes.
    pub(super) fn fresh(&self, block: u64) -> Rc<Buffer> {
        if let Some(buffer) = self.0.buffers.find(block) {
            // A reader gets what the caller is about to write, not what the device brings.
            buffer.state.borrow_mut().reading = false;
            return buffer;
        }
        self.insert(block, State::of(self.zeroes()))
    }

    /// The content of zeroes, shared.
    pub(super) fn zeroes(&self) -> SectorData {
        self.0.zeroes.clone()
    }

    /// Forgets a buffer.
    pub(super) fn remove(&self, block: u64) {
        self.0.buffers.remove(block);
    }

    fn insert(&self, block: u64, state: State) -> Rc<Buffer> {
        self.0.buffers.insert(block, Buffer::new(block, state))
    }

    async fn read(&self, block: u64) -> Result<Rc<Buffer>, JournalError> {
        let buffer = self.insert(block, State::awaiting());
        let mut unread = Unread { cache: self, buffer: &buffer };
        let reply = self.0.device.submit(Bio::read(Lba(block), 1).with(Flags::META)).await?;
        let nandscape_block::Reply::Data(payload) = reply else {
            return Err(JournalError::Io(nandscape_block::BlockError::Malformed("no data")));
        };
        unread.fill(payload.sector(0));
        drop(unread);
        Ok(buffer)
    }
}

impl CachedBlock for Buffer {
    fn is_reading(&self) -> bool {
        self.state.borrow().reading
    }

    fn referenced(&self) -> &Cell<bool> {
        &self.referenced
    }

    fn is_idle(&self) -> bool {
        self.state.borrow().is_idle()
    }
}

/// A read in flight. When it ends, those who wait for it go on; if it failed, one of them tries again.
struct Unread<'a> {
    cache: &'a Buffers,
    buffer: &'a Rc<Buffer>,
}

impl Unread<'_> {
    /// The content arrived, and counts unless the buffer got another meanwhile.
    fn fill(&mut self, content: SectorData) {
        let mut state = self.buffer.state.borrow_mut();
        if std::mem::take(&mut state.reading) {
            let content = match content {
                SectorData::Tag(Tag::ZERO) => self.cache.zeroes(),
                content => content,
            };
            self.buffer.replace(&mut state, content);
        }
    }
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if self.buffer.state.borrow().reading {
            self.cache.remove(self.buffer.block());
        }
        self.cache.0.buffers.note_read();
    }
}

/// Contents of consecutive blocks, to travel in one bio.
pub(super) struct Run {
    first: Lba,
    contents: Vec<SectorData>,
    owner: Option<Owner>,
}

impl Run {
    /// Whether they are a file's data.
    pub(super) const fn is_owned(&self) -> bool {
        self.owner.is_some()
    }

    /// The bio that writes them.
    pub(super) fn into_bio(self, flags: Flags) -> Bio {
        let sectors = self.contents.len() as u32;
        let payload = Payload::Sectors(self.contents.into_boxed_slice());
        let bio = Bio::write(self.first, sectors, payload).with(flags);
        Bio { owner: self.owner, ..bio }
    }
}

/// Collects contents into runs of neighbours, as long as the device takes them.
pub(super) struct Runs {
    run: Run,
    longest: usize,
}

impl Runs {
    pub(super) fn new(max_sectors: u32) -> Self {
        Self::expecting(max_sectors, 0)
    }

    /// The same with memory for a run of so many blocks, if there can be one.
    pub(super) fn expecting(max_sectors: u32, blocks: usize) -> Self {
        let longest = if max_sectors == 0 { 256 } else { max_sectors as usize };
        let contents = Vec::with_capacity(blocks.min(longest));
        Self { run: Run { first: Lba(0), contents, owner: None }, longest }
    }

    /// Adds the content of a block; gives back the run before it if that ends here.
    pub(super) fn push(&mut self, at: Lba, content: SectorData) -> Option<Run> {
        self.push_owned(at, content, None)
    }

    /// The same for a block that belongs to a file; a run is of one file, or of none.
    pub(super) fn push_owned(
        &mut self,
        at: Lba,
        content: SectorData,
        owner: Option<Owner>,
    ) -> Option<Run> {
        let run = &mut self.run;
        let goes_on = run.first.0 + run.contents.len() as u64 == at.0 && run.owner == owner;
        let ended = if goes_on && run.contents.len() < self.longest { None } else { self.take() };
        if self.run.contents.is_empty() {
            (self.run.first, self.run.owner) = (at, owner);
        }
        self.run.contents.push(content);
        ended
    }

    /// The run that was being collected.
    pub(super) fn take(&mut self) -> Option<Run> {
        let empty = Run { first: Lba(0), contents: Vec::new(), owner: None };
        Some(std::mem::replace(&mut self.run, empty)).filter(|run| !run.contents.is_empty())
    }
}
