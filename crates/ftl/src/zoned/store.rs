//! The zones on media: what each of them holds, in pages of the buffer and in chunks, what is in flight there, and the
//! clock. Nothing here knows what waits: bios and their completions are the port's.

use super::ZonedCounts;
use super::front::Front;
use super::oob::Oob;
use super::rules::Rules;
use super::shape::Shape;
use super::units::Unit;
use super::zone::{PageId, Zones};
use crate::common::events::Events;
use crate::common::waits::{Idle, Programmed};
use crate::device::{DeviceFtl, Flush};
use crate::error::FtlError;
use nandscape_block::zone::{ZoneId, ZoneState};
use nandscape_block::{Bio, BlockDevice, BlockError, Done, Submit, Token, ZoneTable};
use nandscape_media::OpenChannel;
use nandscape_rt::{Nanos, Shadow};
use std::collections::{BTreeMap, BTreeSet};

/// What waits for an erase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    /// Nothing.
    Free,
    /// The reset of a zone.
    Reset(u32),
    /// A zone, whose chunk it was before a program failed.
    Retired(u32),
    /// The next erase of the unit's save log.
    Log,
}

/// A record of the save log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Saved {
    pub(super) unit: u32,
    pub(super) number: u64,
    /// When its program begins.
    pub(super) began: Nanos,
}

/// What completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The program of a page at its place.
    Programmed { page: PageId },
    /// A record of the save log: so many sectors of a page, which may be released by then.
    Saved { saved: Saved, page: PageId, stamp: u64, sectors: u32, zone: u32 },
    /// The record of a zone's reset.
    ResetSaved { saved: Saved, zone: u32 },
    /// All that a chunk held is elsewhere.
    Copied { unit: u32, chunk: u32, zone: u32 },
    /// An erase.
    Erased { unit: u32, chunk: u32, ok: bool, after: After },
    /// All units, for which something waits.
    Idle,
}

/// Media, zones, and what is in flight.
#[derive(Debug)]
pub(crate) struct Store<M> {
    pub(super) front: Front<M>,
    pub(super) rules: Rules,
    pub(super) table: ZoneTable,
    pub(super) zones: Zones,
    pub(super) units: Box<[Unit]>,
    /// Of the page that is being programmed.
    pub(super) oob: Oob,
    /// Number of the next record of the save log.
    pub(super) next_record: u64,
    /// The last program that completed in a zone, or in the save log.
    programmed: Programmed,
    pub(super) events: Events<Event>,
    /// Sectors of each zone that are not durable, kept a second time for invariants.
    pub(super) volatile: Shadow<BTreeMap<u32, BTreeSet<u64>>>,
    pub(super) now: Nanos,
    /// What flushes wait for now.
    pub(super) flush: Flush,
    pub(super) counts: ZonedCounts,
    /// What waits may go on although nothing completed: a zone failed, or something new waits.
    pub(super) stirred: bool,
}

impl<M: OpenChannel> Store<M> {
    /// Zones without anything, no chunk in any pool.
    pub(super) fn new(front: Front<M>, rules: Rules, now: Nanos) -> Self {
        let shape = Shape::new(&rules.geometry, &rules.sizes, &rules.config.zone);
        let units = vec![Unit::default(); rules.geometry.total_units() as usize];
        Self {
            table: ZoneTable::of(&rules.caps),
            zones: Zones::new(&rules.sizes, shape),
            units: units.into_boxed_slice(),
            oob: Oob::new(shape.page),
            next_record: 1,
            programmed: Programmed::default(),
            events: Events::default(),
            volatile: Shadow::default(),
            counts: ZonedCounts::default(),
            flush: Flush::Program,
            stirred: false,
            front,
            rules,
            now,
        }
    }

    /// Media take no more of a zone; what it holds can be read.
    #[cold]
    pub(super) fn fail_zone(&mut self, zone: u32) -> Result<(), FtlError> {
        self.zones.get_mut(zone).failed = true;
        self.stirred = true;
        self.table.fail(ZoneId(zone), ZoneState::ReadOnly)?;
        Ok(())
    }

    /// When the firmware takes up what comes now.
    #[inline]
    pub(super) fn begins(&self) -> Nanos {
        self.front.begins(self.now)
    }

    /// Whether a flush has nothing saved or programmed, and waits until all units are idle.
    #[inline]
    pub(crate) fn waits_for_idle(&self) -> bool {
        self.flush == Flush::Nvmevirt
    }

    /// When all units are idle, of which an event tells; `None` where they are by `at`.
    pub(super) fn await_idle(&mut self, at: Nanos) -> Option<Idle> {
        let idle = Idle::awaited(self.front.media(), at)?;
        self.events.push(idle.from, Event::Idle);
        Some(idle)
    }

    /// When a request of the host's that waited until now is complete.
    pub(super) fn no_earlier(&self, at: Nanos) -> Nanos {
        at.max(self.now)
    }

    /// Has an event happen when its time comes.
    pub(super) fn after(&mut self, at: Nanos, event: Event) -> Result<(), FtlError> {
        if at <= self.now {
            return self.completed(event);
        }
        self.events.push(at, event);
        Ok(())
    }

    pub(super) fn completed(&mut self, event: Event) -> Result<(), FtlError> {
        match event {
            Event::Programmed { page } => {
                let (unit, of) = (self.zones.unit_of_page(page), self.zones.pages.get(page));
                self.note_programmed(unit, of.began, of.filled());
                self.programmed(page)
            }
            Event::Saved { saved, page, stamp, sectors, zone } => {
                let kept = self.zones.pages.get_mut(page);
                if kept.stamp == stamp {
                    kept.saved = kept.saved.max(sectors);
                    self.note_on_media(page, sectors);
                }
                self.zones.get_mut(zone).in_flight -= 1;
                self.note_programmed(saved.unit, saved.began, sectors);
                self.record_completed(saved.unit, saved.number)
            }
            Event::ResetSaved { saved, zone } => {
                self.zones.get_mut(zone).resetting -= 1;
                self.note_programmed(saved.unit, saved.began, 0);
                self.record_completed(saved.unit, saved.number)
            }
            Event::Copied { unit, chunk, zone } => self.erase(unit, chunk, After::Retired(zone)),
            Event::Erased { unit, chunk, ok, after } => self.erased(unit, chunk, ok, after),
            // Who waits for it looks by itself.
            Event::Idle => Ok(()),
        }
    }

    /// A program of so many sectors completed, for which something may wait.
    #[inline]
    const fn note_programmed(&mut self, unit: u32, began: Nanos, filled: u32) {
        let sectors = self.zones.shape.page;
        self.programmed =
            Programmed { unit, began, ended: self.now, sectors, padding: sectors - filled };
    }

    /// The last program that completed, in zones or in the page-mapped region.
    pub(super) fn last_programmed(&self) -> Programmed {
        let of_pages = self.front.pages().map(DeviceFtl::programmed).unwrap_or_default();
        if of_pages.ended > self.programmed.ended { of_pages } else { self.programmed }
    }

    /// An error at once.
    pub(super) const fn refused(&self, error: BlockError) -> Submit {
        Submit::Done(Done::new(self.now, Err(error)))
    }

    /// Has the page-mapped region serve a bio.
    pub(super) fn submit_to_front(&mut self, bio: Bio, token: Token) -> Submit {
        let now = self.now;
        match self.front.pages_mut() {
            Some(pages) => pages.submit(now, bio, token),
            None => self.refused(BlockError::Unsupported("addresses outside the regions")),
        }
    }
}
