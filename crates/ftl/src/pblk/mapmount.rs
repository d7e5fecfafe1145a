//! Mounting a cached map. The data's out-of-band data rebuild the whole table; a mapping block on media
//! is the newest version if its digest says what the table says, and stale otherwise: it was dirty in
//! RAM when power went off, or holds discards that were not durable. Stale blocks are written again
//! before the mount ends, so that afterwards media are right about every block that is not loaded. A
//! device that is so worn out that there is no room for them comes up for reading only.
//!
//! Nothing here can lose data: whatever a power cut leaves of it, the next mount rebuilds the table.

use super::flash::Flash;
use super::intake::Buffers;
use super::mapping::Mapping;
use super::rules::Rules;
use crate::common::ids::LineId;
use crate::kind::OmittedRule;
use nandscape_block::SectorData;
use nandscape_media::{Kind, OpenChannel, Ppa};
use std::collections::{BTreeMap, BTreeSet};

/// Sectors of mapping blocks found on media, by key and then sequence.
#[derive(Default)]
pub(super) struct FoundMap {
    sectors: BTreeMap<(u32, u64), Ppa>,
}

impl FoundMap {
    /// Notes a sector.
    pub(super) fn add(&mut self, key: u32, seq: u64, at: Ppa) {
        self.sectors.insert((key, seq), at);
    }
}

impl<M: OpenChannel> Flash<M> {
    fn holds_map(&self, rules: &Rules, at: Ppa, key: u32, truth: &SectorData) -> bool {
        let oob = self.media.oob(at);
        let in_chunk =
            self.layout.format.sector_of(at) < self.media.chunk(self.layout.format.chunk_of(at)).wp;
        in_chunk
            && self.media.readable(at)
            && (oob.kind, oob.key) == (Kind::Map, key)
            && (self.media.data(at) == *truth || rules.run.omits(OmittedRule::StaleMap))
    }

    /// Where power cuts have left hardly any lines for mapping blocks, the emptiest are given up.
    fn drop_map_lines(&self, rules: &Rules, current: &[(u32, Vec<Ppa>)]) -> BTreeSet<LineId> {
        let mut used: BTreeMap<LineId, usize> = BTreeMap::new();
        for &at in current.iter().flat_map(|(_, pieces)| pieces) {
            *used.entry(self.lines.of(at)).or_default() += 1;
        }
        let most = rules.capacity.map_lines.saturating_sub(2) as usize;
        let mut lines: Vec<(usize, LineId)> = used.into_iter().map(|(id, n)| (n, id)).collect();
        lines.sort_unstable();
        let surplus = lines.len().saturating_sub(most);
        lines[..surplus].iter().map(|&(_, id)| id).collect()
    }

    /// Lines that hold mapping blocks count against the quota.
    pub(super) fn count_map_lines(&mut self, rules: &Rules) {
        let held =
            self.lines.iter().filter(|(_, line)| line.is_map() && line.valid > 0).count() as u32;
        self.lines.kept = rules.capacity.map_lines.saturating_sub(held);
    }
}

impl Mapping {
    /// Takes in what media hold of the map, for the table that has been rebuilt. The blocks that are
    /// to be written again.
    pub(super) fn adopt<M: OpenChannel>(
        &mut self,
        (flash, buffers): (&mut Flash<M>, &Buffers),
        rules: &Rules,
        found: &FoundMap,
    ) -> Vec<u32> {
        let seq_max = found.sectors.keys().map(|&(_, seq)| seq).max();
        self.store.next_seq = seq_max.map_or(1, |seq| seq + 1);
        let mut current: Vec<(u32, Vec<Ppa>)> = Vec::new();
        let mut stale = Vec::new();
        for block in 0..self.cache.blocks() {
            match self.find_block((flash, buffers), rules, found, block) {
                Some(pieces) => current.push((block, pieces)),
                None if flash.l2p.is_blank(self.cache.sectors_of(block)) => {}
                None => stale.push(block),
            }
        }
        let dropped = flash.drop_map_lines(rules, &current);
        for (block, pieces) in current {
            if pieces.iter().any(|&at| dropped.contains(&flash.lines.of(at))) {
                stale.push(block);
            } else {
                self.adopt_block(flash, block, &pieces);
            }
        }
        stale
    }

    /// The pieces of the version of a block that says what the table says.
    fn find_block<M: OpenChannel>(
        &self,
        (flash, buffers): (&Flash<M>, &Buffers),
        rules: &Rules,
        found: &FoundMap,
        block: u32,
    ) -> Option<Vec<Ppa>> {
        let shape = self.store.shape;
        let truth = SectorData::Tag(self.digest(flash, buffers, block));
        let piece = |piece: u32| {
            let (key, sectors) = (shape.key(block, piece), shape.piece_len(piece));
            let copies = found.sectors.range((key, 0)..=(key, u64::MAX)).rev();
            let holds = |&at: &Ppa| {
                (0..sectors).all(|i| flash.holds_map(rules, at.plus(i), key + i, &truth))
            };
            copies.map(|(_, &at)| at).find(holds)
        };
        (0..shape.pieces).map(piece).collect()
    }

    fn adopt_block<M>(&mut self, flash: &mut Flash<M>, block: u32, pieces: &[Ppa]) {
        for (piece, &at) in (0..).zip(pieces) {
            let sectors = self.store.shape.piece_len(piece);
            if piece == 0 {
                self.cache.adopt(block, at, 1);
            }
            self.place(block, piece, at);
            flash.lines.set_valid(flash.lines.of(at), at, u64::MAX >> (64 - sectors));
        }
    }
}
