//! Coupled garbage collection (D2FS, "Coupled Garbage Collection"), per instance: the victim is the closed line with the
//! fewest valid sectors. Each of these goes to the line that collection writes for its class, which has addresses in the
//! class's region of the device; a record says so. When all of them have, the victim is mapped no more, and is erased when
//! copies and records are durable.
//!
//! - An instance copies one victim at a time, page by page: so few programs of copies are on their way that reads of the host
//!   wait for a row or two of them, and not for a victim. While any is, the next event goes on with it.
//! - A power cut may leave the journal with a part of the moves from a line: the other pages are where they were.
//! - Instances begin to collect when a superblock is opened and too few lines are free or on their way to that, and go on
//!   until enough are.

use super::CoupledFtl;
use super::flash::Own;
use super::journal::Entry;
use super::lines::LineState;
use super::lines::Lines;
use super::records::Moved;
use super::space::{Class, LogicalLine};
use super::write::EXHAUSTED;
use crate::common::firmware::Walk;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::zone::ZoneAction;
use nandscape_block::{BlockDevice, BlockError, Done, Lba};
use nandscape_media::OpenChannel;
use nandscape_rt::{Nanos, Shadow, defect, invariant};
use std::collections::{BTreeMap, VecDeque};

/// The line that collection writes for a class in an instance.
#[derive(Clone, Copy, Debug)]
struct Target {
    logical: LogicalLine,
    line: u32,
    /// The next sector.
    next: u32,
}

/// What must be durable before a line is erased.
#[derive(Clone, Copy, Debug)]
struct Copies {
    line: u32,
    generation: u32,
    end: u32,
}

/// Rows of pages of copies that are on their way in an instance: with one that waits behind the one that is programmed, no
/// parallel unit of a row waits for another one.
const ROWS_AHEAD: u32 = 2;
/// The same while a write waits for a line.
const ROWS_WAITING: u32 = 3;

/// A victim whose data are being moved.
#[derive(Debug)]
struct Copying {
    line: u32,
    /// When its collection began.
    began: Nanos,
    /// The sector from which on it was not looked at.
    next: u32,
    copies: Vec<Copies>,
    moved: u32,
}

/// A victim whose data were moved.
#[derive(Debug)]
struct Leaving {
    line: u32,
    /// When its collection began.
    began: Nanos,
    copies: Vec<Copies>,
    /// The position of the journal after its records.
    position: u64,
}

/// Where a copy lies: line, generation and sector.
type Place = (u32, u32, u32);

/// The state of collection.
#[derive(Debug)]
pub(super) struct Collection {
    /// The lines that it writes for each class, and the next one where the victim needs it.
    targets: Box<[[VecDeque<Target>; 2]]>,
    /// Where the search for free addresses goes on.
    next: Box<[[u32; 2]]>,
    /// The victim of each instance whose data are being moved.
    copying: Box<[Option<Copying>]>,
    leaving: VecDeque<Leaving>,
    /// Victims that are being erased, and when their collection began.
    erasing: Vec<(u32, Nanos)>,
    /// Lines on their way to being free, per instance.
    coming: Box<[u32]>,
    /// The copies of each victim, one by one.
    places: Shadow<BTreeMap<u32, Vec<Place>>>,
}

impl Collection {
    pub(super) fn new(instances: u32) -> Self {
        let instances = instances as usize;
        Self {
            targets: vec![<[VecDeque<Target>; 2]>::default(); instances].into_boxed_slice(),
            next: vec![[0; 2]; instances].into_boxed_slice(),
            copying: (0..instances).map(|_| None).collect(),
            leaving: VecDeque::new(),
            erasing: Vec::new(),
            coming: vec![0; instances].into_boxed_slice(),
            places: Shadow::default(),
        }
    }

    /// A line of an instance is on its way to being free, or has arrived there.
    pub(super) fn comes(&mut self, instance: u32, begins: bool) {
        let count = &mut self.coming[instance as usize];
        invariant!(begins || *count > 0, "lines of instance {instance} that come are counted");
        *count = if begins { *count + 1 } else { *count - 1 };
    }

    /// Victims whose data are being moved.
    pub(super) fn copying(&self) -> impl Iterator<Item = u32> {
        self.copying.iter().flatten().map(|copying| copying.line)
    }

    /// Lines of an instance that are about to be free.
    #[inline]
    fn coming_free(&self, instance: u32) -> u32 {
        self.coming[instance as usize]
    }

    /// The next logical line of an instance to which pages of a class can be moved.
    fn next_address(
        &self,
        lines: &Lines,
        instance: u32,
        class: Class,
        omits_records: bool,
        walk: &mut Walk,
    ) -> Option<LogicalLine> {
        let owned = lines.space.owned(class);
        let from = self.next[instance as usize][class.index()];
        let round = (from..lines.space.superblocks).chain(0..from);
        round.map(|number| lines.space.line_of(owned.start + number, instance)).find(|&logical| {
            walk.reach(logical.into(), 1);
            match omits_records {
                true => lines.of(logical).is_none(),
                false => !lines.is_in_use(logical),
            }
        })
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        let leaving = self.leaving.iter().map(|of| &of.copies);
        let lists = leaving.chain(self.copying.iter().flatten().map(|of| &of.copies));
        let copies: usize = lists.map(Vec::capacity).sum();
        let per_instance = 4 * size_of::<Target>() + 3 * size_of::<u32>();
        (self.targets.len() * (per_instance + size_of::<Option<Copying>>())
            + self.leaving.capacity() * size_of::<Leaving>()
            + self.erasing.capacity() * size_of::<(u32, Nanos)>()
            + copies * size_of::<Copies>()) as u64
    }
}

impl<M: OpenChannel> CoupledFtl<M> {
    /// Collects as long as too few lines of an instance are free or on their way to that; whether more than `reserve`
    /// are free.
    ///
    /// # Errors
    /// No line will be free.
    pub(super) fn make_free(&mut self, instance: u32, reserve: u32) -> Result<bool, FtlError> {
        self.collect(instance, self.rules.config.gc_lines.max(reserve))?;
        if self.lines.free(instance) > reserve {
            return Ok(true);
        }
        // Events bring lines, and so does a host that completes upcalls.
        let may_come = self.gc.coming_free(instance) > 0 || self.flash.zones.next_event().is_some();
        if may_come || self.records.open() > 0 { Ok(false) } else { Err(EXHAUSTED.into()) }
    }

    /// Begins to collect where too few lines of an instance are free or on their way to that.
    pub(super) fn collect_ahead(&mut self, instance: u32) -> Result<(), FtlError> {
        self.collect(instance, self.rules.config.gc_lines)
    }

    /// Goes on with what is being collected.
    pub(super) fn pump_copying(&mut self) -> Result<(), FtlError> {
        for instance in 0..self.rules.space.instances {
            if self.gc.copying[instance as usize].is_some() {
                self.collect_ahead(instance)?;
            }
        }
        Ok(())
    }

    /// Moves data of victims of an instance, as far as programs of copies may be on their way, until more than so many lines
    /// are free or on their way to that, or nothing is gained.
    fn collect(&mut self, instance: u32, lines: u32) -> Result<(), FtlError> {
        loop {
            let copying = match self.gc.copying[instance as usize].take() {
                None if self.lines.free(instance) + self.gc.coming_free(instance) > lines => None,
                None => self.begin_copying(instance)?,
                copying => copying,
            };
            let Some(mut copying) = copying else { return Ok(()) };
            match self.copy_on(&mut copying) {
                Ok(true) => self.end_copying(copying),
                copied => {
                    self.gc.copying[instance as usize] = Some(copying);
                    return copied.map(drop);
                }
            }
        }
    }

    /// The next victim of an instance, if there is one from which something is gained and whose copies and records have room.
    fn begin_copying(&mut self, instance: u32) -> Result<Option<Copying>, FtlError> {
        let Self { lines, flash, .. } = self;
        let Some(line) = lines.victim(instance, |line| flash.zones.store.is_idle(line)) else {
            return Ok(None);
        };
        let valid = self.lines.get(line).valid;
        let is_gain = valid < self.rules.sizes.line_sectors;
        let others: u32 = self.gc.copying().map(|line| self.lines.get(line).valid).sum();
        let most = u64::from(self.rules.sizes.journal.records);
        if !is_gain || self.records.open() + u64::from(others) + u64::from(valid) > most {
            return Ok(None);
        }
        if !self.make_room(instance, self.class_of(line), valid)? {
            return Ok(None);
        }
        self.flash.counts.gc.victims += 1;
        self.flash.counts.gc.victim_valid += u64::from(valid);
        self.flash.counts.gc.victim_data += u64::from(self.rules.sizes.line_sectors);
        self.lines.enter(line, LineState::Copying);
        self.gc.comes(instance, true);
        let began = self.flash.now;
        invariant!(
            self.flash.zones.store.generation(line) == self.lines.get(line).generation,
            "generation: the zone of victim {line} has that with which it was opened"
        );
        self.gc.places.note(|places| _ = places.insert(line, Vec::new()));
        Ok(Some(Copying { line, began, next: 0, copies: Vec::new(), moved: 0 }))
    }

    /// Moves pages of a victim as far as programs of copies may be on their way; whether that was all of them.
    fn copy_on(&mut self, copying: &mut Copying) -> Result<bool, FtlError> {
        let instance = copying.line % self.rules.space.instances;
        let rows = if self.writes.wait() { ROWS_WAITING } else { ROWS_AHEAD };
        let most = rows * self.flash.zones.store.pages_of_row();
        while let Some(first) = self.lines.next_valid(copying.line, copying.next) {
            if self.copies_in_flight(instance) >= most {
                return Ok(false);
            }
            self.move_page(copying, first)?;
        }
        Ok(true)
    }

    /// Everything of a victim was moved.
    fn end_copying(&mut self, copying: Copying) {
        let Copying { line, began, copies, moved, .. } = copying;
        self.flash.counts.own.reclaimed += u64::from(self.rules.sizes.line_sectors - moved);
        self.lines.unmap(line, LineState::Leaving, &mut self.walk);
        self.flash.access(&mut self.walk);
        let position = self.persist.want_durable(&mut self.flash);
        self.gc.leaving.push_back(Leaving { line, began, copies, position });
    }

    /// Programs of pages of copies of an instance that are on their way.
    fn copies_in_flight(&self, instance: u32) -> u32 {
        let targets = self.gc.targets[instance as usize].iter().flatten();
        targets.map(|of| self.flash.zones.store.in_flight(of.line)).sum()
    }

    /// Whether collection has places for so many sectors of a class; opens another line for them where need be.
    fn make_room(&mut self, instance: u32, class: Class, sectors: u32) -> Result<bool, FtlError> {
        let slot = (instance as usize, class.index());
        let targets = &self.gc.targets[slot.0][slot.1];
        let left: u32 = targets.iter().map(|of| self.rules.sizes.line_sectors - of.next).sum();
        if left >= sectors {
            return Ok(true);
        }
        let omits = self.rules.run.omits(OmittedRule::RecordReference);
        let Some(logical) =
            self.gc.next_address(&self.lines, instance, class, omits, &mut self.walk)
        else {
            return Ok(false);
        };
        if !self.open_line(logical)? {
            return Ok(false);
        }
        let Some(line) = self.lines.of(logical) else {
            return Err(defect!("a logical line that was opened has a line").into());
        };
        let number = logical / self.rules.space.instances - self.rules.space.owned(class).start;
        self.gc.next[slot.0][slot.1] = (number + 1) % self.rules.space.superblocks;
        self.gc.targets[slot.0][slot.1].push_back(Target { logical, line, next: 0 });
        Ok(true)
    }

    /// Moves what is valid of a page of a victim from a sector on.
    fn move_page(&mut self, copying: &mut Copying, first: u32) -> Result<(), FtlError> {
        let (victim, class) = (copying.line, self.class_of(copying.line));
        let instance = victim % self.rules.space.instances;
        let end = self.flash.zones.store.page_end(first).min(self.rules.sizes.line_sectors);
        let last = (first..end).rfind(|&sector| self.lines.is_valid(victim, sector));
        let last = last.unwrap_or(first);
        let ready = self.flash.zones.store.read_inside((victim, first, last + 1))?;
        for sector in first..=last {
            if !self.lines.is_valid(victim, sector) {
                continue;
            }
            let copy = self.flash.zones.store.copy_of(victim, sector, ready);
            let Some(Target { logical, line, next: to }) = self.target(instance, class)? else {
                return Err(EXHAUSTED.into());
            };
            self.flash.zones.store.append_copy(line, copy)?;
            self.lines.mark(line, to, true);
            self.lines.mark(victim, sector, false);
            let from = self.rules.space.address(self.lines.get(victim).logical, sector);
            self.record_move(class, from, self.rules.space.address(logical, to))?;
            let generation = self.lines.get(line).generation;
            match copying.copies.last_mut().filter(|copies| copies.line == line) {
                Some(copies) => copies.end = to + 1,
                None => copying.copies.push(Copies { line, generation, end: to + 1 }),
            }
            self.gc.places.note(|places| {
                places.entry(victim).or_default().push((line, generation, to));
            });
            self.flash.counts.own.moved += 1;
            copying.moved += 1;
        }
        copying.next = end;
        Ok(())
    }

    /// The place for the next copy of a class, which is taken by that.
    fn target(&mut self, instance: u32, class: Class) -> Result<Option<Target>, FtlError> {
        let (instance, class) = (instance as usize, class.index());
        while let Some(target) = self.gc.targets[instance][class].front_mut() {
            if target.next < self.rules.sizes.line_sectors {
                let place = *target;
                target.next += 1;
                return Ok(Some(place));
            }
            let full = target.line;
            self.gc.targets[instance][class].pop_front();
            self.close_line(full)?;
        }
        Ok(None)
    }

    fn record_move(&mut self, class: Class, from: Lba, to: Lba) -> Result<(), FtlError> {
        let old = match self.records.moved(class, from, to, &mut self.walk) {
            Moved::Opened => {
                self.lines.refer_to(from, true, &mut self.walk);
                self.lines.refer_to(to, true, &mut self.walk);
                self.flash.counts.own.opened += 1;
                from
            }
            Moved::Merged(old) => {
                self.lines.refer_to(from, false, &mut self.walk);
                self.lines.refer_to(to, true, &mut self.walk);
                self.flash.counts.own.merged += 1;
                old
            }
        };
        self.flash.access(&mut self.walk);
        self.persist.note(&mut self.flash, Entry::Moved { old, from, to })
    }

    /// Erases victims whose copies and records are durable, and sends on what keeps lines from those that wait for them.
    pub(super) fn pump_leaving(&mut self) -> Result<(), FtlError> {
        for index in 0..self.gc.leaving.len() {
            if self.may_leave(index)?
                && let Some(leaving) = self.gc.leaving.remove(index)
            {
                invariant!(
                    self.rules.run.omits_any() || self.is_moved(&leaving),
                    "order of a move: copies and records of victim {} are durable before its erase",
                    leaving.line
                );
                let Leaving { line, began, .. } = leaving;
                self.gc.erasing.push((line, began));
                self.lines.enter(line, LineState::Resetting);
                self.act_on_line(line, ZoneAction::Reset, Own::Reset(line))?;
                self.flash.stirred = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether all copies of a victim and their records are durable, or gone with their lines.
    fn is_moved(&self, of: &Leaving) -> bool {
        let store = &self.flash.zones.store;
        let is_durable = |&(line, generation, sector): &Place| {
            store.is_durable_or_gone(line, generation, sector + 1)
        };
        self.persist.journal.is_durable(of.position)
            && self.gc.places.agrees(|places| {
                places.get(&of.line).is_none_or(|copies| copies.iter().all(is_durable))
            })
    }

    /// Whether a victim may be erased; does what can be done about it where lines are short.
    fn may_leave(&mut self, index: usize) -> Result<bool, FtlError> {
        let Leaving { line, ref copies, position, .. } = self.gc.leaving[index];
        let store = &self.flash.zones.store;
        let is_durable = |of: &Copies| store.is_durable_or_gone(of.line, of.generation, of.end);
        let late = copies.iter().find(|of| !is_durable(of)).map(|of| of.line);
        if let Some(late) = late.filter(|_| !self.rules.run.omits(OmittedRule::CopyCompletion)) {
            if self.flash.zones.store.is_failed(late) {
                return Err(EXHAUSTED.into());
            }
            let instance = line % self.rules.space.instances;
            let is_short = self.writes.wait() || self.lines.free(instance) <= super::write::RESERVE;
            if is_short && !self.fills(instance, late) {
                self.flash.zones.store.make_durable(late)?;
            }
            return Ok(false);
        }
        let is_noted = self.persist.journal.is_durable(position);
        Ok(is_noted || self.rules.run.omits(OmittedRule::RecordJournal))
    }

    /// Whether collection is about to fill the page that it writes last in a line.
    fn fills(&self, instance: u32, line: u32) -> bool {
        let copying = self.gc.copying[instance as usize].as_ref();
        copying.is_some_and(|copying| self.class_of(copying.line) == self.class_of(line))
    }

    /// The class of what a line holds.
    fn class_of(&self, line: u32) -> Class {
        self.rules.space.class(self.lines.get(line).logical)
    }

    /// The erase of a line has ended.
    pub(super) fn reset_done(&mut self, line: u32, done: Done) -> Result<(), FtlError> {
        self.gc.comes(line % self.rules.space.instances, false);
        let erase_ns = self.flash.zones.store.take_erase_ns(line);
        if let Some(index) = self.gc.erasing.iter().position(|(erased, _)| *erased == line) {
            let (_, began) = self.gc.erasing.swap_remove(index);
            self.flash.counts.own.collected += 1;
            self.flash.counts.erase_ns += erase_ns;
            self.flash.counts.own.collect_ns += done.at.saturating_sub(began).0;
        }
        match done.result {
            Ok(_) => self.lines.release(line),
            Err(BlockError::PowerLost) => return Err(FtlError::PowerLost),
            Err(_) => self.lines.enter(line, LineState::Failed),
        }
        Ok(())
    }
}
