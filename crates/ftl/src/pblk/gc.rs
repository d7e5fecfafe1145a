//! Garbage collection: victims, their reads, and the copies' way into the ring (pblk-gc.c).
//!
//! A victim is read in requests of up to 64 valid sectors, several at once. When a request's data
//! has arrived its sectors go through the ring like user data; each is looked up again on insertion,
//! and a sector that the user overwrote on the way is stored as stale.

use super::Pblk;
use super::format::{TrimRecord, decode_trims};
use super::l2p::Place;
use super::line::{LineId, LineState};
use super::open::Cursor;
use super::rb::{Origin, key_is_live, key_lba};
use crate::error::FtlError;
use crate::pblk::events::What;
use nandscape_block::{Lba, SectorData};
use nandscape_media::{Cause, KEY_EMPTY, KEY_TRIM, OpenChannel, Ppa, Status};
use nandscape_rt::Nanos;
use std::collections::VecDeque;

/// Valid sectors of a request (`NVM_MAX_VLBA`).
const REQUEST_SECTORS: usize = 64;
/// Victims at once (`PBLK_GC_L_QD`).
const VICTIMS_MAX: usize = 4;
/// Requests read and not yet fully inserted (`PBLK_GC_MAX_READERS`).
const REQUESTS_MAX: usize = 8;

/// A line being collected.
#[derive(Clone, Copy, Debug)]
struct VictimLine {
    id: LineId,
    at: Cursor,
    /// Requests not yet fully inserted.
    requests: u32,
    /// Nothing can be read before its address list is.
    ready_at: Nanos,
}

/// Sectors on their way from a victim to the ring.
#[derive(Default, Debug)]
struct Request {
    line: LineId,
    sectors: Vec<(Ppa, u32)>,
    data: Vec<SectorData>,
    inserted: usize,
}

/// State of garbage collection.
#[derive(Default, Debug)]
pub(super) struct Gc {
    victims: Vec<VictimLine>,
    requests: Vec<Request>,
    idle: Vec<usize>,
    ready: VecDeque<usize>,
}

impl Gc {
    /// Victims, for the limiter.
    fn active(&self) -> u32 {
        self.victims.len() as u32
    }

    /// Whether no line is being collected.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.victims.is_empty()
    }

    fn under_way(&self) -> usize {
        self.requests.len() - self.idle.len()
    }

    fn take_request(&mut self, line: LineId) -> usize {
        let number = self.idle.pop().unwrap_or_else(|| {
            self.requests.push(Request::default());
            self.requests.len() - 1
        });
        let request = &mut self.requests[number];
        request.line = line;
        request.sectors.clear();
        request.data.clear();
        request.inserted = 0;
        number
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let request = |r: &Request| {
            size_of::<Request>()
                + r.sectors.capacity() * size_of::<(Ppa, u32)>()
                + r.data.capacity() * size_of::<SectorData>()
        };
        self.requests.iter().map(request).sum::<usize>() as u64
    }
}

/// The cause of a read of so many sectors by the collector.
const fn copying(sectors: u32) -> Cause {
    Cause { user: 0, gc: sectors as u8, pad: 0 }
}

impl<M: OpenChannel> Pblk<M> {
    /// Chooses victims and reads them, as far as the limiter wants. Whether anything was started.
    pub(super) fn collect(&mut self) -> Result<bool, FtlError> {
        let mut moved = false;
        while self.gc.victims.len() < VICTIMS_MAX && self.start_victim()? {
            moved = true;
        }
        while self.gc.under_way() < REQUESTS_MAX && self.read_some()? {
            moved = true;
        }
        Ok(moved)
    }

    fn wants_victim(&self) -> bool {
        let coming = self.gc.active() + self.lines.cooling_len() as u32;
        self.rl.wants_victim(self.lines.free_len(), coming)
    }

    /// Whether a line with write errors is waiting for collection, or being collected.
    pub(super) fn has_werr(&self) -> bool {
        let collected = |victim: &VictimLine| self.lines.get(victim.id).werr;
        self.victims.has_werr() || self.gc.victims.iter().any(collected)
    }

    /// Starts on one more victim, if one is wanted and its valid sectors surely find room: the
    /// policy's choice, or, where a power cut has left little room, the line that needs least. While
    /// there is space enough only lines with write errors are wanted.
    fn start_victim(&mut self) -> Result<bool, FtlError> {
        let (lines, room) = (&self.lines, self.uncommitted());
        let settled = |line: LineId| lines.get(line).pending == 0;
        let fits = |line: &LineId| u64::from(lines.get(*line).valid) <= room;
        let chosen = if self.wants_victim() {
            let chosen = self.victims.choose(settled).filter(fits);
            chosen.or_else(|| self.victims.least_valid(settled).filter(fits))
        } else {
            self.victims.choose_werr(settled).filter(fits)
        };
        let Some(id) = chosen else { return Ok(false) };
        let line = *self.lines.get(id);
        self.victims.remove(id);
        self.lines.get_mut(id).state = LineState::Gc;
        self.stats.gc.victims += 1;
        self.stats.gc.victim_valid += u64::from(line.valid);
        self.stats.gc.victim_data += u64::from(line.data);
        let ready_at = if line.emeta { self.read_emeta(id)? } else { self.now };
        self.gc.victims.push(VictimLine { id, at: Cursor::START, requests: 0, ready_at });
        self.limiter_update();
        Ok(true)
    }

    /// Writable sectors that neither the ring's entries nor victims already under way will need.
    pub(super) fn uncommitted(&self) -> u64 {
        let victims: u32 = self.gc.victims.iter().map(|v| self.lines.get(v.id).valid).sum();
        self.lines.writable.saturating_sub(self.committed() + u64::from(victims))
    }

    /// Sectors that the ring's entries will need, padding of one unit included.
    #[inline]
    pub(super) fn committed(&self) -> u64 {
        let ws_opt = self.geometry.ws_opt;
        let failed = self.units.failed_len() as u64 * u64::from(ws_opt);
        u64::from(self.rb.backlog().next_multiple_of(ws_opt) + ws_opt) + failed
    }

    /// Charges the reading of a victim's address list. It is read again from out-of-band data, so an
    /// uncorrectable sector in it costs nothing more.
    fn read_emeta(&mut self, line: LineId) -> Result<Nanos, FtlError> {
        let mut at = self.line_end();
        let mut missing = self.emeta_units();
        let mut ready = self.now;
        while missing > 0 && at > Cursor::START {
            at.step_back(self.geometry.total_units());
            let ppa = self.ppa_at(line, at);
            if self.is_written(ppa) {
                self.media.because(copying(self.geometry.ws_opt));
                ready = ready.max(self.media.read(self.now, ppa, self.geometry.ws_opt)?.at);
                missing -= 1;
            }
        }
        Ok(ready)
    }

    fn is_written(&self, at: Ppa) -> bool {
        let chunk = self.media.chunk(self.geometry.chunk_of(at));
        chunk.state != nandscape_media::ChunkState::Offline
            && self.geometry.sector_of(at) < chunk.wp
    }

    /// Reads one request of the oldest victim that is not fully read.
    fn read_some(&mut self) -> Result<bool, FtlError> {
        let end = self.line_end();
        let Some(index) = self.gc.victims.iter().position(|victim| victim.at < end) else {
            return Ok(false);
        };
        let mut victim = self.gc.victims[index];
        let number = self.gc.take_request(victim.id);
        let arrived = self.fill_request(&mut victim, number)?;
        if self.gc.requests[number].sectors.is_empty() {
            self.gc.idle.push(number);
        } else {
            victim.requests += 1;
            self.events.push(arrived, What::GcRead(number));
        }
        self.gc.victims[index] = victim;
        self.finish_victim(index);
        Ok(true)
    }

    /// Reads valid sectors from the victim's cursor on until the request is full. When they arrive.
    fn fill_request(&mut self, victim: &mut VictimLine, number: usize) -> Result<Nanos, FtlError> {
        let (units, end, ws_opt) =
            (self.geometry.total_units(), self.line_end(), self.geometry.ws_opt);
        let mut arrived = self.now.max(victim.ready_at);
        while victim.at < end {
            let ppa = self.ppa_at(victim.id, victim.at);
            let mask = self.lines.valid_mask(ppa, ws_opt);
            if mask != 0 {
                let room = REQUEST_SECTORS - self.gc.requests[number].sectors.len();
                if mask.count_ones() as usize > room {
                    break;
                }
                arrived = arrived.max(self.read_unit(number, ppa, mask, victim.ready_at)?);
            }
            victim.at.step(units);
        }
        Ok(arrived)
    }

    /// Reads the sectors of one write unit that `mask` names, in one command.
    fn read_unit(
        &mut self,
        number: usize,
        ppa: Ppa,
        mask: u64,
        from: Nanos,
    ) -> Result<Nanos, FtlError> {
        let first = mask.trailing_zeros();
        let span = u64::BITS - mask.leading_zeros() - first;
        self.media.because(copying(span));
        let outcome = self.media.read(self.now.max(from), ppa.plus(first), span)?;
        let mut left = mask;
        while left != 0 {
            let at = ppa.plus(left.trailing_zeros());
            left &= left - 1;
            if outcome.status != Status::Ok && !self.media.readable(at) {
                self.stats.uncorrectable += 1;
                continue;
            }
            let key = self.media.oob(at).key;
            if let Some(lba) = key_lba(key) {
                self.l2p.prefetch(lba);
            }
            let request = &mut self.gc.requests[number];
            request.sectors.push((at, key));
            if self.config.keep_content || key == KEY_TRIM {
                request.data.resize(request.sectors.len() - 1, SectorData::Absent);
                request.data.push(self.media.data(at));
            }
        }
        Ok(outcome.at)
    }

    /// A request's data has arrived.
    pub(super) fn gc_arrived(&mut self, number: usize) {
        self.gc.ready.push_back(number);
    }

    /// Moves arrived copies into the ring, as far as there is room. Whether any moved.
    pub(super) fn insert_copies(&mut self) -> bool {
        let mut moved = false;
        while let Some(&number) = self.gc.ready.front() {
            let left = self.gc.requests[number].sectors.len() - self.gc.requests[number].inserted;
            if left > 0 {
                let room = self.copy_room(left as u32);
                if room == 0 {
                    break;
                }
                self.insert_request(number, room);
                moved = true;
            }
            if self.gc.requests[number].inserted == self.gc.requests[number].sectors.len() {
                self.gc.ready.pop_front();
                self.request_done(number);
                moved = true;
            }
        }
        moved
    }

    /// How many of `wanted` copies may go into the ring. Trim sectors may need two slots.
    fn copy_room(&mut self, wanted: u32) -> u32 {
        let ring = self.ring_room(wanted.saturating_add(2)).saturating_sub(2);
        let space = self.lines.writable.saturating_sub(self.committed());
        wanted
            .min(ring)
            .min(self.rl.gc_room(self.now))
            .min(u32::try_from(space).unwrap_or(u32::MAX))
    }

    fn insert_request(&mut self, number: usize, room: u32) {
        let from = self.gc.requests[number].inserted;
        let mut inserted = 0;
        for index in from..from + room as usize {
            let request = &mut self.gc.requests[number];
            let (at, key) = request.sectors[index];
            let data = request.data.get_mut(index).map(std::mem::take).unwrap_or_default();
            request.inserted = index + 1;
            if key == KEY_TRIM {
                self.relog_trims(at, &data);
                break;
            }
            self.insert_copy(at, key, data);
            inserted += 1;
        }
        self.rl.gc_in(inserted);
    }

    fn insert_copy(&mut self, at: Ppa, key: u32, data: SectorData) {
        let slot = self.rb.slot(self.rb.mem);
        let moved = key_lba(key)
            .is_some_and(|lba| self.l2p.switch(lba, Place::Media(at), Place::Cached(slot)));
        if moved {
            let position = self.rb.push(key, Origin::Gc, data);
            self.invalidate(at, position + 1);
        } else {
            debug_assert!(!key_is_live(key) || !self.lines.is_valid(at));
            self.rb.push(KEY_EMPTY, Origin::Stale, SectorData::Absent);
        }
    }

    /// Logs again the records of a trim sector that still hide something.
    fn relog_trims(&mut self, at: Ppa, data: &SectorData) {
        for record in decode_trims(data).unwrap_or_default() {
            if self.still_hides(&record) {
                self.log_trim(record);
            }
        }
        let gate = self.gate();
        self.invalidate(at, gate);
    }

    /// A record is needed while any of its sectors is in the state that it made; sectors written
    /// since hide what it hid.
    pub(super) fn still_hides(&self, record: &TrimRecord) -> bool {
        let first = u64::from(record.lba);
        (first..first + u64::from(record.sectors))
            .any(|lba| self.l2p.get(Lba(lba)) == Place::Nowhere)
    }

    fn request_done(&mut self, number: usize) {
        let line = self.gc.requests[number].line;
        self.gc.idle.push(number);
        if let Some(index) = self.gc.victims.iter().position(|victim| victim.id == line) {
            self.gc.victims[index].requests -= 1;
            self.finish_victim(index);
        }
    }

    /// A victim that is fully read and inserted is empty, or holds what media could not read.
    fn finish_victim(&mut self, index: usize) {
        let victim = self.gc.victims[index];
        if victim.at < self.line_end() || victim.requests > 0 {
            return;
        }
        self.gc.victims.remove(index);
        if self.lines.get(victim.id).valid == 0 {
            self.cool(victim.id);
        } else {
            self.lines.get_mut(victim.id).state = LineState::Corrupt;
        }
        self.limiter_update();
    }
}
