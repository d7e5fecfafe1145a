//! Handles: the part of one operation in the running transaction, as jbd2's `handle_t`.

use super::buffer::{Buffer, JournalMembership};
use super::error::JournalError;
use super::state::{Shared, State, Transaction};
use super::tid::Tid;
use crate::ext4::format::BlockMut;
use crate::ext4::rules::OmittedRule;
use nandscape_block::{Owner, SectorBytes, SectorData};
use nandscape_rt::invariant;
use std::cell::Cell;
use std::rc::Rc;

/// The right to change up to so many blocks in one transaction, which is not committed before the
/// handle is stopped or dropped.
#[must_use = "dropped, it ends at once"]
pub struct TransactionHandle {
    shared: Rc<Shared>,
    tid: Tid,
    credits: Cell<u32>,
}

impl Shared {
    /// Begins a handle, waiting for a commit or for log space if it must.
    pub(super) async fn start(
        self: &Rc<Self>,
        credits: u32,
    ) -> Result<TransactionHandle, JournalError> {
        if credits > self.limits.get().credits {
            return Err(JournalError::TooLarge { asked: credits, most: self.limits.get().credits });
        }
        loop {
            self.alive()?;
            match self.admit(credits) {
                Admission::Joined(tid) => {
                    let credits = Cell::new(credits);
                    return Ok(TransactionHandle { shared: Rc::clone(self), tid, credits });
                }
                Admission::Locked => self.changed.notified().await,
                Admission::Full(tid) => {
                    self.request(tid);
                    self.changed.notified().await;
                }
                Admission::NoRoom => self.make_room().await?,
            }
        }
    }

    fn admit(&self, credits: u32) -> Admission {
        let mut state = self.state.borrow_mut();
        if let Some(running) = &state.running {
            if running.locked {
                return Admission::Locked;
            }
            if running.credits + credits > self.limits.get().credits {
                return Admission::Full(running.tid);
            }
        }
        if state.ring.free() < self.limits.get().transaction_blocks {
            return Admission::NoRoom;
        }
        let State { running, next_tid, .. } = &mut *state;
        let running = running.get_or_insert_with(|| {
            let tid = *next_tid;
            *next_tid = tid.next();
            self.wanted.notify_one();
            Transaction::new(tid, self.rt.now())
        });
        running.handles += 1;
        running.credits += credits;
        Admission::Joined(running.tid)
    }
}

/// The answer to a task that wants to join the running transaction.
enum Admission {
    Joined(Tid),
    /// It is about to be committed.
    Locked,
    /// It has no room for so many more blocks.
    Full(Tid),
    /// The log has no room for a whole transaction.
    NoRoom,
}

impl TransactionHandle {
    /// The transaction.
    #[must_use]
    pub const fn tid(&self) -> Tid {
        self.tid
    }

    /// Blocks that the handle may still change.
    #[must_use]
    pub const fn credits(&self) -> u32 {
        self.credits.get()
    }

    /// Waits while the committing transaction writes its copy of this buffer, as
    /// `jbd2_journal_get_write_access` does. Only timing depends on it: [`Self::update`] is safe
    /// without.
    pub async fn access(&self, buffer: &Buffer) {
        let busy = || {
            let state = buffer.state.borrow();
            state.logging && state.running == JournalMembership::None
        };
        while busy() {
            self.shared.copied.notified().await;
        }
    }

    /// Changes a buffer in this transaction.
    ///
    /// # Errors
    /// [`JournalError::NoCredits`], [`JournalError::Aborted`]; the buffer is not changed then.
    pub fn update<R>(
        &self,
        buffer: &Rc<Buffer>,
        change: impl FnOnce(&mut SectorBytes) -> R,
    ) -> Result<R, JournalError> {
        self.update_parts(buffer, |block| change(block.whole()))
    }

    /// Changes parts of a buffer, after which its checksum costs less.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub(crate) fn update_parts<R>(
        &self,
        buffer: &Rc<Buffer>,
        change: impl FnOnce(&mut BlockMut<'_>) -> R,
    ) -> Result<R, JournalError> {
        self.claim(buffer)?;
        self.check_may_change(buffer);
        Ok(change(&mut buffer.state.borrow_mut().block_mut()))
    }

    /// The buffer of a newly allocated block: zeroes, to be logged.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn fresh(&self, block: u64) -> Result<Rc<Buffer>, JournalError> {
        let zeroes = self.shared.buffers.zeroes();
        self.log_whole(block, zeroes, None)
    }

    /// Logs a page of a file (`data=journal`), a tag or bytes.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn log_data(
        &self,
        block: u64,
        content: SectorData,
        owner: Owner,
    ) -> Result<Rc<Buffer>, JournalError> {
        self.log_whole(block, content, Some(owner))
    }

    fn log_whole(
        &self,
        block: u64,
        content: SectorData,
        owner: Option<Owner>,
    ) -> Result<Rc<Buffer>, JournalError> {
        let buffer = self.shared.buffers.fresh(block);
        self.claim(&buffer)?;
        self.check_may_change(&buffer);
        let mut state = buffer.state.borrow_mut();
        buffer.replace(&mut state, content);
        state.owner = owner;
        drop(state);
        Ok(buffer)
    }

    /// The block is free: its content needs neither log nor home any more, and older copies in the log
    /// must not be replayed. For metadata, and for data that may have been journalled.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn forget(&self, block: u64) -> Result<(), JournalError> {
        self.shared.alive()?;
        self.revoke(block)?;
        // Of a block that is not in memory there is nothing to drop.
        let Some(buffer) = self.shared.buffers.cached(block) else { return Ok(()) };
        let mut state = buffer.state.borrow_mut();
        let claimed = state.running;
        if claimed == JournalMembership::None && state.is_idle() {
            drop(state);
            self.shared.buffers.remove(block);
            return Ok(());
        }
        state.running = JournalMembership::Forgotten;
        drop(state);
        if claimed == JournalMembership::None {
            self.with_running(|running| running.buffers.push(Rc::clone(&buffer)));
        }
        Ok(())
    }

    /// Asks for more credits; says whether they were granted. If not, nothing has changed, and
    /// [`Self::restart`] is the way.
    ///
    /// # Errors
    /// [`JournalError::Aborted`].
    pub fn extend(&self, credits: u32) -> Result<bool, JournalError> {
        self.shared.alive()?;
        let most = self.shared.limits.get().credits;
        let granted = self.with_running(|running| {
            let granted = !running.locked && running.credits + credits <= most;
            running.credits += if granted { credits } else { 0 };
            granted
        });
        self.credits.set(self.credits.get() + if granted { credits } else { 0 });
        Ok(granted)
    }

    /// Ends this handle and begins another with so many credits. What was changed so far may be
    /// committed without what follows. If the transaction has no room left, its commit is begun.
    ///
    /// # Errors
    /// As [`super::Journal::start`].
    pub async fn restart(self, credits: u32) -> Result<Self, JournalError> {
        let shared = Rc::clone(&self.shared);
        drop(self);
        shared.start(credits).await
    }

    /// Ends the handle; gives back the transaction, to be awaited.
    pub fn stop(self) -> Tid {
        self.tid
    }

    /// Claims a buffer for the running transaction, before it changes: keeps what the committing one
    /// has yet to log. Costs a credit the first time.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub(crate) fn claim(&self, buffer: &Rc<Buffer>) -> Result<(), JournalError> {
        self.shared.alive()?;
        let claimed = buffer.state.borrow().running;
        if claimed == JournalMembership::Dirty {
            return Ok(());
        }
        self.spend()?;
        let frozen = {
            let mut state = buffer.state.borrow_mut();
            state.running = JournalMembership::Dirty;
            !self.shared.omits(OmittedRule::FrozenCopies) && state.freeze()
        };
        self.shared.state.borrow_mut().counts.frozen += u64::from(frozen);
        self.with_running(|running| {
            running.revokes.remove(&buffer.block());
            if claimed == JournalMembership::None {
                running.buffers.push(Rc::clone(buffer));
            }
        });
        Ok(())
    }

    /// A buffer is about to change.
    fn check_may_change(&self, buffer: &Buffer) {
        invariant!(
            buffer.state.borrow().may_change() || self.shared.omits(OmittedRule::FrozenCopies),
            "block {} changes only when the committing transaction has its copy",
            buffer.block()
        );
    }

    /// Notes a revoke, which costs a credit where it begins another revoke block.
    fn revoke(&self, block: u64) -> Result<(), JournalError> {
        let each = self.shared.codec.block_revokes();
        let full = self.with_running(|running| {
            running.revokes.len() >= running.revoke_blocks as usize * each
                && !running.revokes.contains(&block)
        });
        if full {
            self.spend()?;
        }
        self.with_running(|running| {
            running.revoke_blocks += u32::from(full);
            running.revokes.insert(block);
        });
        Ok(())
    }

    fn spend(&self) -> Result<(), JournalError> {
        let left = self.credits.get().checked_sub(1).ok_or(JournalError::NoCredits(self.tid))?;
        self.credits.set(left);
        Ok(())
    }

    /// The running transaction, which is this handle's as long as it is open.
    fn with_running<R>(&self, look: impl FnOnce(&mut Transaction) -> R) -> R {
        let mut state = self.shared.state.borrow_mut();
        let running = state.running.as_mut().expect("an open handle keeps its transaction running");
        look(running)
    }
}

impl Drop for TransactionHandle {
    fn drop(&mut self) {
        let unspent = self.credits.get();
        let last = self.with_running(|running| {
            running.credits -= unspent;
            running.handles -= 1;
            running.handles == 0
        });
        if last {
            self.shared.changed.notify_waiters();
        }
    }
}
