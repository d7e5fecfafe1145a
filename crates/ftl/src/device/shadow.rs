//! What is durable, kept a second time for invariants ([`Ledger`](crate::common::shadow::Ledger)): what enters a buffer
//! that survives power cuts is durable, everything else when its program has ended.

use super::DeviceFtl;
use super::instance::Stream;
use super::port::InstanceSet;
use super::region::RegionMap;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::trims::TrimRecord;
use nandscape_block::Lba;
use nandscape_media::{OpenChannel, Ppa};

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Whether what a stream has in the buffer is durable.
    fn keeps(&self, stream: Stream) -> bool {
        stream == Stream::Host && self.flash.rules.config.keeps_buffer()
    }

    /// A unit whose first sector has this sequence is in the buffer.
    #[inline(always)]
    pub(super) fn note_entered(&mut self, instance: usize, stream: Stream, seq: u64) {
        let keeps = self.keeps(stream);
        self.shadow.note(|ledger| {
            if !keeps {
                ledger.entered((instance, stream), seq);
            }
        });
    }

    /// Records are in the buffer, in a unit with this sequence.
    #[inline(always)]
    pub(super) fn note_emitted(&mut self, records: &[TrimRecord], seq: u64) {
        let keeps = self.keeps(Stream::Host);
        self.shadow.note(|ledger| match keeps {
            true => ledger.kept(records.len()),
            false => ledger.emitted(records.len(), seq),
        });
    }

    /// A unit was superseded before it was on media, at `at`. What superseded it is a write of its instance, or a record.
    pub(super) fn note_outdated(&mut self, unit: Lba, at: Ppa) {
        if !cfg!(debug_assertions) {
            return;
        }
        let (line, newer) = (self.flash.lines.of(at), self.flash.map.get(unit));
        let layout = &self.flash.rules.layout;
        let is_here = self.home_of(newer) == Some(layout.stripe_of(line) as usize);
        let by = match newer {
            MapEntry::Buffered(slot) if is_here => Some(self.buffer.seq(slot)),
            MapEntry::Flash(newer) if is_here => Some(self.flash.media.oob(newer).seq),
            _ => None,
        };
        self.shadow.note(|ledger| match by {
            Some(seq) => ledger.superseded(line, seq),
            None => ledger.discarded_by_any(line),
        });
    }

    /// Whether all that superseded sectors of an erase unit is durable.
    pub(super) fn may_erase(&self, line: LineId) -> bool {
        let instance = self.flash.rules.layout.stripe_of(line) as usize;
        let streams = [Stream::Host, Stream::Gc].map(|stream| (instance, stream));
        self.flash.rules.run.omits_any()
            || self.shadow.agrees(|ledger| {
                let pending = ledger.may_erase_after_records(line);
                ledger.may_erase_after(line, streams) && (self.saves_records() || pending)
            })
    }

    /// Whether records survive a power cut wherever they are.
    fn saves_records(&self) -> bool {
        self.flash.rules.config.keeps_buffer() && !self.discards.log.overflows()
    }

    /// Whether everything before a sequence is durable in some instances; in all of them, records too.
    pub(super) fn is_known_durable(&self, covered: u64, instances: InstanceSet) -> bool {
        let of = (0..self.instances.len()).filter(|instance| instances >> instance & 1 != 0);
        self.flash.rules.run.omits_any()
            || self.shadow.agrees(|ledger| {
                ledger.are_durable(of.map(|instance| (instance, Stream::Host)), covered)
                    && (instances != InstanceSet::MAX || ledger.are_logged(covered))
            })
    }

    /// Whether all records before a sequence are durable.
    pub(super) fn is_known_logged(&self, before: u64) -> bool {
        self.flash.rules.run.omits_any()
            || self.saves_records()
            || self.shadow.agrees(|ledger| ledger.are_logged(before))
    }
}
