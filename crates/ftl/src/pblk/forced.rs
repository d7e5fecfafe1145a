//! What is forced where nothing moves by itself, a request waits, and no completion is due: the cheapest step
//! first. When none helps, or many of them gained nothing, no line can be freed, and writes end.
//!
//! A device whose closed lines gain less than a unit each has to collect several for one unit of gain. Their copies
//! go to one buffer, and what they leave of a unit is padded only when no other line finds room: then each
//! line gives back more than its copies take, and two lines of room, which users always leave, are enough
//! however little each gains.

use super::ids::BufferId;
use super::progress::Forced;
use super::rl::RateLimiter;
use super::supply::Supply;
use super::{Pblk, SLOTS_NEEDED};
use crate::error::FtlError;
use nandscape_block::BlockError;
use nandscape_media::OpenChannel;

/// Steps forced for each line, beside those that pad, after which nothing is to be gained any more: every
/// line was collected, and its copies drained, more than once.
const STEPS_PER_LINE: u32 = 8;

impl<M: OpenChannel> Supply<'_, M> {
    /// Relieves every buffer. Whether that was news to any.
    fn force_limiter(&mut self, mut how: impl FnMut(&mut RateLimiter) -> bool) -> bool {
        let news =
            self.buffers.all.iter_mut().fold(false, |news, buffer| how(&mut buffer.rl) | news);
        if news {
            self.collector.thread.kick();
        }
        news
    }

    /// Nothing moves, and a write waits for space: whatever gains anything is a victim, journal lines that are
    /// exempt too, the least valid first. Several are taken at once, since what their copies leave
    /// of a unit would be padded for each. Whether that is news.
    fn force_any_victim(&mut self) -> bool {
        let news = self.space().is_short_of_space()
            && !std::mem::replace(&mut self.collector.takes_all, true);
        if news {
            self.collector.thread.kick();
        }
        news
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// Nothing moves by itself: if a request waits and no completion is due, forces the next step.
    /// Whether there was one.
    pub(super) fn resolve_stall(&mut self) -> Result<bool, FtlError> {
        if !self.has_waiters() || !self.is_at_rest() || self.progress.stopped.is_some() {
            return Ok(false);
        }
        let recycled = self.recycle_all();
        let free_chunks = self.frontiers.limiter_free(&self.flash, &self.rules, None).0;
        if recycled
            || (self.mapping.as_ref().is_some_and(|mapping| mapping.starved) && self.force_drain())
            || (self.frontiers.data_frontiers() > 1 && self.supply().return_lines())
            || (!self.progress.drained && self.force_drain())
        {
            return Ok(true);
        }
        if self.space().awaits_collection() {
            return Ok(false);
        }
        if self.gains_nothing() {
            return Ok(self.enter_read_only());
        }
        // Before what forced victims left of a unit is padded, copies of others fill it.
        // Where writes wait for space, lines may look fuller than they are until blind updates are merged.
        Ok((self.collector.is_gathering(&self.buffers, &self.stats)
            && self.supply().force_any_victim())
            || self.supply().force_limiter(RateLimiter::force_limiter)
            || self.force_drain()
            || self.supply().force_limiter(|rl| rl.force_limiter_users(free_chunks))
            || (self.space().is_short_of_space()
                && self.mapping.as_mut().is_some_and(|mapping| mapping.merge_one()))
            || self.supply().force_any_victim()
            || self.pad_one()?
            || self.mapping.as_mut().is_some_and(|mapping| mapping.merge_one())
            || self.lend_line()?
            || self.enter_read_only())
    }

    /// Whether nothing is in flight but requests of the host, and the timer of the collector's thread.
    fn is_at_rest(&self) -> bool {
        let timer = usize::from(self.collector.thread.is_armed());
        let Some(cpu) = &self.cpu else { return self.flash.events.len() == timer };
        cpu.is_idle() && self.flash.events.len() == cpu.bringing_in() + timer
    }

    /// Steps are counted since the host was last served, or more became writable.
    fn note_gain(&mut self) {
        let served = self.stats.admitted_sectors() + self.stats.host.read + self.stats.flush.waited;
        let writable = self.flash.lines.writable;
        if served != self.progress.forced.served || writable > self.progress.forced.writable {
            self.progress.forced = Forced { steps: 0, served, writable };
        }
    }

    /// Counts a step, and whether there were so many without gain that nothing is to be gained: a device that does not
    /// end would collect the same lines for ever.
    fn gains_nothing(&mut self) -> bool {
        self.note_gain();
        self.progress.forced.steps += 1;
        let steps_of_line = u64::from(STEPS_PER_LINE + self.frontiers.pads_enough(&self.flash));
        u64::from(self.progress.forced.steps) > u64::from(self.rules.capacity.lines) * steps_of_line
    }

    /// Whether buffers may be padded as soon as a line is collected: not where that gained nothing in as many steps as
    /// there are lines. Then copies of several lines share what would be padded for each. Counts a step.
    pub(super) fn pads_for_a_line(&mut self) -> bool {
        self.note_gain();
        let may = self.progress.forced.steps < self.rules.capacity.lines;
        self.progress.forced.steps += u32::from(may);
        may
    }

    /// Sends everything buffered to media, so that quarantined lines can be freed.
    fn force_drain(&mut self) -> bool {
        self.buffers.emit_trims(&mut self.flash, &mut self.progress);
        let mut news = false;
        for buffer in &mut self.buffers.all {
            news |= buffer.rb.flush_point != buffer.rb.mem;
            buffer.rb.flush_all();
        }
        if news {
            self.stats.gc.forced_flushes += 1;
            self.progress.drained = true;
            self.collector.gathers_in = None;
        }
        news
    }

    /// Writes one unit of padding, so that the device serves what it still refuses to read. Each buffer has its turn:
    /// copies may fill one for ever, while a write waits at another.
    fn pad_one(&mut self) -> Result<bool, FtlError> {
        let enough = self.frontiers.pads_enough(&self.flash);
        let count = self.buffers.all.len();
        let only = count == 1;
        for skipped in 0..count {
            let id = (self.progress.pad_turn + skipped) % count;
            // One of several buffers that has room waits for something else.
            let full = only || self.make_ring_room(id as BufferId, SLOTS_NEEDED) < SLOTS_NEEDED;
            let buffer = &self.buffers.all[id];
            // Padding that is not served holds nothing that a request waits for.
            let unserved = buffer.rb.l2p_update < buffer.rb.sync;
            let waits = full && unserved && buffer.rb.backlog() == 0;
            if waits
                && self.progress.pads < enough
                && let Some(spot) = self.write_position_for(id as BufferId)?
            {
                self.progress.pads += 1;
                self.progress.pad_turn = id + 1;
                self.write_unit(id as BufferId, 0, spot)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// No line can be freed any more: writes end, reads go on.
    fn enter_read_only(&mut self) -> bool {
        self.stop(BlockError::ReadOnly("no line can be freed".into()));
        false
    }
}

#[cfg(test)]
mod tests;
