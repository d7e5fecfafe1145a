//! Home writes: committed contents go where they belong, after which the log need not keep them.
//!
//! Invariants:
//! - Two home writes of a block are never in flight together.
//! - A home write settles only the copy that it carries.

use super::buffer::Buffer;
use super::buffers::Runs;
use super::error::JournalError;
use super::state::Shared;
use super::tid::Tid;
use crate::ext4::rules::OmittedRule;
use nandscape_block::{Flags, Lba, SectorData};
use nandscape_rt::{Nanos, invariant};
use std::rc::Rc;

/// A buffer on its way home.
struct CheckpointWrite {
    buffer: Rc<Buffer>,
    /// The transaction that committed the content.
    tid: Tid,
    /// The content, taken before it can change again.
    content: SectorData,
}

impl Shared {
    /// Writes home those of the buffers that may be, and waits until they are there. The writes go on
    /// if the caller is dropped.
    pub(super) async fn write_home(
        self: &Rc<Self>,
        buffers: impl IntoIterator<Item = Rc<Buffer>>,
        flags: Flags,
    ) -> Result<(), JournalError> {
        let mut going: Vec<CheckpointWrite> =
            buffers.into_iter().filter_map(|buffer| self.set_out(buffer)).collect();
        if going.is_empty() {
            return Ok(());
        }
        going.sort_unstable_by_key(|going| going.buffer.block());
        let write = write(Rc::clone(self), going, flags);
        match self.rt.spawn("metadata home writes", write).await {
            Ok(result) => result,
            Err(_) => self.alive(),
        }
    }

    /// Writes home what was committed before `before` and is not there yet.
    pub(super) async fn write_back(self: &Rc<Self>, before: Nanos) -> Result<(), JournalError> {
        let old: Vec<Rc<Buffer>> = {
            let state = self.state.borrow();
            let buffers = state.logged.iter().flat_map(|logged| &logged.buffers);
            buffers.filter(|buffer| buffer.state.borrow().dirty_since < before).cloned().collect()
        };
        self.write_home(old, Flags::NONE).await
    }

    /// Marks a buffer as on its way home, if it may go.
    fn set_out(&self, buffer: Rc<Buffer>) -> Option<CheckpointWrite> {
        let mut state = buffer.state.borrow_mut();
        let may_go = state.is_settled() || self.omits(OmittedRule::ClaimedHome);
        let tid = state.checkpoint.filter(|_| may_go && !state.going_home)?;
        invariant!(
            !state.going_home,
            "two home writes of block {} are never in flight together",
            buffer.block()
        );
        state.going_home = true;
        let content = state.share();
        drop(state);
        Some(CheckpointWrite { buffer, tid, content })
    }

    fn arrive(&self, buffer: &Buffer, tid: Tid) {
        let mut buffer = buffer.state.borrow_mut();
        let mut state = self.state.borrow_mut();
        invariant!(buffer.going_home, "a block that arrives at home was on its way");
        let newest = buffer.checkpoint;
        buffer.going_home = false;
        if buffer.checkpoint == Some(tid) {
            buffer.checkpoint = None;
            state.release(tid);
        }
        invariant!(
            buffer.checkpoint == newest || newest == Some(tid),
            "a home write of {tid} settles only the copy that it carries, not {newest:?}"
        );
        state.counts.home_blocks += 1;
    }
}

async fn write(
    shared: Rc<Shared>,
    going: Vec<CheckpointWrite>,
    flags: Flags,
) -> Result<(), JournalError> {
    let mut runs = Runs::new(shared.max_sectors);
    let mut bios = Vec::new();
    let mut homes = Vec::with_capacity(going.len());
    for CheckpointWrite { buffer, tid, content } in going {
        let owner = buffer.state.borrow().owner;
        bios.extend(runs.push_owned(Lba(buffer.block()), content, owner));
        homes.push((buffer, tid));
    }
    bios.extend(runs.take());
    let bios = bios.into_iter().map(|run| {
        let meta = if run.is_owned() { Flags::NONE } else { Flags::META };
        run.into_bio(flags | meta)
    });
    let pending: Vec<_> = bios.map(|bio| (bio.sectors, shared.device.submit(bio))).collect();
    let mut homes = homes.into_iter();
    for (sectors, reply) in pending {
        if !shared.omits(OmittedRule::HomeWait)
            && let Err(error) = reply.await
        {
            return shared.try_io(Err(error));
        }
        homes.by_ref().take(sectors as usize).for_each(|(buffer, tid)| shared.arrive(&buffer, tid));
        shared.homed.notify_waiters();
    }
    Ok(())
}
