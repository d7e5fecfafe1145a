//! What is durable, kept a second time for invariants ([`Ledger`](crate::common::shadow::Ledger)), by the buffers that
//! sectors are in.

use super::flash::Flash;
use super::ids::BufferId;
use super::intake::Buffers;
use super::rb::Ring;
use super::units::WriteUnit;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::oob::key_lba;
use nandscape_block::Lba;
use nandscape_media::OpenChannel;

impl<M: OpenChannel> Flash<M> {
    /// A unit's program was sent.
    #[inline(always)]
    pub(super) fn note_sent(&mut self, rb: &Ring, id: BufferId, number: u64, unit: &WriteUnit) {
        let positions = unit.first..unit.first + u64::from(unit.entries);
        self.shadow.note(|ledger| ledger.sent(id, number, positions.map(|at| rb.seq(at))));
    }

    /// Whether all entries of a unit are durable.
    pub(super) fn is_known_durable(&self, rb: &Ring, id: BufferId, unit: &WriteUnit) -> bool {
        let mut positions = unit.first..unit.first + u64::from(unit.entries);
        self.shadow.agrees(|ledger| positions.all(|at| ledger.is_durable(id, rb.seq(at))))
    }

    /// Whether what superseded the sectors of the lines that are released now is durable.
    pub(super) fn may_release(&self, durable: u64) -> bool {
        self.shadow.agrees(|ledger| self.lines.passed(durable).all(|line| ledger.may_erase(line)))
    }

    /// Those of the entries of a unit that did not become valid were superseded in the ring.
    pub(super) fn note_outdated(
        &mut self,
        buffers: &Buffers,
        id: BufferId,
        unit: &WriteUnit,
        live: u64,
    ) {
        if !cfg!(debug_assertions) || live.count_ones() == unit.entries {
            return;
        }
        let keys = buffers.all[usize::from(id)].rb.run(unit.first, unit.entries);
        for (_, (_, key)) in (0..).zip(keys).filter(|(index, _)| live >> index & 1 == 0) {
            if let Some(lba) = key_lba(key) {
                self.note_newer(buffers, lba, unit.line);
            }
        }
    }

    /// A copy in a line was superseded by the newest one, or by a record.
    pub(super) fn note_newer(&mut self, buffers: &Buffers, lba: Lba, line: LineId) {
        if !cfg!(debug_assertions) {
            return;
        }
        let by = match self.l2p.get(lba) {
            MapEntry::Unmapped => None,
            MapEntry::Flash(at) => Some(self.media.oob(at).seq),
            MapEntry::Buffered(slot) => {
                let rb = buffers.ring_of(slot);
                Some(rb.seq(rb.position_of(slot)))
            }
        };
        self.shadow.note(|ledger| match by {
            Some(seq) => ledger.superseded(line, seq),
            None => ledger.discarded_by_any(line),
        });
    }
}
