//! Lines: chunk i of every parallel unit (pblk-core.c, pblk.h `struct pblk_line`).
//!
//! Invariants:
//! - `valid` counts the set bits of the line; a bit is set exactly where the table points.
//! - `pending` counts entries mapped to the line whose table entry still names a write buffer.
//! - A line is emptied, then quarantined until everything that invalidated its sectors is durable
//!   (`gate`), and only then counts as free and may be erased. Otherwise a copy that a flush
//!   promised would die while its successor still sits in RAM.
//! - `writable` is the number of data sectors that can still be mapped: the rest of the open line,
//!   the next one, and free lines; quarantined lines are left out, so what a buffer was admitted for
//!   can always be written.

use super::free_space::FreeSpace;
use super::ids::{LineId, MAP_ORIGIN, OriginId};
use super::layout::{Layout, StripeOrder, StripeSet};
use nandscape_column::Column;
use nandscape_media::{Geometry, Ppa};
use nandscape_rt::invariant;
use std::collections::VecDeque;

/// Life of a line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum LineState {
    /// May be erased and opened.
    #[default]
    Free,
    /// Empty, but what superseded its content is not durable yet.
    AwaitingDurability,
    /// Being erased, or erased with its start metadata written.
    Next,
    /// Taking data.
    Open,
    /// Full of data, end metadata in flight.
    Closing,
    /// May be a victim.
    Closed,
    /// Without valid sectors, until garbage collection runs.
    Garbage,
    /// A victim.
    Gc,
    /// Holds sectors that media cannot correct; kept until they are overwritten.
    Corrupt,
    /// Too many bad chunks.
    Bad,
}

/// One line.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Line {
    pub(crate) state: LineState,
    /// Sectors that the table points at, and live trim records.
    pub(crate) valid: u32,
    /// Entries mapped here whose table entry still names a write buffer.
    pub(crate) pending: u32,
    /// Write units of data in flight.
    pub(crate) in_flight: u32,
    /// Data sectors written, padding included.
    pub(crate) data: u32,
    /// Data sectors that the line can hold; less than nominal with bad chunks.
    pub(crate) capacity: u32,
    /// Data sectors that can still be mapped, while the line is being prepared or open.
    pub(crate) left: u32,
    /// Good chunks.
    pub(crate) chunks: u32,
    /// May be erased when everything before this sequence is durable.
    pub(crate) gate: u64,
    /// Age: the order of opening, or the highest sequence found at a mount.
    pub(crate) seq: u64,
    /// What the line was opened for.
    pub(crate) origin: OriginId,
    /// Whether the end metadata is complete.
    pub(crate) emeta: bool,
    /// A write in it failed: collected first.
    pub(crate) werr: bool,
}

impl Line {
    /// Whether the line holds mapping blocks.
    #[inline]
    pub(crate) const fn is_map(&self) -> bool {
        self.origin == MAP_ORIGIN
    }
}

/// All lines.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Box<[Line]>,
    valid: Column<u64>,
    layout: Layout,
    nominal: u32,
    chunk_sectors: u32,
    /// Free lines of each stripe.
    free: Vec<VecDeque<LineId>>,
    free_lines: u32,
    /// Free lines by the number of their good chunks, and how many lack some.
    free_by_chunks: Box<[u32]>,
    short_lines: u32,
    /// Free lines that are kept for mapping blocks.
    pub(crate) kept: u32,
    quarantine: VecDeque<LineId>,
    /// Good chunks of free lines, what the limiter looks at.
    pub(crate) free_chunks: u32,
    /// Data sectors that can still be mapped.
    pub(crate) writable: u64,
    /// Data sectors written in lines that are not free.
    pub(crate) in_use: u64,
}

impl Lines {
    /// All lines in state `Free` but on no list yet, without chunks. A line without bad chunks holds
    /// `line_sectors` data sectors.
    /// `None` when the process cannot have the address space.
    pub(crate) fn new(geometry: &Geometry, layout: Layout, line_sectors: u32) -> Option<Self> {
        Some(Self {
            lines: vec![Line::default(); (geometry.chunks * layout.stripes()) as usize]
                .into_boxed_slice(),
            valid: Column::zeroed(geometry.ppa_end() / 64 + 2)?,
            layout,
            nominal: line_sectors,
            chunk_sectors: geometry.sectors,
            free: (0..layout.stripes()).map(|_| VecDeque::new()).collect(),
            free_lines: 0,
            free_by_chunks: vec![0; layout.width as usize + 1].into_boxed_slice(),
            short_lines: 0,
            kept: 0,
            quarantine: VecDeque::new(),
            free_chunks: 0,
            writable: 0,
            in_use: 0,
        })
    }

    #[inline]
    pub(crate) fn get(&self, line: LineId) -> &Line {
        &self.lines[line as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, line: LineId) -> &mut Line {
        &mut self.lines[line as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LineId, &Line)> {
        (0..).zip(self.lines.iter())
    }

    #[inline]
    pub(crate) fn of(&self, ppa: Ppa) -> LineId {
        self.layout.line_of(ppa)
    }

    /// What victim choice weighs: sectors that are or may become valid, plus what bad chunks keep
    /// the line from holding, so that a line without anything to gain never looks better than a
    /// full one.
    #[inline]
    pub(crate) fn weight(&self, line: LineId) -> u32 {
        let line = self.get(line);
        (line.valid + line.pending + (self.nominal - line.capacity)).min(self.nominal)
    }

    #[inline]
    pub(crate) fn is_valid(&self, ppa: Ppa) -> bool {
        self.valid[(ppa.0 / 64) as usize] >> (ppa.0 % 64) & 1 != 0
    }

    /// Pulls a sector's bit towards the caches.
    #[inline]
    pub(crate) fn prefetch(&self, ppa: Ppa) {
        self.valid.prefetch((ppa.0 / 64) as usize);
    }

    /// Sets the bits of those of the 64 sectors from `ppa` on that `mask` names, lowest first, and
    /// counts them in their line.
    #[inline]
    pub(crate) fn set_valid(&mut self, line: LineId, ppa: Ppa, mask: u64) {
        let (word, shift) = ((ppa.0 / 64) as usize, ppa.0 % 64);
        invariant!(
            self.valid_mask(ppa, 64) & mask == 0,
            "a sector becomes valid once: {:#x} of {mask:#x} from {ppa:?} on are",
            self.valid_mask(ppa, 64)
        );
        invariant!(mask == 0 || self.of(ppa) == line, "{ppa:?} is in line {line}");
        self.valid[word] |= mask << shift;
        if shift != 0 {
            self.valid[word + 1] |= mask >> (64 - shift);
        }
        self.get_mut(line).valid += mask.count_ones();
    }

    /// Clears a sector's bit, counts it, and raises the line's gate.
    #[inline]
    pub(crate) fn clear_valid(&mut self, ppa: Ppa, gate: u64) -> LineId {
        let line = self.of(ppa);
        self.clear_bit(ppa);
        self.cleared(line, 1, gate);
        line
    }

    /// Clears a sector's bit, which [`Self::cleared`] must count.
    #[inline]
    pub(crate) fn clear_bit(&mut self, ppa: Ppa) {
        invariant!(self.is_valid(ppa), "a bit that is cleared is set: that of {ppa:?}");
        self.valid[(ppa.0 / 64) as usize] &= !(1 << (ppa.0 % 64));
    }

    /// Counts cleared bits of a line, and raises its gate.
    #[inline]
    pub(crate) fn cleared(&mut self, line: LineId, sectors: u32, gate: u64) {
        let entry = self.get_mut(line);
        invariant!(entry.valid >= sectors, "`valid` counts the set bits of line {line}");
        entry.valid -= sectors;
        entry.gate = entry.gate.max(gate);
    }

    /// The valid bits of up to 64 sectors from `ppa` on, lowest first.
    #[inline]
    pub(crate) fn valid_mask(&self, ppa: Ppa, sectors: u32) -> u64 {
        let (word, shift) = ((ppa.0 / 64) as usize, ppa.0 % 64);
        invariant!(sectors > 0 && sectors <= 64, "a mask is of 1 to 64 sectors");
        let mut bits = self.valid[word] >> shift;
        if shift != 0 && u64::from(sectors) + shift > 64 {
            bits |= self.valid[word + 1] << (64 - shift);
        }
        bits & (u64::MAX >> (64 - sectors))
    }

    /// An empty line waits until its gate is durable.
    pub(crate) fn quarantine_line(&mut self, line: LineId) {
        let entry = self.get_mut(line);
        invariant!(
            entry.valid == 0 && entry.pending == 0,
            "line {line} is empty when it waits for its erase"
        );
        invariant!(
            !matches!(entry.state, LineState::Free | LineState::AwaitingDurability),
            "line {line} is emptied once"
        );
        entry.state = LineState::AwaitingDurability;
        self.in_use -= u64::from(std::mem::take(&mut self.get_mut(line).data));
        self.quarantine.push_back(line);
    }

    /// Quarantined lines whose gate is passed when everything before `durable` is durable.
    pub(crate) fn passed(&self, durable: u64) -> impl Iterator<Item = LineId> {
        self.quarantine.iter().copied().filter(move |&line| self.get(line).gate <= durable)
    }

    /// Frees quarantined lines, given that everything before `durable` is durable. Whether any was freed.
    pub(crate) fn release_durable_lines(&mut self, durable: u64) -> bool {
        let mut released = false;
        for _ in 0..self.quarantine.len() {
            let Some(line) = self.quarantine.pop_front() else { break };
            if self.get(line).gate <= durable {
                self.release(line);
                released = true;
            } else {
                self.quarantine.push_back(line);
            }
        }
        released
    }

    /// Takes the first quarantined line that `passes`, given its number, its stripe and its gate. It is on no
    /// list then.
    pub(crate) fn take_quarantined(
        &mut self,
        passes: impl Fn(LineId, u32, u64) -> bool,
    ) -> Option<LineId> {
        let passed =
            |&line: &LineId| passes(line, self.layout.stripe_of(line), self.get(line).gate);
        let index = self.quarantine.iter().position(passed)?;
        self.quarantine.remove(index)
    }

    /// Quarantined lines of a stripe.
    pub(crate) fn quarantined_in(&self, stripe: u32) -> impl Iterator<Item = LineId> {
        let of_stripe = move |line: &LineId| self.layout.stripe_of(*line) == stripe;
        self.quarantine.iter().copied().filter(of_stripe)
    }

    /// Lines that hold nothing: free ones, those kept for mapping blocks included, and quarantined ones.
    pub(crate) fn empty_lines(&self) -> u64 {
        u64::from(self.free_lines) + self.quarantine.len() as u64
    }

    /// Free lines of a stripe.
    #[inline]
    pub(crate) fn free_lines_of(&self, stripe: u32) -> u32 {
        self.free[stripe as usize].len() as u32
    }

    /// Data sectors that the free lines of a stripe hold, up to `enough`.
    pub(crate) fn free_sectors_of(&self, stripe: u32, enough: u32) -> u32 {
        let mut sectors = 0;
        for &line in &self.free[stripe as usize] {
            sectors += self.get(line).capacity;
            if sectors >= enough {
                break;
            }
        }
        sectors
    }

    /// So many sectors of a victim are no longer in use: they were superseded when it was chosen, or since, or were copied.
    pub(crate) fn leave(&mut self, line: LineId, sectors: u32) {
        self.get_mut(line).data -= sectors;
        self.in_use -= u64::from(sectors);
    }

    /// Puts an empty line without data on the free list.
    pub(crate) fn release(&mut self, line: LineId) {
        let entry = self.get_mut(line);
        let Line { capacity, chunks, in_flight, .. } = *entry;
        invariant!(
            entry.valid == 0 && entry.pending == 0 && entry.data == 0,
            "line {line} is free when it holds nothing"
        );
        let was_map = entry.is_map();
        *entry = Line { capacity, chunks, in_flight, ..Line::default() };
        self.kept += u32::from(was_map);
        self.writable += u64::from(capacity);
        self.free_chunks += chunks;
        self.free_lines += 1;
        self.free_by_chunks[chunks as usize] += 1;
        self.short_lines += u32::from(chunks < self.layout.width);
        self.free[self.layout.stripe_of(line) as usize].push_back(line);
    }

    /// Takes the line that has been free for longest, to prepare it for data, of that of these stripes which
    /// has most free lines. Mapping blocks take from what is kept for them, and no other caller does.
    pub(crate) fn take_free(&mut self, stripes: StripeSet, for_map: bool) -> Option<LineId> {
        let own = if for_map { self.kept > 0 } else { self.free_lines > self.kept };
        if !own {
            return None;
        }
        let stripes = stripes.of(self.layout.stripes());
        let stripe = stripes.max_by_key(|&stripe| self.free_in(stripe))?;
        let line = self.free[stripe as usize].pop_front()?;
        self.kept -= u32::from(for_map);
        self.taken(line);
        invariant!(
            for_map || self.free_lines >= self.kept,
            "data leave {} lines for mapping blocks",
            self.kept
        );
        Some(line)
    }

    /// Takes the line of a stripe that has been free for longest among those that hold `sectors`.
    pub(crate) fn take_free_of(&mut self, stripe: u32, sectors: u32) -> Option<LineId> {
        let holds = |&line: &LineId| self.lines[line as usize].capacity >= sectors;
        let index = self.free[stripe as usize].iter().position(holds)?;
        let line = self.free[stripe as usize].remove(index)?;
        self.taken(line);
        Some(line)
    }

    /// A line left its list of free ones.
    fn taken(&mut self, line: LineId) {
        invariant!(
            self.get(line).state == LineState::Free && self.get(line).valid == 0,
            "line {line} on the list of free ones is free"
        );
        self.free_lines -= 1;
        let entry = &mut self.lines[line as usize];
        entry.state = LineState::Next;
        entry.left = entry.capacity;
        self.free_chunks -= entry.chunks;
        self.free_by_chunks[entry.chunks as usize] -= 1;
        self.short_lines -= u32::from(entry.chunks < self.layout.width);
    }

    /// Counts a unit of data sectors written to an open line.
    #[inline]
    pub(crate) fn use_up(&mut self, line: LineId, sectors: u32) {
        self.get_mut(line).data += sectors;
        self.in_use += u64::from(sectors);
        self.write_off(line, sectors);
    }

    /// Sectors of a line that can no longer be mapped.
    #[inline]
    pub(crate) fn write_off(&mut self, line: LineId, sectors: u32) {
        let entry = self.get_mut(line);
        let sectors = sectors.min(entry.left);
        entry.left -= sectors;
        invariant!(
            self.writable >= u64::from(sectors),
            "`writable` is what can still be mapped in free and open lines"
        );
        self.writable -= u64::from(sectors);
    }

    /// A chunk of a line under preparation is bad: the line holds `sectors` less from now on.
    pub(crate) fn remove_chunk(&mut self, line: LineId, sectors: u32) {
        self.write_off(line, sectors);
        let entry = self.get_mut(line);
        entry.chunks -= 1;
        // A line holds less than its chunks do where metadata take a part of it.
        entry.capacity = entry.capacity.saturating_sub(sectors);
    }

    /// Stripes, that with the fewest free lines first.
    pub(crate) fn stripes_by_need(&self) -> StripeOrder {
        let mut stripes: StripeOrder = (0..self.layout.stripes()).collect();
        stripes.sort_by_key(|&stripe| self.free_in(stripe));
        stripes
    }

    fn free_in(&self, stripe: u32) -> usize {
        self.free[stripe as usize].len()
    }

    /// Free chunks and lines, but for those kept for mapping blocks.
    pub(crate) fn free(&self) -> (u32, u32) {
        // A mount may find fewer free lines than are kept.
        let chunks = self.free_chunks.saturating_sub(self.kept * self.layout.width);
        (chunks, self.free_lines.saturating_sub(self.kept))
    }

    /// What free lines hold, but for those kept for mapping blocks.
    #[inline]
    pub(crate) fn free_space(&self) -> FreeSpace<'_> {
        let short = if self.short_lines == 0 { 0 } else { self.layout.width as usize };
        FreeSpace {
            lines: self.free().1,
            line: self.nominal,
            chunk: self.chunk_sectors,
            short: &self.free_by_chunks[..short],
        }
    }

    /// Free chunks and lines of a stripe, scaled to the device: each stripe is collected for itself.
    pub(crate) fn free_of(&self, stripe: u32) -> (u32, u32) {
        if self.free.len() == 1 {
            return self.free();
        }
        let lines = self.free_in(stripe) as u32 * self.layout.stripes();
        let lines = lines.saturating_sub(self.kept);
        (lines * self.layout.width, lines)
    }

    /// The stripe that has fewest free lines.
    pub(crate) fn scarcest(&self) -> u32 {
        let stripes = 0..self.layout.stripes();
        stripes.min_by_key(|&stripe| self.free_in(stripe)).unwrap_or(0)
    }

    /// Lines that wait for their gate.
    pub(crate) fn quarantined(&self) -> usize {
        self.quarantine.len()
    }

    /// The lowest gate of the lines that wait; `u64::MAX` when none does.
    pub(crate) fn lowest_gate(&self) -> u64 {
        self.quarantine.iter().map(|&line| self.get(line).gate).min().unwrap_or(u64::MAX)
    }

    /// Bytes of the valid bitmap that a device of this geometry uses.
    pub(crate) fn bitmap_bytes(&self) -> u64 {
        self.valid.len() as u64 * 8
    }

    /// Bytes of everything else.
    pub(crate) fn line_bytes(&self) -> u64 {
        (size_of_val(&*self.lines)
            + (self.free.iter().map(VecDeque::capacity).sum::<usize>()
                + self.quarantine.capacity())
                * size_of::<LineId>()) as u64
    }
}

#[cfg(test)]
mod tests;
