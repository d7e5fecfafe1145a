//! One block of metadata in memory, and what the journal has to do with it.
//!
//! A buffer has one content, the newest. What a transaction must log, and what must be written home,
//! follows from three claims on it: of the running transaction, of the committing one, and of the
//! newest committed one whose copy only the log holds. Rules, as in `fs/jbd2/transaction.c`:
//! - A buffer that the running or the committing transaction claims is not written home.
//! - The running transaction may change a buffer of the committing one, which then keeps the content
//!   that it is to log as a frozen copy. While that is on its way to the log, handles wait.
//! - No write in flight ever changes. What it carries of metadata is a copy of those lines that say
//!   something and have changed since the copy before it ([`SparseBytes`]); data are shared, and copied
//!   when they are changed.
//! - A copy holds what the block held when it was taken.
//!
//! A buffer costs its 4,096 bytes, what its newest copy takes, which is shared with the device, and
//! [`Buffer::OVERHEAD_BYTES`].

use super::disk::sum;
use super::tid::Tid;
use crate::ext4::format::{BlockMut, Sums, after_block};
use nandscape_block::{Owner, SectorBytes, SectorData, SparseBytes};
use nandscape_rt::{Nanos, invariant};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What a transaction has to do with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum JournalMembership {
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
    /// What is known of the checksum of the content, if that is bytes, and how it differs from `copy`.
    pub(super) sums: Sums,
    /// The newest copy of the content.
    copy: Option<Arc<SparseBytes>>,
    /// The file whose data it is, if it is data.
    pub(super) owner: Option<Owner>,
    /// The content is still on its way from the device.
    pub(super) reading: bool,
    pub(super) running: JournalMembership,
    pub(super) committing: JournalMembership,
    /// The content to be logged, if the running transaction has changed it since.
    pub(super) frozen: Option<LogCopy>,
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
    /// Of a buffer with this content.
    pub(super) fn of(content: SectorData) -> Self {
        Self { content, ..Self::default() }
    }

    /// Of a buffer whose content is on its way.
    pub(super) fn awaiting() -> Self {
        Self { reading: true, ..Self::default() }
    }

    /// Whether nothing but memory holds on to the buffer.
    pub(super) fn is_idle(&self) -> bool {
        self.is_settled() && self.checkpoint.is_none() && !self.reading && !self.going_home
    }

    /// Whether no uncommitted transaction claims it.
    pub(super) fn is_settled(&self) -> bool {
        self.running == JournalMembership::None && self.committing == JournalMembership::None
    }

    /// Whether the running transaction claims it and the committing one has left nothing.
    pub(super) fn is_only_running(&self) -> bool {
        self.running != JournalMembership::None
            && self.committing == JournalMembership::None
            && !self.to_log
            && !self.logging
            && self.frozen.is_none()
    }

    /// Whether it may change: the running transaction claims it, and what the committing one is to log is kept.
    pub(super) fn may_change(&self) -> bool {
        self.running == JournalMembership::Dirty && (!self.to_log || self.frozen.is_some())
    }

    /// Keeps the content for the committing transaction, before it changes; says whether it had to.
    pub(super) fn freeze(&mut self) -> bool {
        let must = self.to_log && self.frozen.is_none();
        if must {
            self.frozen = Some(self.log_copy());
        }
        must
    }

    /// The content as bytes that may be changed.
    pub(super) fn block_mut(&mut self) -> BlockMut<'_> {
        if !matches!(self.content, SectorData::Bytes(_)) {
            let bytes = self.content.expand().unwrap_or_else(zeroes);
            self.set(SectorData::Bytes(Arc::from(bytes)));
        }
        match &mut self.content {
            SectorData::Bytes(bytes) => BlockMut::new(Arc::make_mut(bytes), &self.sums),
            _ => unreachable!("made bytes above"),
        }
    }

    /// Replaces the content as a whole.
    fn set(&mut self, content: SectorData) {
        (self.sums, self.copy) = (Sums::default(), None);
        self.content = match content {
            SectorData::Sparse(sparse) => {
                let bytes = SectorData::Bytes(Arc::from(sparse.bytes()));
                self.copy = Some(sparse);
                bytes
            }
            content => content,
        };
    }

    /// The content as a write carries it.
    pub(super) fn share(&mut self) -> SectorData {
        match &self.content {
            SectorData::Bytes(bytes) if self.owner.is_none() => {
                let copy = match self.copy.take() {
                    Some(copy) if self.sums.changed() == 0 => copy,
                    older => Arc::new(new_copy(older.as_ref(), &self.sums, bytes)),
                };
                invariant!(*copy.bytes() == **bytes, "a copy holds what the block held");
                SectorData::Sparse(Arc::clone(self.copy.insert(copy)))
            }
            content => content.clone(),
        }
    }

    /// Takes what is to be logged.
    pub(super) fn take_copy(&mut self) -> LogCopy {
        self.frozen.take().unwrap_or_else(|| self.log_copy())
    }

    fn log_copy(&mut self) -> LogCopy {
        let whole = match &self.content {
            SectorData::Bytes(bytes) => Some(self.sums.whole(bytes)),
            _ => None,
        };
        LogCopy { content: self.share(), whole }
    }
}

/// A copy of a buffer's content, which shares what has not changed since the older one.
fn new_copy(older: Option<&Arc<SparseBytes>>, sums: &Sums, bytes: &SectorBytes) -> SparseBytes {
    let changed = sums.settle();
    let shares = older.and_then(|older| SparseBytes::changed(older, bytes, changed));
    shares.unwrap_or_else(|| SparseBytes::new(bytes))
}

/// A content to be logged.
pub(super) struct LogCopy {
    pub(super) content: SectorData,
    /// Its CRC-32C begun at 0, if that is known.
    whole: Option<u32>,
}

impl LogCopy {
    /// Its CRC-32C from a register on; none of what is not kept.
    pub(super) fn crc32c(&self, register: u32) -> Option<u32> {
        match self.whole {
            Some(whole) => Some(after_block(register, whole)),
            None => sum(&self.content, register),
        }
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
    /// 256 bytes.
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

    /// Looks at its bytes, and at their checksum the first time that they are taken for this. Changes
    /// keep the checksum.
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

    /// Changes what the running transaction has claimed.
    pub(crate) fn complete(&self, change: impl FnOnce(&mut BlockMut<'_>)) {
        let mut state = self.state.borrow_mut();
        invariant!(state.may_change(), "block {} is claimed before it changes", self.block);
        change(&mut state.block_mut());
    }

    /// Changes the content without a transaction, for campaigns that must notice.
    pub(crate) fn change_unlogged(&self, bytes: &SectorBytes) {
        self.state.borrow_mut().block_mut().whole().copy_from_slice(bytes);
    }

    /// Replaces the content as a whole.
    pub(super) fn replace(&self, state: &mut State, content: SectorData) {
        state.set(content);
        self.verified.set(None);
    }

    /// Whether no uncommitted transaction has changed it: recovery would bring this content.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.state.borrow().is_settled()
    }

    /// Whether the device has its content, and it is not on its way there.
    pub(crate) fn is_home(&self) -> bool {
        self.state.borrow().is_idle()
    }

    /// Its content, shared.
    #[must_use]
    pub fn content(&self) -> SectorData {
        self.state.borrow().content.clone()
    }
}

const _: () = assert!(Buffer::OVERHEAD_BYTES <= 256);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext4::format::{BLOCK_BYTES, Editable, crc32c};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// What a content and its checksum are, by the bytes themselves.
    fn content_and_sum(bytes: &SectorBytes) -> (SectorData, Option<u32>) {
        (SectorData::Bytes(Arc::new(*bytes)), Some(crc32c(7, bytes)))
    }

    proptest! {
        /// However a block changes from copy to copy, a copy is what the block was when it was taken,
        /// frozen or not, and a block that came as a copy goes on from there.
        #[test]
        fn copies_are_of_their_moment(
            changes in vec((0..BLOCK_BYTES, 0..200_usize, any::<u8>(), 0..4_u8), 1..40),
            came in any::<bool>(),
        ) {
            let mut bytes = [3; BLOCK_BYTES];
            let first = if came { SectorData::sparse(&bytes) } else { content_and_sum(&bytes).0 };
            let mut state = State::default();
            state.set(first);
            for (at, len, byte, then) in changes {
                let range = at..BLOCK_BYTES.min(at + len);
                bytes[range.clone()].fill(byte);
                state.block_mut().part(range).fill(byte);
                if then == 0 {
                    continue;
                }
                let before = bytes;
                if then == 1 {
                    state.to_log = true;
                    prop_assert!(state.freeze() && !state.freeze());
                    *state.block_mut().whole() = [byte; BLOCK_BYTES];
                    bytes = [byte; BLOCK_BYTES];
                }
                let copy = state.take_copy();
                prop_assert_eq!((copy.content.clone(), copy.crc32c(7)), content_and_sum(&before));
                prop_assert_eq!(state.share(), content_and_sum(&bytes).0);
            }
        }

        /// A copy takes what has changed since the one before, and all where so much has changed that
        /// sharing does not pay.
        #[test]
        fn copies_share_what_has_not_changed(first in 0..64_usize) {
            let mut state = State::of(SectorData::Bytes(Arc::new([3; BLOCK_BYTES])));
            let lines = |data: SectorData| match data {
                SectorData::Sparse(sparse) => sparse.lines(),
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(lines(state.share()), 64);
            for change in 0..64 {
                state.block_mut().part((first + change) % 64 * 64..(first + change) % 64 * 64 + 1).fill(1);
                prop_assert_eq!(lines(state.share()), 1);
                prop_assert_eq!(lines(state.share()), 1);
            }
            state.block_mut().part(4_095..4_096).fill(1);
            prop_assert_eq!(lines(state.share()), 64);
            state.block_mut().part(63..65).fill(2);
            prop_assert_eq!(lines(state.share()), 2);
        }
    }
}
