//! Lines: chunk i of every parallel unit (pblk-core.c, pblk.h `struct pblk_line`).
//!
//! Invariants:
//! - `valid` counts the set bits of the line; a bit is set exactly where the table points.
//! - `pending` counts entries mapped to the line whose table entry still names the ring.
//! - A line is emptied, then *cools* until everything that invalidated its sectors is durable
//!   (`gate`), and only then counts as free and may be erased. Otherwise a copy that a flush
//!   promised would die while its successor still sits in RAM.
//! - `writable` is the number of data sectors that can still be mapped: the rest of the open line,
//!   the next one, and free lines; cooling lines are left out, so what the ring was admitted for
//!   can always be written.

use super::buffers::BufferId;
use super::capacity::Capacity;
use super::layout::Layout;
use nandscape_column::Column;
use nandscape_media::{Geometry, Ppa};
use std::collections::VecDeque;

/// Index of a line.
pub(super) type LineId = u32;
/// No line.
pub(super) const NO_LINE: LineId = u32::MAX;

/// Life of a line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LineState {
    /// May be erased and opened.
    #[default]
    Free,
    /// Empty, but what superseded its content is not durable yet.
    Cooling,
    /// Being erased, or erased with its start metadata written.
    Next,
    /// Taking data.
    Open,
    /// Full of data, end metadata under way.
    Closing,
    /// May be a victim.
    Closed,
    /// A victim.
    Gc,
    /// Holds sectors that media cannot correct; kept until they are overwritten.
    Corrupt,
    /// Too many bad chunks.
    Bad,
}

/// One line.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Line {
    pub(super) state: LineState,
    /// Sectors that the table points at, and live trim records.
    pub(super) valid: u32,
    /// Entries mapped here whose table entry still names the ring.
    pub(super) pending: u32,
    /// Write units of data under way.
    pub(super) in_flight: u32,
    /// Data sectors written, padding included.
    pub(super) data: u32,
    /// Data sectors that the line can hold; less than nominal with bad chunks.
    pub(super) capacity: u32,
    /// Data sectors that can still be mapped, while the line is being prepared or open.
    pub(super) left: u32,
    /// Good chunks.
    pub(super) chunks: u32,
    /// May be erased when everything before this sequence is durable.
    pub(super) gate: u64,
    /// Order of opening.
    pub(super) seq: u64,
    /// The buffer whose data the line was opened for.
    pub(super) origin: BufferId,
    /// Whether the end metadata is complete.
    pub(super) emeta: bool,
    /// A write in it failed: collected first.
    pub(super) werr: bool,
}

/// All lines.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Box<[Line]>,
    valid: Column<u64>,
    layout: Layout,
    nominal: u32,
    /// Free lines of each stripe.
    free: Vec<VecDeque<LineId>>,
    free_lines: u32,
    cooling: VecDeque<LineId>,
    /// Good chunks of free lines, what the limiter looks at.
    pub(super) free_chunks: u32,
    /// Data sectors that can still be mapped.
    pub(super) writable: u64,
    /// Data sectors written in lines that are not free.
    pub(super) in_use: u64,
}

impl Lines {
    /// All lines in state `Free` but on no list yet, without chunks.
    /// `None` when the process cannot have the address space.
    pub(super) fn new(geometry: &Geometry, layout: Layout, capacity: &Capacity) -> Option<Self> {
        Some(Self {
            lines: vec![Line::default(); capacity.lines as usize].into_boxed_slice(),
            valid: Column::zeroed(geometry.ppa_end() / 64 + 2)?,
            layout,
            nominal: capacity.line_data_sectors,
            free: (0..layout.stripes()).map(|_| VecDeque::new()).collect(),
            free_lines: 0,
            cooling: VecDeque::new(),
            free_chunks: 0,
            writable: 0,
            in_use: 0,
        })
    }

    #[inline]
    pub(super) fn get(&self, line: LineId) -> &Line {
        &self.lines[line as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, line: LineId) -> &mut Line {
        &mut self.lines[line as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LineId, &Line)> {
        (0..).zip(self.lines.iter())
    }

    #[inline]
    pub(super) fn of(&self, ppa: Ppa) -> LineId {
        self.layout.line_of(ppa)
    }

    /// What victim choice weighs: sectors that are or may become valid, plus what bad chunks keep
    /// the line from holding, so that a line without anything to gain never looks better than a
    /// full one.
    #[inline]
    pub(super) fn weight(&self, line: LineId) -> u32 {
        let line = self.get(line);
        (line.valid + line.pending + (self.nominal - line.capacity)).min(self.nominal)
    }

    #[inline]
    pub(super) fn is_valid(&self, ppa: Ppa) -> bool {
        self.valid[(ppa.0 / 64) as usize] >> (ppa.0 % 64) & 1 != 0
    }

    /// Pulls a sector's bit towards the caches.
    #[inline]
    pub(super) fn prefetch(&self, ppa: Ppa) {
        self.valid.prefetch((ppa.0 / 64) as usize);
    }

    /// Sets the bits of those of the 64 sectors from `ppa` on that `mask` names, lowest first, and
    /// counts them in their line.
    #[inline]
    pub(super) fn set_valid(&mut self, line: LineId, ppa: Ppa, mask: u64) {
        let (word, shift) = ((ppa.0 / 64) as usize, ppa.0 % 64);
        debug_assert_eq!(self.valid_mask(ppa, 64) & mask, 0);
        self.valid[word] |= mask << shift;
        if shift != 0 {
            self.valid[word + 1] |= mask >> (64 - shift);
        }
        self.get_mut(line).valid += mask.count_ones();
    }

    /// Clears a sector's bit, counts it, and raises the line's gate.
    #[inline]
    pub(super) fn clear_valid(&mut self, ppa: Ppa, gate: u64) -> LineId {
        debug_assert!(self.is_valid(ppa));
        self.valid[(ppa.0 / 64) as usize] &= !(1 << (ppa.0 % 64));
        let line = self.of(ppa);
        let entry = self.get_mut(line);
        entry.valid -= 1;
        entry.gate = entry.gate.max(gate);
        line
    }

    /// The valid bits of up to 64 sectors from `ppa` on, lowest first.
    #[inline]
    pub(super) fn valid_mask(&self, ppa: Ppa, sectors: u32) -> u64 {
        let (word, shift) = ((ppa.0 / 64) as usize, ppa.0 % 64);
        let mut bits = self.valid[word] >> shift;
        if shift != 0 && u64::from(sectors) + shift > 64 {
            bits |= self.valid[word + 1] << (64 - shift);
        }
        bits & (u64::MAX >> (64 - sectors))
    }

    /// An empty line begins to cool.
    pub(super) fn cool(&mut self, line: LineId) {
        let entry = self.get_mut(line);
        debug_assert!(entry.valid == 0 && entry.pending == 0);
        entry.state = LineState::Cooling;
        self.in_use -= u64::from(std::mem::take(&mut self.get_mut(line).data));
        self.cooling.push_back(line);
    }

    /// Frees cooled lines, given that everything before `durable` is. Whether any was freed.
    pub(super) fn thaw(&mut self, durable: u64) -> bool {
        let mut thawed = false;
        for _ in 0..self.cooling.len() {
            let Some(line) = self.cooling.pop_front() else { break };
            if self.get(line).gate <= durable {
                self.release(line);
                thawed = true;
            } else {
                self.cooling.push_back(line);
            }
        }
        thawed
    }

    /// Puts an empty line without data on the free list.
    pub(super) fn release(&mut self, line: LineId) {
        let entry = self.get_mut(line);
        let Line { capacity, chunks, in_flight, .. } = *entry;
        *entry = Line { capacity, chunks, in_flight, ..Line::default() };
        self.writable += u64::from(capacity);
        self.free_chunks += chunks;
        self.free_lines += 1;
        self.free[self.layout.stripe_of(line) as usize].push_back(line);
    }

    /// Takes the line of a stripe that has been free for longest, to prepare it for data; without a
    /// stripe, of the one with most free lines.
    pub(super) fn take_free(&mut self, stripe: Option<u32>) -> Option<LineId> {
        let stripe = stripe.unwrap_or_else(|| self.stripes_by_need().last().copied().unwrap_or(0));
        let line = self.free[stripe as usize].pop_front()?;
        self.free_lines -= 1;
        let entry = &mut self.lines[line as usize];
        entry.state = LineState::Next;
        entry.left = entry.capacity;
        self.free_chunks -= entry.chunks;
        Some(line)
    }

    /// Counts a unit of data sectors written to an open line.
    #[inline]
    pub(super) fn use_up(&mut self, line: LineId, sectors: u32) {
        self.get_mut(line).data += sectors;
        self.in_use += u64::from(sectors);
        self.forgo(line, sectors);
    }

    /// Sectors of a line that can no longer be mapped.
    #[inline]
    pub(super) fn forgo(&mut self, line: LineId, sectors: u32) {
        let entry = self.get_mut(line);
        let sectors = sectors.min(entry.left);
        entry.left -= sectors;
        self.writable -= u64::from(sectors);
    }

    /// A chunk of a line under preparation is bad: the line holds `sectors` less from now on.
    pub(super) fn lose_chunk(&mut self, line: LineId, sectors: u32) {
        self.forgo(line, sectors);
        let entry = self.get_mut(line);
        entry.chunks -= 1;
        entry.capacity = entry.capacity.saturating_sub(sectors);
    }

    /// Stripes, that with the fewest free lines first.
    pub(super) fn stripes_by_need(&self) -> Vec<u32> {
        let mut stripes: Vec<u32> = (0..self.layout.stripes()).collect();
        stripes.sort_by_key(|&stripe| self.free[stripe as usize].len());
        stripes
    }

    /// Free chunks and lines.
    pub(super) fn free(&self) -> (u32, u32) {
        (self.free_chunks, self.free_lines)
    }

    /// Free chunks and lines of a stripe, scaled to the device: each stripe is collected for itself.
    pub(super) fn free_of(&self, stripe: u32) -> (u32, u32) {
        if self.free.len() == 1 {
            return self.free();
        }
        let lines = self.free[stripe as usize].len() as u32 * self.layout.stripes();
        (lines * self.layout.width, lines)
    }

    /// The same of the stripe that has fewest.
    pub(super) fn free_of_scarcest(&self) -> (u32, u32) {
        self.free_of(self.stripes_by_need().first().copied().unwrap_or(0))
    }

    /// Lines that wait for their gate.
    pub(super) fn cooling_len(&self) -> usize {
        self.cooling.len()
    }

    /// The lowest gate of the lines that wait; `u64::MAX` when none does.
    pub(super) fn lowest_gate(&self) -> u64 {
        self.cooling.iter().map(|&line| self.get(line).gate).min().unwrap_or(u64::MAX)
    }

    /// Bytes of the valid bitmap that a device of this geometry uses.
    pub(super) fn bitmap_bytes(&self) -> u64 {
        self.valid.len() as u64 * 8
    }

    /// Bytes of everything else.
    pub(super) fn line_bytes(&self) -> u64 {
        (size_of_val(&*self.lines)
            + (self.free.iter().map(VecDeque::capacity).sum::<usize>() + self.cooling.capacity())
                * size_of::<LineId>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, LineSet};
    use nandscape_media::{ChunkId, UnitId};

    const GEOMETRY: Geometry = Geometry {
        groups: 2,
        units: 2,
        chunks: 40,
        sectors: 128,
        ws_min: 4,
        ws_opt: 8,
        mw_cunits: 24,
        maxoc: 0,
        maxocpu: 0,
    };
    const LINE_CAPACITY: u32 = 480;

    /// Every line free, with 4 chunks and room for 480 data sectors.
    fn lines() -> Lines {
        let layout = Layout::new(&GEOMETRY, LineSet::Device).expect("divides");
        let capacity = Capacity::new(&GEOMETRY, &Config::default(), 160).expect("fits");
        let mut lines = Lines::new(&GEOMETRY, layout, &capacity).expect("address space");
        for id in 0..GEOMETRY.chunks {
            let line = lines.get_mut(id);
            (line.chunks, line.capacity) = (4, LINE_CAPACITY);
            lines.release(id);
        }
        lines
    }

    fn ppa(line: LineId, unit: u32, sector: u32) -> Ppa {
        GEOMETRY.ppa(ChunkId { unit: UnitId(unit), chunk: line }, sector)
    }

    /// The erase rule: a line whose successors are not durable stays, whatever cooled before it.
    #[test]
    fn a_line_thaws_when_its_own_gate_is_durable() {
        let mut lines = lines();
        let ids = [0, 1, 2].map(|_| lines.take_free(None).expect("free"));
        for (id, gate) in ids.into_iter().zip([30, 10, 20]) {
            lines.get_mut(id).gate = gate;
            lines.cool(id);
        }
        let state = |lines: &Lines| ids.map(|id| lines.get(id).state == LineState::Free);
        assert!(!lines.thaw(9));
        assert_eq!((state(&lines), lines.cooling_len()), ([false; 3], 3));
        assert!(lines.thaw(20));
        assert_eq!((state(&lines), lines.cooling_len()), ([false, true, true], 1));
        assert!(!lines.thaw(29));
        assert!(lines.thaw(30));
        assert_eq!((state(&lines), lines.free_lines), ([true; 3], GEOMETRY.chunks));
    }

    /// Whatever invalidates a sector last decides when the line may be erased.
    #[test]
    fn the_gate_is_the_latest_of_all_invalidations() {
        let mut lines = lines();
        lines.set_valid(3, ppa(3, 1, 0), 0b111);
        for (sector, gate) in [(0, 7), (1, 9), (2, 8)] {
            assert_eq!(lines.clear_valid(ppa(3, 1, sector), gate), 3);
        }
        assert_eq!((lines.get(3).gate, lines.get(3).valid), (9, 0));
    }

    /// A mask sets and shows neither more nor less than its sectors, wherever it begins.
    #[test]
    fn valid_masks_agree_with_the_bits() {
        let mut lines = lines();
        for from in [0, 24, 48, 72, 96] {
            let mask = (0..24).filter(|i| i % 3 == 0).fold(0, |mask, i| mask | 1 << i);
            lines.set_valid(5, ppa(5, 2, from), mask);
        }
        lines.set_valid(5, ppa(5, 2, 120), 0b100_1001);
        for (from, sectors) in [(0, 8), (56, 8), (60, 8), (61, 64), (0, 64), (64, 64), (127, 1)] {
            let bit = |i: u32| u64::from((from + i).is_multiple_of(3) && from + i < 128) << i;
            let expected = (0..sectors).map(bit).fold(0, |mask, bit| mask | bit);
            assert_eq!(lines.valid_mask(ppa(5, 2, from), sectors), expected, "{from} {sectors}");
        }
        assert_eq!(lines.get(5).valid, 43);
    }

    /// Free lines are used in turn, which wears them alike.
    #[test]
    fn the_line_that_was_free_for_longest_is_taken() {
        let mut lines = lines();
        let first = lines.take_free(None);
        assert_eq!((first, lines.take_free(None)), (Some(0), Some(1)));
        lines.release(0);
        let rest: Vec<_> = std::iter::from_fn(|| lines.take_free(None)).collect();
        assert_eq!((rest.first(), rest.last()), (Some(&2), Some(&0)));
    }

    /// `writable` is a promise to whoever was admitted: taking a line keeps it, data and lost chunks
    /// use it up, and nothing is taken from it twice.
    #[test]
    fn writable_space_is_counted_once() {
        let mut lines = lines();
        let all = u64::from(LINE_CAPACITY * GEOMETRY.chunks);
        let id = lines.take_free(None).expect("free");
        assert_eq!((lines.writable, lines.free_chunks), (all, 4 * 39));
        lines.use_up(id, 8);
        lines.lose_chunk(id, 128);
        assert_eq!((lines.writable, lines.in_use), (all - 136, 8));
        lines.forgo(id, u32::MAX);
        lines.forgo(id, 1);
        assert_eq!((lines.writable, lines.get(id).left), (all - 480, 0));
        lines.cool(id);
        assert_eq!((lines.writable, lines.in_use), (all - 480, 0), "cooling lines take no data");
        lines.thaw(0);
        assert_eq!((lines.writable, lines.free_chunks), (all - 128, 4 * 40 - 1));
    }

    /// A line with lost chunks weighs what it cannot hold, so that one without anything to gain never
    /// looks better than a full one.
    #[test]
    fn lost_chunks_weigh_as_valid() {
        let mut lines = lines();
        let nominal = lines.nominal;
        let line = lines.get_mut(0);
        (line.capacity, line.valid, line.pending) = (nominal - 128, nominal - 130, 2);
        assert_eq!(lines.weight(0), nominal);
        lines.get_mut(0).pending = 0;
        assert_eq!(lines.weight(0), nominal - 2);
    }
}
