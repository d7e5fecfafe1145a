//! The journal's state in memory: the running transaction, the committing one, and those whose copies
//! only the log holds. Everything here happens between waiting points.
//!
//! Invariants:
//! - A buffer claims a logged transaction from its commit until a home write of that copy has arrived, or a later
//!   transaction is committed that changed or freed it; `live` counts these claims.
//! - The tail never passes a transaction that a buffer claims, and never moves back.
//! - Transactions are committed in the order of their ids.

use super::buffer::{Buffer, JournalMembership};
use super::buffers::Buffers;
use super::config::Config;
use super::disk::{Codec, Position, Superblock};
use super::error::JournalError;
use super::extents::LogExtents;
use super::log::{Limits, Ring};
use super::tid::Tid;
use crate::ext4::rules::OmittedRule;
use nandscape_block::{AsyncDevice, SectorBytes};
use nandscape_rt::sync::{Mutex, Notify};
use nandscape_rt::{Handle, Nanos, invariant};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// What a journal did so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Transactions committed.
    pub commits: u64,
    /// Blocks written to the log: descriptors, copies, revoke and commit blocks.
    pub log_blocks: u64,
    /// Copies among them.
    pub copies: u64,
    /// Copies that were frozen, because the next transaction changed the block before they were
    /// written.
    pub frozen: u64,
    /// Revoke blocks among them.
    pub revoke_blocks: u64,
    /// Buffers written home.
    pub home_blocks: u64,
    /// Times that log space ran out and the oldest transaction had to be written home.
    pub forced_checkpoints: u64,
    /// Writes of the journal's superblock.
    pub superblocks: u64,
}

/// As many buffers as a transaction of one file's creation claims, or its end.
const BUFFERS_OF_MOST: usize = 8;

/// A transaction that takes in changes.
pub(super) struct Transaction {
    pub(super) tid: Tid,
    pub(super) started: Nanos,
    /// No handle may join any more.
    pub(super) locked: bool,
    /// Handles that are open.
    pub(super) handles: u32,
    /// Credits that were spent, or that open handles hold.
    pub(super) credits: u32,
    /// Every buffer that it claims, in the order in which it did so.
    pub(super) buffers: Vec<Rc<Buffer>>,
    pub(super) revokes: BTreeSet<u64>,
    /// Revoke blocks for which credits were spent.
    pub(super) revoke_blocks: u32,
}

impl Transaction {
    pub(super) fn new(tid: Tid, now: Nanos) -> Self {
        Self {
            tid,
            started: now,
            locked: false,
            handles: 0,
            credits: 0,
            buffers: Vec::with_capacity(BUFFERS_OF_MOST),
            revokes: BTreeSet::new(),
            revoke_blocks: 0,
        }
    }
}

/// A committed transaction, as long as the log must keep it.
pub(super) struct Logged {
    pub(super) tid: Tid,
    /// Its first block in the log.
    pub(super) start: u32,
    /// Buffers of which it has the newest committed copy, which is not home.
    pub(super) live: usize,
    /// Those buffers, and some that have left.
    pub(super) buffers: Vec<Rc<Buffer>>,
}

impl Logged {
    /// Whether a buffer has no newer copy than the one here.
    fn is_claimed(&self) -> bool {
        self.buffers.iter().any(|buffer| buffer.state.borrow().checkpoint == Some(self.tid))
    }
}

/// A transaction on its way into the log.
#[derive(Clone, Copy)]
pub(super) struct Committing {
    pub(super) tid: Tid,
    pub(super) start: u32,
    /// Its barrier is on its way: what is acknowledged from now on needs another.
    pub(super) barrier_sent: bool,
}

pub(super) struct State {
    pub(super) running: Option<Transaction>,
    pub(super) committing: Option<Committing>,
    /// Oldest first; their ids follow each other.
    pub(super) logged: VecDeque<Logged>,
    pub(super) next_tid: Tid,
    pub(super) committed: Tid,
    /// Everything up to this transaction is to be committed now.
    pub(super) requested: Tid,
    pub(super) ring: Ring,
    pub(super) aborted: Option<String>,
    pub(super) stopping: bool,
    pub(super) counts: Counts,
}

impl State {
    pub(super) fn new(ring: Ring, next_tid: Tid) -> Self {
        Self {
            running: None,
            committing: None,
            logged: VecDeque::new(),
            next_tid,
            committed: next_tid.previous(),
            requested: next_tid.previous(),
            ring,
            aborted: None,
            stopping: false,
            counts: Counts::default(),
        }
    }

    /// Where what the log must keep begins: the oldest transaction that is not home.
    pub(super) fn keep_from(&mut self) -> Position {
        while self.logged.front().is_some_and(|logged| logged.live == 0) {
            let gone = self.logged.pop_front();
            invariant!(
                gone.as_ref().is_none_or(|gone| !gone.is_claimed()),
                "the tail never passes what is not home"
            );
        }
        match (self.logged.front(), self.committing, &self.running) {
            (Some(logged), ..) => Position { tid: logged.tid, block: logged.start },
            (None, Some(committing), _) => {
                Position { tid: committing.tid, block: committing.start }
            }
            (None, None, Some(running)) => Position { tid: running.tid, block: self.ring.head() },
            (None, None, None) => Position { tid: self.next_tid, block: self.ring.head() },
        }
    }

    /// A buffer leaves the transaction that had its newest committed copy.
    pub(super) fn release(&mut self, tid: Tid) {
        let front = self.logged.front().map_or(tid, |front| front.tid);
        let logged = self.logged.get_mut(tid.since(front) as usize);
        invariant!(
            logged.as_ref().is_some_and(|logged| logged.tid == tid && logged.live > 0),
            "a buffer claims a logged transaction: {tid}"
        );
        if let Some(logged) = logged {
            logged.live -= 1;
        }
    }

    /// The tail may move to this transaction: all before it are home, and it is not before the tail.
    pub(super) fn check_tail(&self, keep: Tid) {
        let oldest = self.logged.iter().find(|logged| logged.live > 0);
        invariant!(
            oldest.is_none_or(|oldest| oldest.tid.reached(keep)),
            "the tail never passes what is not home: {keep}"
        );
        invariant!(
            keep.reached(self.ring.tail().tid),
            "the tail never moves back: {keep} after {}",
            self.ring.tail().tid
        );
    }
}

/// What the journal, its handles and its tasks share.
pub(super) struct Shared {
    pub(super) rt: Handle,
    pub(super) device: AsyncDevice,
    pub(super) buffers: Buffers,
    pub(super) extents: LogExtents,
    pub(super) config: Config,
    pub(super) codec: Codec,
    pub(super) limits: Cell<Limits>,
    /// The device takes FUA.
    pub(super) fua: bool,
    /// Longest bio.
    pub(super) max_sectors: u32,
    pub(super) state: RefCell<State>,
    /// A block of zeroes, in which blocks of the log are made.
    pub(super) blank: RefCell<Box<SectorBytes>>,
    pub(super) superblock: Mutex<Superblock>,
    /// Held by the one who makes room in the log.
    pub(super) checkpointing: Mutex<()>,
    /// A transaction changed its state, log space came free, or the journal was aborted.
    pub(super) changed: Notify,
    /// The commit task may have something to do.
    pub(super) wanted: Notify,
    /// Copies arrived in the log.
    pub(super) copied: Notify,
    /// Buffers arrived home.
    pub(super) homed: Notify,
}

impl Shared {
    /// Whether this rule is left out.
    pub(super) fn omits(&self, rule: OmittedRule) -> bool {
        self.config.omit == Some(rule)
    }

    /// # Errors
    /// [`JournalError::Aborted`].
    pub(super) fn alive(&self) -> Result<(), JournalError> {
        match &self.state.borrow().aborted {
            Some(why) => Err(JournalError::Aborted(why.clone())),
            None => Ok(()),
        }
    }

    /// Asks for the commit of everything up to `tid`.
    pub(super) fn request(&self, tid: Tid) {
        let mut state = self.state.borrow_mut();
        if !state.requested.reached(tid) {
            state.requested = tid;
            self.wanted.notify_one();
        }
    }

    /// Waits until `tid` is committed, having asked for it.
    pub(super) async fn commit(&self, tid: Tid) -> Result<(), JournalError> {
        loop {
            if self.is_over(tid) {
                return Ok(());
            }
            self.alive()?;
            self.request(tid);
            self.changed.notified().await;
        }
    }

    /// Whether nothing of `tid` is left to be committed.
    fn is_over(&self, tid: Tid) -> bool {
        let state = self.state.borrow();
        let committing = state.committing.map(|committing| committing.tid);
        let running = state.running.as_ref().map(|running| running.tid);
        state.committed.reached(tid) || (committing != Some(tid) && running != Some(tid))
    }

    /// Moves a buffer of a committed transaction to the checkpoint list, or drops it from the journal (jbd2
    /// `__jbd2_journal_refile_buffer`). Whether it is to be checkpointed.
    pub(super) fn refile_buffer(&self, tid: Tid, buffer: &Rc<Buffer>) -> bool {
        let mut state = buffer.state.borrow_mut();
        let claim = std::mem::take(&mut state.committing);
        invariant!(
            claim != JournalMembership::None && !state.to_log,
            "block {} is refiled once, when its copy is in the log",
            buffer.block()
        );
        (state.frozen, state.to_log) = (None, false);
        if claim == JournalMembership::Forgotten && self.omits(OmittedRule::ForgottenHome) {
            return false;
        }
        if let Some(older) = state.checkpoint.take() {
            self.state.borrow_mut().release(older);
        }
        match claim {
            JournalMembership::Dirty => {
                (state.checkpoint, state.dirty_since) = (Some(tid), self.rt.now());
                true
            }
            JournalMembership::Forgotten | JournalMembership::None => false,
        }
    }
}
