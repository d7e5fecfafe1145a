//! Making room in the log: the oldest transactions are written home, and the tail moves past them.
//!
//! Log space comes free only when the superblock that gives it up is durable, and that superblock is
//! written only when a flush has covered the home writes. After `fs/jbd2/checkpoint.c`.

use super::buffer::Buffer;
use super::disk::{Position, Superblock};
use super::error::JournalError;
use super::state::Shared;
use super::superblock::write_superblock;
use super::tid::Tid;
use crate::ext4::rules::OmittedRule;
use nandscape_block::{BlockError, Flags};
use nandscape_rt::sync::MutexGuard;
use std::rc::Rc;

/// What keeps a committed transaction in the log.
enum PinnedLog {
    /// Nothing any more.
    Free,
    /// Buffers that can be written home.
    Home(Vec<Rc<Buffer>>),
    /// Buffers that a transaction in progress has changed: it must be committed first.
    Changed(Tid),
    /// Buffers that another task is writing home.
    OnTheirWay,
}

impl Shared {
    /// Frees enough of the log for a transaction, or at least its oldest part.
    pub(super) async fn make_room(self: &Rc<Self>) -> Result<(), JournalError> {
        let _turn = self.checkpointing.lock().await;
        if self.state.borrow().ring.free() >= self.limits.get().transaction_blocks {
            return Ok(());
        }
        self.state.borrow_mut().counts.forced_checkpoints += 1;
        let keep = self.state.borrow_mut().keep_from();
        let (tail, committing) = {
            let state = self.state.borrow();
            (state.ring.tail(), state.committing.map(|committing| committing.tid))
        };
        if keep != tail {
            return self.move_tail().await;
        }
        if committing == Some(keep.tid) {
            return self.commit(keep.tid).await;
        }
        if self.omits(OmittedRule::TailBeforeCheckpoint) {
            return self.drop_oldest(keep.tid).await;
        }
        self.checkpoint(keep.tid).await?;
        self.move_tail().await
    }

    /// Writes home everything of which a committed transaction has the newest copy.
    pub(super) async fn checkpoint(self: &Rc<Self>, tid: Tid) -> Result<(), JournalError> {
        loop {
            self.alive()?;
            match self.held(tid) {
                PinnedLog::Free => return Ok(()),
                PinnedLog::Home(buffers) => self.write_home(buffers, Flags::SYNC).await?,
                PinnedLog::Changed(tid) => self.commit(tid).await?,
                PinnedLog::OnTheirWay => self.homed.notified().await,
            }
        }
    }

    fn held(&self, tid: Tid) -> PinnedLog {
        let mut state = self.state.borrow_mut();
        let running = state.running.as_ref().map(|running| running.tid);
        let uncommitted = state.committing.map(|committing| committing.tid).or(running);
        let Some(front) = state.logged.front().map(|front| front.tid) else {
            return PinnedLog::Free;
        };
        let Some(logged) = state.logged.get_mut(tid.since(front) as usize) else {
            return PinnedLog::Free;
        };
        logged.buffers.retain(|buffer| buffer.state.borrow().checkpoint == Some(tid));
        let free = |buffer: &&Rc<Buffer>| {
            let state = buffer.state.borrow();
            state.is_settled() && !state.going_home
        };
        let home: Vec<_> = logged.buffers.iter().filter(free).cloned().collect();
        let changed = logged.buffers.iter().any(|buffer| !buffer.state.borrow().is_settled());
        match uncommitted {
            _ if !home.is_empty() => PinnedLog::Home(home),
            _ if logged.buffers.is_empty() => PinnedLog::Free,
            Some(tid) if changed => PinnedLog::Changed(tid),
            _ => PinnedLog::OnTheirWay,
        }
    }

    /// Writes into the superblock where what the log must keep begins; what lies before is free then.
    pub(super) async fn move_tail(self: &Rc<Self>) -> Result<(), JournalError> {
        let superblock = self.superblock.lock().await;
        let keep = self.state.borrow_mut().keep_from();
        if keep == self.state.borrow().ring.tail() {
            return Ok(());
        }
        if !self.omits(OmittedRule::MissingBarrier) && !self.omits(OmittedRule::TailFlush) {
            let flushed = self.device.flush().await;
            self.try_io(flushed)?;
        }
        self.write_tail(superblock, keep).await
    }

    /// Writes the tail, everything before it being home and durable.
    pub(super) async fn write_tail(
        self: &Rc<Self>,
        mut superblock: MutexGuard<Superblock>,
        keep: Position,
    ) -> Result<(), JournalError> {
        if !self.omits(OmittedRule::TailBeforeCheckpoint) {
            self.state.borrow().check_tail(keep.tid);
        }
        superblock.set_start(keep);
        self.write_superblock(&superblock, !self.omits(OmittedRule::TailFua)).await?;
        self.state.borrow_mut().ring.set_tail(keep);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Writes the journal's superblock, durably if it must be.
    pub(super) async fn write_superblock(
        self: &Rc<Self>,
        superblock: &Superblock,
        durably: bool,
    ) -> Result<(), JournalError> {
        self.state.borrow_mut().counts.superblocks += 1;
        let durably = durably && !self.omits(OmittedRule::MissingBarrier);
        let written = write_superblock(&self.device, &self.extents, superblock, durably).await;
        match written {
            Err(JournalError::Io(error)) => self.try_io(Err(error)),
            other => other,
        }
    }

    /// Passes a result on; an error aborts the journal.
    pub(super) fn try_io<T>(
        self: &Rc<Self>,
        result: Result<T, BlockError>,
    ) -> Result<T, JournalError> {
        result.map_err(|error| {
            let error = error.into();
            self.abort(&error);
            error
        })
    }

    /// Without [`OmittedRule::TailBeforeCheckpoint`]: gives up the oldest transaction's log space, and writes it home afterwards.
    async fn drop_oldest(self: &Rc<Self>, tid: Tid) -> Result<(), JournalError> {
        let superblock = self.superblock.lock().await;
        let next = {
            let state = self.state.borrow();
            let next =
                state.logged.get(1).map(|next| Position { tid: next.tid, block: next.start });
            next.unwrap_or(Position { tid: tid.next(), block: state.ring.head() })
        };
        self.write_tail(superblock, next).await?;
        self.checkpoint(tid).await
    }
}
