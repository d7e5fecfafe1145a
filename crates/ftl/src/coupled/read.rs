//! Reads: each sector from where its address has it, or, where its page was moved, from where the records lead.

use super::CoupledFtl;
use super::lines::Lines;
use super::records::Records;
use super::space::Space;
use crate::common::firmware::Walk;
use crate::common::reads;
use crate::zoned::{Extent, Store};
use nandscape_block::{Bio, BlockError, Flags, Lba, Payload, SectorData, Submit, Tag};
use nandscape_media::OpenChannel;

/// Where the sectors of the regions are.
#[derive(Debug)]
struct Places<'a, M> {
    space: &'a Space,
    lines: &'a Lines,
    records: &'a Records,
    store: &'a Store<M>,
}

impl<M: OpenChannel> Places<'_, M> {
    /// Where a sector is: its line, and the sector of that. None of one that holds nothing.
    #[inline]
    fn find(&self, lba: Lba, walk: &mut Walk) -> Option<(u32, u32)> {
        let (logical, sector) = self.space.line(lba)?;
        if let Some(line) = self.lines.resolve(logical, walk)
            && self.is_there(line, sector)
        {
            return Some((line, sector));
        }
        if !self.lines.is_referenced(logical) {
            return None;
        }
        let at = self.records.resolve(lba, walk);
        let (logical, sector) = self.space.line(at).filter(|_| at != lba)?;
        let line = self.lines.resolve(logical, walk)?;
        self.is_there(line, sector).then_some((line, sector))
    }

    #[inline]
    fn is_there(&self, line: u32, sector: u32) -> bool {
        self.lines.is_valid(line, sector) && sector < self.store.admitted(line)
    }

    /// The runs of sectors that a read is of, line by line; how many of its sectors hold nothing.
    fn find_extents(&self, bio: &Bio, extents: &mut Vec<Extent>, walk: &mut Walk) -> u32 {
        let instances = self.space.instances;
        let mut unwritten = 0;
        for turn in 0..instances.min(bio.sectors) {
            let first = extents.len();
            for index in (turn..bio.sectors).step_by(instances as usize) {
                let Some((line, sector)) = self.find(bio.lba.plus(index.into()), walk) else {
                    unwritten += 1;
                    continue;
                };
                match extents[first..].last_mut() {
                    Some((of, _, end)) if *of == line && *end == sector => *end += 1,
                    _ => extents.push((line, sector, sector + 1)),
                }
            }
        }
        unwritten
    }

    fn contents(&self, bio: &Bio) -> Payload {
        let find = |index: u32| self.find(bio.lba.plus(index.into()), &mut Walk::default());
        let content = |index: u32| match find(index) {
            Some((line, sector)) => self.store.sector(line, sector).0,
            None => SectorData::Tag(Tag::ZERO),
        };
        Payload::collect((0..bio.sectors).map(content).collect())
    }

    /// An error of the media side, with the host's address of the sector.
    fn named(&self, bio: &Bio, error: BlockError) -> BlockError {
        let (BlockError::Io { lba, .. } | BlockError::Corrupt { lba, .. }) = error else {
            return error;
        };
        let is_it = |host: &Lba| {
            let found = self.find(*host, &mut Walk::default());
            found.is_some_and(|(line, sector)| self.store.address(line, sector) == lba)
        };
        let host = (0..bio.sectors).map(|index| bio.lba.plus(index.into())).find(is_it);
        match (error, host) {
            (BlockError::Io { what, .. }, Some(lba)) => BlockError::Io { lba, what },
            (BlockError::Corrupt { kind, .. }, Some(lba)) => BlockError::Corrupt { kind, lba },
            (error, _) => error,
        }
    }
}

impl<M: OpenChannel> CoupledFtl<M> {
    /// Serves a read of regions; its outcome is known at once.
    pub(super) fn serve_read(&mut self, bio: &Bio) -> Submit {
        if bio.lba.0 < self.rules.sizes.random_sectors {
            return self.refused(BlockError::Unsupported("reads across regions"));
        }
        let mut extents = std::mem::take(&mut self.extents);
        extents.clear();
        let mut walk = Walk::default();
        let unwritten = self.places().find_extents(bio, &mut extents, &mut walk);
        self.flash.access(&mut walk);
        let found =
            self.flash.zones.store.read_extents(extents.iter().copied(), bio.sectors, unwritten);
        self.extents = extents;
        let found =
            found.map(|(at, error)| (at, error.map(|error| self.places().named(bio, error))));
        let wants_data = self.rules.run.keep_content && !bio.flags.has(Flags::NO_DATA);
        Submit::Done(reads::done(self.flash.now, found, || {
            wants_data.then(|| self.places().contents(bio))
        }))
    }

    /// Where the sectors are now.
    const fn places(&self) -> Places<'_, M> {
        Places {
            space: &self.rules.space,
            lines: &self.lines,
            records: &self.records,
            store: &self.flash.zones.store,
        }
    }
}
