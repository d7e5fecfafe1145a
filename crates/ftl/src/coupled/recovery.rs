//! Making a device, and mounting what a power cut left:
//! 1. the lines come up as zones, each with a prefix of what was written to it (`zoned/recovery/`);
//! 2. the newest snapshot that is whole is read, and replayed on it what the ring has from there on;
//! 3. a logical line keeps its line if that has the generation with which it was opened, and its valid sectors as far as
//!    they are there. A move counts if its copy is there: otherwise the page is where it was, as a victim is erased after
//!    its copies are durable. What became of the page later, became of it there;
//! 4. a snapshot of that is taken, so that no later mount needs what follows;
//! 5. lines that nothing needs are erased, and those that are partly written closed.
//!
//! Nothing is erased before the snapshot is durable, so a power cut during recovery leaves the next one the same work.

use super::CoupledFtl;
use super::config::{self, Config};
use super::flash::{Flash, Own, Rules};
use super::journal::{Entry, Journal, JournalSector};
use super::lines::{LineState, NONE};
use super::snapshot::{Head, Snapshot};
use super::space::{Class, Space};
use crate::common::bits::bit;
use crate::error::FtlError;
use crate::face::Ftl;
use crate::kind::{FtlRun, OmittedRule};
use crate::zoned::{Store, ZonedFtl};
use nandscape_block::zone::ZoneAction;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Lba, Reply, SECTOR_BYTES, SectorBytes, Submit, Token,
};
use nandscape_media::{LinkTiming, OpenChannel};
use nandscape_rt::Nanos;
use std::collections::BTreeMap;

/// A logical line as the journal has it.
#[derive(Clone, Debug)]
struct Replayed {
    line: u32,
    generation: u32,
    bits: Vec<u64>,
}

/// What counts of what snapshot and journal say.
struct Known {
    lines: BTreeMap<u32, Replayed>,
    /// Open records by old address: their class, when they were opened, new address.
    records: BTreeMap<u64, (Class, u64, Lba)>,
}

/// What snapshot and journal say, compared with what is on media.
struct Replay<'a, M> {
    store: &'a Store<M>,
    space: Space,
    line_sectors: u32,
    /// Lines of the media.
    media_lines: u32,
    /// Of the bitmap of a line.
    words: usize,
    lines: BTreeMap<u32, Replayed>,
    /// As in [`Known`].
    records: BTreeMap<u64, (Class, u64, Lba)>,
    opened: u64,
    /// Where pages are of which moves did not happen, by the addresses that these gave them.
    stayed: BTreeMap<u64, Lba>,
}

impl<M: OpenChannel> CoupledFtl<M> {
    /// Makes a fresh device on `media`, below a link with this timing, beginning at time zero.
    ///
    /// # Errors
    /// The choice that does not fit the geometry, too many bad chunks, or that power went off.
    pub fn format(
        media: M,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
    ) -> Result<Self, FtlError> {
        let geometry = *media.geometry();
        let sizes = config.sizes(&geometry)?;
        let below = config.flash(&geometry, sizes.page_sectors());
        let flash = ZonedFtl::format(media, below, run, link).map_err(config::renamed)?;
        let mut ftl = Self::assemble(flash, config, sizes, run);
        ftl.take_snapshot()?;
        ftl.reset_counts();
        Ok(ftl)
    }

    /// Mounts what is on `media`, below a link with this timing, beginning at `now`.
    ///
    /// # Errors
    /// The media comes back with the reason: power went off again, the choices do not fit, or the media holds
    /// something else.
    pub fn recover(
        media: M,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let geometry = *media.geometry();
        let sizes = match config.sizes(&geometry) {
            Ok(sizes) => sizes,
            Err(error) => return Err((media, error)),
        };
        let below = config.flash(&geometry, sizes.page_sectors());
        let flash = ZonedFtl::recover(media, below, run, link, now)?;
        let mut ftl = Self::assemble(flash, config, sizes, run);
        match ftl.mount() {
            Ok(()) => Ok(ftl),
            Err(error) => Err((ftl.flash.zones.power_off(), error)),
        }
    }

    fn mount(&mut self) -> Result<(), FtlError> {
        let corrupt = FtlError::Corrupt { kind: "snapshot of the map", line: 0 };
        let words = self.lines.bitmap(0).len();
        let journal = &self.persist.journal;
        let snapshot = self.flash.newest_snapshot(journal, words)?.ok_or(corrupt)?;
        let sectors = self.flash.read_ring(journal, snapshot.start, snapshot.mount)?;
        let mount = sectors.iter().map(|of| of.mount).max().unwrap_or(0).max(snapshot.mount) + 1;
        let next = snapshot.start + sectors.len() as u64;
        self.persist.journal = Journal::new(self.rules.sizes.journal, mount, next, snapshot.start);
        self.persist.snapshots = snapshot.number;
        let mut replay = Replay::new(&self.flash.zones.store, &self.rules, words);
        replay.load(snapshot);
        for entry in sectors.into_iter().flat_map(|sector| sector.entries) {
            replay.apply(entry);
        }
        let known = replay.end();
        self.adopt(known);
        match self.take_snapshot().and_then(|()| self.clear_lines()) {
            // What is there can be read.
            Err(FtlError::Stopped(error @ BlockError::ReadOnly(_))) => self.stop(error),
            ended => ended?,
        }
        // The page-mapped region may have collected, which no bio waits for.
        if self.flash.zones.store.has_lost_power() {
            return Err(FtlError::PowerLost);
        }
        self.reset_counts();
        Ok(())
    }

    /// Waits until everything in flight is done.
    fn settle_all(&mut self) -> Result<(), FtlError> {
        while let Some(at) = self.flash.zones.next_event() {
            self.flash.now = self.flash.now.max(at);
            self.flash.stirred = true;
            self.run_round()?;
        }
        Ok(())
    }

    /// Takes a snapshot, and waits until it is durable.
    fn take_snapshot(&mut self) -> Result<(), FtlError> {
        self.persist.begin_snapshot(&mut self.flash, &self.lines, &self.records)?;
        while self.persist.is_taking_snapshot() {
            let Some(at) = self.flash.zones.next_event() else {
                return Err(BlockError::Defect("a snapshot that does not end".into()).into());
            };
            self.flash.now = self.flash.now.max(at);
            self.run_round()?;
        }
        Ok(())
    }

    /// Takes over what counts.
    fn adopt(&mut self, known: Known) {
        let omits = self.rules.run.omits(OmittedRule::StaleGeneration);
        for (logical, of) in known.lines {
            let generation = self.flash.zones.store.generation(of.line);
            let is_there = generation > 0 && (generation == of.generation || omits);
            if !is_there || self.lines.get(of.line).logical != NONE {
                continue;
            }
            self.lines.assign(of.line, logical, generation, &mut self.walk);
            for sector in 0..self.flash.zones.store.admitted(of.line) {
                self.lines.mark(of.line, sector, is_set(&of.bits, sector));
            }
            self.lines.enter(of.line, LineState::Closed);
        }
        for line in 0..self.lines.count() {
            let is_free = self.lines.get(line).state == LineState::Free;
            if is_free && self.flash.zones.store.is_failed(line) {
                self.lines.take(line);
                self.lines.enter(line, LineState::Failed);
            } else if is_free && self.flash.zones.store.generation(line) > 0 {
                self.lines.take(line);
                self.lines.enter(line, LineState::Leaving);
            }
        }
        let mut records: Vec<_> = known
            .records
            .into_iter()
            .map(|(old, (class, at, new))| (at, class, old, new))
            .collect();
        records.sort_unstable();
        for (_, class, old, new) in records {
            // A chain that led back to its beginning would have no end.
            if self.records.resolve(new, &mut self.walk) == Lba(old) {
                continue;
            }
            self.records.restore(class, Lba(old), new);
            self.lines.refer_to(Lba(old), true, &mut self.walk);
            self.lines.refer_to(new, true, &mut self.walk);
        }
    }

    /// Erases lines that nothing needs, and closes those that are partly written.
    fn clear_lines(&mut self) -> Result<(), FtlError> {
        for line in 0..self.lines.count() {
            match self.lines.get(line).state {
                LineState::Closed => self.close_line(line)?,
                LineState::Leaving => {
                    self.lines.enter(line, LineState::Resetting);
                    self.gc.comes(line % self.rules.space.instances, true);
                    self.act_on_line(line, ZoneAction::Reset, Own::Reset(line))?;
                }
                _ => {}
            }
        }
        self.settle_all()
    }
}

impl<'a, M: OpenChannel> Replay<'a, M> {
    /// Nothing is known.
    const fn new(store: &'a Store<M>, rules: &Rules, words: usize) -> Self {
        Self {
            store,
            space: rules.space,
            line_sectors: rules.sizes.line_sectors,
            media_lines: rules.sizes.lines * rules.sizes.instances,
            words,
            lines: BTreeMap::new(),
            records: BTreeMap::new(),
            opened: 0,
            stayed: BTreeMap::new(),
        }
    }

    /// What a snapshot says. Sectors of a line of the host that were written after it are valid.
    fn load(&mut self, snapshot: Snapshot) {
        for of in snapshot.lines {
            let mut bits = of.bitmap;
            if !self.space.is_owned(of.logical) {
                (of.written..self.line_sectors).for_each(|sector| set(&mut bits, sector, true));
            }
            let (line, generation) = (of.line, of.generation);
            self.insert(of.logical, Replayed { line, generation, bits });
        }
        for (class, records) in Class::ALL.into_iter().zip(snapshot.records) {
            records.into_iter().for_each(|(old, new)| self.open(class, old, new));
        }
    }

    /// Applies an entry.
    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Opened { logical, line, generation } => {
                let is_owned = self.space.is_owned(logical);
                let words = self.words;
                let bits = vec![if is_owned { 0 } else { u64::MAX }; words];
                self.insert(logical, Replayed { line, generation, bits });
                let space = self.space;
                let is_of = |lba: u64| space.line(Lba(lba)).is_some_and(|of| of.0 == logical);
                self.stayed.retain(|&to, _| !is_of(to));
            }
            Entry::Discarded { lba, sectors } => {
                for index in 0..sectors.min(self.space.superblock_sectors) {
                    let home = self.home(lba.plus(index.into()));
                    self.mark(home, false);
                }
            }
            Entry::Moved { old, from, to } => {
                let home = self.home(from);
                // Otherwise its copy never was on media.
                if self.has(to) || !self.has(home) {
                    self.mark(home, false);
                    self.mark(to, true);
                    self.stayed.remove(&from.0);
                } else {
                    self.stayed.insert(to.0, home);
                }
                match self.records.get_mut(&old.0) {
                    Some((.., new)) => *new = to,
                    None => self.open(self.space.class_at(from), old, to),
                }
            }
            Entry::Shortened { old, to } => {
                if let Some((.., new)) = self.records.get_mut(&old.0) {
                    // The record between is complete, whether or not the journal goes on to say so.
                    let between = std::mem::replace(new, to);
                    self.records.remove(&between.0);
                }
            }
            Entry::Closed { old } => {
                self.records.remove(&old.0);
            }
        }
    }

    fn mark(&mut self, lba: Lba, valid: bool) {
        if let Some((logical, sector)) = self.space.line(lba)
            && let Some(of) = self.lines.get_mut(&logical)
        {
            set(&mut of.bits, sector, valid);
        }
    }

    /// Whether a sector is on media, in the line that it has by now.
    fn has(&self, lba: Lba) -> bool {
        let Some((logical, sector)) = self.space.line(lba) else { return false };
        self.lines.get(&logical).is_some_and(|of| {
            let is_same = self.store.generation(of.line) == of.generation;
            is_same && sector < self.store.admitted(of.line)
        })
    }

    /// What counts: at the end records lead to where pages are.
    fn end(mut self) -> Known {
        let (stayed, space) = (&self.stayed, self.space);
        self.records.retain(|old, (.., new)| {
            *new = stayed.get(&new.0).copied().unwrap_or(*new);
            new.0 != *old && space.line(*new).is_some()
        });
        Known { lines: self.lines, records: self.records }
    }

    /// Where a page is that the journal has at an address.
    fn home(&self, lba: Lba) -> Lba {
        self.stayed.get(&lba.0).copied().unwrap_or(lba)
    }

    /// Notes the line of a logical line, if there are both.
    fn insert(&mut self, logical: u32, of: Replayed) {
        if logical < self.space.logical_lines() && of.line < self.media_lines {
            self.lines.insert(logical, of);
        }
    }

    fn open(&mut self, class: Class, old: Lba, new: Lba) {
        if self.space.line(old).is_none() || self.space.line(new).is_none() {
            return;
        }
        self.opened += 1;
        self.records.insert(old.0, (class, self.opened, new));
    }
}

impl<M: OpenChannel> Flash<M> {
    /// Reads a sector of the firmware's.
    fn read_sector(&mut self, at: Lba) -> Result<Option<Box<SectorBytes>>, FtlError> {
        match self.zones.store.submit_inside(Bio::read(at, 1), Token(0), &mut self.inside) {
            Submit::Done(done) => match done.result {
                Ok(Reply::Data(data)) => Ok(data.sector(0).expand()),
                // A sector that media have lost is one that says nothing.
                Ok(_) | Err(BlockError::Io { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Submit::Pending => Err(BlockError::Defect("a read that waits".into()).into()),
        }
    }

    /// The snapshot with the highest number of those that are whole.
    fn newest_snapshot(
        &mut self,
        journal: &Journal,
        words: usize,
    ) -> Result<Option<Snapshot>, FtlError> {
        let mut heads = Vec::new();
        for number in 0..2 {
            let head = self.read_sector(journal.slot_of(number))?;
            heads.extend(head.and_then(|bytes| Head::decode(&bytes)));
        }
        heads.sort_by_key(|head| std::cmp::Reverse(head.number));
        for head in heads {
            let sectors = head.bytes.div_ceil(SECTOR_BYTES).min(journal.sizes.slot);
            let mut body = Vec::new();
            for index in 0..sectors {
                let sector = self.read_sector(journal.slot_of(head.number).plus(1 + index))?;
                body.extend_from_slice(&sector.map_or([0; SECTOR_BYTES as usize], |of| *of));
            }
            if let Some(snapshot) = Snapshot::decode(&head, &body, words) {
                return Ok(Some(snapshot));
            }
        }
        Ok(None)
    }

    /// The sectors of the ring from one on, as far as they follow each other.
    pub(super) fn read_ring(
        &mut self,
        journal: &Journal,
        start: u64,
        mount: u32,
    ) -> Result<Vec<JournalSector>, FtlError> {
        let (mut sectors, mut mount) = (Vec::new(), mount);
        for number in start..start + journal.sizes.ring {
            let bytes = self.read_sector(journal.address(number))?;
            let sector = bytes.and_then(|bytes| JournalSector::decode(&bytes));
            let Some(sector) = sector.filter(|of| of.number == number && of.mount >= mount) else {
                break;
            };
            mount = sector.mount;
            sectors.push(sector);
        }
        Ok(sectors)
    }
}

fn set(bits: &mut [u64], sector: u32, valid: bool) {
    let (word, bit) = bit(sector.into());
    if let Some(word) = bits.get_mut(word) {
        *word = if valid { *word | bit } else { *word & !bit };
    }
}

fn is_set(bits: &[u64], sector: u32) -> bool {
    let (word, bit) = bit(sector.into());
    bits.get(word).is_some_and(|word| word & bit != 0)
}
