//! The requests of a workload, between submission and completion, as the device sees them.

use nandscape_block::{Bio, Completion, Done, Flags, Lba, Op, Token};
use nandscape_rt::Nanos;
use std::collections::BTreeMap;

/// Requests noted between two times that they are taken; more are dropped.
const ROOM: usize = 1 << 20;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(super) token: Token,
    pub(super) op: Op,
    pub(super) lba: Lba,
    pub(super) sectors: u32,
    pub(super) flags: Flags,
    pub(super) submitted: Nanos,
    /// When it completed; `None`: it has not.
    pub(super) done: Option<Nanos>,
    pub(super) failed: bool,
}

impl Request {
    /// A request that is submitted now.
    pub(crate) const fn new(now: Nanos, bio: &Bio, token: Token) -> Self {
        Self {
            token,
            op: bio.op,
            lba: bio.lba,
            sectors: bio.sectors,
            flags: bio.flags,
            submitted: now,
            done: None,
            failed: false,
        }
    }
}

/// Requests in flight, and those that completed since they were last taken.
#[derive(Default, Debug)]
pub(crate) struct Requests {
    open: BTreeMap<Token, Request>,
    done: Vec<Request>,
}

impl Requests {
    /// A request whose outcome is not known yet.
    pub(crate) fn opened(&mut self, request: Request) {
        self.open.insert(request.token, request);
    }

    /// A request whose outcome is known.
    pub(crate) fn ended(&mut self, request: Request, done: &Done) {
        if self.done.len() < ROOM {
            let (at, failed) = (Some(done.at), done.result.is_err());
            self.done.push(Request { done: at, failed, ..request });
        }
    }

    /// Requests that complete.
    pub(crate) fn completed(&mut self, completions: &[Completion]) {
        for Completion { token, done } in completions {
            if let Some(request) = self.open.remove(token) {
                self.ended(request, done);
            }
        }
    }

    /// How many are in flight whose outcome is not known yet.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Those that completed.
    pub(super) fn take(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.done)
    }

    /// All, also those that have not completed.
    pub(super) fn into_all(self) -> impl Iterator<Item = Request> {
        self.done.into_iter().chain(self.open.into_values())
    }
}
