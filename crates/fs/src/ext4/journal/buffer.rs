//! One block of metadata in memory, and what the journal has to do with it.
//!
//! A buffer has one content, the newest. What a transaction must log, and what must be written home,
//! follows from three claims on it: of the running transaction, of the committing one, and of the
//! newest committed one whose copy only the log holds. Rules, as in `fs/jbd2/transaction.c`:
//! - A buffer that the running or the committing transaction claims is not written home.
//! - The running transaction may change a buffer of the committing one, which then keeps the content
//!   that it is to log as a frozen copy. While that is on its way to the log, handles wait.
//! - Contents are shared with the writes that carry them, and copied when they are changed: no write
//!   under way ever changes.
//!
//! A buffer costs its 4,096 bytes, shared with the device as long as neither changes, and
//! [`Buffer::OVERHEAD_BYTES`].

use super::disk::sum;
use super::tid::Tid;
use crate::ext4::format::{BLOCK_BYTES, BlockMut, Sums};
use nandscape_block::{Owner, SectorBytes, SectorData};
use nandscape_rt::Nanos;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What a transaction has to do with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Claim {
    /// Nothing.
    #[default]
    None,
    /// It changed it.
    Dirty,
    /// It freed the block.
    Forgotten,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) content: SectorData,
    /// What is known of the checksum of the content, if that is bytes.
    pub(super) sums: Sums,
    /// The file whose data it is, if it is data.
    pub(super) owner: Option<Owner>,
    /// The content is still on its way from the device.
    pub(super) reading: bool,
    pub(super) running: Claim,
    pub(super) committing: Claim,
    /// The content to be logged, if the running transaction has changed it since.
    pub(super) frozen: Option<SectorData>,
    /// The committing transaction has not written it to the log yet.
    pub(super) to_log: bool,
    /// It is on its way to the log.
    pub(super) logging: bool,
    /// The newest transaction whose copy is not home.
    pub(super) checkpoint: Option<Tid>,
    /// It is on its way home.
    pub(super) going_home: bool,
    /// When that transaction was committed.
    pub(super) dirty_since: Nanos,
}

impl State {
    /// Whether nothing but memory holds on to the buffer.
    pub(super) fn is_idle(&self) -> bool {
        self.is_settled() && self.checkpoint.is_none() && !self.reading && !self.going_home
    }

    /// Whether no transaction under way claims it.
    pub(super) fn is_settled(&self) -> bool {
        self.running == Claim::None && self.committing == Claim::None
    }

    /// Keeps the content for the committing transaction, before it changes; says whether it had to.
    pub(super) fn freeze(&mut self) -> bool {
        let must = self.to_log && self.frozen.is_none();
        if must {
            self.frozen = Some(self.content.clone());
        }
        must
    }

    /// The content as bytes that may be changed.
    pub(super) fn block_mut(&mut self) -> BlockMut<'_> {
        if !matches!(self.content, SectorData::Bytes(_)) {
            let bytes = self.content.expand().unwrap_or_else(zeroes);
            (self.content, self.sums) = (SectorData::Bytes(Arc::from(bytes)), Sums::default());
        }
        match &mut self.content {
            SectorData::Bytes(bytes) => BlockMut::new(Arc::make_mut(bytes), &self.sums),
            _ => unreachable!("made bytes above"),
        }
    }

    /// Takes the content to be logged, and its CRC-32C from a register on, if there is one.
    pub(super) fn take_copy(&mut self, register: Option<u32>) -> (SectorData, Option<u32>) {
        if let Some(frozen) = self.frozen.take() {
            let sum = register.and_then(|register| sum(&frozen, register));
            return (frozen, sum);
        }
        let sum = register.and_then(|register| match &self.content {
            SectorData::Bytes(bytes) => Some(self.sums.crc32c(register, bytes, BLOCK_BYTES)),
            other => sum(other, register),
        });
        (self.content.clone(), sum)
    }
}

fn zeroes() -> Box<SectorBytes> {
    nandscape_block::Tag::ZERO.expand()
}

/// A block of metadata, or of data that is journalled.
pub struct Buffer {
    block: u64,
    pub(super) state: RefCell<State>,
    /// Looked up since eviction last came by.
    pub(super) referenced: Cell<bool>,
    /// As what the content was found sound since it came.
    verified: Cell<Option<Verified>>,
}

/// What a block is taken for, and by whom: a kind that the caller numbers, and the checksum's seed.
pub type Verified = (u8, u32);

impl Buffer {
    /// What a buffer costs besides its content: itself, its counts and its place in the cache; at most
    /// 192 bytes.
    pub const OVERHEAD_BYTES: usize = size_of::<Self>() + 2 * size_of::<usize>() + 32;

    pub(super) fn new(block: u64, state: State) -> Self {
        Self {
            block,
            state: RefCell::new(state),
            referenced: Cell::new(true),
            verified: Cell::new(None),
        }
    }

    /// The block.
    #[must_use]
    pub const fn block(&self) -> u64 {
        self.block
    }

    /// Looks at its bytes. They may only be changed through a
    /// [`TransactionHandle`](super::TransactionHandle), and not while they are looked at.
    pub fn with<R>(&self, look: impl FnOnce(&SectorBytes) -> R) -> R {
        let state = self.state.borrow();
        match &state.content {
            SectorData::Bytes(bytes) => look(bytes),
            other => look(&other.expand().unwrap_or_else(zeroes)),
        }
    }

    /// Looks at its bytes, and at their checksum the first time that they are taken for this. Whoever
    /// changes them keeps the checksum.
    ///
    /// # Errors
    /// What `check` says; it is asked again the next time.
    pub fn verify<E>(
        &self,
        taken_for: Verified,
        check: impl FnOnce(&SectorBytes) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.verified.get() != Some(taken_for) {
            self.with(check)?;
            self.verified.set(Some(taken_for));
        }
        Ok(())
    }

    /// Replaces the content as a whole.
    pub(super) fn replace(&self, state: &mut State, content: SectorData) {
        (state.content, state.sums) = (content, Sums::default());
        self.verified.set(None);
    }

    /// Whether no transaction under way has changed it: recovery would bring this content.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.state.borrow().is_settled()
    }

    /// Its content, shared.
    #[must_use]
    pub fn content(&self) -> SectorData {
        self.state.borrow().content.clone()
    }
}

const _: () = assert!(Buffer::OVERHEAD_BYTES <= 192);
