//! Places for what the host writes, and what is done when there are none: collection, and programs of whatever keeps
//! empty erase units from being erased.
//!
//! Invariants, counted in sectors, because erase units with bad chunks hold less:
//! - The host's data leave a reserve of free erase units alone, so that the copies of a victim always have places.
//!   Trim records may take from it when nothing else helps: erase units wait for them then.
//! - Every victim gains a page at least, and what must be programmed before its erase is padded by less than
//!   one. So each round of collection leaves more space than it found. A mount may collect one that gains nothing, for
//!   an erase unit that can save the buffer.

use super::DeviceFtl;
use super::instance::Stream;
use super::region::RegionMap;
use crate::common::ids::LineId;
use crate::error::FtlError;
use nandscape_block::BlockError;
use nandscape_media::OpenChannel;
use nandscape_rt::invariant;
use std::borrow::Cow;

/// What came of making space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Space {
    /// Something was done: look again.
    Made,
    /// Copies or programs in flight will bring some.
    InFlight,
    /// There is nothing to be done.
    Exhausted,
}

/// What ends writes to a device.
pub(super) const EXHAUSTED: BlockError =
    BlockError::ReadOnly(Cow::Borrowed("no free erase unit, and nothing to collect"));

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Whether the host's data may open another page without touching the reserve. The last place of an open
    /// erase unit is kept for trim records.
    #[inline]
    pub(super) fn host_has_place(&self, instance: usize) -> bool {
        let left = self.flash.places_left(self.instances[instance].host.line);
        left > 1 || self.flash.has_free(instance, self.flash.rules.config.reserve_lines() + 1)
    }

    /// Whether the reserve of an instance is free. Programs that failed may have taken of it.
    fn has_reserve(&self, instance: usize) -> bool {
        self.flash.has_free(instance, self.flash.rules.config.reserve_lines())
            || self.flash.counts.media_errors.program_failures > 0
    }

    /// Whether the host may open another page: it has a place, and collection keeps pace with it.
    fn host_may_open(&mut self, instance: usize) -> Result<bool, FtlError> {
        Ok(self.host_has_place(instance) && self.keeps_pace(instance)?)
    }

    /// Makes sure that an instance has a page that takes a unit of the host's. Whether it has; if not, programs in
    /// flight bring one.
    pub(super) fn make_slot(&mut self, instance: usize) -> Result<bool, FtlError> {
        loop {
            if self.has_slot(instance)? {
                return Ok(true);
            }
            // The last page is kept for trim records.
            if !self.buffer.has_pages(2) {
                return Ok(false);
            }
            if self.host_may_open(instance)? {
                let takes_line = self.flash.places_left(self.instances[instance].host.line) == 0;
                let opened = self.open_page(instance, Stream::Host)?;
                invariant!(
                    !takes_line || self.has_reserve(instance),
                    "space: the host leaves the reserve of instance {instance} free"
                );
                self.advance(instance)?;
                return Ok(opened);
            }
            let space = match self.make_space(instance)? {
                Space::Exhausted => self.free_by_trims(instance)?,
                space => space,
            };
            match space {
                Space::Made => {}
                Space::InFlight => return Ok(false),
                Space::Exhausted => return Err(EXHAUSTED.into()),
            }
        }
    }

    /// The same for trim records, in instance 0.
    pub(super) fn make_trim_slot(&mut self) -> Result<bool, FtlError> {
        loop {
            if self.has_slot(0)? {
                return Ok(true);
            }
            if !self.buffer.has_pages(1) {
                return Ok(false);
            }
            if self.host_may_open(0)? {
                return self.open_page(0, Stream::Host);
            }
            match self.make_space(0)? {
                Space::Made => {}
                Space::InFlight => return Ok(false),
                Space::Exhausted if self.open_page(0, Stream::Host)? => return Ok(true),
                Space::Exhausted => return Err(EXHAUSTED.into()),
            }
        }
    }

    /// Makes sure that instance 0 has places for so many units of trim records without touching the reserve, as far as
    /// collection brings them. Whether it has; if not, programs in flight bring some.
    pub(super) fn make_trim_places(&mut self, units: u32) -> Result<bool, FtlError> {
        let open = self.flash.places_left(self.instances[0].host.line).saturating_sub(1);
        let sectors = (units * self.flash.rules.sizes.unit)
            .saturating_sub(open * self.flash.rules.sizes.page);
        if sectors == 0 {
            return Ok(true);
        }
        let lines = sectors.div_ceil(self.flash.rules.sizes.line_sectors);
        let wanted = self.flash.rules.config.reserve_lines() + lines;
        loop {
            self.release_durable()?;
            // Copies in flight take places.
            let copies = !self.instances[0].copying.is_empty();
            if !copies && self.flash.has_free(0, wanted) {
                return Ok(true);
            }
            match self.gain(0, wanted)? {
                Space::Made => {}
                Space::InFlight => return Ok(false),
                Space::Exhausted => return Ok(true),
            }
        }
    }

    /// Whether the page that an instance fills for the host takes another unit.
    fn has_slot(&mut self, instance: usize) -> Result<bool, FtlError> {
        let Some(id) = self.instances[instance].host.page else { return Ok(false) };
        if self.buffer.takes(id, self.flash.next_seq) {
            return Ok(true);
        }
        self.program(instance, Stream::Host)?;
        Ok(false)
    }

    /// An instance needs a free erase unit for the host: does what can be done about it without trim records.
    fn make_space(&mut self, instance: usize) -> Result<Space, FtlError> {
        self.release_durable()?;
        if self.host_may_open(instance)? {
            return Ok(Space::Made);
        }
        self.gain(instance, self.flash.rules.config.lines_to_collect())
    }

    /// An instance has fewer free erase units than these: collects, unless enough wait for their erase, or programs what
    /// they wait for.
    fn gain(&mut self, instance: usize, lines: u32) -> Result<Space, FtlError> {
        if self.flash.lacks(instance, lines) {
            let space = self.collect(instance)?;
            if space != Space::Exhausted {
                return Ok(space);
            }
        }
        if !self.instances[instance].is_idle() {
            return Ok(Space::InFlight);
        }
        let waits = self.flash.lines.quarantined_in(instance as u32).next().is_some();
        let moved = waits && self.program_filling(instance)?;
        Ok(if moved { Space::Made } else { Space::Exhausted })
    }

    /// Programs what an instance fills, as erase units wait for it. Whether there was anything.
    fn program_filling(&mut self, instance: usize) -> Result<bool, FtlError> {
        let mut moved = self.program(instance, Stream::Gc)?;
        if !self.flash.rules.config.keeps_buffer() {
            moved |= self.program(instance, Stream::Host)?;
        }
        self.flash.counts.gc.forced_flushes += u64::from(moved);
        Ok(moved)
    }

    /// Programs trim records if erase units of an instance wait for them.
    fn free_by_trims(&mut self, instance: usize) -> Result<Space, FtlError> {
        let durable = self.trims_durable();
        let waits = |line: LineId| self.discards.gate(line) > durable;
        if !self.flash.lines.quarantined_in(instance as u32).any(waits) {
            return Ok(Space::Exhausted);
        }
        let emits = self.discards.log.has_pending();
        if emits && !self.emit_trims()? {
            return Ok(Space::InFlight);
        }
        if self.program(0, Stream::Host)? || emits {
            self.flash.counts.gc.forced_flushes += 1;
            return Ok(Space::Made);
        }
        let idle = self.instances[0].host.flight.is_empty();
        Ok(if idle { Space::Exhausted } else { Space::InFlight })
    }
}
