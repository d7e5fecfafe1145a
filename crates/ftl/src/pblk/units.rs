//! Write units between mapping and the moment the ring lets their entries go.
//!
//! A unit is `ws_opt` sectors on one parallel unit. Units stand in ring order and complete in any
//! order; `sync` moves over those that completed, in ring order (pblk-write.c
//! `pblk_end_w_bio`). A unit leaves when its entries leave the ring.

use crate::common::ids::LineId;
use nandscape_media::Ppa;
use nandscape_rt::{Nanos, invariant};
use std::collections::VecDeque;

/// Most sectors of a write unit (`NVM_MAX_VLBA`).
pub(super) const MAX_UNIT: usize = 64;

/// Progress of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnitState {
    /// Programming.
    InFlight,
    /// Durable.
    Done,
    /// The program failed; its entries wait to be written elsewhere.
    Failed,
}

/// One write unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteUnit {
    /// Ring position of its first entry.
    pub(super) first: u64,
    /// Entries; the rest of the unit is padding.
    pub(super) entries: u32,
    /// Entries of user data and trim records.
    pub(super) user: u16,
    /// Entries of garbage collection, stale ones included.
    pub(super) gc: u16,
    pub(super) line: LineId,
    /// Parallel unit.
    pub(super) pu: u32,
    pub(super) at: Ppa,
    pub(super) state: UnitState,
    pub(super) submitted: Nanos,
    /// How long the writer took to build its command before that; at most 4.2 s.
    pub(super) building_ns: u32,
    /// User and garbage-collection sectors submitted before it, since the start.
    pub(super) before: Submitted,
}

/// Sectors submitted, for dividing a flush's waiting time.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Submitted {
    pub(super) user: u64,
    pub(super) gc: u64,
}

/// All units whose entries are in the ring.
#[derive(Debug, Default)]
pub(super) struct Units {
    units: VecDeque<WriteUnit>,
    /// Number of the front unit.
    base: u64,
    /// How many units from the front on are behind `sync`.
    synced: usize,
    failed: VecDeque<u64>,
    pub(super) submitted: Submitted,
}

impl Units {
    /// Takes a unit in; its number.
    pub(super) fn push(&mut self, unit: WriteUnit) -> u64 {
        self.submitted.user += u64::from(unit.user);
        self.submitted.gc += u64::from(unit.gc);
        self.units.push_back(unit);
        self.base + self.units.len() as u64 - 1
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> &mut WriteUnit {
        &mut self.units[(number - self.base) as usize]
    }

    /// The next unit whose completion `sync` waits for, if it has completed; `sync` may pass it.
    pub(super) fn pass(&mut self) -> Option<WriteUnit> {
        let unit = *self.units.get(self.synced).filter(|unit| unit.state == UnitState::Done)?;
        invariant!(matches!(unit.state, UnitState::Done), "`sync` passes a unit that is durable");
        self.synced += 1;
        Some(unit)
    }

    /// The oldest unit, if it is behind `sync`.
    #[inline]
    pub(super) fn oldest(&self) -> Option<&WriteUnit> {
        self.units.front().filter(|_| self.synced > 0)
    }

    /// Where the entry at a position of the ring was written.
    pub(super) fn place_of(&self, position: u64) -> Option<Ppa> {
        let after = self.units.partition_point(|unit| unit.first <= position);
        let unit = self.units.range(..after).rev().find(|unit| unit.entries > 0)?;
        let index = position - unit.first;
        (index < u64::from(unit.entries)).then(|| unit.at.plus(index as u32))
    }

    /// Lets the oldest unit go, which must be behind `sync`.
    #[inline]
    pub(super) fn pop(&mut self) {
        invariant!(self.synced > 0, "a unit leaves the ring behind `sync`");
        self.units.pop_front();
        self.base += 1;
        self.synced -= 1;
    }

    /// Marks a unit as failed and queues it for another try.
    pub(super) fn fail(&mut self, number: u64) {
        self.get_mut(number).state = UnitState::Failed;
        self.failed.push_back(number);
    }

    /// The unit that failed first and waits for another try.
    pub(super) fn next_failed(&self) -> Option<u64> {
        self.failed.front().copied()
    }

    /// The failed unit was written again.
    pub(super) fn retried(&mut self) {
        self.failed.pop_front();
    }

    /// Units that wait for another try.
    pub(super) fn failed_len(&self) -> usize {
        self.failed.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        (self.units.capacity() * size_of::<WriteUnit>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(first: u64, user: u32, gc: u32) -> WriteUnit {
        WriteUnit {
            first,
            entries: user + gc,
            user: user as u16,
            gc: gc as u16,
            line: 0,
            pu: 0,
            at: Ppa(0),
            state: UnitState::InFlight,
            submitted: Nanos::ZERO,
            building_ns: 0,
            before: Submitted::default(),
        }
    }

    fn passed(units: &mut Units) -> Vec<u64> {
        std::iter::from_fn(|| units.pass()).map(|unit| unit.first).collect()
    }

    /// A flush promises everything before it: a unit that completes early waits for those before.
    #[test]
    fn sync_passes_in_ring_order_whatever_the_order_of_completion() {
        let mut units = Units::default();
        let numbers = [0, 8, 16, 24].map(|first| units.push(unit(first, 8, 0)));
        units.get_mut(numbers[2]).state = UnitState::Done;
        units.get_mut(numbers[1]).state = UnitState::Done;
        assert!(passed(&mut units).is_empty());
        units.get_mut(numbers[0]).state = UnitState::Done;
        assert_eq!(passed(&mut units), [0, 8, 16]);
        units.get_mut(numbers[3]).state = UnitState::Done;
        assert_eq!(passed(&mut units), [24]);
    }

    /// A failed unit holds `sync` until its entries are written elsewhere.
    #[test]
    fn a_failed_unit_holds_sync_until_written_again() {
        let mut units = Units::default();
        let numbers = [0, 8].map(|first| units.push(unit(first, 8, 0)));
        units.fail(numbers[0]);
        units.get_mut(numbers[1]).state = UnitState::Done;
        assert!(passed(&mut units).is_empty());
        units.retried();
        units.get_mut(numbers[0]).state = UnitState::Done;
        assert_eq!(passed(&mut units), [0, 8]);
    }

    #[test]
    fn failed_units_are_retried_in_order_of_failure() {
        let mut units = Units::default();
        let numbers = [0, 8, 16].map(|first| units.push(unit(first, 8, 0)));
        for &number in &[numbers[1], numbers[0], numbers[2]] {
            units.fail(number);
        }
        assert_eq!(units.failed_len(), 3);
        for &number in &[numbers[1], numbers[0], numbers[2]] {
            assert_eq!(units.next_failed(), Some(number));
            units.retried();
        }
        assert_eq!((units.next_failed(), units.failed_len()), (None, 0));
    }

    /// Entries leave the ring only behind `sync`, and unit numbers outlive what left before.
    #[test]
    fn units_leave_only_behind_sync() {
        let mut units = Units::default();
        let numbers = [0, 8].map(|first| units.push(unit(first, 8, 0)));
        units.get_mut(numbers[0]).state = UnitState::Done;
        assert!(units.oldest().is_none());
        assert_eq!(passed(&mut units), [0]);
        assert_eq!(units.oldest().map(|unit| unit.first), Some(0));
        units.pop();
        assert!(units.oldest().is_none());
        assert_eq!(units.get_mut(numbers[1]).first, 8);
        assert_eq!(units.push(unit(16, 8, 0)), numbers[1] + 1);
    }

    /// A flush divides its wait by what was submitted before it.
    #[test]
    fn submitted_sectors_are_counted_by_cause() {
        let mut units = Units::default();
        units.push(unit(0, 5, 3));
        units.push(unit(8, 0, 8));
        assert_eq!((units.submitted.user, units.submitted.gc), (5, 11));
    }
}
