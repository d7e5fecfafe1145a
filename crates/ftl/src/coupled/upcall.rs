//! Upcalls: how the host learns that records wait, fetches and completes them (D2FS, "Migration Upcall").
//!
//! The device asks for attention when a class has records for a whole upcall, or when little of a region that it moves
//! data to is left. A host that fetches gets what there is, however little. If records that it has fetched keep the device
//! from most of the addresses that are not in use, it gets an upcall without records, and is to complete the others. A
//! completed upcall is answered when the journal has it durably: its records never come back.

use super::CoupledFtl;
use super::journal::Entry;
use super::persist::Waiter;
use super::records::RECORD_BYTES;
use super::space::Class;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::{Attention, BlockError, Done, Reply, SECTOR_BYTES, Submit, Token};
use nandscape_media::OpenChannel;

/// Records of an upcall at most: a page of 4 KiB.
const UPCALL_RECORDS: u32 = (SECTOR_BYTES / RECORD_BYTES) as u32;
/// The share of a region in use from which on the device asks for attention, whatever it has: four fifths.
const PRESSED: (u32, u32) = (4, 5);

/// What asks the host to complete upcalls.
const ASK: Reply = Reply::Upcall(0, Vec::new());

/// Hosts that wait for records.
#[derive(Default, Debug)]
pub(super) struct Upcalls {
    awaiting: Vec<Token>,
}

impl Upcalls {
    /// Everything of the host that waits is dropped; its tokens.
    pub(super) fn abandon(&mut self) -> Vec<Token> {
        std::mem::take(&mut self.awaiting)
    }
}

impl<M: OpenChannel> CoupledFtl<M> {
    /// Whether the host is to fetch records.
    fn wants_upcall(&self) -> bool {
        Class::ALL.into_iter().any(|class| {
            let queued = self.records.queued(class);
            let (used, all) = self.lines.owned_use(class);
            let is_pressed =
                u64::from(used) * u64::from(PRESSED.1) >= u64::from(all) * u64::from(PRESSED.0);
            queued >= UPCALL_RECORDS || queued > 0 && is_pressed
        }) || self.wants_completion()
    }

    /// Whether the host is to complete what it has fetched.
    fn wants_completion(&self) -> bool {
        let is_pinned = Class::ALL.into_iter().any(|class| self.lines.is_pinned(class));
        is_pinned && self.records.fetched() > 0
    }

    /// What is flagged on completions.
    pub(super) fn signals(&self) -> Attention {
        match self.caps.raises_attention && self.wants_upcall() {
            true => Attention::UPCALL,
            false => Attention::NONE,
        }
    }

    /// Serves a host that waits for records.
    pub(super) fn await_upcall(&mut self, token: Token) -> Submit {
        if self.wants_upcall() {
            return Submit::Done(Done::ok(self.flash.store.accepted()));
        }
        self.upcalls.awaiting.push(token);
        Submit::Pending
    }

    /// Answers hosts that wait for records, if there are enough.
    pub(super) fn pump_upcalls(&mut self) {
        if self.upcalls.awaiting.is_empty() || !self.wants_upcall() {
            return;
        }
        for token in self.upcalls.abandon() {
            self.complete(token, Done::ok(self.now));
        }
    }

    /// Serves a fetch.
    pub(super) fn fetch_upcall(&mut self, most: u32) -> Submit {
        let most = most.min(UPCALL_RECORDS) as usize;
        let Some((id, moves)) = self.records.fetch(most) else {
            let none = if self.wants_completion() { ASK } else { Reply::None };
            return Submit::Done(Done::new(self.flash.store.accepted(), Ok(none)));
        };
        self.counts.own.upcalls += 1;
        self.counts.own.sent += moves.len() as u64;
        let at = self.flash.store.send(1);
        Submit::Done(Done::new(at, Ok(Reply::Upcall(id, moves))))
    }

    /// Serves the completion of a batch.
    pub(super) fn complete_upcall(&mut self, id: u64, token: Token) -> Result<Submit, FtlError> {
        let Some(closed) = self.records.complete(id) else {
            return Ok(self.refused(BlockError::Malformed("no fetched upcall has this id")));
        };
        for record in closed {
            self.refer(record.old, false);
            self.refer(record.new, false);
            if let Some(old) = record.shortened {
                self.refer(record.old, false);
                self.refer(record.new, true);
                self.note(Entry::Shortened { old, to: record.new })?;
            }
            self.counts.own.completed += 1;
            self.note(Entry::Closed { old: record.old })?;
        }
        let position = self.want_durable();
        if self.run.omits(OmittedRule::CompletionDurable) {
            return Ok(Submit::Done(Done::ok(self.flash.store.accepted())));
        }
        self.wait_for(position, Waiter::Complete(token));
        Ok(Submit::Pending)
    }
}
