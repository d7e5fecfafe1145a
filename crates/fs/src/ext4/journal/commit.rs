//! The commit task: every so often, or when a task waits for it, the running transaction is written
//! to the log. After `jbd2_journal_commit_transaction` in `fs/jbd2/commit.c`; its phases are the
//! functions called by [`commit_running`], in order.
//!
//! Invariants:
//! - A buffer is on the list of one transaction in progress at a time but for the running one, which may claim what the
//!   committing one has; when a transaction becomes the committing one, nothing of the one before is left.
//! - A transaction takes no more log blocks than its share, and no more than are free.
//! - A transaction revokes no block that it logs.

use super::buffer::{Buffer, JournalMembership, LogCopy};
use super::buffers::Runs;
use super::disk::{BLOCK_BYTES, Commit, Descriptor, Position, Tag, encode_revokes, escape};
use super::error::JournalError;
use super::state::{Committing, Logged, Shared};
use super::tid::Tid;
use crate::ext4::rules::OmittedRule;
use nandscape_block::sparse::{LINE_BYTES, lines_of};
use nandscape_block::{Bio, BlockError, Flags, SectorBytes, SectorData, SparseBytes};
use nandscape_rt::Nanos;
use nandscape_rt::combine::{join2, select2};
use nandscape_rt::{defect, invariant};
use std::future::{Future, ready};
use std::rc::Rc;
use std::sync::Arc;

/// What the journal asks of the file system around a commit.
pub trait CommitHook {
    /// Writes out, and waits for, the data that must be on the device before transaction `tid` is
    /// committed (`data=ordered`). An error aborts the journal; who wants to go on answers `Ok`.
    fn write_out(&self, tid: Tid) -> impl Future<Output = Result<(), BlockError>>;

    /// No handle of the running transaction is open any more: what it claimed and has not changed yet is
    /// changed now. An error aborts the journal.
    ///
    /// # Errors
    /// [`JournalError::Aborted`] if the file system is gone.
    fn complete(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Transaction `tid` is committed: what it freed may be used again.
    fn committed(&self, _tid: Tid) {}
}

/// Nothing is asked.
impl CommitHook for () {
    fn write_out(&self, _tid: Tid) -> impl Future<Output = Result<(), BlockError>> {
        ready(Ok(()))
    }
}

/// A transaction that is being committed: what is to be logged, and where.
struct Work {
    tid: Tid,
    /// Its first block in the log.
    start: u32,
    /// How many blocks it takes there.
    blocks: u32,
    dirty: Vec<Rc<Buffer>>,
    forgotten: Vec<Rc<Buffer>>,
    revokes: Vec<u64>,
}

/// What the commit task does next.
enum Next {
    Commit,
    WaitUntil(Nanos),
    Wait,
    Stop,
}

/// Commits until the journal is stopped.
pub(super) async fn serve(shared: Rc<Shared>, hook: impl CommitHook) {
    loop {
        match shared.next_commit() {
            Next::Commit => {
                if let Err(error) = commit_running(&shared, &hook).await {
                    shared.abort(&error);
                }
            }
            Next::WaitUntil(at) => {
                let _ = select2(shared.rt.sleep_until(at), shared.wanted.notified()).await;
            }
            Next::Wait => shared.wanted.notified().await,
            Next::Stop => return,
        }
    }
}

async fn commit_running(shared: &Rc<Shared>, hook: &impl CommitHook) -> Result<(), JournalError> {
    shared.lock_running().await;
    hook.complete()?;
    let Some(work) = shared.switch() else { return Ok(()) };
    shared.mark_in_use(&work).await?;
    if shared.omits(OmittedRule::CommitBeforeData) {
        shared.write_commit_block(&work).await?;
    }
    let (data, copies) = join2(hook.write_out(work.tid), shared.write_copies(&work)).await;
    data?;
    copies?;
    let mut freed = shared.tail_to_move();
    if !shared.omits(OmittedRule::CommitBeforeData) {
        shared.write_commit_block(&work).await?;
    }
    if shared.omits(OmittedRule::LateHome) {
        freed = shared.tail_to_move();
    }
    let tid = work.tid;
    shared.refile_buffers(work).await?;
    hook.committed(tid);
    shared.finish(tid);
    match freed {
        Some(tail) => shared.move_tail_to(tail).await,
        None => Ok(()),
    }
}

impl Shared {
    fn next_commit(&self) -> Next {
        let state = self.state.borrow();
        match &state.running {
            _ if state.aborted.is_some() => {
                if state.stopping {
                    Next::Stop
                } else {
                    Next::Wait
                }
            }
            Some(running) if state.requested.reached(running.tid) => Next::Commit,
            Some(running) => {
                let due = running.started.saturating_add(self.config.commit_interval);
                if due <= self.rt.now() { Next::Commit } else { Next::WaitUntil(due) }
            }
            None if state.stopping => Next::Stop,
            None => Next::Wait,
        }
    }

    /// No handle joins the running transaction any more; waits for those that have.
    async fn lock_running(&self) {
        let busy = || {
            let mut state = self.state.borrow_mut();
            let running = state.running.as_mut();
            running.is_some_and(|running| {
                running.locked = true;
                running.handles > 0
            })
        };
        while busy() {
            self.changed.notified().await;
        }
    }

    /// The running transaction becomes the committing one and takes its place in the log; another may
    /// begin.
    fn switch(&self) -> Option<Work> {
        let mut state = self.state.borrow_mut();
        let running = state.running.take()?;
        let (mut dirty, mut forgotten) = (Vec::with_capacity(running.buffers.len()), Vec::new());
        for buffer in running.buffers {
            let mut buffer_state = buffer.state.borrow_mut();
            invariant!(
                buffer_state.is_only_running(),
                "block {} is of the running transaction alone when that is committed",
                buffer.block()
            );
            buffer_state.committing = std::mem::take(&mut buffer_state.running);
            buffer_state.to_log = buffer_state.committing == JournalMembership::Dirty;
            let list = if buffer_state.to_log { &mut dirty } else { &mut forgotten };
            list.push(Rc::clone(&buffer));
        }
        invariant!(
            dirty.iter().all(|buffer| !running.revokes.contains(&buffer.block())),
            "{} revokes no block that it logs",
            running.tid
        );
        let revokes: Vec<u64> = match self.omits(OmittedRule::MissingRevoke) {
            true => Vec::new(),
            false => running.revokes.into_iter().collect(),
        };
        let revoke_blocks = revokes.len().div_ceil(self.codec.block_revokes());
        let descriptors = dirty.len().div_ceil(self.codec.descriptor_copies());
        let blocks = (revoke_blocks + descriptors + dirty.len() + 1) as u32;
        invariant!(
            blocks <= self.limits.get().transaction_blocks,
            "{} takes {blocks} log blocks, no more than its share",
            running.tid
        );
        let start = state.ring.take(blocks);
        let tid = running.tid;
        state.committing = Some(Committing { tid, start, barrier_sent: false });
        state.counts.log_blocks += u64::from(blocks);
        state.counts.copies += dirty.len() as u64;
        state.counts.revoke_blocks += revoke_blocks as u64;
        drop(state);
        self.changed.notify_waiters();
        Some(Work { tid, start, blocks, dirty, forgotten, revokes })
    }

    /// If the superblock says that the log is empty, it now says where this transaction begins. The
    /// commit block's barrier makes that durable.
    async fn mark_in_use(self: &Rc<Self>, work: &Work) -> Result<(), JournalError> {
        let mut superblock = self.superblock.lock().await;
        if superblock.start().block != 0 {
            return Ok(());
        }
        let start = Position { tid: work.tid, block: work.start };
        superblock.set_start(start);
        self.write_superblock(&superblock, false).await?;
        self.state.borrow_mut().ring.set_tail(start);
        Ok(())
    }

    /// Writes revoke blocks, descriptors and copies, all at once, and waits for them.
    async fn write_copies(&self, work: &Work) -> Result<(), JournalError> {
        let bios = self.copy_bios(work)?;
        let mut pending: Vec<_> = bios.into_iter().map(|bio| self.device.submit(bio)).collect();
        if self.omits(OmittedRule::CopiesWait) {
            pending.clear();
        }
        let mut result = Ok(());
        for reply in pending {
            result = result.and(reply.await.map(drop));
        }
        for buffer in &work.dirty {
            buffer.state.borrow_mut().logging = false;
        }
        self.copied.notify_waiters();
        Ok(result?)
    }

    fn copy_bios(&self, work: &Work) -> Result<Vec<Bio>, JournalError> {
        let mut log = LogWrites::new(self, work.start, work.blocks - 1);
        let mut blank = self.blank.borrow_mut();
        for revokes in work.revokes.chunks(self.codec.block_revokes()) {
            let used = encode_revokes(&self.codec, work.tid, revokes, &mut blank);
            log.push_block(&mut blank, used)?;
        }
        let mut copies = Vec::with_capacity(work.dirty.len().min(self.codec.descriptor_copies()));
        for buffers in work.dirty.chunks(self.codec.descriptor_copies()) {
            let mut descriptor = Descriptor::new(&self.codec, work.tid, &mut blank);
            let register = self.codec.copy_register(work.tid);
            for buffer in buffers {
                let copy = start_logging(buffer);
                let block = buffer.block();
                let sum = register.and_then(|register| copy.crc32c(register));
                let (tag, copy) = match escape(&copy.content) {
                    Some(copy) => (Tag::new(&self.codec, work.tid, block, &copy, true), copy),
                    None => (Tag::summed(&self.codec, block, sum, false), copy.content),
                };
                descriptor.push(&tag);
                copies.push(copy);
            }
            let used = descriptor.finish();
            log.push_block(&mut blank, used)?;
            for copy in copies.drain(..) {
                log.push(copy)?;
            }
        }
        Ok(log.finish())
    }

    /// Writes the block that makes the transaction count, when all before it is durable.
    async fn write_commit_block(&self, work: &Work) -> Result<(), JournalError> {
        let now = self.rt.now().0;
        let commit = Commit {
            seconds: self.config.epoch_s + now / 1_000_000_000,
            nanoseconds: (now % 1_000_000_000) as u32,
        };
        let at = self.state.borrow().ring.after(work.start, work.blocks - 1);
        let mut log = LogWrites::new(self, at, 1);
        {
            let mut blank = self.blank.borrow_mut();
            commit.encode(&self.codec, work.tid, &mut blank);
            log.push_block(&mut blank, Commit::USED_BYTES)?;
        }
        match &mut self.state.borrow_mut().committing {
            Some(committing) if committing.tid == work.tid => committing.barrier_sent = true,
            _ => return Err(defect!("{} is the committing transaction", work.tid).into()),
        }
        for bio in log.finish() {
            self.device.submit(bio.with(self.commit_flags())).await?;
        }
        if !self.fua && self.makes_commits_durable() {
            self.device.flush().await?;
        }
        Ok(())
    }

    fn commit_flags(&self) -> Flags {
        let durable = self.fua && self.makes_commits_durable();
        let fua = if durable { Flags::FUA } else { Flags::NONE };
        let omitted = [
            OmittedRule::MissingBarrier,
            OmittedRule::CommitBeforeData,
            OmittedRule::CommitPreflush,
        ];
        let flushes = !omitted.into_iter().any(|rule| self.omits(rule));
        fua | if flushes { Flags::PREFLUSH } else { Flags::NONE }
    }

    fn makes_commits_durable(&self) -> bool {
        !self.omits(OmittedRule::MissingBarrier) && !self.omits(OmittedRule::CommitFua)
    }

    /// The buffers now wait to be written home; those that were freed leave.
    async fn refile_buffers(&self, work: Work) -> Result<(), JournalError> {
        let Work { tid, start, mut dirty, forgotten, .. } = work;
        dirty.retain(|buffer| self.refile_buffer(tid, buffer));
        let live = dirty.len();
        invariant!(
            self.state.borrow().logged.back().is_none_or(|last| last.tid.next() == tid),
            "logged transactions follow each other: {tid}"
        );
        self.state.borrow_mut().logged.push_back(Logged { tid, start, live, buffers: dirty });
        for buffer in forgotten {
            self.refile_buffer(tid, &buffer);
            // The block may be used for something else soon, over which this must not be written.
            let waits = !self.omits(OmittedRule::HomeInFlight);
            while waits && buffer.state.borrow().going_home {
                self.alive()?;
                self.homed.notified().await;
            }
            if buffer.state.borrow().is_idle() {
                self.buffers.remove(buffer.block());
            }
        }
        Ok(())
    }

    fn finish(&self, tid: Tid) {
        let mut state = self.state.borrow_mut();
        invariant!(
            state.committed.next() == tid && state.committing.is_some_and(|one| one.tid == tid),
            "transactions are committed in order: {tid} after {}",
            state.committed
        );
        state.committing = None;
        state.committed = tid;
        state.counts.commits += 1;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Where the tail can go with the barrier of the commit block to come, if that frees enough to be
    /// worth a write of the superblock.
    fn tail_to_move(&self) -> Option<Position> {
        let mut state = self.state.borrow_mut();
        let keep = state.keep_from();
        let freed = u64::from(state.ring.before(keep.block));
        (freed >= self.limits.get().tail_move_blocks).then_some(keep)
    }

    /// Moves the tail, unless another task moved it meanwhile.
    async fn move_tail_to(self: &Rc<Self>, tail: Position) -> Result<(), JournalError> {
        let superblock = self.superblock.lock().await;
        let now = self.state.borrow().ring.tail();
        if now.tid.reached(tail.tid) {
            return Ok(());
        }
        self.write_tail(superblock, tail).await
    }
}

/// What is to be logged of a buffer, which from now on is on its way.
fn start_logging(buffer: &Buffer) -> LogCopy {
    let mut state = buffer.state.borrow_mut();
    invariant!(state.to_log && !state.logging, "block {} is logged once", buffer.block());
    (state.to_log, state.logging) = (false, true);
    state.take_copy()
}

/// Contents for consecutive log blocks, made into bios.
struct LogWrites<'a> {
    shared: &'a Shared,
    at: u32,
    runs: Runs,
    bios: Vec<Bio>,
}

impl<'a> LogWrites<'a> {
    /// For so many blocks from the log's block `at` on.
    fn new(shared: &'a Shared, at: u32, blocks: u32) -> Self {
        let runs = Runs::expecting(shared.max_sectors, blocks as usize);
        Self { shared, at, runs, bios: Vec::with_capacity(1) }
    }

    /// Adds a block of the log's own, of which `used` bytes are in use, and those at its very end. It is
    /// zeroes again then.
    fn push_block(&mut self, block: &mut SectorBytes, used: usize) -> Result<(), JournalError> {
        let end = BLOCK_BYTES - LINE_BYTES..BLOCK_BYTES;
        let lines = lines_of(&(0..used)) | lines_of(&end);
        let content = SectorData::Sparse(Arc::new(SparseBytes::within(block, lines)));
        block[..used].fill(0);
        block[end].fill(0);
        self.push(content)
    }

    fn push(&mut self, content: SectorData) -> Result<(), JournalError> {
        let (at, _) = self.shared.extents.locate(self.at)?;
        let ended = self.runs.push(at, content);
        self.bios.extend(ended.map(|run| run.into_bio(FLAGS)));
        self.at = self.shared.state.borrow().ring.after(self.at, 1);
        Ok(())
    }

    fn finish(mut self) -> Vec<Bio> {
        let last = self.runs.take();
        self.bios.extend(last.map(|run| run.into_bio(FLAGS)));
        self.bios
    }
}

/// The flags of log writes.
const FLAGS: Flags = Flags::JOURNAL;
