//! Discards. A whole mapping unit is unmapped at once, and a record with a sequence hides its older copies from a
//! later mount: records wait in the trim log, and go to media a unit at a time through instance 0, at the latest
//! with the next flush. Parts of mapping units at the ends of a discard are written as zeroes.
//!
//! Invariants:
//! - An erase unit of which a discard superseded sectors has a gate of records besides that of writes: it is erased
//!   when these are durable. Collection does not depend on records that have nothing to do with its victim.
//! - A record is dropped only when every unit of it is mapped to media again. A unit in the buffer may be lost
//!   with a power cut, and what the record hides would come back.
//! - *Compaction.* While a unit stays unmapped its record stays, so records of overlapping discards pile up. When
//!   there are too many, records of all unmapped runs replace them. So records take a bounded part of the
//!   device ([`Sizes::trim_units`]).
//! - *Places before records.* What replaced records waits for all of the new ones, so erase units that held any are not
//!   erased before. A compaction begins when instance 0 has places for all of its records, and nothing else takes
//!   these: the discard that began it, and what comes after, wait until all are sent.

use super::DeviceFtl;
use super::config::Sizes;
use super::instance::Stream;
use super::port::{InstanceSet, Request};
use super::program::By;
use super::region::{Admission, Piece, RegionMap};
use crate::common::dead::DeadCopies;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::trims::{TRIMS_PER_SECTOR, TrimLog, TrimRecord};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::Lba;
use nandscape_media::{OpenChannel, Ppa};
use nandscape_rt::{defect, invariant};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Units of a discard that an invariant looks at.
const HIDDEN_CHECKED: usize = 1 << 12;

/// Discards whose records are needed.
#[derive(Debug)]
pub(super) struct Discards {
    /// Records that are not durable.
    pub(super) log: TrimLog,
    /// Of each erase unit the sequence before which every discard must be durable.
    gates: Box<[u64]>,
    /// Instances of units that were mapped and whose discard is durable when everything before a sequence is; of maps that
    /// count them.
    waiting: VecDeque<(u64, usize)>,
    /// Units of records on media that count as valid.
    pub(super) places: BTreeSet<Ppa>,
    /// Copies that discards superseded.
    pub(super) dead: DeadCopies,
    /// Most units of records before the next compaction.
    limit: usize,
    /// What `limit` has beyond twice the units that the last compaction left.
    slack: usize,
    /// Units of records of a compaction that waits for their places.
    awaited: Option<usize>,
}

impl Discards {
    /// None yet.
    pub(super) fn new(sizes: &Sizes) -> Self {
        let slack = sizes.trim_slack_units() as usize;
        Self {
            log: TrimLog::default(),
            gates: vec![0; sizes.lines as usize].into_boxed_slice(),
            waiting: VecDeque::new(),
            places: BTreeSet::new(),
            dead: DeadCopies::default(),
            limit: slack,
            slack,
            awaited: None,
        }
    }

    /// What a discard, or something that a discard may have overtaken, superseded in an erase unit is durable
    /// with everything logged before `gate`.
    #[inline]
    pub(super) fn raise_gate(&mut self, line: LineId, gate: u64) {
        let entry = &mut self.gates[line as usize];
        *entry = (*entry).max(gate);
    }

    /// The gate of an erase unit.
    #[inline]
    pub(super) fn gate(&self, line: LineId) -> u64 {
        self.gates[line as usize]
    }

    /// An erase unit was erased.
    pub(super) fn clear_gate(&mut self, line: LineId) {
        self.gates[line as usize] = 0;
    }

    /// Whether a compaction waits for places, or has yet to send records for which it has them.
    pub(super) fn compacts(&self) -> bool {
        self.awaited.is_some() || self.log.overflows()
    }

    /// Instances of units whose discard is not durable.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.waiting.iter().map(|&(_, instance)| instance)
    }

    /// Bytes of RAM. Of a set of places its elements are counted, and the instances of units that wait as a count for each.
    pub(super) fn bytes(&self) -> u64 {
        let places = self.places.len() * size_of::<Ppa>();
        self.log.bytes() + (self.gates.len() * size_of::<u64>() + places) as u64
    }
}

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Every discard before this sequence is durable. In a power-safe buffer all are, but for what compaction
    /// has yet to send: that is more than is saved when power fails.
    pub(super) fn trims_durable(&mut self) -> u64 {
        let power_safe = self.flash.rules.config.keeps_buffer();
        let host = &self.instances[0].host;
        let oldest =
            host.flight.oldest().or_else(|| self.buffer.filling(host.page)).filter(|_| !power_safe);
        let durable = self.discards.log.durable(oldest.unwrap_or(u64::MAX));
        if power_safe && !self.discards.log.overflows() { u64::MAX } else { durable }
    }

    /// Discards as much as can be; whether that was all.
    pub(super) fn discard(&mut self, request: &mut Request) -> Result<bool, FtlError> {
        if self.discards.log.overflows() && !self.emit_all_trims()? {
            return Ok(false);
        }
        if (self.discards.awaited.is_some() || self.discards.places.len() > self.discards.limit)
            && !self.compact_trims()?
        {
            return Ok(false);
        }
        while request.done < request.sectors {
            let lba = request.lba.plus(u64::from(request.done));
            let rest = request.sectors - request.done;
            let piece = self.flash.map.piece(lba, u64::from(rest));
            let units = self.flash.map.whole_units(lba, u64::from(rest));
            let (gone, sectors) = if piece.sectors < self.flash.map.unit_sectors() {
                (self.write_zeroes(request, piece)?, piece.sectors)
            } else {
                let whole = (units.end - units.start) as u32 * self.flash.map.unit_sectors();
                (self.hide_units(request, units)?, whole)
            };
            if !gone {
                return Ok(false);
            }
            request.done += sectors;
            self.flash.counts.host.discarded += u64::from(sectors);
        }
        Ok(true)
    }

    /// Overwrites a part of a mapping unit that is discarded, unless the unit holds nothing. Whether the buffer could
    /// take it.
    fn write_zeroes(&mut self, request: &mut Request, piece: Piece) -> Result<bool, FtlError> {
        let found = self.flash.map.look_up(Lba(piece.unit), &mut self.flash.walk);
        request.note_accesses(&mut self.flash);
        if found == MapEntry::Unmapped {
            return Ok(true);
        }
        let instance = self.flash.map.instance_of(piece.unit);
        let fits = self.buffer.free_sectors() >= self.flash.map.unit_sectors();
        if !fits || !self.make_slot(instance)? {
            return Ok(false);
        }
        self.insert(request, instance, piece)?;
        self.use_credits(instance, self.flash.map.unit_sectors())?;
        Ok(true)
    }

    /// Hides whole units, if their record can be logged. Whether it could.
    fn hide_units(&mut self, request: &mut Request, units: Range<u64>) -> Result<bool, FtlError> {
        if self.discards.log.is_full() && !self.emit_trims()? {
            return Ok(false);
        }
        let first = self.flash.map.search(units.clone(), &mut self.flash.walk);
        request.note_accesses(&mut self.flash);
        let Some(first) = first else { return Ok(true) };
        if !self.flash.rules.run.omits(OmittedRule::LostTrims) {
            let record = self.flash.trim_record(units.clone());
            self.log_record(record);
        }
        let mut next = Some(first);
        while let Some(unit) = next {
            let walk = &mut self.flash.walk;
            let before = self.flash.map.update(Lba(unit), MapEntry::Unmapped, walk);
            if P::COUNTS_LIVE
                && let Some(instance) = self.home_of(before)
            {
                self.flash.map.went();
                self.discards.waiting.push_back((self.flash.gate(), instance));
            }
            if let MapEntry::Flash(at) = before {
                self.note_record(at);
                self.note_discarded(at);
                self.invalidate(at, By::Discard)?;
            }
            next = self.flash.map.search(unit + 1..units.end, &mut self.flash.walk);
            request.note_accesses(&mut self.flash);
        }
        invariant!(
            units
                .take(HIDDEN_CHECKED)
                .all(|unit| self.flash.map.get(Lba(unit)) == MapEntry::Unmapped),
            "no unit of a discard is mapped after it"
        );
        Ok(true)
    }

    /// A record waits for company on its way to media.
    fn log_record(&mut self, record: TrimRecord) {
        self.shadow.note(|ledger| ledger.logged(record.seq));
        self.discards.log.log(record, record.seq);
    }

    /// The youngest record superseded something on media.
    #[inline(always)]
    fn note_record(&mut self, at: Ppa) {
        let (line, record) = (self.flash.lines.of(at), self.flash.next_seq - 1);
        self.shadow.note(|ledger| ledger.discarded(line, record));
    }

    /// The instance of what the map points at.
    pub(super) fn home_of(&self, entry: MapEntry) -> Option<usize> {
        let line = match entry {
            MapEntry::Unmapped => return None,
            MapEntry::Buffered(slot) => self.buffer.get(self.buffer.page_of(slot)).line,
            MapEntry::Flash(at) => self.flash.lines.of(at),
        };
        Some(self.flash.rules.layout.stripe_of(line) as usize)
    }

    /// Tells the map of units whose discard is durable by now.
    pub(super) fn settle_discards(&mut self) {
        if self.discards.waiting.is_empty() {
            return;
        }
        let durable = self.trims_durable();
        while let Some((gate, instance)) =
            self.discards.waiting.pop_front_if(|(gate, _)| *gate <= durable)
        {
            invariant!(self.is_known_logged(gate), "a unit counts until its discard is durable");
            self.flash.map.settled(instance);
        }
    }

    /// Whether sectors can be written now; if that waits for discards, their records are sent.
    #[inline]
    pub(super) fn admission(&mut self, lba: Lba, sectors: u32) -> Result<Admission, FtlError> {
        let admission = self.flash.map.admits(lba, sectors);
        if !P::COUNTS_LIVE || admission != Admission::AfterDiscards {
            return Ok(admission);
        }
        self.emit_all_trims()?;
        self.program(0, Stream::Host)?;
        self.settle_discards();
        Ok(self.flash.map.admits(lba, sectors))
    }

    /// Sends a unit of pending records towards media, by instance 0. Whether there was a page for them; if not,
    /// programs in flight bring one.
    pub(super) fn emit_trims(&mut self) -> Result<bool, FtlError> {
        if !self.make_trim_slot()? {
            return Ok(false);
        }
        let Some(id) = self.instances[0].host.page else {
            return Err(defect!("records that have a slot have a page that is being filled").into());
        };
        let seq = self.flash.next_seq;
        let records = self.discards.log.emit(seq);
        self.note_entered(0, Stream::Host, seq);
        self.note_emitted(&records, seq);
        self.push_trims(id, &records);
        self.buffer.charge(id, self.flash.map.unit_sectors());
        self.program_full(0, Stream::Host)?;
        Ok(true)
    }

    /// Sends all pending records. Whether there were pages for them.
    pub(super) fn emit_all_trims(&mut self) -> Result<bool, FtlError> {
        while self.discards.log.has_pending() {
            if !self.emit_trims()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Replaces all records by those of the runs that are unmapped now. Whether all are on their way. Before that
    /// everything must be durable: a unit in the buffer needs the record that hides its older copies.
    fn compact_trims(&mut self) -> Result<bool, FtlError> {
        self.push_out(InstanceSet::MAX)?;
        let durable =
            self.emit_all_trims()? && self.is_durable(self.flash.next_seq, InstanceSet::MAX);
        if !durable && !self.flash.rules.run.omits(OmittedRule::CompactedTrims) {
            return Ok(false);
        }
        // Until the discard is done nothing else maps or unmaps anything.
        let units = self.discards.awaited.take();
        let units =
            units.unwrap_or_else(|| self.flash.unmapped_runs().count().div_ceil(TRIMS_PER_SECTOR));
        if !self.flash.rules.run.omits(OmittedRule::RecordPlaces)
            && !self.make_trim_places(units as u32)?
        {
            self.discards.awaited = Some(units);
            return Ok(false);
        }
        let runs: Vec<Range<u64>> = self.flash.unmapped_runs().collect();
        for run in runs {
            let record = self.flash.trim_record(run);
            self.log_record(record);
        }
        self.discards.limit = 2 * units + self.discards.slack;
        for at in std::mem::take(&mut self.discards.places) {
            self.note_record(at);
            self.invalidate(at, By::Discard)?;
        }
        self.flash.counts.own.trim_compactions += 1;
        self.emit_all_trims()
    }
}
