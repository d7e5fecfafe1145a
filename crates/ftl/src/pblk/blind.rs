//! Blind updates of a cached map: a write whose mapping is not in RAM does not load its block. Its entry
//! waits in a buffer, and the entries of one block are merged when the block is loaded for any reason,
//! or because the buffer fills.
//!
//! What the host knows, and when:
//! - an entry in the buffer names the newest place of its sector, so that reads, overwrites, discards and
//!   copies of the sector need no load;
//! - the place before the first buffered entry (`old`) becomes known at the merge, and is invalidated
//!   then; until then its valid bit stays, and the line that it is in looks fuller than it is;
//! - the collector that reads such an `old` place sees from the buffer that it is stale, and settles it;
//! - a sector whose valid bit is set and that has no entry in the buffer is where its block on media says,
//!   so that a copy of it is a blind update without an `old` place.
//!
//! Nothing of this is needed after a power cut: a mount rebuilds the table from out-of-band data.

use super::mapping::Mapping;
use super::supply::Supply;
use nandscape_block::Lba;
use nandscape_media::{OpenChannel, Ppa};

impl Mapping {
    /// Whether the sector has a blind update.
    #[inline]
    pub(super) fn holds_blind(&self, lba: Lba) -> bool {
        self.blind.as_ref().is_some_and(|blind| blind.holds(lba))
    }

    /// Blind updates that there is room for; none where a miss loads its block.
    pub(super) fn spare(&self) -> u64 {
        self.blind.as_ref().map_or(0, |blind| blind.spare())
    }

    /// Whether the buffer of blind updates is full.
    pub(super) fn is_full(&self) -> bool {
        self.blind.as_ref().is_some_and(|blind| blind.spare() == 0)
    }

    /// Asks for a block with about the most blind updates. Whether there is one.
    pub(super) fn merge_one(&mut self) -> bool {
        let Some(block) = self.blind.as_mut().and_then(|blind| blind.choose()) else {
            return false;
        };
        self.merge_last = Some(block);
        self.want(Lba(self.cache.sectors_of(block).start));
        true
    }

    /// Notes a blind update of a sector whose mapping is not in RAM; `old` is where its block says that it
    /// is. Whether there was need for one.
    pub(super) fn add_blind(&mut self, lba: Lba, old: Option<Ppa>) -> bool {
        if self.blind.is_none() || self.holds_blind(lba) || self.cache.is_loaded(lba) {
            return false;
        }
        let block = self.cache.block_of(lba);
        if let Some(blind) = &mut self.blind {
            blind.add(lba, block, old);
        }
        self.counts.blind_updates += 1;
        true
    }

    /// A block was loaded: its entries are merged into it, and what they superseded is invalidated.
    pub(super) fn merge_block<M: OpenChannel>(&mut self, supply: &mut Supply<'_, M>, block: u32) {
        let Some(blind) = self.blind.as_mut().filter(|blind| blind.has_block(block)) else {
            return;
        };
        let entries = blind.take(block);
        self.merge_last.take_if(|last| *last == block);
        self.counts.merges += 1;
        self.counts.merged_entries += entries.len() as u64;
        let gate = supply.buffers.gate(supply.flash.next_seq);
        for (lba, old) in entries {
            let named = supply.buffers.entry_state(supply.flash.l2p.get(lba));
            self.merged(lba, named);
            if let Some(at) = old {
                let line = supply.flash.lines.of(at);
                supply.flash.note_newer(supply.buffers, lba, line);
                supply.flash.note_dead(supply.rules, at, gate);
                if let Some(id) = supply.flash.invalidate(at, gate) {
                    supply.line_emptied(id);
                }
            }
        }
    }

    /// Asks for blocks whose merges keep the buffer from filling. Whether any was asked for.
    pub(super) fn merge_ahead(&mut self) -> bool {
        let mut asked = false;
        while self.blind.as_ref().is_some_and(|it| it.wants_merge()) && self.merge_one() {
            asked = true;
        }
        asked
    }

    /// The block whose load lets a write or copy of this sector go on.
    pub(super) fn awaited_block(&self, lba: Lba, write: bool) -> u32 {
        let merges = self.merge_last.filter(|_| write && self.is_full());
        merges.unwrap_or_else(|| self.cache.block_of(lba))
    }
}
