//! pblk: a host-level, log-structured FTL with a write buffer, lines over all parallel units, a rate
//! limiter and garbage collection (Linux `drivers/lightnvm`, 4.13 to 5.11), with the crash model's
//! promises in place of the kernel's.
//!
//! Rooms, named as the kernel's files: `rb` the ring, `map` table and valid counts, `write` the
//! writer, `read`, `gc` with the `collector` and its `copies`, `rl` the limiter, `supply` of lines, `recovery`. Beyond the kernel's:
//! `mapping` the cached map and `mapped` what waits for it,
//! `dispatch` what moves when something has happened, `forced` what is forced when nothing does, `host` admission and flushes, `trims` durable discards,
//! `trimmed` which of their records hides a sector, `dead` copies that media need not keep, `victims` the victim index,
//! `cpu` and `cpu_path` what all this costs the host, `shadow` durability, kept a second time.
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
mod collector;
pub mod config;
mod copies;
pub mod costs;
mod counts;
mod cpu;
mod cpu_path;
mod dead;
mod dispatch;
mod events;
mod flash;
mod flush;
mod flushes;
mod forced;
mod format;
mod frontiers;
mod ftl;
mod gc;
mod host;
mod ids;
mod intake;
mod layout;
mod map;
mod mapcache;
mod mapio;
mod mapline;
mod mapmount;
mod mapped;
mod mapping;
mod mapread;
mod mapshape;
mod mapstore;
mod pacing;
mod plan;
mod progress;
mod rb;
mod read;
mod recovery;
mod rl;
mod route;
mod rules;
mod shadow;
mod space;
pub mod stats;
mod supply;
mod trimmed;
mod units;
mod waiting;
mod write;

use crate::common::dead::DeadCopies;
use crate::common::events::Events;
use crate::common::l2p::MapEntry;
use crate::common::stripes::Stripes;
use crate::common::trims::TrimLog;
use crate::error::FtlError;
use crate::kind::FtlRun;
use crate::pblk::config::Config;
use build::{Parts, ample_sectors, caps};
pub use capacity::Capacity;
use collector::Collector;
use counts::PblkCounts;
use cpu::CpuQueues;
use events::EventKind;
use flash::{Flash, FlashCounts};
use flushes::Flushes;
use frontiers::Frontiers;
use intake::Buffers;
use mapping::Mapping;
use mapread::Reader;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Lba, Op, Submit, Token,
};
use nandscape_media::{ChunkState, Linked, OpenChannel};
use nandscape_rt::{Nanos, Shadow, Stream};
use progress::Progress;
use route::Router;
use rules::Rules;
use space::Space;
use supply::Supply;
use trimmed::Trimmed;
use waiting::Arrival;

/// Slots without which a buffer may not take even one copy, beside the two that trim records may need.
const SLOTS_NEEDED: u32 = 3;

/// A pblk on the open-channel SSD `M`. It runs on the host, so the link to the SSD is below it.
#[derive(Debug)]
pub struct Pblk<M> {
    flash: Flash<M>,
    buffers: Buffers,
    frontiers: Frontiers,
    collector: Collector,
    /// The map's cache and its blocks on media; none where all of it is in RAM.
    mapping: Option<Box<Mapping>>,
    /// Work on the host's cores; none where it costs nothing.
    cpu: Option<Box<CpuQueues>>,
    rules: Rules,
    progress: Progress,
    /// Completions not yet handed out.
    done: Vec<Completion>,
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
            pblk.flash.adopt_empty(&pblk.rules, line);
        }
        pblk.supply().limiter_update();
        pblk.open_first_line();
        match pblk.progress.stopped.take() {
            None => Ok(pblk),
            Some(error) => Err(error.into()),
        }
    }

    /// Prepares a line and waits for its start metadata, which some may refuse to take: from now on media
    /// always hold the size of the device.
    fn open_first_line(&mut self) {
        for _ in 0..self.rules.capacity.lines {
            self.supply().take_next(0);
            self.pump();
            while let Some(at) = self.next_at() {
                self.run_round(at);
            }
            if self.progress.stopped.is_some() || self.frontiers.is_prepared(0) {
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
        let Parts { layout, plan, buffers, l2p, lines, mapping } =
            match Parts::new(&geometry, (&config, &run), &capacity) {
                Ok(parts) => parts,
                Err(error) => return Err((media.into_inner(), error)),
            };
        let data = capacity.line_data_sectors;
        let rings = buffers.iter().map(|buffer| buffer.rb.size());
        let flash = Flash {
            victims: Stripes::new(config.victim, layout, geometry.chunks, data, run.seed),
            map_victims: Vec::new(),
            busy: vec![false; geometry.total_units() as usize].into_boxed_slice(),
            media,
            copy_ns: 0,
            geometry,
            now,
            next_seq: 1,
            l2p,
            layout,
            lines,
            dead: DeadCopies::default(),
            events: Events::default(),
            shadow: Shadow::default(),
            scratch: Vec::new(),
            seq_scratch: Vec::new(),
            counts: FlashCounts::default(),
        };
        let rules = Rules {
            ample_sectors: ample_sectors(&geometry, &capacity, &plan, rings.clone()),
            next_below: (data / 8).max(2 * capacity.ring_sectors),
            caps: caps(&config, &run, &capacity),
            capacity,
            config,
            run,
        };
        let frontiers = Frontiers {
            data: plan.frontiers() as usize,
            all: plan.make_frontiers(mapping.is_some()),
            instance: Stream::new(rules.run.seed, "ftl.instance").bits(),
            line_seq: 0,
        };
        let buffers = Buffers {
            slot_spacing: rings.max().map_or(0, u32::ilog2),
            router: Router::new(&rules.config, rules.run.seed, plan),
            all: buffers,
            writer: 0,
            trims: TrimLog::default(),
            trimmed: Trimmed::default(),
            flushes: Flushes::default(),
        };
        Ok(Self {
            stats: PblkCounts::new(geometry.ws_opt, buffers.router.plan().roles()),
            flash,
            buffers,
            frontiers,
            collector: Collector::default(),
            mapping,
            cpu: None,
            rules,
            progress: Progress::default(),
            done: Vec::new(),
            in_use_sum: 0,
        })
    }

    /// What decides who may write how much.
    #[inline]
    fn space(&self) -> Space<'_, M> {
        let Self { flash, buffers, frontiers, collector, rules, .. } = self;
        Space { flash, buffers, frontiers, collector, rules }
    }

    /// What takes part in the life of lines.
    #[inline]
    fn supply(&mut self) -> Supply<'_, M> {
        let Self { flash, buffers, frontiers, collector, rules, stats, .. } = self;
        Supply { flash, buffers, frontiers, collector, rules, stats }
    }

    /// The same beside the cached map and the host's cores.
    fn split(&mut self) -> (Supply<'_, M>, Option<&mut Mapping>, Option<&mut CpuQueues>) {
        let Self { flash, buffers, frontiers, collector, rules, stats, mapping, cpu, .. } = self;
        let supply = Supply { flash, buffers, frontiers, collector, rules, stats };
        (supply, mapping.as_deref_mut(), cpu.as_deref_mut())
    }

    /// Time after which a write that found space in a ring is acknowledged. Where the host's CPU is
    /// charged, copying took its time of a core already ([`costs::CpuCosts::copy_sector_ns`]).
    #[inline]
    fn copy_in(&self, sectors: u32) -> Nanos {
        if self.cpu.is_some() { Nanos::ZERO } else { self.flash.copy_out(sectors) }
    }

    /// Sizes.
    pub const fn capacity(&self) -> &Capacity {
        &self.rules.capacity
    }

    /// Begins to count from nothing.
    fn reset_stats(&mut self) {
        self.flash.counts = FlashCounts::default();
        self.stats =
            PblkCounts::new(self.flash.geometry.ws_opt, self.buffers.router.plan().roles());
        self.in_use_sum = 0;
        if let Some(mapping) = &mut self.mapping {
            mapping.reset_counts();
        }
        if let Some(host) = &mut self.cpu {
            host.reset_counts();
        }
    }

    /// Serves no more bios, but for reads where writes alone end, and fails those in flight.
    pub(super) fn stop(&mut self, error: BlockError) {
        let at = self.flash.now;
        if matches!(error, BlockError::ReadOnly(_)) {
            let Self { flash, buffers, stats, done, mapping, .. } = self;
            if let Some(mapping) = mapping {
                mapping.serve_waiting(Reader { flash, buffers, stats }, done);
            }
            self.serve_outside();
        }
        for token in self.abandon() {
            let done = Done::new(at, Err(error.clone()));
            self.done.push(Completion { token, done });
        }
        self.progress.stopped.get_or_insert(error);
    }

    /// When the FTL has something to do next, apart from handing out completions.
    #[inline]
    fn next_at(&self) -> Option<Nanos> {
        let event = self.flash.events.next_at();
        let Some(cpu) = &self.cpu else { return event };
        event.into_iter().chain(cpu.next_start()).min()
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
        self.flash.now = self.flash.now.max(at);
        let last = self.flash.events.last();
        while let Some((at, what)) = self.flash.events.pop_due(self.flash.now, last) {
            self.progress.needs_pump = true;
            self.handle(at, what);
        }
        if let Some(cpu) = &mut self.cpu {
            cpu.run(&mut self.flash, &mut self.buffers, &self.rules);
        }
        if self.progress.needs_pump {
            self.pump();
        }
    }

    fn handle(&mut self, at: Nanos, what: EventKind) {
        match what {
            EventKind::Unit(buffer, number, status) => self.unit_done(at, buffer, number, status),
            EventKind::Erase(frontier, status) => {
                self.frontiers.erase_done(&mut self.flash, frontier, status)
            }
            EventKind::Smeta(frontier, pu, status) => {
                self.frontiers.smeta_done(&mut self.flash, frontier, pu, status)
            }
            EventKind::Emeta(frontier, pu, status) => {
                if let Some(id) = self.frontiers.emeta_done(&mut self.flash, frontier, pu, status) {
                    self.supply().line_closed(id);
                }
            }
            EventKind::GcRead(number) => self.collector.arrived(number),
            EventKind::GcTimer => self.collector.thread.timer(),
            EventKind::MapLoad(block) => self.map_loaded(block),
            EventKind::MapMerge(number) => {
                if let Some(mapping) = &mut self.mapping {
                    mapping.send_job(&self.flash, &self.buffers, number);
                }
            }
            EventKind::MapUnit(number, status) => self.map_unit_done(number, status),
            EventKind::MapCopies => {
                if let Some(mapping) = &mut self.mapping {
                    mapping.store.copies_arrived();
                }
            }
            EventKind::Core(core) => self.core_done(core),
        }
    }

    /// Why this bio cannot be served any more, if so.
    #[inline]
    fn refusal(&self, op: Op) -> Option<BlockError> {
        let error = self.progress.stopped.as_ref()?;
        let readable = op == Op::Read && matches!(error, BlockError::ReadOnly(_));
        (!readable).then(|| error.clone())
    }
}

impl<M: OpenChannel> BlockDevice for Pblk<M> {
    fn caps(&self) -> &DeviceCaps {
        &self.rules.caps
    }

    #[inline]
    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        if self.next_at().is_some_and(|at| at < now) {
            self.run_until(now);
        }
        self.flash.now = self.flash.now.max(now);
        if let Err(error) = bio.check(&self.rules.caps) {
            return Submit::Done(Done::new(now, Err(error)));
        }
        if let Some(cpu) = &mut self.cpu {
            cpu.enter(self.flash.now, bio, token);
            cpu.run(&mut self.flash, &mut self.buffers, &self.rules);
            return Submit::Pending;
        }
        let entered = Arrival::at(self.flash.now);
        let submit = self.serve(bio, token, entered);
        if self.progress.needs_pump {
            self.pump();
        }
        submit
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        if self.done.is_empty() { self.next_at() } else { Some(self.flash.now) }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_until(now);
        done.append(&mut self.done);
    }

    #[inline]
    fn prefetch_far(&self, lba: Lba) {
        self.flash.l2p.prefetch(lba);
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        if lba.0 < self.flash.l2p.len()
            && let MapEntry::Flash(at) = self.flash.l2p.get(lba)
        {
            if op == Op::Read {
                self.flash.media.prefetch(at)
            } else {
                self.flash.lines.prefetch(at)
            }
        }
    }
}
