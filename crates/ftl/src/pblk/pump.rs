//! What moves when something has happened: lines are prepared, units written, victims collected, copies and
//! bios let in, until nothing moves any more. Where somebody waits then and no completion is due, the next
//! step is forced, the cheapest first; when none helps, no line can be freed, and writes end.

use super::buffers::Buffer;
use super::ids::{BufferId, FrontierId};
use super::rl::RateLimiter;
use super::{Pblk, SLOTS_NEEDED};
use crate::error::FtlError;
use nandscape_block::BlockError;
use nandscape_media::OpenChannel;

impl<M: OpenChannel> Pblk<M> {
    /// Moves whatever can move.
    pub(super) fn pump(&mut self) {
        self.needs_pump = false;
        if let Err(error) = self.try_pump() {
            self.stop(error.into());
        }
    }

    fn try_pump(&mut self) -> Result<(), FtlError> {
        self.pump_all()?;
        self.arm_thread();
        Ok(())
    }

    fn pump_all(&mut self) -> Result<(), FtlError> {
        for f in 0..self.frontiers.len() {
            self.line_chores(f as FrontierId)?;
        }
        if self.is_mounting() {
            while self.pump_map()? {}
            return Ok(());
        }
        let mut anew = true;
        loop {
            let mut moved = self.pump_map()?;
            moved |= self.write_out()?;
            moved |= self.collect()?;
            // Where nothing above moved they would find what they left. Several frontiers may have
            // handed lines back.
            if moved || anew || self.data_frontiers() > 1 {
                moved |= self.fill_buffers();
            }
            anew = !moved;
            // Copies may just have asked for a mapping.
            if moved || self.start_loads()? {
                self.pads = 0;
                self.thread.moved();
            } else if !self.unstick()? {
                return Ok(());
            }
        }
    }

    /// Lets in copies and bios that wait, as far as there is room. Whether anything moved.
    fn fill_buffers(&mut self) -> bool {
        let mut moved = self.insert_copies();
        if self.admit_queued() {
            self.drained = false;
            moved = true;
        }
        moved | self.drain_idle()
    }

    /// Nothing moves by itself: if somebody waits and no completion is due, forces the next step.
    /// Whether there was one.
    fn unstick(&mut self) -> Result<bool, FtlError> {
        if !self.is_waited_for() || !self.is_at_rest() || self.stopped.is_some() {
            return Ok(false);
        }
        let recycled = self.recycle_all();
        let free_chunks = self.limiter_free(None).0;
        if recycled
            || (self.is_starved() && self.force_drain())
            || (self.data_frontiers() > 1 && self.hand_back_lines())
            || (!self.drained && self.force_drain())
        {
            return Ok(true);
        }
        if self.awaits_collection() {
            return Ok(false);
        }
        Ok(self.relieve(RateLimiter::relieve)
            || self.force_drain()
            || self.relieve(|rl| rl.relieve_users(free_chunks))
            || (self.is_short_of_space() && self.merge_for_space())
            || self.take_all()
            || self.pad_one()?
            || self.give_up())
    }

    /// Whether writes wait for space, and the collector's thread may find some when it runs next.
    fn awaits_collection(&self) -> bool {
        self.thread.may_run() && (self.is_short_of_space() || self.lines.free().1 == 0)
    }

    /// Relieves every buffer. Whether that was news to any.
    fn relieve(&mut self, mut how: impl FnMut(&mut RateLimiter) -> bool) -> bool {
        let news = self.buffers.iter_mut().fold(false, |news, buffer| how(&mut buffer.rl) | news);
        if news {
            self.thread.kick();
        }
        news
    }

    /// Sends everything buffered to media, so that quarantined lines can be freed.
    fn force_drain(&mut self) -> bool {
        self.emit_trims();
        let mut news = false;
        for buffer in &mut self.buffers {
            news |= buffer.rb.flush_point != buffer.rb.mem;
            buffer.rb.flush_all();
        }
        if news {
            self.stats.gc.forced_flushes += 1;
            self.drained = true;
        }
        news
    }

    /// Where lines are quarantined that garbage collection needs, and what their erase waits for sits in a buffer
    /// that is too empty to write by itself, drains that buffer (DESIGN decision 7b). With one buffer
    /// new data always moves the old along.
    fn drain_idle(&mut self) -> bool {
        let quarantined = self.lines.quarantined();
        if self.buffers.len() == 1 || quarantined == 0 || !self.wants_lines() {
            return false;
        }
        // A drain may pad a unit a buffer, so it must free lines enough to be worth that.
        if !self.gc.is_idle() && quarantined < 2 * self.buffers.len() {
            return false;
        }
        self.emit_trims();
        let durable = self.durable();
        let gate = self.lines.lowest_gate();
        let holds = |buffer: &&mut Buffer| {
            let rb = &buffer.rb;
            let idle = rb.sync == rb.subm && rb.is_dirty() && rb.flush_point <= rb.subm;
            idle && rb.oldest_seq().is_some_and(|oldest| oldest < gate)
        };
        let mut drained = false;
        if gate > durable {
            for buffer in self.buffers.iter_mut().filter(holds) {
                buffer.rb.flush_all();
                drained = true;
            }
        }
        self.stats.gc.forced_flushes += u64::from(drained);
        drained
    }

    /// Writes one unit of padding, so that the device serves what it still refuses to read.
    fn pad_one(&mut self) -> Result<bool, FtlError> {
        let row = self.geometry.total_units() * self.frontiers.len() as u32;
        let enough = (self.geometry.mw_cunits / self.geometry.ws_opt + 2) * row;
        let only = self.buffers.len() == 1;
        for id in 0..self.buffers.len() {
            // One of several buffers that has room waits for something else.
            let full = only || self.ring_room(id as BufferId, SLOTS_NEEDED) < SLOTS_NEEDED;
            let buffer = &self.buffers[id];
            let waits = full && buffer.units.oldest().is_some() && buffer.rb.backlog() == 0;
            if waits
                && self.pads < enough
                && let Some(spot) = self.seek_for(id as BufferId)?
            {
                self.pads += 1;
                self.write_unit(id as BufferId, 0, spot)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// No line can be freed any more: writes end, reads go on.
    fn give_up(&mut self) -> bool {
        self.stop(BlockError::ReadOnly("no line can be freed"));
        false
    }
}
