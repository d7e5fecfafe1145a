//! Discards. One of an address whose page was moved reaches the page where it is now, however often it was moved. A line
//! without valid sectors is erased.
//!
//! A discard at an address to which the device has moved a page, and of which no upcall has informed the host, is of what
//! the host had there before, and ignored.

use super::CoupledFtl;
use super::flash::Own;
use super::journal::Entry;
use super::lines::LineState;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::zone::ZoneAction;
use nandscape_block::{Bio, Done, Lba, Submit};
use nandscape_media::OpenChannel;
use nandscape_rt::defect;

impl<M: OpenChannel> CoupledFtl<M> {
    /// Serves a discard.
    pub(super) fn serve_discard(&mut self, bio: &Bio) -> Result<Submit, FtlError> {
        let (mut lba, end) = (bio.lba, bio.lba.plus(bio.sectors.into()));
        self.flash.counts.discarded += u64::from(bio.sectors);
        while lba < end {
            let Some(at) = self.rules.space.superblock(lba) else {
                lba = self.rules.next_region(lba);
                continue;
            };
            let left = u64::from(self.rules.space.superblock_sectors - at.sector);
            let sectors = left.min(end.0 - lba.0) as u32;
            self.discard_in(at.superblock, lba, sectors)?;
            self.flash.access(&mut self.walk);
            lba = lba.plus(sectors.into());
        }
        Ok(Submit::Done(Done::ok(self.flash.zones.store.accepted())))
    }

    /// Discards sectors of a superblock.
    fn discard_in(&mut self, superblock: u32, lba: Lba, sectors: u32) -> Result<(), FtlError> {
        let (mut is_moved, mut at_home) = (false, false);
        for turn in 0..self.rules.space.instances.min(sectors) {
            let Some((logical, first)) = self.rules.space.line(lba.plus(turn.into())) else {
                return Err(defect!("sectors of a superblock are in lines").into());
            };
            let count = (sectors - turn).div_ceil(self.rules.space.instances);
            if let Some(line) = self.lines.resolve(logical, &mut self.walk) {
                at_home |= self.discard_at_home((logical, line), first..first + count)?;
            }
            is_moved |= self.lines.is_referenced(logical);
        }
        if at_home && !self.rules.space.is_owned(self.rules.space.line_of(superblock, 0)) {
            self.persist.note(&mut self.flash, Entry::Discarded { lba, sectors })?;
        }
        if is_moved && !self.rules.run.omits(OmittedRule::RedirectedDiscard) {
            for index in 0..sectors {
                let lba = lba.plus(index.into());
                let at = self.records.resolve(lba, &mut self.walk);
                if at != lba {
                    self.discard_moved(at)?;
                }
            }
        }
        Ok(())
    }

    /// Discards sectors where they are; whether any was there. Those of lines that the device writes are noted one by
    /// one, as some may be ignored.
    fn discard_at_home(
        &mut self,
        (logical, line): (u32, u32),
        sectors: std::ops::Range<u32>,
    ) -> Result<bool, FtlError> {
        let is_owned = self.rules.space.is_owned(logical);
        let mut any = false;
        let mut next = self.lines.next_valid(line, sectors.start);
        while let Some(sector) = next.filter(|&sector| sector < sectors.end) {
            if is_owned {
                let at = self.rules.space.address(logical, sector);
                if !self.records.is_unknown(at, &mut self.walk) {
                    self.discard_moved(at)?;
                    if self.lines.of(logical) != Some(line) {
                        break;
                    }
                }
            } else {
                any |= self.lines.mark(line, sector, false);
            }
            next = self.lines.next_valid(line, sector + 1);
        }
        if any {
            self.settle_line(line)?;
        }
        Ok(any)
    }

    /// Discards the page at an address to which the device moved it.
    fn discard_moved(&mut self, at: Lba) -> Result<(), FtlError> {
        let Some((logical, sector)) = self.rules.space.line(at) else {
            return Err(defect!("records lead to addresses of lines, not to {at}").into());
        };
        // What a record leads to may have been discarded, and its line erased.
        let Some(line) = self.lines.resolve(logical, &mut self.walk) else { return Ok(()) };
        if !self.lines.mark(line, sector, false) {
            return Ok(());
        }
        self.persist.note(&mut self.flash, Entry::Discarded { lba: at, sectors: 1 })?;
        let class = self.rules.space.class(logical);
        if let Some((old, new)) = self.records.discarded(class, at, &mut self.walk) {
            self.lines.refer_to(old, false, &mut self.walk);
            self.lines.refer_to(new, false, &mut self.walk);
            self.flash.counts.own.deleted += 1;
            self.persist.note(&mut self.flash, Entry::Closed { old })?;
        }
        self.settle_line(line)
    }

    /// Erases a closed line of which nothing is valid.
    pub(super) fn settle_line(&mut self, line: u32) -> Result<(), FtlError> {
        let of = *self.lines.get(line);
        if of.state != LineState::Closed || of.valid > 0 {
            return Ok(());
        }
        self.lines.unmap(line, LineState::Resetting, &mut self.walk);
        self.gc.comes(line % self.rules.space.instances, true);
        self.flash.counts.gc.empty_victims += 1;
        self.act_on_line(line, ZoneAction::Reset, Own::Reset(line))
    }
}
