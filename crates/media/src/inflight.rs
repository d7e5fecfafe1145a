//! Commands whose completion lies in the future, one queue a unit: what a power cut has to undo.
//!
//! Invariant: units work first come, first served, so a queue is sorted by completion, and at any
//! instant at most its first command has begun. Completed commands are dropped lazily, when the next
//! write or reset of the unit comes.

use crate::command::ChunkState;
use nandscape_rt::Nanos;
use std::collections::VecDeque;

/// What a command does to its chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Wrote `sectors` from `sector` on.
    Write { sector: u32, sectors: u32 },
    /// Erased a chunk that had this write pointer and state; the chunk's erases afterwards.
    Erase { wp: u32, state: ChunkState, erases: u32 },
}

/// A command under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InFlight {
    /// When its unit begins.
    pub(crate) start: Nanos,
    /// When it completes.
    pub(crate) done: Nanos,
    /// Row of its chunk.
    pub(crate) row: usize,
    pub(crate) change: Change,
}

/// The commands under way on one unit.
#[derive(Clone, Default, Debug)]
pub(crate) struct Queue(VecDeque<InFlight>);

impl Queue {
    #[inline]
    pub(crate) fn push(&mut self, command: InFlight) {
        self.0.push_back(command);
    }

    /// Takes the first command, if it completed by `now`.
    #[inline]
    pub(crate) fn pop_completed(&mut self, now: Nanos) -> Option<InFlight> {
        if self.0.front()?.done > now {
            return None;
        }
        self.0.pop_front()
    }

    /// Takes the command that was submitted last.
    pub(crate) fn pop_last(&mut self) -> Option<InFlight> {
        self.0.pop_back()
    }
}
