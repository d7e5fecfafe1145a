//! What moves when something has happened: lines are prepared, units written, victims collected, copies and
//! bios let in, until nothing moves any more. Where a request waits then and no completion is due, the next
//! step is forced (see `forced`).

use super::Pblk;
use super::buffers::Buffer;
use super::ids::FrontierId;
use crate::error::FtlError;
use nandscape_media::OpenChannel;

impl<M: OpenChannel> Pblk<M> {
    /// Moves whatever can move.
    pub(super) fn pump(&mut self) {
        self.progress.needs_pump = false;
        match self.pump_all() {
            Ok(()) => self.collector.thread.arm(&mut self.flash),
            Err(error) => self.stop(error.into()),
        }
    }

    fn pump_all(&mut self) -> Result<(), FtlError> {
        for f in 0..self.frontiers.all.len() {
            self.line_chores(f as FrontierId)?;
        }
        // Before a mount is over nothing may move but mapping blocks.
        if self.mapping.as_ref().is_some_and(|mapping| mapping.mounting) {
            while self.pump_map()? {}
            return Ok(());
        }
        let mut refill = true;
        loop {
            let mut moved = self.pump_map()?;
            moved |= self.write_out()?;
            let (mut supply, mapping, _) = self.split();
            moved |= supply.collect(mapping.map(|it| &it.cache))?;
            // Where nothing above moved they would find what they left. Several frontiers may have
            // handed lines back.
            if moved || refill || self.frontiers.data_frontiers() > 1 {
                moved |= self.fill_buffers();
            }
            refill = !moved;
            // Copies may just have asked for a mapping.
            if moved || self.start_loads()? {
                self.progress.pads = 0;
                self.collector.thread.moved();
            } else if !self.resolve_stall()? {
                return Ok(());
            }
        }
    }

    /// Lets in copies and bios that wait, as far as there is room. Whether anything moved.
    fn fill_buffers(&mut self) -> bool {
        let mut moved = self.insert_copies();
        if self.admit_queued() {
            self.progress.drained = false;
            moved = true;
        }
        moved | self.drain_idle()
    }

    /// Where lines are quarantined that garbage collection needs, and what their erase waits for sits in a buffer
    /// that is too empty to write by itself, drains that buffer. With one buffer
    /// new data always moves the old along.
    fn drain_idle(&mut self) -> bool {
        let quarantined = self.flash.lines.quarantined();
        if self.buffers.all.len() == 1 || quarantined == 0 || !self.space().wants_lines() {
            return false;
        }
        if self.collector.is_gathering(&self.buffers, &self.stats) {
            return false;
        }
        // A drain may pad a unit a buffer, so it must free lines enough to be worth that.
        if !self.collector.is_idle() && quarantined < 2 * self.buffers.all.len() {
            return false;
        }
        self.buffers.emit_trims(&mut self.flash, &mut self.progress);
        let durable = self.buffers.durable(self.flash.next_seq);
        let gate = self.flash.lines.lowest_gate();
        let holds = |buffer: &Buffer| {
            let rb = &buffer.rb;
            let idle = rb.sync == rb.subm && rb.is_dirty() && rb.flush_point <= rb.subm;
            idle && rb.oldest_seq().is_some_and(|oldest| oldest < gate)
        };
        let drains = gate > durable && self.buffers.all.iter().any(holds);
        if !drains || !self.pads_for_a_line() {
            return false;
        }
        self.buffers.all.iter_mut().filter(|buffer| holds(buffer)).for_each(|it| it.rb.flush_all());
        self.stats.gc.forced_flushes += 1;
        true
    }
}
