//! A conventional SSD: firmware on bare NAND, below the host link. Page-mapped, with several FTL instances, a
//! write buffer with early completion, and collection ahead of the host, as NVMeVirt models Samsung's 970 Pro
//! (FAST '23, `conv_ftl.c`), with a controller's schedule of collection, and with the promises of the crash model in
//! place of its silence about power cuts.
//!
//! | File | Part |
//! |---|---|
//! | `config.rs` | choices, and the sizes that follow |
//! | `port.rs`, `read.rs` | bios in order: admission to the buffer, flush, FUA; reads |
//! | `discard.rs` | discards: records, and what waits for them |
//! | `buffer.rs` | pages that are being filled or programmed, and their share of the buffer |
//! | `region/pages.rs` | the table: mapping units, and the instance of each |
//! | `region/partitions.rs`, `region/interval/` | tables and interval maps of the SSD of IPLFS |
//! | `interval.rs` | the SSD of IPLFS: choices and sizes |
//! | `flash.rs` | media, the tables of what is where on them, and the clock: the side that knows no buffer |
//! | `instance.rs`, `flight.rs` | erase units, write points and places; what is in flight |
//! | `program.rs` | programs, and what becomes valid by them |
//! | `dead.rs` | copies that nothing returns again, which media need not keep |
//! | `space.rs`, `gc.rs`, `copying.rs` | places for the host; collection; a victim that is being copied |
//! | `recovery.rs`, `save.rs` | mounting what a power cut left; saving the buffer when power fails |
//! | `check.rs`, `shadow.rs` | the invariants, checked the slow way; and durability, kept a second time |
//!
//! Invariants:
//! - *Places before data.* A page gets its place on media when it is opened. So everything in the buffer
//!   can be programmed without further space, and what waits for durability never waits for space.
//! - *Space.* The host leaves a reserve of erase units of each instance free. A collection is begun
//!   only if its copies fit beside those of victims in flight, and after it its victim waits for its erase. So an instance always has a free
//!   erase unit or one that will be free without any other, and there is always a victim that gains more than
//!   padding costs (`space.rs`, `config.rs`).
//! - *Erase rule.* An erase unit is erased only when everything that superseded its sectors is durable. A sector is
//!   superseded by a write of the same instance or by a trim record, so an erase unit has two gates, each a
//!   sequence that has to be passed, and does not wait for the pages of other instances.
//! - *Sequence.* Every sector on media carries a global sequence; of two copies of a mapping unit the one
//!   with the higher sequence is the newer one. A copy for collection gets a new sequence when the
//!   table still points at its source, so none is older than a write that it would hide.
//! - *Power-safe buffer.* What the host has in the buffer counts as durable. When power fails the residual energy
//!   programs it into an erase unit per instance that is kept erased for that.

mod buffer;
mod check;
pub mod config;
mod copying;
mod counts;
mod dead;
mod discard;
mod flash;
mod flight;
mod gc;
mod instance;
pub mod interval;
mod port;
mod program;
mod read;
mod recovery;
mod region;
mod report;
mod save;
mod shadow;
mod space;

pub(crate) use config::check_media;
pub use config::{BufferConfig, Config, Flush, Schedule, Sizes};
pub use counts::{DeviceCounts, DeviceReport, IntervalReport};

use crate::common::events::Events;
use crate::common::firmware::{Firmware, Walk};
use crate::common::lines::Lines;
use crate::common::shadow::Ledger;
use crate::common::stripes::Stripes;
use crate::error::FtlError;
use crate::kind::{FtlRun, OmittedRule};
use buffer::WriteBuffer;
use discard::Discards;
use flash::{Flash, Rules};
use instance::{Instance, Stream, WritePoint};
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Fua, Lba, Op, Submit, Token,
};
use nandscape_media::{Geometry, HostLink, LinkTiming, OpenChannel};
use nandscape_rt::{Nanos, Shadow};
use port::Port;
use region::RegionMap;
use region::pages::Pages;

/// What makes a device, beside its media.
struct Plan<P> {
    config: Config,
    sizes: Sizes,
    caps: DeviceCaps,
    map: P,
}

/// An SSD on the NAND `M`, with the map `P` of its address space: a conventional one where nothing else is said.
#[derive(Debug)]
pub struct DeviceFtl<M, P = Pages> {
    flash: Flash<M, P>,
    instances: Box<[Instance]>,
    buffer: WriteBuffer,
    port: Port,
    discards: Discards,
    shadow: Shadow<Ledger<(usize, Stream)>>,
    /// Completions not yet handed out.
    done: Vec<Completion>,
    stopped: Option<BlockError>,
}

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Everything empty, no erase unit on any list.
    fn assemble(
        (media, geometry): (M, Geometry),
        plan: Result<Plan<P>, FtlError>,
        (run, link): (FtlRun, LinkTiming),
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let parts = plan.and_then(|plan| {
            let layout = plan.config.layout(&geometry)?;
            let lines = Lines::new(&geometry, layout, plan.sizes.line_sectors);
            Ok((plan, layout, lines.ok_or(FtlError::AddressSpace)?))
        });
        let (Plan { config, sizes, caps, map }, layout, lines) = match parts {
            Ok(parts) => parts,
            Err(error) => return Err((media, error)),
        };
        let instances = config.instances;
        let credits = i64::from(sizes.line_sectors);
        let instance = |_| Instance { credits, ..Instance::default() };
        let Sizes { line_sectors, .. } = sizes;
        let caps = DeviceCaps { max_sectors: link.max_sectors(), ..caps };
        let victims = Stripes::new(config.victim, layout, geometry.chunks, line_sectors, run.seed);
        Ok(Self {
            instances: (0..instances).map(instance).collect(),
            buffer: WriteBuffer::new(&sizes, instances),
            port: Port::default(),
            discards: Discards::new(&sizes),
            shadow: Shadow::default(),
            done: Vec::new(),
            stopped: None,
            flash: Flash {
                media,
                link: HostLink::new(link),
                firmware: Firmware::new(config.map_access_ns),
                walk: Walk::default(),
                flush: Flush::Program,
                rules: Rules {
                    geometry,
                    levels: config.levels(&sizes),
                    config,
                    run,
                    sizes,
                    caps,
                    layout,
                },
                map,
                lines,
                victims,
                events: Events::default(),
                now,
                settled: now,
                next_seq: 1,
                lacking: 0,
                counts: DeviceCounts::default(),
            },
        })
    }

    /// Everything written before this sequence is durable in an instance. What the host has in a buffer that survives
    /// power cuts is durable; copies leave the buffer when their program is submitted, and are not.
    fn durable_in(&self, instance: usize) -> u64 {
        let Instance { host, gc, .. } = &self.instances[instance];
        let oldest_of =
            |point: &WritePoint| point.flight.oldest().or_else(|| self.buffer.filling(point.page));
        let host = if self.flash.rules.config.keeps_buffer() { None } else { oldest_of(host) };
        let omitted = self.flash.rules.run.omits(OmittedRule::CopyCompletion);
        let gc = if omitted { self.buffer.filling(gc.page) } else { oldest_of(gc) };
        host.into_iter().chain(gc).min().unwrap_or(u64::MAX)
    }

    /// Serves no more bios, but for reads where writes alone end, and fails what waits.
    fn stop(&mut self, error: BlockError) {
        for token in self.port.abandon() {
            let done = Done::new(self.flash.now, Err(error.clone()));
            self.done.push(Completion { token, done });
        }
        self.stopped.get_or_insert(error);
    }

    /// Whether a command has found that power is off.
    pub(crate) fn has_lost_power(&self) -> bool {
        self.stopped == Some(BlockError::PowerLost)
    }

    /// Handles everything that completes up to `now`, each at its time.
    fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.flash.events.next_at().filter(|&at| at <= now) {
            self.flash.now = self.flash.now.max(at);
            self.flash.tick();
            if let Err(error) = self.run_round() {
                self.stop(error.into());
            }
        }
        self.flash.now = self.flash.now.max(now);
        self.flash.tick();
    }

    /// Handles what completes now, then serves what waits.
    fn run_round(&mut self) -> Result<(), FtlError> {
        let last = self.flash.events.last();
        while let Some((_, event)) = self.flash.events.pop_due(self.flash.now, last) {
            self.completed(event)?;
        }
        if self.stopped.is_none() { self.pump() } else { Ok(()) }
    }

    /// Why this bio cannot be served any more, if so.
    #[inline]
    fn refusal(&self, op: Op) -> Option<BlockError> {
        let error = self.stopped.as_ref()?;
        let readable = op == Op::Read && matches!(error, BlockError::ReadOnly(_));
        (!readable).then(|| error.clone())
    }
}

/// What a conventional SSD with these choices is.
fn plan(config: Config, geometry: &Geometry, run: &FtlRun) -> Result<Plan<Pages>, FtlError> {
    let sizes = config.sizes(geometry)?;
    let end = geometry.ppa_end();
    let map = Pages::new(sizes.logical_sectors, sizes.unit, config.instances, end);
    let map = map.ok_or(FtlError::AddressSpace)?;
    let caps = caps(&sizes, &config, run);
    Ok(Plan { config, sizes, caps, map })
}

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Everything counted since the last reset.
    pub const fn counts(&self) -> &DeviceCounts {
        &self.flash.counts
    }

    /// What it stands on, and the link above it: lent to what shares them.
    #[inline]
    pub(crate) const fn media_and_link(&mut self) -> (&mut M, &mut HostLink) {
        (&mut self.flash.media, &mut self.flash.link)
    }

    /// The core of its firmware.
    #[inline]
    pub(crate) const fn firmware(&self) -> &Firmware {
        &self.flash.firmware
    }

    /// The same, for what else its firmware does.
    #[inline]
    pub(crate) const fn firmware_mut(&mut self) -> &mut Firmware {
        &mut self.flash.firmware
    }
}

/// What the device can do.
fn caps(sizes: &Sizes, config: &Config, run: &FtlRun) -> DeviceCaps {
    DeviceCaps {
        sectors: sizes.logical_sectors,
        atomic_sectors: 1,
        fua: Fua::Honoured,
        volatile_cache: !config.keeps_buffer(),
        discard_sectors: 1,
        discard_zeroes: true,
        keeps_content: run.keep_content,
        ..DeviceCaps::default()
    }
}

impl<M: OpenChannel> DeviceFtl<M> {
    /// What only a conventional SSD counts.
    #[must_use]
    pub const fn own_counts(&self) -> DeviceReport {
        self.flash.counts.own
    }
}

impl<M: OpenChannel, P: RegionMap> BlockDevice for DeviceFtl<M, P> {
    fn caps(&self) -> &DeviceCaps {
        &self.flash.rules.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.run_until(now);
        if let Some(error) =
            bio.check(&self.flash.rules.caps).err().or_else(|| self.refusal(bio.op))
        {
            return Submit::Done(Done::new(now, Err(error)));
        }
        if bio.op == Op::Read {
            return Submit::Done(self.read(&bio));
        }
        match self.enter(bio, token) {
            Ok(submit) => submit,
            Err(error) => {
                let error = BlockError::from(error);
                self.stop(error.clone());
                Submit::Done(Done::new(now, Err(error)))
            }
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        if self.done.is_empty() { self.flash.events.next_at() } else { Some(self.flash.now) }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_until(now);
        done.append(&mut self.done);
    }

    #[inline]
    fn prefetch_far(&self, lba: Lba) {
        self.flash.map.prefetch(Lba(self.flash.map.unit_of(lba)));
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        if lba.0 < self.flash.rules.caps.sectors
            && let Some(at) = self.flash.map.on_media(lba)
        {
            if op == Op::Read {
                self.flash.media.prefetch(at)
            } else {
                self.flash.lines.prefetch(at)
            }
        }
    }
}
