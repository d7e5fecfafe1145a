//! pblk: a host-level, log-structured FTL with a write buffer, lines over all parallel units, a rate
//! limiter and garbage collection (Linux `drivers/lightnvm`, 4.13 to 5.11), with the crash model's
//! promises in place of the kernel's.
//!
//! Rooms, named as the kernel's files: `rb` the ring, `map` table and valid counts, `write` the
//! writer, `read`, `gc`, `rl` the limiter, `line` and `open` lines, `recovery`. Beyond the kernel's:
//! `host` admission and flushes, `trims` durable discards, `victims` the victim index.
//!
//! The FTL is a state machine: it acts when a bio comes in or a media command completes, and then
//! pumps until nothing moves. Two rules keep acknowledged data safe with any number of open lines:
//! every sector carries a global write sequence and recovery replays by it; and a line is erased only
//! when everything that superseded its content is durable.

mod capacity;
mod check;
mod events;
mod format;
mod gc;
mod host;
mod l2p;
mod line;
mod map;
mod open;
mod rb;
mod read;
mod recovery;
mod rl;
mod trims;
mod units;
mod victims;
mod write;

pub use capacity::Capacity;
pub use line::LineState;

use crate::config::Config;
use crate::error::FtlError;
use crate::stats::{FtlStats, MemoryUse};
use events::{Events, What};
use gc::Gc;
use host::Host;
use l2p::{L2p, Place};
use line::Lines;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Fua, Lba, Op, SectorData, Submit,
    Token,
};
use nandscape_media::{ChunkState, Geometry, OpenChannel};
use nandscape_rt::{Nanos, Stream};
use open::{ClosingLine, NextLine, OpenLine};
use rb::Ring;
use rl::RateLimiter;
use std::collections::VecDeque;
use trims::TrimLog;
use units::Units;
use victims::Victims;

/// State of one line, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineReport {
    /// State.
    pub state: LineState,
    /// Valid sectors.
    pub valid: u32,
    /// Data sectors written, padding included.
    pub data: u32,
}

/// A pblk on the open-channel SSD `M`.
#[derive(Debug)]
pub struct Pblk<M> {
    media: M,
    geometry: Geometry,
    capacity: Capacity,
    config: Config,
    caps: DeviceCaps,
    now: Nanos,
    /// Which formatting of the device this is.
    instance: u64,
    /// Order number of the next line to be opened.
    line_seq: u64,
    l2p: L2p,
    rb: Ring,
    units: Units,
    lines: Lines,
    victims: Victims,
    open: Option<OpenLine>,
    next: Option<NextLine>,
    closing: VecDeque<ClosingLine>,
    /// Parallel units with a write in flight.
    busy: Box<[bool]>,
    rl: RateLimiter,
    gc: Gc,
    trims: TrimLog,
    host: Host,
    events: Events,
    /// Something may be able to move.
    needs_pump: bool,
    /// A drain was forced since a waiting bio was last admitted.
    drained: bool,
    /// Padding units written since anything else moved.
    pads: u32,
    /// With this many writable sectors, and no victim, any user data in the ring leaves enough.
    plenty: u64,
    /// Why no more bios are served: all of them after a power loss or a defect, only writes when
    /// no line can be freed.
    stopped: Option<BlockError>,
    scratch: Vec<SectorData>,
    stats: FtlStats,
    /// Sum over user sectors of `in_use` when they were accepted.
    in_use_sum: u128,
}

impl<M: OpenChannel> Pblk<M> {
    /// Makes a fresh device. Chunks that are not erased are erased first.
    ///
    /// # Errors
    /// The choice that does not fit the geometry, or that power went off.
    pub fn format(mut media: M, config: Config) -> Result<Self, FtlError> {
        let geometry = *media.geometry();
        let mut now = Nanos::ZERO;
        let mut good_chunks = 0;
        for chunk in geometry.all_chunks() {
            if matches!(media.chunk(chunk).state, ChunkState::Open | ChunkState::Closed) {
                now = now.max(media.reset(Nanos::ZERO, chunk)?.at);
            }
            good_chunks += u64::from(media.chunk(chunk).state == ChunkState::Free);
        }
        let capacity = Capacity::new(&geometry, &config, good_chunks)?;
        capacity.check(&geometry, &config)?;
        let mut pblk = Self::assemble(media, config, capacity, now).map_err(|(_, error)| error)?;
        for line in 0..capacity.lines {
            pblk.adopt_empty(line);
        }
        pblk.limiter_update();
        pblk.open_first_line();
        match pblk.stopped.take() {
            None => Ok(pblk),
            Some(BlockError::PowerLost) => Err(FtlError::PowerLost),
            Some(BlockError::MemoryCap) => Err(FtlError::MemoryCap),
            Some(error) => Err(FtlError::Stopped(error)),
        }
    }

    /// Prepares a line and waits for its start metadata: from now on media always hold the size of
    /// the device.
    fn open_first_line(&mut self) {
        self.pump();
        while let Some(at) = self.events.next_at() {
            self.run_round(at);
        }
        self.reset_stats();
    }

    /// Everything empty, no line on any list.
    fn assemble(
        media: M,
        config: Config,
        capacity: Capacity,
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let geometry = *media.geometry();
        let units = geometry.total_units();
        let row = u64::from(geometry.ws_opt * units);
        let data = capacity.line_data_sectors;
        let l2p = L2p::new(capacity.logical_sectors, geometry.ppa_end());
        let (Some(l2p), Some(lines)) = (l2p, Lines::new(&geometry, &capacity)) else {
            return Err((media, FtlError::AddressSpace));
        };
        Ok(Self {
            caps: caps(&config, &capacity),
            instance: Stream::new(config.seed, "ftl.instance").bits(),
            line_seq: 0,
            l2p,
            rb: Ring::new(capacity.ring_sectors, 1),
            units: Units::default(),
            lines,
            victims: Victims::new(config.victim, capacity.lines, data, config.seed),
            open: None,
            next: None,
            closing: VecDeque::new(),
            busy: vec![false; units as usize].into_boxed_slice(),
            rl: RateLimiter::new(config.limiter, &capacity),
            gc: Gc::default(),
            trims: TrimLog::default(),
            host: Host::default(),
            events: Events::default(),
            needs_pump: false,
            drained: false,
            pads: 0,
            plenty: u64::from(capacity.ring_sectors) + 2 * u64::from(data) + 3 * row,
            stopped: None,
            scratch: Vec::new(),
            stats: FtlStats::of_units(geometry.ws_opt),
            in_use_sum: 0,
            media,
            geometry,
            capacity,
            config,
            now,
        })
    }

    /// Counts a line's good chunks and puts it on the free list, or aside when it has too few.
    fn adopt_empty(&mut self, id: u32) {
        self.count_chunks(id);
        if self.lines.get(id).capacity >= self.geometry.ws_opt {
            self.lines.release(id);
        } else {
            self.lines.get_mut(id).state = LineState::Bad;
        }
    }

    fn count_chunks(&mut self, id: u32) {
        let good = |pu: &u32| self.media.chunk(self.chunk_at(id, *pu)).state != ChunkState::Offline;
        let chunks = (0..self.geometry.total_units()).filter(good).count() as u32;
        let meta = self.capacity.smeta_sectors + self.capacity.emeta_sectors;
        let line = self.lines.get_mut(id);
        line.chunks = chunks;
        line.capacity = (chunks * self.geometry.sectors).saturating_sub(meta);
    }

    /// Gives up everything in host memory: a power cut, seen from the media.
    pub fn into_media(self) -> M {
        self.media
    }

    /// The media.
    pub const fn media(&self) -> &M {
        &self.media
    }

    /// The media, for changing how it behaves.
    pub const fn media_mut(&mut self) -> &mut M {
        &mut self.media
    }

    /// The time that the FTL has reached.
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Sizes.
    pub const fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// What was counted since the last reset.
    pub fn stats(&self) -> FtlStats {
        let mut stats = self.stats.clone();
        if stats.user_written > 0 {
            stats.in_use_sectors_mean = self.in_use_sum as f64 / stats.user_written as f64;
        }
        stats
    }

    /// Begins counting anew.
    pub fn reset_stats(&mut self) {
        self.stats = FtlStats::of_units(self.geometry.ws_opt);
        self.in_use_sum = 0;
    }

    /// Bytes of RAM by component.
    pub fn memory(&self) -> MemoryUse {
        MemoryUse {
            map_bytes: self.l2p.bytes(),
            bitmap_bytes: self.lines.bitmap_bytes(),
            line_bytes: self.lines.line_bytes() + self.victims.bytes(),
            buffers_bytes: self.rb.bytes()
                + self.units.bytes()
                + self.gc.bytes()
                + self.host.bytes(),
        }
    }

    /// Every line's state and counts.
    pub fn lines(&self) -> Vec<LineReport> {
        let report = |line: &line::Line| LineReport {
            state: line.state,
            valid: line.valid,
            data: line.data,
        };
        self.lines.iter().map(|(_, line)| report(line)).collect()
    }

    /// Moves whatever can move.
    fn pump(&mut self) {
        self.needs_pump = false;
        if let Err(error) = self.try_pump() {
            self.stop(error.into());
        }
    }

    fn try_pump(&mut self) -> Result<(), FtlError> {
        self.line_chores()?;
        loop {
            let mut moved = self.write_out()?;
            moved |= self.collect()?;
            moved |= self.insert_copies();
            if self.admit_queued() {
                self.drained = false;
                moved = true;
            }
            if moved {
                self.pads = 0;
            } else if !self.unstick()? {
                return Ok(());
            }
        }
    }

    /// Nothing moves by itself: if somebody waits and no completion is due, forces the next step.
    /// Whether there was one.
    fn unstick(&mut self) -> Result<bool, FtlError> {
        if !self.host.is_waiting() || !self.events.is_empty() || self.stopped.is_some() {
            return Ok(false);
        }
        let mut recycled = false;
        while self.recycle() {
            recycled = true;
        }
        Ok(recycled
            || (!self.drained && self.force_drain())
            || self.rl.relieve()
            || self.force_drain()
            || self.rl.relieve_users(self.lines.free_chunks)
            || self.pad_one()?
            || self.give_up())
    }

    /// Sends everything buffered to media, so that lines can cool.
    fn force_drain(&mut self) -> bool {
        self.emit_trims();
        if self.rb.flush_point == self.rb.mem {
            return false;
        }
        self.rb.flush_all();
        self.stats.gc.forced_drains += 1;
        self.drained = true;
        true
    }

    /// Writes one unit of padding, so that the device serves what it still refuses to read.
    fn pad_one(&mut self) -> Result<bool, FtlError> {
        let row = self.geometry.total_units();
        let enough = (self.geometry.mw_cunits / self.geometry.ws_opt + 2) * row;
        if self.units.oldest().is_none() || self.rb.backlog() > 0 || self.pads >= enough {
            return Ok(false);
        }
        let Some(spot) = self.seek()? else { return Ok(false) };
        self.pads += 1;
        self.write_unit(0, spot)?;
        Ok(true)
    }

    /// No line can be freed any more: writes end, reads go on.
    fn give_up(&mut self) -> bool {
        self.stop(BlockError::ReadOnly("no line can be freed"));
        false
    }

    /// Serves no more bios and fails those under way.
    fn stop(&mut self, error: BlockError) {
        let at = self.now;
        for token in self.host.abandon().collect::<Vec<_>>() {
            let done = Done::new(at, Err(error.clone()));
            self.host.done.push(Completion { token, done });
        }
        self.stopped.get_or_insert(error);
    }

    /// Handles everything that completes before `now`, each at its own time, and then one round of
    /// what completes at `now`: what that causes at the same instant waits for the next call, so
    /// that media without timing leave the host its turn.
    fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.events.next_at().filter(|&at| at < now) {
            self.run_round(at);
        }
        self.run_round(now);
    }

    /// Handles the completions that are known to be due at `at`, then moves what can move.
    fn run_round(&mut self, at: Nanos) {
        self.now = self.now.max(at);
        let last = self.events.last();
        while let Some((at, what)) = self.events.pop_due(self.now, last) {
            self.needs_pump = true;
            self.handle(at, what);
        }
        if self.needs_pump {
            self.pump();
        }
    }

    fn handle(&mut self, at: Nanos, what: What) {
        match what {
            What::Unit(number, status) => self.unit_done(at, number, status),
            What::Erase(status) => self.erase_done(status),
            What::Smeta(pu, status) => self.smeta_done(pu, status),
            What::Emeta(pu, status) => self.emeta_done(pu, status),
            What::GcRead(number) => self.gc_arrived(number),
        }
    }

    /// Why this bio cannot be served any more, if so.
    #[inline]
    fn refusal(&self, op: Op) -> Option<BlockError> {
        let error = self.stopped.as_ref()?;
        let readable = op == Op::Read && matches!(error, BlockError::ReadOnly(_));
        (!readable).then(|| error.clone())
    }
}

impl<M: OpenChannel> BlockDevice for Pblk<M> {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    #[inline]
    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        if self.events.next_at().is_some_and(|at| at < now) {
            self.run_until(now);
        }
        self.now = self.now.max(now);
        if let Err(error) = bio.check(&self.caps) {
            return Submit::Done(Done::new(now, Err(error)));
        }
        if let Some(error) = self.refusal(bio.op) {
            return Submit::Done(Done::new(now, Err(error)));
        }
        if bio.op == Op::Read {
            return Submit::Done(self.read(&bio));
        }
        let submit = self.accept(bio, token);
        if self.needs_pump {
            self.pump();
        }
        submit
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        if self.host.done.is_empty() { self.events.next_at() } else { Some(self.now) }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_until(now);
        done.append(&mut self.host.done);
    }

    #[inline]
    fn prefetch_far(&self, lba: Lba) {
        self.l2p.prefetch(lba);
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        if lba.0 < self.l2p.len()
            && let Place::Media(at) = self.l2p.get(lba)
        {
            if op == Op::Read { self.media.prefetch(at) } else { self.lines.prefetch(at) }
        }
    }
}

fn caps(config: &Config, capacity: &Capacity) -> DeviceCaps {
    DeviceCaps {
        sectors: capacity.logical_sectors,
        atomic_sectors: 1,
        fua: Fua::Honoured,
        volatile_cache: true,
        discard_sectors: 1,
        discard_zeroes: true,
        max_sectors: u32::MAX,
        keeps_content: config.keep_content,
        ..DeviceCaps::default()
    }
}
