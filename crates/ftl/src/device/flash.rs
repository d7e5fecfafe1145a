//! The flash side of a device: media and the link above them, the tables that say what is where on them, what is in
//! flight there, and the clock. Nothing here knows what is in the buffer.

use super::buffer::{Page, PageId};
use super::config::{Config, Flush, Levels, PAGE_MAX, Sizes};
use super::counts::DeviceCounts;
use super::region::RegionMap;
use crate::common::events::Events;
use crate::common::firmware::{Firmware, Walk};
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::layout::Layout;
use crate::common::lines::Lines;
use crate::common::oob::key_lba;
use crate::common::stripes::Stripes;
use crate::common::trims::TrimRecord;
use crate::common::waits::{Idle, Programmed};
use crate::error::FtlError;
use crate::kind::{FtlRun, OmittedRule};
use nandscape_block::{DeviceCaps, Lba, SectorData};
use nandscape_media::{
    ChunkState, Geometry, HostLink, KEY_EMPTY, KEY_TRIM, Kind, OpenChannel, Ppa, Status, WriteCmd,
};
use nandscape_rt::Nanos;
use std::ops::Range;

/// What completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventKind {
    /// The program of a page of the host's, the one with this number in its instance.
    Host { instance: u8, number: u64, page: PageId },
    /// A program of copies.
    Gc { instance: u8, number: u64 },
    /// The read of a page of a victim.
    Read { instance: u8, at: Ppa },
    /// All units, for which something waits.
    Idle,
}

/// What never changes after a device was put together.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) geometry: Geometry,
    pub(super) config: Config,
    pub(super) run: FtlRun,
    pub(super) sizes: Sizes,
    pub(super) levels: Levels,
    pub(super) caps: DeviceCaps,
    pub(super) layout: Layout,
}

impl Rules {
    #[inline]
    pub(super) fn omits_one_shot_flush(&self) -> bool {
        self.run.omits(OmittedRule::OneShotFlush)
    }
}

/// Media, tables and what is in flight.
#[derive(Debug)]
pub(super) struct Flash<M, P> {
    pub(super) media: M,
    /// What every bio crosses once, and copies never do.
    pub(super) link: HostLink,
    pub(super) rules: Rules,
    pub(super) firmware: Firmware,
    /// Accesses for the request of the host's that is being served.
    pub(super) walk: Walk,
    pub(super) map: P,
    pub(super) lines: Lines,
    pub(super) victims: Stripes,
    pub(super) events: Events<EventKind>,
    pub(super) now: Nanos,
    /// When everything that was erased is.
    pub(super) settled: Nanos,
    /// What flushes wait for now.
    pub(super) flush: Flush,
    /// Sequence of the next sector.
    pub(super) next_seq: u64,
    /// Most sectors that an erase unit lacks because of bad chunks.
    pub(super) lacking: u32,
    pub(super) counts: DeviceCounts,
}

impl<M: OpenChannel, P: RegionMap> Flash<M, P> {
    /// The sequence before which every discard must be durable so that all made so far are.
    pub(super) const fn gate(&self) -> u64 {
        self.next_seq
    }

    /// When the firmware takes up what comes now.
    #[inline]
    pub(super) fn begins(&self) -> Nanos {
        self.firmware.begins(self.now)
    }

    /// Does what is due in the background.
    #[inline]
    pub(super) fn tick(&mut self) {
        self.map.tick(self.now, &mut self.firmware);
    }

    /// Has the firmware make the accesses of a walk; when it has made them.
    #[inline]
    pub(super) fn access(&mut self, walk: &mut Walk) -> Nanos {
        self.firmware.access(self.now, walk)
    }

    /// The same for the request that is being served.
    #[inline]
    pub(super) fn access_for_host(&mut self) -> Nanos {
        self.firmware.access(self.now, &mut self.walk)
    }

    /// Whether a flush has nothing programmed, and waits until all units are idle.
    #[inline]
    pub(super) fn waits_for_idle(&self) -> bool {
        self.flush == Flush::Nvmevirt
    }

    /// When all units are idle, of which an event tells; `None` where they are by `at`.
    pub(super) fn await_idle(&mut self, at: Nanos) -> Option<Idle> {
        let idle = Idle::awaited(&self.media, at)?;
        self.events.push(idle.from, EventKind::Idle);
        Some(idle)
    }

    /// Places left in an open erase unit.
    #[inline]
    pub(super) fn places_left(&self, line: Option<LineId>) -> u32 {
        line.map_or(0, |line| self.lines.get(line).left / self.rules.sizes.page)
    }

    /// Fills the rest of a page that a power cut tore.
    pub(super) fn pad_torn(&mut self, at: Ppa, sectors: u32) -> Result<(), FtlError> {
        let keys = &[KEY_EMPTY; PAGE_MAX][..sectors as usize];
        let cmd =
            WriteCmd { at, kind: Kind::Pad, seq: 0, seq_deltas: &[], keys, aux: &[], data: &[] };
        let outcome = self.media.write(self.now, self.now, cmd)?;
        self.counts.sectors.pad += u64::from(sectors);
        if outcome.status != Status::Ok {
            self.counts.media_errors.program_failures += 1;
            let line = self.lines.of(at);
            let rest =
                self.rules.geometry.sectors - self.rules.layout.format.sector_of(at) - sectors;
            self.lines.write_off(line, rest);
            self.lines.get_mut(line).werr = true;
        }
        Ok(())
    }

    /// Counts the good chunks of an erase unit.
    pub(super) fn count_chunks(&mut self, line: LineId) {
        let good = |&index: &u32| {
            self.media.chunk(self.rules.layout.chunk(line, index)).state != ChunkState::Offline
        };
        let chunks = (0..self.rules.layout.width).filter(good).count() as u32;
        let entry = self.lines.get_mut(line);
        (entry.chunks, entry.capacity) = (chunks, chunks * self.rules.geometry.sectors);
        self.lacking = self.lacking.max(self.rules.sizes.line_sectors - entry.capacity);
    }

    /// Sectors of so many erase units without bad chunks.
    pub(super) const fn lines_in_sectors(&self, lines: u32) -> u32 {
        lines * self.rules.sizes.line_sectors
    }

    /// Whether the free erase units of an instance hold as much as so many without bad chunks.
    pub(super) fn has_free(&self, instance: usize, lines: u32) -> bool {
        let wanted = self.lines_in_sectors(lines);
        self.lines.free_sectors_of(instance as u32, wanted) >= wanted
    }

    /// Whether so little is free, or about to be, that something must be collected: fewer erase units than
    /// collection is to begin at, or than the host needs for another one.
    pub(super) fn is_short(&self, instance: usize) -> bool {
        self.lacks(instance, self.rules.config.lines_to_collect())
    }

    /// Whether what is free, or waits for its erase, holds less than so many erase units without bad chunks.
    pub(super) fn lacks(&self, instance: usize, lines: u32) -> bool {
        let wanted = self.lines_in_sectors(lines);
        self.empty_sectors(instance, wanted) < wanted
    }

    /// Sectors of the erase units of an instance that are free or wait for their erase, or so many that they are enough.
    pub(super) fn empty_sectors(&self, instance: usize, enough: u32) -> u32 {
        let stripe = instance as u32;
        let waiting = self.lines.quarantined_in(stripe).map(|line| self.lines.get(line).capacity);
        self.lines.free_sectors_of(stripe, enough) + waiting.sum::<u32>()
    }

    /// Whether all can be read that a unit holds: trim records are one sector.
    pub(super) fn unit_readable(&self, at: Ppa) -> bool {
        let readable = |index| self.media.readable(at.plus(index));
        readable(0)
            && (self.media.oob(at).key == KEY_TRIM || (1..self.map.unit_sectors()).all(readable))
    }

    /// A unit of a victim was copied, or need not be.
    pub(super) fn clear_copied(&mut self, at: Ppa) {
        let unit = self.map.unit_sectors();
        for index in 0..unit {
            self.lines.clear_bit(at.plus(index));
        }
        let line = self.lines.of(at);
        self.lines.cleared(line, unit, 0);
        self.lines.leave(line, unit);
    }

    /// Content, where any is kept.
    #[inline]
    pub(super) fn kept(&self, data: impl FnOnce() -> SectorData) -> SectorData {
        if self.rules.run.keep_content { data() } else { SectorData::Absent }
    }

    /// The program of a page, which completes now.
    pub(super) fn programmed(&self, page: &Page) -> Programmed {
        Programmed {
            unit: self.rules.layout.format.chunk_of(page.at).unit.0,
            began: page.began,
            ended: self.now,
            sectors: self.rules.sizes.page,
            padding: self.rules.sizes.page - page.filled,
        }
    }

    /// Whether dropping a unit on media would free anything.
    #[inline]
    pub(super) fn is_droppable(&self, at: Ppa) -> bool {
        (0..self.map.unit_sectors()).any(|index| self.media.is_droppable(at.plus(index)))
    }

    /// Drops a unit if it is an older copy of one that is durable. It may be another one by now: a power-safe buffer
    /// lets its erase unit be used again before what superseded it is programmed.
    pub(super) fn drop_older(&mut self, before: Ppa, newer: Ppa) {
        let (old, new) = (self.media.oob(before), self.media.oob(newer));
        let is_older = old.kind == Kind::Data && old.key == new.key && old.seq < new.seq;
        if is_older && !self.lines.is_valid(before) && self.unit_readable(newer) {
            self.drop_unit(before);
        }
    }

    /// Drops every copy that a mount found and did not choose.
    pub(super) fn drop_not_chosen(&mut self) {
        let chunks = (0..self.rules.sizes.lines)
            .flat_map(|line| (0..self.rules.layout.width).map(move |index| (line, index)));
        for (line, index) in chunks {
            let chunk = self.rules.layout.chunk(line, index);
            let first = self.rules.layout.format.ppa(chunk, 0);
            for at in (0..self.media.chunk(chunk).wp).map(|sector| first.plus(sector)) {
                let is_dead = self.media.is_droppable(at) && !self.lines.is_valid(at);
                if is_dead && key_lba(self.media.oob(at).key).is_some() {
                    self.media.drop_content(at);
                }
            }
        }
    }

    /// Drops what a unit on media holds.
    pub(super) fn drop_unit(&mut self, at: Ppa) {
        for index in 0..self.map.unit_sectors() {
            let dropped = self.media.drop_content(at.plus(index));
            self.counts.dropped_sectors += u64::from(dropped);
        }
    }

    pub(super) fn unmapped_runs(&self) -> impl Iterator<Item = Range<u64>> {
        self.map.spaces().flat_map(|space| self.map.unmapped_runs(space))
    }

    /// A record is needed while any of its units is not on media. Those written since hide what it hid.
    pub(super) fn still_hides(&self, record: &TrimRecord) -> bool {
        let units = self.map.whole_units(Lba(record.lba.into()), u64::from(record.sectors));
        if self.map.next_unmapped(units.clone()).is_some() {
            return true;
        }
        let buffered = |unit| matches!(self.map.get(Lba(unit)), MapEntry::Buffered(_));
        !self.rules.run.omits(OmittedRule::BufferedTrims) && units.into_iter().any(buffered)
    }

    pub(super) fn reset_counts(&mut self) {
        self.counts = DeviceCounts::default();
        self.counts.in_use_sum = 0;
        self.map.reset_counts();
        self.firmware.reset_counts();
    }

    /// A record of units that are unmapped, or about to be. It takes a sequence, so that what comes after it and waits
    /// for everything before does not pass it while it waits for a page.
    pub(super) fn trim_record(&mut self, units: Range<u64>) -> TrimRecord {
        let first = self.map.first_of(units.start).0;
        let sectors = self.map.first_of(units.end).0 - first;
        let seq = self.next_seq;
        self.next_seq += 1;
        TrimRecord { lba: first as u32, sectors: sectors as u32, seq }
    }
}
