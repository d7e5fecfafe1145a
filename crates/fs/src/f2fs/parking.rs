//! Writes that wait for their turn, where blocks of a log must come to the device in the order of their allocation:
//! sections are zones, or superblocks. [`sending`](super::sending) parks and sends them.

use super::format::BlockAddr;
use nandscape_block::{Bio, BlockError, Reply};
use nandscape_rt::BoxFuture;
use nandscape_rt::sync::OneshotSender;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// What the device answers.
pub(super) type Answer = std::result::Result<Reply, BlockError>;

/// A write that waits for its turn, and who waits for its answer.
pub(super) struct Parked {
    pub(super) bio: Bio,
    pub(super) answer: OneshotSender<BoxFuture<'static, Answer>>,
}

/// Writes before their turn.
#[derive(Default)]
pub(crate) struct Parking {
    /// By their first blocks.
    pub(super) parked: RefCell<BTreeMap<BlockAddr, Parked>>,
    /// Those that waited, since mount.
    pub(super) waits: Cell<u64>,
}

impl Parking {
    /// No write waits for its turn any more: the volume was stopped.
    pub(crate) fn abandon(&self) {
        self.parked.borrow_mut().clear();
    }
}
