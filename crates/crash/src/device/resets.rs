//! Middleware over the media that knows of every logical sector which copies and trim records media hold, and
//! since when they are durable. At each reset it notes the sectors whose newest durable copy, or the record that
//! hides an older one, goes with the chunk, and what a mount would show in its place. Whether that was promised is
//! the model's business.
//!
//! It shares no code with FTLs: it replays out-of-band data (docs/formats/line.md) itself.

use crate::loss::{KEYS_OF_DATA, trim_records};
use nandscape_block::{Lba, SectorData, Tag};
use nandscape_media::{
    ChunkId, ChunkState, KEY_TRIM, Kind, Layer, OpenChannel, Outcome, Ppa, RuleError, Status,
    WriteCmd,
};
use nandscape_rt::Nanos;
use std::collections::BTreeMap;
use std::ops::Range;

/// A reset that changes what a mount would show of a sector.
#[derive(Clone, PartialEq, Debug)]
pub struct LostCopy {
    /// The sector.
    pub lba: Lba,
    /// The chunk that is erased.
    pub chunk: ChunkId,
    /// When the reset was submitted.
    pub at: Nanos,
    /// What is left on media: an older copy, or zeroes.
    pub left: SectorData,
}

/// A copy of a sector on media.
#[derive(Clone, Copy, Debug)]
struct Copy {
    at: Ppa,
    seq: u64,
    durable_at: Nanos,
}

/// A sector of trim records: sectors that each hides, from copies before its sequence.
#[derive(Debug)]
struct Records {
    durable_at: Nanos,
    records: Vec<(Range<u64>, u64)>,
}

/// The middleware; see the head of this file.
#[derive(Debug)]
pub(crate) struct ResetWatch<M> {
    inner: M,
    /// Sectors of a mapping unit: a mount takes whole ones. `None`: nothing is watched.
    unit: Option<u32>,
    /// By logical sector.
    copies: Vec<Vec<Copy>>,
    trims: BTreeMap<Ppa, Records>,
    lost: Vec<LostCopy>,
}

impl<M: OpenChannel> ResetWatch<M> {
    /// Watches nothing.
    pub(crate) const fn new(inner: M) -> Self {
        Self { inner, unit: None, copies: Vec::new(), trims: BTreeMap::new(), lost: Vec::new() }
    }

    /// Watches a device with mapping units of so many sectors from now on, or none.
    pub(crate) fn watch(&mut self, unit: Option<u32>) {
        self.unit = unit;
        self.look_again();
    }

    /// What resets have lost since this was asked last.
    pub(crate) fn take_lost(&mut self) -> Vec<LostCopy> {
        std::mem::take(&mut self.lost)
    }

    /// Takes in what media hold after a power cut, when nothing is in flight.
    pub(crate) fn look_again(&mut self) {
        self.copies.clear();
        self.trims.clear();
        let Some(unit) = self.unit else { return };
        let geometry = *self.inner.geometry();
        for chunk in geometry.all_chunks() {
            let info = self.inner.chunk(chunk);
            let end = if info.state == ChunkState::Offline { 0 } else { info.wp };
            for sector in (0..end).step_by(unit as usize) {
                let first = geometry.ppa(chunk, sector);
                if sector + unit <= end && self.is_whole(first, unit) {
                    for at in (0..unit).map(|i| first.plus(i)) {
                        let oob = self.inner.oob(at);
                        self.add(at, oob.key, oob.seq, Nanos::ZERO);
                    }
                }
            }
        }
    }

    /// Whether all of a mapping unit can be read and was written together.
    fn is_whole(&self, first: Ppa, unit: u32) -> bool {
        let head = self.inner.oob(first);
        let reads = |at: Ppa| self.inner.readable(at) && self.inner.oob(at).kind == Kind::Data;
        let follows =
            |i: u32| self.inner.oob(first.plus(i)).key == head.key + i && reads(first.plus(i));
        reads(first) && (head.key > KEYS_OF_DATA || (1..unit).all(follows))
    }

    fn add(&mut self, at: Ppa, key: u32, seq: u64, durable_at: Nanos) {
        if key == KEY_TRIM {
            let records = trim_records(&self.inner.data(at));
            self.trims.insert(at, Records { durable_at, records });
        } else if key <= KEYS_OF_DATA {
            let lba = key as usize;
            if lba >= self.copies.len() {
                self.copies.resize_with(lba + 1, Vec::new);
            }
            self.copies[lba].push(Copy { at, seq, durable_at });
        }
    }

    fn note_write(&mut self, cmd: &WriteCmd<'_>, durable_at: Nanos) {
        for (i, &key) in cmd.keys.iter().enumerate() {
            let delta = cmd.seq_deltas.get(i).map_or(i as u64, |&delta| delta.into());
            self.add(cmd.at.plus(i as u32), key, cmd.seq + delta, durable_at);
        }
    }

    /// The copy that a mount would show at `now`, of those outside of some places.
    fn shown(&self, lba: u64, now: Nanos, without: &Range<Ppa>) -> Option<Copy> {
        let counts = |at: Ppa, durable_at| durable_at <= now && !without.contains(&at);
        let copies = self.copies.get(lba as usize)?.iter();
        let newest = copies.filter(|copy| counts(copy.at, copy.durable_at));
        let newest = newest.max_by_key(|copy| copy.seq).copied()?;
        let hides = |(hidden, seq): &(Range<u64>, u64)| hidden.contains(&lba) && *seq > newest.seq;
        let mut trims = self.trims.iter().filter(|(at, trim)| counts(**at, trim.durable_at));
        let hidden = trims.any(|(_, trim)| trim.records.iter().any(hides));
        (!hidden).then_some(newest)
    }

    /// What a mount would no longer show without a chunk.
    fn lost_with(&self, chunk: ChunkId, now: Nanos) -> Vec<LostCopy> {
        let (geometry, info) = (self.inner.geometry(), self.inner.chunk(chunk));
        let first = geometry.ppa(chunk, 0);
        let places = first..first.plus(info.wp);
        let none = first..first;
        let mut lost = Vec::new();
        let mut compare = |lba: u64| {
            let before = self.shown(lba, now, &none).map(|copy| copy.at);
            let after = self.shown(lba, now, &places).map(|copy| copy.at);
            // What a fault has taken is not the reset's loss.
            if before == after
                || [before, after].iter().flatten().any(|&at| !self.inner.readable(at))
            {
                return;
            }
            let left = after.map_or(SectorData::Tag(Tag::ZERO), |at| self.inner.data(at));
            lost.push(LostCopy { lba: Lba(lba), chunk, at: now, left });
        };
        for at in (0..info.wp).map(|sector| first.plus(sector)) {
            let oob = self.inner.oob(at);
            if oob.kind == Kind::Data && oob.key <= KEYS_OF_DATA && self.is_newest(at, oob.key, now)
            {
                compare(oob.key.into());
            }
        }
        for (_, Records { records, .. }) in self.trims.range(places.clone()) {
            for (hidden, seq) in records {
                let older = |copy: &Copy| copy.seq < *seq && !places.contains(&copy.at);
                let end = hidden.end.min(self.copies.len() as u64);
                (hidden.start..end)
                    .filter(|&lba| self.copies[lba as usize].iter().any(older))
                    .for_each(&mut compare);
            }
        }
        lost
    }

    /// Whether no durable copy of its sector is newer than the one at `at`.
    fn is_newest(&self, at: Ppa, key: u32, now: Nanos) -> bool {
        let Some(copies) = self.copies.get(key as usize) else { return false };
        let durable = copies.iter().filter(|copy| copy.durable_at <= now);
        durable.max_by_key(|copy| copy.seq).is_some_and(|copy| copy.at == at)
    }

    /// A chunk is erased, or lost.
    fn forget(&mut self, keys: &[u32], places: &Range<Ppa>) {
        for &key in keys {
            if let Some(copies) = self.copies.get_mut(key as usize) {
                copies.retain(|copy| !places.contains(&copy.at));
            }
        }
        let trims: Vec<Ppa> = self.trims.range(places.clone()).map(|(&at, _)| at).collect();
        for at in trims {
            self.trims.remove(&at);
        }
    }
}

impl<M: OpenChannel> Layer for ResetWatch<M> {
    type Inner = M;

    #[inline]
    fn inner(&self) -> &M {
        &self.inner
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    fn pass_write(
        &mut self,
        now: Nanos,
        ready: Nanos,
        cmd: WriteCmd<'_>,
    ) -> Result<Outcome, RuleError> {
        let outcome = self.inner.write(now, ready, cmd)?;
        if self.unit.is_some() && cmd.kind == Kind::Data && outcome.status == Status::Ok {
            self.note_write(&cmd, outcome.at);
        }
        Ok(outcome)
    }

    fn pass_reset(
        &mut self,
        now: Nanos,
        ready: Nanos,
        chunk: ChunkId,
    ) -> Result<Outcome, RuleError> {
        if self.unit.is_none() {
            return self.inner.reset(now, ready, chunk);
        }
        let first = self.inner.geometry().ppa(chunk, 0);
        let places = first..first.plus(self.inner.chunk(chunk).wp);
        let keys: Vec<u32> =
            (places.start.0..places.end.0).map(|at| self.inner.oob(Ppa(at)).key).collect();
        let lost = self.lost_with(chunk, now);
        let outcome = self.inner.reset(now, ready, chunk)?;
        self.lost.extend(lost);
        self.forget(&keys, &places);
        Ok(outcome)
    }
}
