//! A zoned SSD: firmware on bare NAND that serves zones (NVMe Zoned Namespace command set 1.1), with an optional
//! page-mapped region before them. Zones lie as NVMeVirt has them (FAST '23, `zns_ftl.c`), with the promises of the
//! crash model in place of its silence about power cuts.
//!
//! | File | Part |
//! |---|---|
//! | `config.rs`, `shape.rs` | choices, and the sizes and places that follow |
//! | `front.rs` | the page-mapped region, which is a [`crate::DeviceFtl`] |
//! | `zone.rs`, `units.rs` | zones and the pages in their buffers; chunks of the parallel units |
//! | `port.rs` | bios to the zones, in order per zone |
//! | `admit.rs`, `program.rs` | writes into the buffers; programs, and what happens when one fails |
//! | `reset.rs`, `erase.rs` | resets and finished zones; erases |
//! | `read.rs` | reads |
//! | `flush.rs`, `savelog.rs` | what waits for durability; pages that are partly filled |
//! | `recovery/`, `residual.rs` | mounting what a power cut left; saving the buffers when power fails |
//! | `store.rs` | the zones as other firmware uses them |
//! | `report.rs`, `check.rs` | counts and sizes; the invariants, checked the slow way |
//!
//! Invariants:
//! - *Prefix.* After a power cut a zone holds a prefix of what was written since its last reset, and zeroes from
//!   there on. Everything that a flush or FUA covered is in it.
//! - *Generation.* Every page on media carries the number of the time between two resets in which it was written.
//!   The content of a sector never changes within one, so copies need no order among themselves.
//! - *First sector.* A zone holds something on media exactly when its first sector is there. So a reset is durable
//!   with one command: the erase of the chunk that holds it, or, where the save log may hold it too, a record.
//! - *Places.* A page's place follows from its address. A page that is partly filled cannot be programmed there;
//!   a flush writes its sectors to the save log, which is read by nothing but a mount.

mod admit;
mod check;
pub mod config;
mod counts;
mod erase;
mod flush;
mod front;
mod port;
mod program;
mod read;
mod recovery;
mod report;
mod reset;
mod residual;
mod savelog;
mod shape;
mod store;
mod units;
mod zone;

pub(crate) use read::Extent;

pub use config::{Config, Sizes, ZoneConfig};
pub use counts::{ZoneCounts, ZonedCounts};

use crate::common::events::Events;
use crate::error::FtlError;
use crate::kind::FtlRun;
use erase::After;
use flush::Waiters;
use front::Front;
use nandscape_block::zone::ZoneTable;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Fua, Lba, Op, Region, RegionKind,
    Reply, Submit, Token,
};
use nandscape_media::{Geometry, OpenChannel};
use nandscape_rt::Nanos;
use shape::Shape;
use std::collections::BTreeSet;
use units::Unit;
use zone::{PageId, PagePool, Zones};

/// What completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// The program of a page at its place.
    Programmed { page: PageId },
    /// A record of the save log: so many sectors of a page, which may be released by then.
    Saved { unit: u32, number: u64, page: PageId, stamp: u64, sectors: u32, zone: u32 },
    /// The record of a zone's reset.
    ResetSaved { unit: u32, number: u64, zone: u32 },
    /// All that a chunk held is elsewhere.
    Copied { unit: u32, chunk: u32, zone: u32 },
    /// An erase.
    Erased { unit: u32, chunk: u32, ok: bool, after: After },
}

/// A zoned SSD on the NAND `M`.
#[derive(Debug)]
pub struct ZonedFtl<M> {
    front: Front<M>,
    geometry: Geometry,
    config: Config,
    run: FtlRun,
    sizes: Sizes,
    shape: Shape,
    caps: DeviceCaps,
    table: ZoneTable,
    zones: Zones,
    pages: PagePool,
    units: Box<[Unit]>,
    /// Erased chunks of each unit that are kept for what a power-safe buffer holds when power fails.
    kept: u32,
    /// Zones with pages in the buffer or a mark that media lack.
    dirty: BTreeSet<u32>,
    /// Zones on which something waits.
    waiting: BTreeSet<u32>,
    waiters: Waiters,
    events: Events<Event>,
    now: Nanos,
    /// Completions not yet handed out.
    done: Vec<Completion>,
    /// Those of the page-mapped region, on their way.
    from_front: Vec<Completion>,
    stopped: Option<BlockError>,
    /// What waits may go on although nothing completed: a zone failed, or something new waits.
    stirred: bool,
    next_generation: u32,
    /// Number of the next record of the save log.
    next_record: u64,
    /// Keys and auxiliary values of the page that is being programmed.
    keys: Vec<u32>,
    aux: Vec<u32>,
    counts: ZonedCounts,
    /// Sectors of the zones that are on media.
    in_use: u64,
    in_use_sum: u128,
}

/// What the device can do.
fn caps(geometry: &Geometry, sizes: &Sizes, config: &Config, run: &FtlRun) -> DeviceCaps {
    let random = sizes.random_sectors;
    let zones = RegionKind::Zones(config.limits(geometry, sizes));
    let random_region = (random > 0).then(|| Region::new(0..random, RegionKind::Random));
    let zoned_region = Region::new(random..sizes.address_sectors(), zones);
    DeviceCaps {
        sectors: sizes.address_sectors(),
        atomic_sectors: 1,
        fua: Fua::Honoured,
        volatile_cache: !config.pages.buffer.power_safe || config.zone.buffer_bytes == 0,
        discard_sectors: u32::from(random > 0),
        discard_zeroes: true,
        max_sectors: u32::MAX,
        keeps_content: run.keep_content,
        live_sectors_max: random + u64::from(sizes.zones) * sizes.capacity,
        regions: random_region.into_iter().chain([zoned_region]).collect(),
        ..DeviceCaps::default()
    }
}

impl<M: OpenChannel> ZonedFtl<M> {
    /// Zones without anything, no chunk in any pool.
    fn assemble(
        front: Front<M>,
        geometry: Geometry,
        config: Config,
        sizes: Sizes,
        run: FtlRun,
        now: Nanos,
    ) -> Self {
        let shape = Shape::new(&geometry, &sizes, &config.zone);
        let caps = caps(&geometry, &sizes, &config, &run);
        let units = vec![Unit::default(); geometry.total_units() as usize];
        Self {
            table: ZoneTable::of(&caps),
            zones: Zones::new(&sizes, &shape),
            pages: PagePool::default(),
            units: units.into_boxed_slice(),
            kept: config.residual_chunks(&geometry, &sizes),
            dirty: BTreeSet::new(),
            waiting: BTreeSet::new(),
            waiters: Waiters::default(),
            events: Events::default(),
            done: Vec::new(),
            from_front: Vec::new(),
            stopped: None,
            stirred: false,
            next_generation: 1,
            next_record: 1,
            keys: Vec::with_capacity(shape.page as usize),
            aux: Vec::with_capacity(shape.page as usize),
            counts: ZonedCounts::default(),
            in_use: 0,
            in_use_sum: 0,
            front,
            geometry,
            config,
            run,
            sizes,
            shape,
            caps,
            now,
        }
    }

    /// The zone that an address lies in, and its place within it.
    #[inline]
    fn zone_of(&self, lba: Lba) -> (u32, u64) {
        let place = lba.0 - self.sizes.random_sectors;
        ((place / self.sizes.zone_sectors) as u32, place % self.sizes.zone_sectors)
    }

    /// The first sector of a zone.
    #[inline]
    const fn start_of(&self, zone: u32) -> Lba {
        Lba(self.sizes.random_sectors + zone as u64 * self.sizes.zone_sectors)
    }

    /// Serves no more bios, and fails what waits.
    fn stop(&mut self, error: BlockError) {
        for token in self.abandon() {
            let done = Done::new(self.now, Err(error.clone()));
            self.done.push(Completion { token, done });
        }
        self.stopped.get_or_insert(error);
    }

    /// Everything that waits is dropped; its tokens.
    fn abandon(&mut self) -> Vec<Token> {
        let mut tokens = self.waiters.abandon();
        for zone in std::mem::take(&mut self.waiting) {
            tokens.extend(self.zones.get_mut(zone).queue.drain(..).map(|request| request.token));
        }
        tokens
    }

    /// When the first of both parts has something to do.
    #[inline]
    fn next_at(&self) -> Option<Nanos> {
        match (self.front.next_event(), self.events.next_at()) {
            (Some(front), Some(zones)) => Some(front.min(zones)),
            (front, zones) => front.or(zones),
        }
    }

    /// Handles everything that completes up to `now`, each at its time.
    fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.next_at().filter(|&at| at <= now) {
            self.now = self.now.max(at);
            if let Err(error) = self.run_round() {
                self.stop(error.into());
            }
        }
        self.now = self.now.max(now);
    }

    /// Handles what completes now, then serves what waits.
    fn run_round(&mut self) -> Result<(), FtlError> {
        self.advance_front();
        let last = self.events.last();
        while let Some((_, event)) = self.events.pop_due(self.now, last) {
            self.completed(event)?;
        }
        if self.stopped.is_none() { self.pump() } else { Ok(()) }
    }

    /// Takes what the page-mapped region completed.
    fn advance_front(&mut self) {
        if self.front.next_event().is_none_or(|at| at > self.now) {
            return;
        }
        let mut completions = std::mem::take(&mut self.from_front);
        self.front.advance(self.now, &mut completions);
        for completion in completions.drain(..) {
            if !self.waiters.front_completed(&completion) {
                self.done.push(completion);
            }
        }
        self.from_front = completions;
    }

    /// Has an event happen when its time comes.
    fn after(&mut self, at: Nanos, event: Event) -> Result<(), FtlError> {
        if at <= self.now {
            return self.completed(event);
        }
        self.events.push(at, event);
        Ok(())
    }

    fn completed(&mut self, event: Event) -> Result<(), FtlError> {
        match event {
            Event::Programmed { page } => self.programmed(page),
            Event::Saved { unit, number, page, stamp, sectors, zone } => {
                let kept = self.pages.get_mut(page);
                if kept.stamp == stamp {
                    kept.saved = kept.saved.max(sectors);
                }
                self.zones.get_mut(zone).in_flight -= 1;
                self.record_completed(unit, number)
            }
            Event::ResetSaved { unit, number, zone } => {
                self.zones.get_mut(zone).resetting -= 1;
                self.record_completed(unit, number)
            }
            Event::Copied { unit, chunk, zone } => self.erase(unit, chunk, After::Retired(zone)),
            Event::Erased { unit, chunk, ok, after } => self.erased(unit, chunk, ok, after),
        }
    }

    /// Serves a bio that is fit for the device.
    fn serve(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let submit = self.serve_one(bio, token)?;
        if std::mem::take(&mut self.stirred) {
            self.pump()?;
        }
        Ok(submit)
    }

    fn serve_one(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let random = self.sizes.random_sectors;
        match bio.op {
            Op::Read => Ok(self.read(bio, token)),
            Op::Flush => self.flush(token),
            Op::Write if bio.lba.0 >= random => self.write_zone(bio, token),
            Op::Write => self.write_random(bio, token),
            Op::ZoneAppend(_) => self.write_zone(bio, token),
            Op::Zone(zone, action) => self.manage(zone, action, bio, token),
            Op::ZoneReport => {
                let infos = self.table.report(bio.lba, bio.sectors);
                let at = self.front.link().command(self.now);
                Ok(Submit::Done(Done::new(at, Ok(Reply::Zones(infos)))))
            }
            Op::Discard if bio.lba.0 + u64::from(bio.sectors) <= random => {
                Ok(self.submit_to_front(bio, token))
            }
            Op::Discard => Ok(self.refused(BlockError::Unsupported("discards of zones"))),
            Op::FetchUpcall | Op::AwaitUpcall | Op::CompleteUpcall(_) => {
                Ok(self.refused(BlockError::Unsupported("upcalls")))
            }
        }
    }

    /// An error at once.
    const fn refused(&self, error: BlockError) -> Submit {
        Submit::Done(Done::new(self.now, Err(error)))
    }

    /// Has the page-mapped region serve a bio.
    fn submit_to_front(&mut self, bio: Bio, token: Token) -> Submit {
        let now = self.now;
        match self.front.pages_mut() {
            Some(pages) => pages.submit(now, bio, token),
            None => self.refused(BlockError::Unsupported("addresses outside the regions")),
        }
    }
}

impl<M: OpenChannel> BlockDevice for ZonedFtl<M> {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.run_until(now);
        if let Some(error) = bio.check(&self.caps).err().or_else(|| self.stopped.clone()) {
            return self.refused(error);
        }
        match self.serve(bio, token) {
            Ok(submit) => submit,
            Err(error) => {
                let error = BlockError::from(error);
                self.stop(error.clone());
                self.refused(error)
            }
        }
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
        if let Some(pages) = self.front.pages().filter(|_| lba.0 < self.sizes.random_sectors) {
            pages.prefetch_far(lba);
        }
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        if let Some(pages) = self.front.pages().filter(|_| lba.0 < self.sizes.random_sectors) {
            pages.prefetch_near(op, lba);
        }
    }
}
