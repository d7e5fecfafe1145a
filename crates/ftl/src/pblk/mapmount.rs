//! Mounting a cached map. The data's out-of-band data rebuild the whole table; a mapping block on media
//! is the newest version if its digest says what the table says, and stale otherwise: it was dirty in
//! RAM when power went off, or holds discards that were not durable. Stale blocks are written anew
//! before the mount ends, so that afterwards media are right about every block that is not loaded. A
//! device that is so worn out that there is no room for them comes up for reading only.
//!
//! Nothing here can lose data: whatever a power cut leaves of it, the next mount rebuilds the table.

use super::Pblk;
use super::flash::Flash;
use super::rules::Rules;
use crate::common::ids::LineId;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::{BlockError, SectorData};
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

impl<M: OpenChannel> Pblk<M> {
    /// Takes in what media hold of the map, for the table that has been rebuilt. The blocks that are
    /// to be written anew.
    pub(super) fn adopt_map(&mut self, found: &FoundMap) -> Vec<u32> {
        let Some(mapping) = &mut self.mapping else { return Vec::new() };
        let seq_max = found.sectors.keys().map(|&(_, seq)| seq).max();
        mapping.store.next_seq = seq_max.map_or(1, |seq| seq + 1);
        let blocks = mapping.cache.blocks();
        let mut current: Vec<(u32, Vec<Ppa>)> = Vec::new();
        let mut stale = Vec::new();
        for block in 0..blocks {
            match self.find_block(found, block) {
                Some(pieces) => current.push((block, pieces)),
                None if self.is_blank(block) => {}
                None => stale.push(block),
            }
        }
        let dropped = self.flash.drop_map_lines(&self.rules, &current);
        for (block, pieces) in current {
            if pieces.iter().any(|&at| dropped.contains(&self.flash.lines.of(at))) {
                stale.push(block);
            } else {
                self.adopt_block(block, &pieces);
            }
        }
        stale
    }

    fn is_blank(&self, block: u32) -> bool {
        self.mapping.as_ref().is_none_or(|m| self.flash.l2p.is_blank(m.cache.sectors_of(block)))
    }

    /// The pieces of the version of a block that says what the table says.
    fn find_block(&self, found: &FoundMap, block: u32) -> Option<Vec<Ppa>> {
        let shape = self.mapping.as_ref()?.store.shape;
        let truth = SectorData::Tag(self.digest(block));
        let piece = |piece: u32| {
            let (key, sectors) = (shape.key(block, piece), shape.piece_len(piece));
            let copies = found.sectors.range((key, 0)..=(key, u64::MAX)).rev();
            let holds = |&at: &Ppa| {
                (0..sectors).all(|i| self.flash.holds_map(&self.rules, at.plus(i), key + i, &truth))
            };
            copies.map(|(_, &at)| at).find(holds)
        };
        (0..shape.pieces).map(piece).collect()
    }

    fn adopt_block(&mut self, block: u32, pieces: &[Ppa]) {
        for (piece, &at) in (0..).zip(pieces) {
            let Some(mapping) = &mut self.mapping else { return };
            let sectors = mapping.store.shape.piece_len(piece);
            if piece == 0 {
                mapping.cache.adopt(block, at, 1);
            }
            mapping.place(block, piece, at);
            self.flash.lines.set_valid(self.flash.lines.of(at), at, u64::MAX >> (64 - sectors));
        }
    }

    /// Writes stale blocks anew, and waits until they are on media.
    pub(super) fn rewrite_blocks(&mut self, stale: Vec<u32>) -> Result<(), FtlError> {
        if self.mapping.is_none() {
            return Ok(());
        }
        self.set_mounting(true);
        for block in stale {
            if self.progress.stopped.is_none() {
                let number = self.add_job(block, 1, false);
                self.send_job(number);
                self.run_map_events(false)?;
            }
        }
        if self.progress.stopped.is_none() {
            self.run_map_events(true)?;
        }
        self.set_mounting(false);
        Ok(())
    }

    fn set_mounting(&mut self, mounting: bool) {
        if let Some(mapping) = &mut self.mapping {
            mapping.mounting = mounting;
        }
    }

    /// Whether nothing may move but mapping blocks.
    pub(super) fn is_mounting(&self) -> bool {
        self.mapping.as_ref().is_some_and(|mapping| mapping.mounting)
    }

    /// Goes on until mapping blocks find room, or all are on media.
    fn run_map_events(&mut self, to_end: bool) -> Result<(), FtlError> {
        self.pump();
        while !self.rewritten(to_end) {
            if let Some(error) = self.progress.stopped.take() {
                return Err(error.into());
            }
            let Some(at) = self.next_at() else {
                self.stop(BlockError::ReadOnly("no room for mapping blocks".into()));
                return Ok(());
            };
            self.run_round(at);
        }
        self.progress.stopped.take().map_or(Ok(()), |error| Err(error.into()))
    }

    fn rewritten(&self, to_end: bool) -> bool {
        let idle = self.mapping.as_ref().is_none_or(|mapping| mapping.store.is_idle());
        idle || (!to_end && self.has_map_room())
    }
}
