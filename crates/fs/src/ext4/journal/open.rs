//! A journal in use: opening it, joining transactions, waiting for commits, emptying the log.

use super::buffers::Buffers;
use super::commit::{self, CommitHook};
use super::config::Config;
use super::disk::{Features, Position, Superblock};
use super::error::{JournalError, LogPlace};
use super::extents::LogExtents;
use super::files::FileJournal;
use super::handle::TransactionHandle;
use super::log::{Limits, MIN_BLOCKS, Ring};
use super::state::{Counts, Shared, State};
use super::superblock::{read_superblock, write_superblock};
use super::tid::Tid;
use crate::ext4::rules::OmittedRule;
use nandscape_block::Fua;
use nandscape_rt::sync::{Mutex, Notify};
use nandscape_rt::{Handle, Nanos, invariant};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Linux's `EIO`.
const EIO: i32 = 5;

/// A journal in use. Cheap to clone; clones are the same journal.
pub struct Journal(Rc<Shared>);

impl Clone for Journal {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Journal {
    /// Opens a journal whose log is empty. Its features become those of `config` with the first
    /// commit.
    ///
    /// # Errors
    /// [`JournalError::NeedsRecovery`] if the log is not empty, and what is wrong with the superblock.
    pub async fn open(
        rt: &Handle,
        buffers: &Buffers,
        extents: LogExtents,
        config: Config,
    ) -> Result<Self, JournalError> {
        if let Some(what) = config.features.refused() {
            return Err(JournalError::Incompatible(what));
        }
        let device = buffers.device().clone();
        let mut superblock = read_superblock(&device, &extents).await?;
        if superblock.start().block != 0 {
            return Err(JournalError::NeedsRecovery);
        }
        if superblock.blocks() - superblock.first() < MIN_BLOCKS {
            let what = "too short to hold transactions";
            return Err(JournalError::Corrupt { place: LogPlace::Superblock, what });
        }
        let mark = superblock.features().incompat & Features::IJOURNAL;
        let incompat = config.features.incompat | mark;
        superblock.set_features(Features { incompat, ..config.features });
        superblock.set_errno(0);
        Ok(Self(Rc::new(share(rt, buffers, extents, config, superblock))))
    }

    /// Starts the task that commits, with the file system's part of it.
    pub fn start_commits(&self, hook: impl CommitHook + 'static) {
        let serve = commit::serve(Rc::clone(&self.0), hook);
        drop(self.0.rt.spawn_daemon("journal commit", serve));
    }

    /// Joins the running transaction, or begins one, with the right to change so many blocks.
    ///
    /// # Errors
    /// [`JournalError::TooLarge`], or [`JournalError::Aborted`].
    pub async fn start(&self, credits: u32) -> Result<TransactionHandle, JournalError> {
        self.0.start(credits).await
    }

    /// Credits that a handle may ask for at most.
    #[must_use]
    pub fn max_credits(&self) -> u32 {
        self.0.limits.get().credits
    }

    /// Credits that a handle needs to revoke so many blocks.
    #[must_use]
    pub fn revoke_credits(&self, blocks: u32) -> u32 {
        if blocks == 0 { 0 } else { blocks / self.0.codec.block_revokes() as u32 + 1 }
    }

    /// The running transaction, if there is one.
    #[must_use]
    pub fn running(&self) -> Option<Tid> {
        self.0.state.borrow().running.as_ref().map(|running| running.tid)
    }

    /// The last transaction that was committed.
    #[must_use]
    pub fn committed(&self) -> Tid {
        self.0.state.borrow().committed
    }

    /// Whether it is still running, or being committed.
    pub(crate) fn is_in_progress(&self, tid: Tid) -> bool {
        let state = self.0.state.borrow();
        state.running.as_ref().is_some_and(|running| running.tid == tid)
            || state.committing.is_some_and(|committing| committing.tid == tid)
    }

    /// Whether the commit of `tid` is still to send its barrier. If so, an fsync that waits for it needs
    /// no separate flush for data that is acknowledged now.
    #[must_use]
    pub fn will_send_barrier(&self, tid: Tid) -> bool {
        let state = self.0.state.borrow();
        let sent = state
            .committing
            .is_some_and(|committing| committing.tid == tid && committing.barrier_sent);
        !sent && !state.committed.reached(tid)
    }

    /// Commits everything up to `tid`, and waits for it. Transactions that never were, or are over,
    /// take no time.
    ///
    /// # Errors
    /// [`JournalError::Aborted`].
    pub async fn commit(&self, tid: Tid) -> Result<(), JournalError> {
        self.0.commit(tid).await
    }

    /// Commits whatever was changed so far, and waits for it.
    ///
    /// # Errors
    /// [`JournalError::Aborted`].
    pub async fn commit_all(&self) -> Result<(), JournalError> {
        let last = self.0.state.borrow().next_tid.previous();
        let begun = cfg!(debug_assertions).then(|| self.running()).flatten();
        self.0.commit(last).await?;
        invariant!(
            begun.is_none_or(|begun| self.committed().reached(begun)),
            "what ran when all was to be committed is committed: {begun:?}"
        );
        Ok(())
    }

    /// Writes home what was committed before `before` and is not there yet.
    ///
    /// # Errors
    /// Those of the device, which also abort the journal.
    pub async fn write_back(&self, before: Nanos) -> Result<(), JournalError> {
        self.0.write_back(before).await
    }

    /// Commits everything, writes it home and marks the log as empty. A task that goes on changing
    /// blocks keeps it from ending.
    ///
    /// # Errors
    /// [`JournalError::Aborted`].
    pub async fn flush(&self) -> Result<(), JournalError> {
        loop {
            self.commit_all().await?;
            while let Some(tid) = self.oldest() {
                self.0.checkpoint(tid).await?;
            }
            if self.mark_empty().await? {
                return Ok(());
            }
        }
    }

    /// Empties the log, gives up the area of file-level records, and ends the commit task.
    ///
    /// # Errors
    /// [`JournalError::Aborted`]; the commit task ends all the same.
    pub async fn stop(&self) -> Result<(), JournalError> {
        let stopped = self.leave().await;
        self.0.state.borrow_mut().stopping = true;
        self.0.wanted.notify_one();
        stopped
    }

    async fn leave(&self) -> Result<(), JournalError> {
        self.flush().await?;
        let layout = self.0.superblock.lock().await.files();
        match layout {
            Some(layout) if layout.applying.is_none() => self.0.disable_files().await,
            _ => Ok(()),
        }
    }

    /// Gives the end of the log to file-level records: `slots` rings of `slot_blocks` each. To be
    /// called before the first transaction.
    ///
    /// # Errors
    /// [`JournalError::NeedsRecovery`] while recovered records are not applied,
    /// [`JournalError::NoRoom`] if the log is in use or too short.
    pub async fn enable_files(
        &self,
        slots: u32,
        slot_blocks: u32,
    ) -> Result<FileJournal, JournalError> {
        let layout = self.0.enable_files(slots, slot_blocks).await?;
        Ok(FileJournal::new(Rc::clone(&self.0), layout))
    }

    /// The file-level records that recovery found are applied: writes everything home and gives up
    /// the area. Nothing to do if there was none.
    ///
    /// # Errors
    /// [`JournalError::Aborted`].
    pub async fn files_applied(&self) -> Result<(), JournalError> {
        if self.0.superblock.lock().await.files().is_none() {
            return Ok(());
        }
        self.flush().await?;
        self.0.disable_files().await
    }

    /// Writes nothing any more, as if power had failed, and ends the commit task.
    pub fn abandon(&self) {
        let mut state = self.0.state.borrow_mut();
        state.stopping = true;
        state.aborted.get_or_insert_with(|| "the file system was not mounted".to_owned());
        drop(state);
        self.0.wake_all();
    }

    /// Whether an error has aborted the journal, and which.
    #[must_use]
    pub fn aborted(&self) -> Option<String> {
        self.0.state.borrow().aborted.clone()
    }

    /// What the journal did so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.state.borrow().counts
    }

    /// The oldest transaction that is not home.
    fn oldest(&self) -> Option<Tid> {
        let mut state = self.0.state.borrow_mut();
        state.keep_from();
        state.logged.front().map(|logged| logged.tid)
    }

    /// Marks the log as empty, unless it no longer is.
    async fn mark_empty(&self) -> Result<bool, JournalError> {
        let mut superblock = self.0.superblock.lock().await;
        let next = {
            let state = self.0.state.borrow();
            let idle = state.running.is_none() && state.committing.is_none();
            if !idle || !state.logged.is_empty() {
                return Ok(false);
            }
            state.next_tid
        };
        if !self.0.omits(OmittedRule::EmptyFlush) {
            let flushed = self.0.device.flush().await;
            self.0.try_io(flushed)?;
        }
        superblock.set_start(Position { tid: next, block: 0 });
        self.0.write_superblock(&superblock, true).await?;
        let mut state = self.0.state.borrow_mut();
        let head = state.ring.head();
        state.ring.set_tail(Position { tid: next, block: head });
        Ok(true)
    }
}

impl Shared {
    /// After this error nothing more is written but the error itself, in the superblock.
    pub(super) fn abort(self: &Rc<Self>, error: &JournalError) {
        if self.state.borrow().aborted.is_some() {
            return;
        }
        self.state.borrow_mut().aborted = Some(error.to_string());
        self.wake_all();
        drop(self.rt.spawn_daemon("journal abort", note_abort(Rc::clone(self))));
    }

    /// Wakes all waiting tasks, which look again.
    fn wake_all(&self) {
        for waiting in [&self.changed, &self.copied, &self.homed] {
            waiting.notify_waiters();
        }
        self.wanted.notify_one();
    }
}

async fn note_abort(shared: Rc<Shared>) {
    let mut superblock = shared.superblock.lock().await;
    superblock.set_errno(-EIO);
    // The device may be what failed, and no caller is left to get the error.
    let _ = write_superblock(&shared.device, &shared.extents, &superblock, true).await;
}

fn share(
    rt: &Handle,
    buffers: &Buffers,
    extents: LogExtents,
    config: Config,
    superblock: Superblock,
) -> Shared {
    let caps = buffers.device().caps();
    let codec = superblock.codec();
    // The kernel skips one id: the last transaction may have begun before power was cut.
    let next = superblock.start().tid.next();
    let ring = Ring::new(superblock.first(), superblock.blocks(), next);
    Shared {
        rt: rt.clone(),
        device: buffers.device().clone(),
        buffers: buffers.clone(),
        extents,
        codec,
        limits: Cell::new(Limits::new(&ring, &codec, &config)),
        fua: caps.fua == Fua::Honoured,
        max_sectors: caps.max_sectors,
        state: RefCell::new(State::new(ring, next)),
        blank: RefCell::new(nandscape_block::Tag::ZERO.expand()),
        superblock: Mutex::new(rt, "journal superblock", superblock),
        checkpointing: Mutex::new(rt, "journal checkpoint", ()),
        changed: Notify::new(rt, "a transaction"),
        wanted: Notify::new(rt, "a commit to do"),
        copied: Notify::new(rt, "a copy in the log"),
        homed: Notify::new(rt, "a buffer home"),
        config,
    }
}
