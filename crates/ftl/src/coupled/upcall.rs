//! Upcalls: how the host learns that records wait, fetches and completes them (D2FS, "Migration Upcall").
//!
//! The device asks for attention when a class has records for a whole upcall, or when little of a region that it moves
//! data to is left. A host that fetches gets what there is, however little. If records that it has fetched keep the device
//! from most of the addresses that are not in use, it gets an upcall without records, and is to complete the others. A
//! completed upcall is answered when the journal has it durably: its records never come back.

use super::CoupledFtl;
use super::journal::Entry;
use super::lines::Lines;
use super::persist::Waiter;
use super::records::{RECORD_BYTES, Records};
use super::space::Class;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::{BlockError, Done, Reply, SECTOR_BYTES, Submit, Token};
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

/// Whether the host is to fetch records.
#[inline]
pub(super) fn wants_upcall(lines: &Lines, records: &Records) -> bool {
    Class::ALL.into_iter().any(|class| {
        let queued = records.queued(class);
        let (used, all) = lines.owned_use(class);
        let is_pressed =
            u64::from(used) * u64::from(PRESSED.1) >= u64::from(all) * u64::from(PRESSED.0);
        queued >= UPCALL_RECORDS || queued > 0 && is_pressed
    }) || wants_completion(lines, records)
}

/// Whether the host is to complete what it has fetched.
#[inline]
fn wants_completion(lines: &Lines, records: &Records) -> bool {
    let is_pinned = Class::ALL.into_iter().any(|class| lines.is_pinned(class));
    is_pinned && records.fetched() > 0
}

impl<M: OpenChannel> CoupledFtl<M> {
    /// Serves a host that waits for records.
    pub(super) fn await_upcall(&mut self, token: Token) -> Submit {
        if wants_upcall(&self.lines, &self.records) {
            return Submit::Done(Done::ok(self.flash.zones.store.accepted()));
        }
        self.upcalls.awaiting.push(token);
        Submit::Pending
    }

    /// Answers hosts that wait for records, if there are enough.
    pub(super) fn pump_upcalls(&mut self) {
        if self.upcalls.awaiting.is_empty() || !wants_upcall(&self.lines, &self.records) {
            return;
        }
        for token in self.upcalls.abandon() {
            self.complete(token, Done::ok(self.flash.now));
        }
    }

    /// Serves a fetch.
    pub(super) fn fetch_upcall(&mut self, most: u32) -> Submit {
        let most = most.min(UPCALL_RECORDS) as usize;
        let Some((id, moves)) = self.records.fetch(most, &mut self.walk) else {
            let none = if wants_completion(&self.lines, &self.records) { ASK } else { Reply::None };
            return Submit::Done(Done::new(self.flash.zones.store.accepted(), Ok(none)));
        };
        self.flash.access(&mut self.walk);
        self.flash.counts.own.upcalls += 1;
        self.flash.counts.own.sent += moves.len() as u64;
        let at = self.flash.zones.store.send(1);
        Submit::Done(Done::new(at, Ok(Reply::Upcall(id, moves))))
    }

    /// Serves the completion of a batch.
    pub(super) fn complete_upcall(&mut self, id: u64, token: Token) -> Result<Submit, FtlError> {
        let Some(closed) = self.records.complete(id, &mut self.walk) else {
            return Ok(self.refused(BlockError::Malformed("no fetched upcall has this id")));
        };
        for record in closed {
            self.lines.refer_to(record.old, false, &mut self.walk);
            self.lines.refer_to(record.new, false, &mut self.walk);
            if let Some(old) = record.shortened {
                self.lines.refer_to(record.old, false, &mut self.walk);
                self.lines.refer_to(record.new, true, &mut self.walk);
                self.persist.note(&mut self.flash, Entry::Shortened { old, to: record.new })?;
            }
            self.flash.counts.own.completed += 1;
            self.persist.note(&mut self.flash, Entry::Closed { old: record.old })?;
        }
        self.flash.access(&mut self.walk);
        let position = self.persist.want_durable(&mut self.flash);
        if self.rules.run.omits(OmittedRule::CompletionDurable) {
            return Ok(Submit::Done(Done::ok(self.flash.zones.store.accepted())));
        }
        self.persist.wait_for(&mut self.flash, position, Waiter::Complete(token));
        Ok(Submit::Pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::firmware::Walk;
    use crate::coupled::space::Space;
    use nandscape_block::Lba;

    /// Where four fifths of a region are in use, the host is to fetch the first record; elsewhere a whole upcall of them.
    #[test]
    fn few_records_are_reported_where_addresses_run_out() {
        let mut lines = Lines::new(Space::SMALL, 64, 12);
        let mut records = Records::new(64, None);
        let space = lines.space;
        let first = space.line_of(space.owned(Class::Data).start, 0);
        records.moved(Class::Data, Lba(1), Lba(2), &mut Walk::default());
        for line in 0..16 {
            assert!(!wants_upcall(&lines, &records), "{line} of 20 are in use");
            lines.refer_to(space.address(first + line, 0), true, &mut Walk::default());
        }
        assert!(wants_upcall(&lines, &records));
        let (id, _) = records.fetch(1, &mut Walk::default()).unwrap();
        assert!(
            records.complete(id, &mut Walk::default()).is_some() && !wants_upcall(&lines, &records)
        );
        (0..16).for_each(|line| {
            lines.refer_to(space.address(first + line, 0), false, &mut Walk::default())
        });
        for record in 1..=UPCALL_RECORDS {
            assert!(!wants_upcall(&lines, &records), "{record}");
            let at = 10 * u64::from(record);
            records.moved(Class::Data, Lba(at), Lba(at + 1), &mut Walk::default());
        }
        assert!(wants_upcall(&lines, &records));
    }
}
