//! FTL instances: each has its own channels, and thereby its own erase units, and two write points, for the
//! host and for collection (NVMeVirt `conv_ftl.c`: one `conv_ftl` a partition, `wp` and `gc_wp`).
//!
//! A page gets its place when it is opened, so that whatever is in the write buffer can be programmed
//! without any further space. Places go round the chunks of an erase unit, one page each, row by row.

use super::DeviceFtl;
use super::buffer::PageId;
use super::copying::Copying;
use super::flash::Flash;
use super::flight::InFlight;
use super::region::RegionMap;
use crate::common::ids::LineId;
use crate::common::layout::StripeSet;
use crate::common::lines::LineState;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_media::{ChunkState, OpenChannel, Ppa, Status};
use nandscape_rt::invariant;
use std::collections::VecDeque;

/// Which of an instance's write points.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stream {
    /// For the host's writes and trim records.
    Host,
    /// For copies.
    Gc,
}

/// Where a stream writes.
#[derive(Default, Debug)]
pub(super) struct WritePoint {
    /// The open erase unit.
    pub(super) line: Option<LineId>,
    /// Its next place: row of pages, and chunk within the row.
    pub(super) row: u32,
    pub(super) index: u32,
    /// The page that is being filled.
    pub(super) page: Option<PageId>,
    /// Programs that have not completed.
    pub(super) flight: InFlight,
}

impl WritePoint {
    /// The next place of its open erase unit: the first row of a chunk that was not written yet.
    fn next_place<M: OpenChannel, P: RegionMap>(
        &mut self,
        flash: &mut Flash<M, P>,
        line: LineId,
    ) -> Result<Option<Ppa>, FtlError> {
        let page = flash.rules.sizes.page;
        let rows = flash.rules.geometry.sectors / page;
        let layout = flash.rules.layout;
        loop {
            let (row, index) = (self.row, self.index);
            if row >= rows {
                return Ok(None);
            }
            (self.row, self.index) =
                if index + 1 < layout.width { (row, index + 1) } else { (row + 1, 0) };
            let chunk = layout.chunk(line, index);
            let info = flash.media.chunk(chunk);
            if !matches!(info.state, ChunkState::Free | ChunkState::Open) {
                continue;
            }
            let first = row * page;
            if info.wp == first {
                return Ok(Some(layout.format.ppa(chunk, first)));
            }
            if first < info.wp && info.wp < first + page {
                flash.pad_torn(layout.format.ppa(chunk, info.wp), first + page - info.wp)?;
            }
        }
    }
}

/// An FTL instance; its number is its stripe.
#[derive(Default, Debug)]
pub(super) struct Instance {
    pub(super) host: WritePoint,
    pub(super) gc: WritePoint,
    /// Sectors that the host may write before the instance looks for something to collect, as NVMeVirt does.
    pub(super) credits: i64,
    /// Victims in flight, in the order in which they were begun.
    pub(super) copying: VecDeque<Copying>,
    /// The erased erase unit into which the buffer is saved when power fails.
    pub(super) spare: Option<LineId>,
}

impl Instance {
    pub(super) const fn point(&mut self, stream: Stream) -> &mut WritePoint {
        match stream {
            Stream::Host => &mut self.host,
            Stream::Gc => &mut self.gc,
        }
    }

    /// Whether no program is in flight, and nothing is being copied.
    pub(super) fn is_idle(&self) -> bool {
        self.host.flight.is_empty() && self.gc.flight.is_empty() && self.copying.is_empty()
    }
}

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Opens a page at the next place of a stream, if there is one and the buffer has a page.
    pub(super) fn open_page(&mut self, instance: usize, stream: Stream) -> Result<bool, FtlError> {
        let Some((at, line)) = self.take_place(instance, stream)? else { return Ok(false) };
        let page = match stream {
            Stream::Host => self.buffer.take(),
            Stream::Gc => Some(instance as PageId),
        };
        let Some(page) = page else {
            return Err(FtlError::Corrupt { kind: "write buffer (no page)", line });
        };
        self.buffer.open(page, at, line);
        self.instances[instance].point(stream).page = Some(page);
        Ok(true)
    }

    /// The next place of a stream; opens another erase unit where need be.
    pub(super) fn take_place(
        &mut self,
        instance: usize,
        stream: Stream,
    ) -> Result<Option<(Ppa, LineId)>, FtlError> {
        loop {
            let point = self.instances[instance].point(stream);
            if let Some(line) = point.line {
                if let Some(at) = point.next_place(&mut self.flash, line)? {
                    let entry = self.flash.lines.get_mut(line);
                    entry.pending += self.flash.rules.sizes.page;
                    self.flash.lines.use_up(line, self.flash.rules.sizes.page);
                    self.retire_full(instance, stream)?;
                    return Ok(Some((at, line)));
                }
                self.flash.lines.write_off(line, u32::MAX);
                self.retire_full(instance, stream)?;
            }
            let Some(line) = self.flash.lines.take_free(StripeSet::only(instance as u32), false)
            else {
                return Ok(None);
            };
            let entry = self.flash.lines.get_mut(line);
            entry.state = LineState::Open;
            entry.origin = stream as u8;
            let point = self.instances[instance].point(stream);
            (point.line, point.row, point.index) = (Some(line), 0, 0);
        }
    }

    /// An open erase unit without places left is no write point any more.
    pub(super) fn retire_full(&mut self, instance: usize, stream: Stream) -> Result<(), FtlError> {
        let point = self.instances[instance].point(stream);
        let Some(line) = point.line.filter(|&line| self.flash.lines.get(line).left == 0) else {
            return Ok(());
        };
        point.line = None;
        self.flash.lines.get_mut(line).state = LineState::Closing;
        self.close_if_written(line)
    }

    /// An erase unit all of whose programs have completed may be a victim, or is empty.
    pub(super) fn close_if_written(&mut self, line: LineId) -> Result<(), FtlError> {
        let entry = self.flash.lines.get(line);
        if entry.state != LineState::Closing || entry.pending > 0 {
            return Ok(());
        }
        if entry.valid == 0 {
            return self.quarantine(line);
        }
        let werr = entry.werr;
        self.flash.lines.get_mut(line).state = LineState::Closed;
        self.flash.victims.insert(line, self.flash.lines.weight(line), werr);
        Ok(())
    }

    /// An empty erase unit waits until what superseded its content is durable.
    pub(super) fn quarantine(&mut self, line: LineId) -> Result<(), FtlError> {
        self.flash.lines.quarantine_line(line);
        self.release_durable()
    }

    /// Erases the erase units whose gate was passed.
    pub(super) fn release_durable(&mut self) -> Result<(), FtlError> {
        if self.flash.lines.quarantined() == 0 {
            return Ok(());
        }
        let trims = self.trims_durable();
        let durable: smallvec::SmallVec<[u64; 8]> =
            (0..self.instances.len()).map(|instance| self.durable_in(instance)).collect();
        let discards = &self.discards;
        let omitted = self.flash.rules.run.omits(OmittedRule::EraseRule);
        let early = u64::from(self.flash.rules.run.omits(OmittedRule::EraseGate));
        let passes = |line, stripe: u32, gate: u64| {
            omitted
                || gate.saturating_sub(early) <= durable[stripe as usize]
                    && discards.gate(line).saturating_sub(early) <= trims
        };
        let passed: smallvec::SmallVec<[LineId; 8]> =
            std::iter::from_fn(|| self.flash.lines.take_quarantined(passes)).collect();
        for line in passed {
            invariant!(
                self.may_erase(line),
                "erase rule: what superseded sectors of erase unit {line} is durable"
            );
            self.erase(line)?;
        }
        Ok(())
    }

    /// Erases an erase unit; it is free afterwards, or bad.
    pub(super) fn erase(&mut self, line: LineId) -> Result<(), FtlError> {
        invariant!(
            self.flash.lines.get(line).valid == 0 && self.flash.lines.get(line).pending == 0,
            "erase rule: erase unit {line} holds nothing that is valid, and no page has a place in it"
        );
        for index in 0..self.flash.rules.layout.width {
            let chunk = self.flash.rules.layout.chunk(line, index);
            if !matches!(self.flash.media.chunk(chunk).state, ChunkState::Open | ChunkState::Closed)
            {
                continue;
            }
            let outcome = self.flash.media.reset(self.flash.now, self.flash.now, chunk)?;
            self.flash.settled = self.flash.settled.max(outcome.at);
            if outcome.status == Status::Ok {
                self.flash.counts.erases += 1;
            } else {
                self.flash.counts.media_errors.erase_failures += 1;
            }
        }
        self.discards.clear_gate(line);
        self.shadow.note(|ledger| ledger.erased(line));
        self.flash.count_chunks(line);
        if self.flash.lines.get(line).chunks == 0 {
            *self.flash.lines.get_mut(line) = Default::default();
            self.flash.lines.get_mut(line).state = LineState::Bad;
        } else {
            self.flash.lines.release(line);
        }
        self.keep_spare(self.flash.rules.layout.stripe_of(line) as usize);
        Ok(())
    }

    /// Sets an erase unit aside for saving the buffer, if that is wanted and there is none.
    pub(super) fn keep_spare(&mut self, instance: usize) {
        if !self.flash.rules.config.keeps_buffer() || self.instances[instance].spare.is_some() {
            return;
        }
        let needed = self.flash.rules.sizes.saved_sectors();
        if let Some(line) = self.flash.lines.take_free_of(instance as u32, needed) {
            invariant!(
                self.flash.can_save(line),
                "power-safe buffer: erase unit {line} of instance {instance} can save the buffer"
            );
            self.flash.lines.write_off(line, u32::MAX);
            self.instances[instance].spare = Some(line);
        }
    }

    /// Whether an instance lacks the erase unit for saving the buffer.
    pub(super) fn lacks_spare(&self, instance: usize) -> bool {
        self.flash.rules.config.keeps_buffer() && self.instances[instance].spare.is_none()
    }

    /// Whether an erase unit that can save the buffer waits for its erase.
    pub(super) fn spare_waits(&self, instance: usize) -> bool {
        self.flash.lines.quarantined_in(instance as u32).any(|line| self.flash.can_save(line))
    }
}
