//! I/Os that begin or end within a sector of the device: what the job asks for, and what the device is asked for.
//!
//! A read is widened to whole sectors. A write to a device first reads the sectors that it covers in part,
//! and then writes whole ones: the read-modify-write of a disk whose logical sectors are smaller. Files and page
//! caches take the bytes as they are, and do that themselves.

use super::{Engine, Shape, Slot, Then, bio, shadow};
use crate::engine::kind::Kind;
use crate::fio::UNIT_BYTES;
use crate::target::IoTarget;
use nandscape_block::{Lba, SECTOR_BYTES, Submit, Token};

/// Units of a sector.
const SECTOR_UNITS: u64 = SECTOR_BYTES / UNIT_BYTES;

/// What a job asks for, in units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    first: u64,
    units: u32,
}

impl Part {
    const fn end(self) -> u64 {
        self.first + self.units as u64
    }

    /// Whether it begins or ends within a sector.
    pub(super) const fn is_unaligned(self) -> bool {
        self.begins_within() || self.ends_within()
    }

    const fn begins_within(self) -> bool {
        !self.first.is_multiple_of(SECTOR_UNITS)
    }

    const fn ends_within(self) -> bool {
        !self.end().is_multiple_of(SECTOR_UNITS)
    }
}

impl Slot {
    /// Its address and length, which are in units, become those of whole sectors.
    pub(super) fn widen(&mut self) {
        let part = Part { first: self.lba.0, units: self.sectors };
        let first = part.first / SECTOR_UNITS;
        self.lba = Lba(first);
        self.sectors = (part.end().div_ceil(SECTOR_UNITS) - first) as u32;
        self.head = (part.first % SECTOR_UNITS) as u8;
        self.units = part.units;
    }

    /// What its job asks for, where that need not be whole sectors.
    pub(super) fn part(&self) -> Option<Part> {
        let first = self.lba.0 * SECTOR_UNITS + u64::from(self.head);
        (self.units > 0).then_some(Part { first, units: self.units })
    }

    /// Its length in units of its job, and whether it begins or ends within a sector.
    pub(super) fn counted(&self) -> (u32, bool) {
        self.part().map_or((self.sectors, false), |part| (part.units, part.is_unaligned()))
    }

    /// Its first byte.
    pub(super) fn offset(&self) -> u64 {
        self.lba.0 * SECTOR_BYTES + u64::from(self.head) * UNIT_BYTES
    }

    /// Its length in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match self.units {
            0 => u64::from(self.sectors) * SECTOR_BYTES,
            units => u64::from(units) * UNIT_BYTES,
        }
    }
}

impl<S> Engine<S> {
    /// Submits an I/O that begins or ends within a sector.
    pub(super) fn submit_part<T: IoTarget>(
        &mut self,
        target: &mut T,
        index: usize,
        part: Part,
        shape: &Shape,
    ) {
        if target.takes_bytes(shape.owner) {
            self.submit_bytes(target, index, shape);
        } else if self.slots[index].kind == Kind::Write {
            self.read_ends(target, index, part);
        } else {
            self.submit_whole(target, index, shape);
        }
    }

    /// Submits the bytes that the job asks for, and no others.
    fn submit_bytes<T: IoTarget>(&mut self, target: &mut T, index: usize, shape: &Shape) {
        self.version = shadow::next_version(self.version);
        self.inform_shadow(index, shape);
        let slot = &self.slots[index];
        let bytes = slot.offset()..slot.offset() + slot.bytes();
        let bio = bio(shape, slot.lba, slot.sectors, self.version);
        self.pend(index);
        let token = Token(index as u64);
        if let Submit::Done(done) = target.submit_bytes(self.now, bio, bytes, token) {
            self.part_done(index, 0, done);
        }
    }

    /// Submits reads of the sectors that a write covers in part; the write follows them.
    fn read_ends<T: IoTarget>(&mut self, target: &mut T, index: usize, part: Part) {
        let slot = &mut self.slots[index];
        let reads = self.jobs[slot.job()].shapes[Kind::Read as usize];
        let (lba, last) = (slot.lba, slot.sectors - 1);
        // Offset and length of each; ends that are neighbours are one read.
        let ends = match (part.begins_within(), part.ends_within()) {
            (true, true) if last == 0 => [Some((0, 1)), None],
            (true, true) if last > 1 || reads.bio_sectors < 2 => [Some((0, 1)), Some((last, 1))],
            (true, true) => [Some((0, last + 1)), None],
            (true, false) => [Some((0, 1)), None],
            (false, _) => [Some((last, 1)), None],
        };
        slot.then = Then::Modify;
        slot.latest = self.now;
        slot.open_parts = ends.iter().flatten().count() as u32;
        self.events.clear(index);
        for (offset, sectors) in ends.into_iter().flatten() {
            let read = bio(&reads, lba.plus(u64::from(offset)), sectors, self.version);
            self.submit_bio(target, index, offset, read);
        }
    }
}
