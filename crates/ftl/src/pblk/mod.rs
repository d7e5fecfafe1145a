//! pblk: a host-level, log-structured FTL with a write buffer, lines over all parallel units, a rate
//! limiter and garbage collection (Linux `drivers/lightnvm`, 4.13 to 5.11), with the crash model's
//! promises in place of the kernel's.
//!
//! Rooms, named as the kernel's files: `rb` the ring, `map` table and valid counts, `write` the
//! writer, `read`, `gc`, `rl` the limiter, `line` and `open` lines, `recovery`. Beyond the kernel's:
//! `dispatch` what moves when something has happened, `forced` what is forced when nothing does, `host` admission and flushes, `trims` durable discards,
//! `trimmed` which of their records hides a sector, `dead` copies that media need not keep, `victims` the victim index,
//! `cpu` and `cpu_path` what all this costs the host.
//!
//! The FTL is a state machine: it acts when a bio comes in or a media command completes, and then
//! pumps until nothing moves. Two rules keep acknowledged data safe with any number of open lines:
//! every sector carries a global write sequence and recovery replays by it; and a line is erased only
//! when everything that superseded its content is durable.

mod blind;
mod buffers;
mod build;
mod capacity;
mod check;
pub mod config;
pub mod costs;
mod counts;
mod cpu;
mod cpu_path;
mod dead;
mod dispatch;
mod events;
mod file_flush;
mod flush;
mod forced;
mod format;
mod ftl;
mod gc;
mod host;
mod ids;
mod layout;
mod map;
mod mapcache;
mod mapline;
mod mapmount;
mod mapping;
mod mapread;
mod mapshape;
mod mapstore;
mod open;
mod pacing;
mod plan;
mod rb;
mod read;
mod recovery;
mod rest;
mod rl;
mod route;
mod space;
pub mod stats;
mod trimmed;
mod units;
mod waiting;
mod write;

pub use capacity::Capacity;

use crate::common::dead::DeadCopies;
use crate::common::events::Events;
use crate::common::l2p::{L2p, MapEntry};
use crate::common::layout::Layout;
use crate::common::lines::{LineState, Lines};
use crate::common::stripes::Stripes;
use crate::common::trims::TrimLog;
use crate::error::FtlError;
use crate::kind::FtlRun;
use crate::pblk::config::Config;
use buffers::Buffer;
use build::{Parts, ample_sectors, caps};
use counts::PblkCounts;
use cpu::CpuQueues;
use events::EventKind;
use flush::Flushes;
use forced::Forced;
use gc::Gc;
use ids::BufferId;
use mapping::Mapping;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Lba, Op, SectorData, Submit, Token,
};
use nandscape_media::{ChunkState, Geometry, Linked, OpenChannel};
use nandscape_rt::{Nanos, Stream};
use open::Frontier;
use pacing::Thread;
use rb::Ring;
use route::Router;
use trimmed::Trimmed;
use waiting::Arrival;

/// Slots without which a buffer may not take even one copy, beside the two that trim records may need.
const SLOTS_NEEDED: u32 = 3;

/// A pblk on the open-channel SSD `M`. It runs on the host, so the link to the SSD is below it.
#[derive(Debug)]
pub struct Pblk<M> {
    media: Linked<M>,
    /// What copying a sector in the host's memory takes.
    copy_ns: u64,
    geometry: Geometry,
    capacity: Capacity,
    config: Config,
    run: FtlRun,
    caps: DeviceCaps,
    now: Nanos,
    /// Which formatting of the device this is.
    instance: u64,
    /// Order number of the next line to be opened.
    line_seq: u64,
    /// Global write sequence of the next entry of any buffer.
    next_seq: u64,
    l2p: L2p,
    layout: Layout,
    buffers: Vec<Buffer>,
    /// The ring of a slot is found by shifting its number by so many bits.
    slot_spacing: u32,
    router: Router,
    /// The buffer that may write first next time.
    writer: usize,
    frontiers: Vec<Frontier>,
    /// A frontier prepares its next line when the open one has so few sectors left.
    next_below: u32,
    lines: Lines,
    victims: Stripes,
    /// The map's cache and its blocks on media; none where all of it is in RAM.
    mapping: Option<Box<Mapping>>,
    /// Work on the host's cores; none where it costs nothing.
    host: Option<Box<CpuQueues>>,
    /// Parallel units with a write in flight, or with one that is being built.
    busy: Box<[bool]>,
    gc: Gc,
    thread: Thread,
    trims: TrimLog,
    trimmed: Trimmed,
    /// Copies that were superseded and hold something that media can drop.
    dead: DeadCopies,
    flushes: Flushes,
    /// Completions not yet handed out.
    done: Vec<Completion>,
    events: Events<EventKind>,
    /// Something may be able to move.
    needs_pump: bool,
    /// A drain was forced since a waiting bio was last admitted.
    drained: bool,
    /// Padding units written since anything else moved.
    pads: u32,
    forced: Forced,
    /// With this many writable sectors, and no victim, any user data in the buffers leaves enough.
    ample_sectors: u64,
    /// Why no more bios are served: all of them after a power loss or a defect, only writes when
    /// no line can be freed.
    stopped: Option<BlockError>,
    scratch: Vec<SectorData>,
    seq_scratch: Vec<u32>,
    stats: PblkCounts,
    /// Sum over user sectors of `in_use` when they were accepted.
    in_use_sum: u128,
}

impl<M: OpenChannel> Pblk<M> {
    /// Makes a fresh device for `run`. Chunks that are not erased are erased first.
    ///
    /// # Errors
    /// The choice that does not fit the geometry, or that power went off.
    pub fn format(mut media: Linked<M>, config: Config, run: FtlRun) -> Result<Self, FtlError> {
        let geometry = *media.geometry();
        let mut now = Nanos::ZERO;
        let mut good_chunks = 0;
        for chunk in geometry.all_chunks() {
            if matches!(media.chunk(chunk).state, ChunkState::Open | ChunkState::Closed) {
                now = now.max(media.reset(Nanos::ZERO, Nanos::ZERO, chunk)?.at);
            }
            good_chunks += u64::from(media.chunk(chunk).state == ChunkState::Free);
        }
        let capacity = Capacity::of(&geometry, &config, good_chunks)?;
        let made = Self::assemble(media, (config, run), capacity, now);
        let mut pblk = made.map_err(|(_, error)| error)?;
        for line in 0..capacity.lines {
            pblk.adopt_empty(line);
        }
        pblk.limiter_update();
        pblk.open_first_line();
        match pblk.stopped.take() {
            None => Ok(pblk),
            Some(error) => Err(error.into()),
        }
    }

    /// Prepares a line and waits for its start metadata, which some may refuse to take: from now on media
    /// always hold the size of the device.
    fn open_first_line(&mut self) {
        for _ in 0..self.capacity.lines {
            self.take_next(0);
            self.pump();
            while let Some(at) = self.next_at() {
                self.run_round(at);
            }
            if self.stopped.is_some() || self.is_prepared(0) {
                return self.reset_stats();
            }
        }
        self.stop(BlockError::ReadOnly("no line takes start metadata".into()));
    }

    /// Everything empty, no line on any list.
    fn assemble(
        media: Linked<M>,
        (config, run): (Config, FtlRun),
        capacity: Capacity,
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let geometry = *media.geometry();
        let parts = match Parts::new(&geometry, (&config, &run), &capacity) {
            Ok(parts) => parts,
            Err(error) => return Err((media.into_inner(), error)),
        };
        let Parts { layout, plan, buffers, l2p, mut lines, mapping } = parts;
        lines.kept = capacity.map_lines;
        let roles = plan.clone();
        let roles = roles.roles();
        let data = capacity.line_data_sectors;
        let rings = buffers.iter().map(|buffer| buffer.rb.size());
        Ok(Self {
            slot_spacing: rings.clone().max().map_or(0, u32::ilog2),
            ample_sectors: ample_sectors(&geometry, &capacity, &plan, rings.map(u64::from).sum()),
            next_below: (data / 8).max(2 * capacity.ring_sectors),
            frontiers: plan.make_frontiers(mapping.is_some()),
            router: Router::new(&config, run.seed, plan),
            victims: Stripes::new(config.victim, layout, geometry.chunks, data, run.seed),
            caps: caps(&config, &run, &capacity),
            instance: Stream::new(run.seed, "ftl.instance").bits(),
            line_seq: 0,
            next_seq: 1,
            l2p,
            layout,
            buffers,
            writer: 0,
            lines,
            mapping,
            host: None,
            busy: vec![false; geometry.total_units() as usize].into_boxed_slice(),
            gc: Gc::default(),
            thread: Thread::default(),
            trims: TrimLog::default(),
            trimmed: Trimmed::default(),
            dead: DeadCopies::default(),
            flushes: Flushes::default(),
            done: Vec::new(),
            events: Events::default(),
            needs_pump: false,
            drained: false,
            pads: 0,
            forced: Forced::default(),
            stopped: None,
            scratch: Vec::new(),
            seq_scratch: Vec::new(),
            stats: PblkCounts::new(geometry.ws_opt, roles),
            in_use_sum: 0,
            media,
            copy_ns: 0,
            geometry,
            capacity,
            config,
            run,
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
        let good =
            |index: &u32| self.media.chunk(self.chunk_at(id, *index)).state != ChunkState::Offline;
        let chunks = (0..self.layout.width).filter(good).count() as u32;
        let meta = self.capacity.smeta_sectors + self.capacity.emeta_sectors;
        let line = self.lines.get_mut(id);
        line.chunks = chunks;
        line.capacity = (chunks * self.geometry.sectors).saturating_sub(meta);
    }

    /// Time after which a write that found space in a ring is acknowledged. Where the host's CPU is
    /// charged, copying took its time of a core already ([`costs::CpuCosts::copy_sector_ns`]).
    #[inline]
    fn copy_in(&self, sectors: u32) -> Nanos {
        if self.host.is_some() { Nanos::ZERO } else { self.copy_out(sectors) }
    }

    /// Time that copying sectors out of a ring takes.
    #[inline]
    fn copy_out(&self, sectors: u32) -> Nanos {
        Nanos(self.copy_ns * u64::from(sectors))
    }

    /// Sizes.
    pub const fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Begins counting anew.
    fn reset_stats(&mut self) {
        self.stats = PblkCounts::new(self.geometry.ws_opt, self.router.plan().roles());
        self.in_use_sum = 0;
        if let Some(mapping) = &mut self.mapping {
            mapping.reset_counts();
        }
        if let Some(host) = &mut self.host {
            host.reset_counts();
        }
    }

    /// Serves no more bios, but for reads where writes alone end, and fails those under way.
    pub(super) fn stop(&mut self, error: BlockError) {
        let at = self.now;
        if matches!(error, BlockError::ReadOnly(_)) {
            self.serve_waiting();
            self.serve_outside();
        }
        for token in self.abandon() {
            let done = Done::new(at, Err(error.clone()));
            self.done.push(Completion { token, done });
        }
        self.stopped.get_or_insert(error);
    }

    /// When the FTL has something to do next, apart from handing out completions.
    #[inline]
    fn next_at(&self) -> Option<Nanos> {
        let event = self.events.next_at();
        if self.host.is_none() {
            return event;
        }
        event.into_iter().chain(self.next_core_start()).min()
    }

    /// Handles everything that completes before `now`, each at its own time, and then one round of
    /// what completes at `now`: what that causes at the same instant waits for the next call, so
    /// that media without timing leave the host its turn.
    fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.next_at().filter(|&at| at < now) {
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
        if self.host.is_some() {
            self.run_cores();
        }
        if self.needs_pump {
            self.pump();
        }
    }

    fn handle(&mut self, at: Nanos, what: EventKind) {
        match what {
            EventKind::Unit(buffer, number, status) => self.unit_done(at, buffer, number, status),
            EventKind::Erase(frontier, status) => self.erase_done(frontier, status),
            EventKind::Smeta(frontier, pu, status) => self.smeta_done(frontier, pu, status),
            EventKind::Emeta(frontier, pu, status) => self.emeta_done(frontier, pu, status),
            EventKind::GcRead(number) => self.gc_arrived(number),
            EventKind::GcTimer => self.thread_timer(),
            EventKind::MapLoad(block) => self.map_loaded(block),
            EventKind::MapMerge(number) => self.send_job(number),
            EventKind::MapUnit(number, status) => self.map_unit_done(number, status),
            EventKind::MapCopies => self.map_copies_arrived(),
            EventKind::Core(core) => self.core_done(core),
        }
    }

    /// The ring that a slot belongs to.
    #[inline]
    fn ring_of(&self, slot: u32) -> &Ring {
        &self.buffers[(slot >> self.slot_spacing) as usize].rb
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
        if self.next_at().is_some_and(|at| at < now) {
            self.run_until(now);
        }
        self.now = self.now.max(now);
        if let Err(error) = bio.check(&self.caps) {
            return Submit::Done(Done::new(now, Err(error)));
        }
        if self.host.is_some() {
            return self.queue_on_core(bio, token);
        }
        let entered = Arrival::at(self.now);
        let submit = self.serve(bio, token, entered);
        if self.needs_pump {
            self.pump();
        }
        submit
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        if self.done.is_empty() { self.next_at() } else { Some(self.now) }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_until(now);
        done.append(&mut self.done);
    }

    #[inline]
    fn prefetch_far(&self, lba: Lba) {
        self.l2p.prefetch(lba);
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        if lba.0 < self.l2p.len()
            && let MapEntry::Flash(at) = self.l2p.get(lba)
        {
            if op == Op::Read { self.media.prefetch(at) } else { self.lines.prefetch(at) }
        }
    }
}
