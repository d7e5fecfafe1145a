//! The map of superblock granularity: which line of the media holds each logical line, and which sectors of it are
//! valid.
//!
//! Invariants:
//! - A logical line has one line at most, and a line with data one logical line.
//! - A sector is valid from its write, or its copy, until it is discarded or moved; `valid` counts the bits.
//! - A logical line is in use while it has a line or a record names an address of it.
//!
//! *Accesses.* The firmware accesses the entry of a logical line to resolve or to change it, or to count a record that names an
//! address of it; as often as it does so in a row, that is one. Valid bitmaps do not count.

use super::space::{Class, LogicalLine, Space};
use crate::common::bits::bit;
use crate::common::firmware::Walk;
use nandscape_block::{BlockError, Lba};
use nandscape_rt::invariant;
use std::collections::VecDeque;

/// No line, or no logical line.
pub(super) const NONE: u32 = u32::MAX;

/// What becomes of a line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum LineState {
    /// Erased, or never used.
    #[default]
    Free,
    /// Is being written.
    Open,
    /// Takes no more writes.
    Closed,
    /// Its data are being moved.
    Copying,
    /// Its data were moved; it waits until their copies are durable.
    Leaving,
    /// Is being erased.
    Resetting,
    /// Media take nothing any more.
    Failed,
}

impl LineState {
    /// Whether a line holds the data of a logical one.
    pub(super) const fn holds_data(self) -> bool {
        matches!(self, Self::Open | Self::Closed | Self::Copying)
    }
}

/// A line of the media.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Whose it is.
    pub(super) logical: LogicalLine,
    /// The generation of its zone.
    pub(super) generation: u32,
    pub(super) valid: u32,
    pub(super) state: LineState,
}

const UNUSED: Line = Line { logical: NONE, generation: 0, valid: 0, state: LineState::Free };

/// All lines.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) space: Space,
    lines: Box<[Line]>,
    /// Valid sectors of each line that may be a victim; [`NONE`] of others.
    candidates: Box<[u32]>,
    bits: Box<[u64]>,
    words: usize,
    map: Box<[u32]>,
    /// Records that name an address of each logical line.
    references: Box<[u32]>,
    /// Logical lines of the regions of the device that have a line, by class.
    owned_mapped: [u32; 2],
    /// Those in use.
    owned_in_use: [u32; 2],
    free: Box<[VecDeque<u32>]>,
    live: u64,
}

impl Lines {
    /// All lines are free.
    pub(super) fn new(space: Space, lines: u32, line_sectors: u32) -> Self {
        let words = line_sectors.div_ceil(u64::BITS) as usize;
        let mut free = vec![VecDeque::new(); space.instances as usize];
        (0..lines).for_each(|line| free[(line % space.instances) as usize].push_back(line));
        let logical = space.logical_lines() as usize;
        Self {
            space,
            lines: vec![UNUSED; lines as usize].into_boxed_slice(),
            candidates: vec![NONE; lines as usize].into_boxed_slice(),
            bits: vec![0; lines as usize * words].into_boxed_slice(),
            words,
            map: vec![NONE; logical].into_boxed_slice(),
            references: vec![0; logical].into_boxed_slice(),
            owned_mapped: [0; 2],
            owned_in_use: [0; 2],
            free: free.into_boxed_slice(),
            live: 0,
        }
    }

    #[inline]
    pub(super) fn get(&self, line: u32) -> &Line {
        &self.lines[line as usize]
    }

    pub(super) fn count(&self) -> u32 {
        self.lines.len() as u32
    }

    /// The line of a logical one.
    #[inline]
    pub(super) fn of(&self, logical: LogicalLine) -> Option<u32> {
        Some(self.map[logical as usize]).filter(|&line| line != NONE)
    }

    /// The same, as an access of the firmware.
    #[inline]
    pub(super) fn resolve(&self, logical: LogicalLine, walk: &mut Walk) -> Option<u32> {
        walk.reach(logical.into(), 1);
        self.of(logical)
    }

    /// Valid sectors of all lines.
    pub(super) const fn live(&self) -> u64 {
        self.live
    }

    /// Free lines of an instance.
    #[inline]
    pub(super) fn free(&self, instance: u32) -> u32 {
        self.free[instance as usize].len() as u32
    }

    /// The line of an instance that is used next.
    pub(super) fn next_free(&self, instance: u32) -> Option<u32> {
        self.free[instance as usize].front().copied()
    }

    /// Gives the next free line of an instance to a logical line, to be written.
    pub(super) fn assign(
        &mut self,
        line: u32,
        logical: LogicalLine,
        generation: u32,
        walk: &mut Walk,
    ) {
        walk.reach(logical.into(), 1);
        invariant!(
            self.get(line).valid == 0 && self.of(logical).is_none(),
            "a line that is opened is empty, and its logical line has no other"
        );
        let free = &mut self.free[(line % self.space.instances) as usize];
        free.retain(|other| *other != line);
        let state = LineState::Open;
        self.lines[line as usize] = Line { logical, generation, valid: 0, state };
        self.change_use(logical, |lines| lines.map[logical as usize] = line);
    }

    /// Notes a change of a logical line that may begin or end its use.
    fn change_use(&mut self, logical: LogicalLine, change: impl FnOnce(&mut Self)) {
        let use_of = |lines: &Self| (lines.of(logical).is_some(), lines.is_in_use(logical));
        let before = use_of(self);
        change(self);
        let after = use_of(self);
        if before != after && self.space.is_owned(logical) {
            let class = self.space.class(logical).index();
            let count = |count: &mut u32, before, after| {
                *count = *count + u32::from(after) - u32::from(before);
            };
            count(&mut self.owned_mapped[class], before.0, after.0);
            count(&mut self.owned_in_use[class], before.1, after.1);
        }
    }

    /// Whether a logical line has a line, or a record names an address of it.
    #[inline]
    pub(super) fn is_in_use(&self, logical: LogicalLine) -> bool {
        self.map[logical as usize] != NONE || self.references[logical as usize] > 0
    }

    /// Whether a record names an address of a logical line.
    #[inline]
    pub(super) fn is_referenced(&self, logical: LogicalLine) -> bool {
        self.references[logical as usize] > 0
    }

    /// Names of addresses of a logical line in records.
    pub(super) fn references(&self, logical: LogicalLine) -> u32 {
        self.references[logical as usize]
    }

    /// A record names an address of a logical line, or does no longer.
    fn refer(&mut self, logical: LogicalLine, begins: bool) {
        self.change_use(logical, |lines| {
            let count = &mut lines.references[logical as usize];
            invariant!(
                begins || *count > 0,
                "records that name addresses of {logical} are counted"
            );
            *count = if begins { *count + 1 } else { *count - 1 };
        });
    }

    /// A superblock can be written again: nothing is in it, and no record names an address of it.
    pub(super) fn check_unused(
        &self,
        lba: Lba,
        superblock: u32,
        omits_records: bool,
        walk: &mut Walk,
    ) -> Result<(), BlockError> {
        for instance in 0..self.space.instances {
            let logical = self.space.line_of(superblock, instance);
            let line = self.resolve(logical, walk);
            if self.is_referenced(logical) && !omits_records {
                let what = "a write to an address whose migration is not completed";
                return Err(BlockError::Region { lba, what });
            }
            if line.is_some() {
                let what = "a write to a superblock that still holds data";
                return Err(BlockError::Region { lba, what });
            }
        }
        Ok(())
    }

    /// A record names an address, or does no longer.
    #[inline]
    pub(super) fn refer_to(&mut self, lba: Lba, begins: bool, walk: &mut Walk) {
        if let Some((logical, _)) = self.space.line(lba) {
            walk.reach(logical.into(), 1);
            self.refer(logical, begins);
        }
    }

    /// Logical lines in use to which data of a class are moved, of all that there are.
    pub(super) const fn owned_use(&self, class: Class) -> (u32, u32) {
        (self.owned_in_use[class.index()], self.space.superblocks * self.space.instances)
    }

    /// Whether records alone keep more than half of the logical lines of a class in use to which data can be moved.
    pub(super) const fn is_pinned(&self, class: Class) -> bool {
        let (used, all) = self.owned_use(class);
        let mapped = self.owned_mapped[class.index()];
        2 * (used - mapped) > all - mapped
    }

    #[inline]
    fn bit(&self, line: u32, sector: u32) -> (usize, u64) {
        let (word, bit) = bit(sector.into());
        (line as usize * self.words + word, bit)
    }

    #[inline]
    pub(super) fn is_valid(&self, line: u32, sector: u32) -> bool {
        let (word, bit) = self.bit(line, sector);
        self.bits[word] & bit != 0
    }

    /// Sets or clears a valid bit; whether that changed it.
    #[inline]
    pub(super) fn mark(&mut self, line: u32, sector: u32, valid: bool) -> bool {
        let (word, bit) = self.bit(line, sector);
        let changes = (self.bits[word] & bit != 0) != valid;
        if changes {
            self.bits[word] ^= bit;
            let of = &mut self.lines[line as usize];
            if valid {
                (of.valid, self.live) = (of.valid + 1, self.live + 1);
            } else {
                (of.valid, self.live) = (of.valid - 1, self.live - 1);
            }
            self.note_candidate(line);
        }
        changes
    }

    fn note_candidate(&mut self, line: u32) {
        let Line { valid, state, .. } = self.lines[line as usize];
        let is_candidate = state == LineState::Closed;
        self.candidates[line as usize] = if is_candidate { valid } else { NONE };
    }

    /// The first valid sector of a line from one on.
    pub(super) fn next_valid(&self, line: u32, from: u32) -> Option<u32> {
        let first = line as usize * self.words;
        let (mut word, shift) = ((from / u64::BITS) as usize, from % u64::BITS);
        let mut mask = u64::MAX << shift;
        while word < self.words {
            let bits = self.bits[first + word] & mask;
            if bits != 0 {
                return Some(word as u32 * u64::BITS + bits.trailing_zeros());
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        None
    }

    /// The words of a line's bitmap.
    pub(super) fn bitmap(&self, line: u32) -> &[u64] {
        &self.bits[line as usize * self.words..][..self.words]
    }

    /// A line is in another state; its data, if it keeps any, stay where they are.
    pub(super) fn enter(&mut self, line: u32, state: LineState) {
        self.lines[line as usize].state = state;
        self.note_candidate(line);
    }

    /// The closed line of an instance with the fewest valid sectors, of those that may be collected.
    pub(super) fn victim(&self, instance: u32, may_be: impl Fn(u32) -> bool) -> Option<u32> {
        let mut best = (NONE, NONE);
        let step = self.space.instances;
        for line in (instance..self.lines.len() as u32).step_by(step as usize) {
            let valid = self.candidates[line as usize];
            if valid < best.0 && may_be(line) {
                best = (valid, line);
            }
        }
        (best.1 != NONE).then_some(best.1)
    }

    /// A logical line has no line any more, as nothing in that is valid.
    pub(super) fn unmap(&mut self, line: u32, state: LineState, walk: &mut Walk) {
        invariant!(
            self.get(line).valid == 0,
            "a line that is left holds nothing: {} sectors of line {line} are valid",
            self.get(line).valid
        );
        let logical = std::mem::replace(&mut self.lines[line as usize].logical, NONE);
        if logical != NONE {
            walk.reach(logical.into(), 1);
            self.change_use(logical, |lines| lines.map[logical as usize] = NONE);
        }
        self.enter(line, state);
    }

    /// A line is erased.
    pub(super) fn release(&mut self, line: u32) {
        invariant!(self.get(line).valid == 0, "line {line} is free when it holds nothing");
        self.enter(line, LineState::Free);
        self.free[(line % self.space.instances) as usize].push_back(line);
    }

    /// Takes a line from the free ones for what a mount found in it.
    pub(super) fn take(&mut self, line: u32) {
        self.free[(line % self.space.instances) as usize].retain(|other| *other != line);
    }

    /// Bytes of RAM: of the map, of valid bitmaps, of the lines.
    pub(super) fn bytes(&self) -> [u64; 3] {
        let map = (self.map.len() + self.references.len()) * size_of::<u32>();
        let free: usize = self.free.iter().map(VecDeque::capacity).sum();
        let lines = self.lines.len() * (size_of::<Line>() + size_of::<u32>());
        let lines = lines + free * size_of::<u32>();
        [map as u64, (self.bits.len() * size_of::<u64>()) as u64, lines as u64]
    }
}
