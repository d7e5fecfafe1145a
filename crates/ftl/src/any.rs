//! Every kind of FTL behind one type. An enum and not `dyn`: a bio of 4 KiB costs one well-predicted branch,
//! the kinds are compiled once, and a kind that is missing somewhere does not compile.

use crate::common::victims::Victim;
use crate::coupled::{self, CoupledFtl};
use crate::detail::Detail;
use crate::device::interval::{self, IntervalFtl};
use crate::device::{self, DeviceFtl, Flush};
use crate::error::FtlError;
use crate::face::{Attach, CpuSpan, DeviceSize, EraseUnit, Ftl, MemoryUse, Rest};
use crate::kind::{FtlKind, FtlRun, Side};
use crate::pblk::config::{Config, Discard, MapKind};
use crate::pblk::{Capacity, Pblk};
use crate::report::{FtlReport, SectorCounts};
use crate::zoned::{self, ZonedFtl};
use nandscape_block::{
    Attention, Bio, BlockDevice, Completion, DeviceCaps, Lba, Op, SECTOR_BYTES, Submit, Token,
};
use nandscape_media::{Geometry, HostLink, LinkTiming, Linked, OpenChannel};
use nandscape_rt::Nanos;

/// How victims are chosen, where theory has a law for their write amplification under uniform random writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VictimLaw {
    /// The fewest valid sectors.
    Greedy,
    /// The one that was closed first.
    Fifo,
}

/// The choices that make an FTL. Equal choices make equal devices; what a run decides is an [`FtlRun`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FtlConfig {
    /// A pblk.
    Pblk(Config),
    /// A conventional SSD.
    Device(device::Config),
    /// A zoned SSD.
    Zoned(zoned::Config),
    /// An SSD with interval maps.
    Interval(interval::Config),
    /// A coupled SSD.
    Coupled(coupled::Config),
}

impl FtlConfig {
    /// The kind that it makes.
    #[must_use]
    pub const fn kind(&self) -> FtlKind {
        match self {
            Self::Pblk(_) => FtlKind::Pblk,
            Self::Device(_) => FtlKind::PageMap,
            Self::Zoned(_) => FtlKind::Zoned,
            Self::Interval(_) => FtlKind::Interval,
            Self::Coupled(_) => FtlKind::Coupled,
        }
    }

    /// Where that runs.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.kind().side()
    }

    /// The size of a device of this shape, all of whose chunks are good. The geometry must make sense.
    ///
    /// # Errors
    /// The key of the choice that does not fit, and why.
    pub fn check(&self, geometry: &Geometry) -> Result<DeviceSize, FtlError> {
        let chunks = u64::from(geometry.total_units()) * u64::from(geometry.chunks);
        match self {
            Self::Pblk(config) => Ok(Capacity::of(geometry, config, chunks)?.size()),
            Self::Device(config) => Ok(config.sizes(geometry)?.device()),
            Self::Zoned(config) => Ok(config.sizes(geometry)?.device()),
            Self::Interval(config) => Ok(config.sizes(geometry)?.0.device()),
            Self::Coupled(config) => Ok(config.sizes(geometry)?.device(config)),
        }
    }

    /// The least overprovisioning above what it has, in percent, with which a page-mapped or an interval-mapped SSD of this
    /// shape can be made; `None` of others, and where none is enough.
    #[must_use]
    pub fn least_op_percent(&self, geometry: &Geometry) -> Option<f64> {
        let pages = match self {
            Self::Device(config) => config,
            Self::Interval(config) => &config.pages,
            _ => return None,
        };
        let fits = |op_hundredths: &u32| {
            self.with_op(*op_hundredths).is_some_and(|other| other.check(geometry).is_ok())
        };
        let least = (pages.op_hundredths.saturating_add(1)..device::config::WHOLE).find(fits)?;
        Some(f64::from(least) / 100.0)
    }

    /// The overprovisioning, in percent, with which a device of this shape can hold as near to `sectors` as it gets; `None`
    /// where overprovisioning does not say how much it holds, and where none fits.
    #[must_use]
    pub fn op_percent_for(&self, geometry: &Geometry, sectors: u64) -> Option<f64> {
        let off = |op_hundredths: u32| {
            let size = self.with_op(op_hundredths)?.check(geometry).ok()?;
            Some((size.live_sectors.abs_diff(sectors), op_hundredths))
        };
        let (_, nearest) = (1..device::config::WHOLE).filter_map(off).min()?;
        Some(f64::from(nearest) / 100.0)
    }

    /// The same with another overprovisioning of the whole device; `None` where it has no such choice.
    fn with_op(&self, op_hundredths: u32) -> Option<Self> {
        let pages = |pages: &device::Config| device::Config { op_hundredths, ..pages.clone() };
        match self {
            // A whole number of percent.
            Self::Pblk(config) => (op_hundredths.is_multiple_of(100)).then(|| {
                Self::Pblk(Config { op_percent: Some(op_hundredths / 100), ..config.clone() })
            }),
            Self::Device(config) => Some(Self::Device(pages(config))),
            Self::Interval(config) => {
                let pages = pages(&config.pages);
                Some(Self::Interval(interval::Config { pages, ..config.clone() }))
            }
            Self::Coupled(config) => {
                Some(Self::Coupled(coupled::Config { op_hundredths, ..config.clone() }))
            }
            Self::Zoned(_) => None,
        }
    }

    /// Makes a fresh device on `media`, reached over a link with this timing, beginning at time zero.
    ///
    /// # Errors
    /// The choice that does not fit the geometry, or that power went off.
    pub fn format<M: OpenChannel>(
        &self,
        media: M,
        run: FtlRun,
        link: LinkTiming,
    ) -> Result<AnyFtl<M>, FtlError> {
        match self {
            Self::Pblk(config) => {
                let media = Linked::new(media, link);
                Ok(AnyFtl::Pblk(Box::new(Pblk::format(media, config.clone(), run)?)))
            }
            Self::Device(config) => {
                Ok(AnyFtl::Device(Box::new(DeviceFtl::format(media, config.clone(), run, link)?)))
            }
            Self::Zoned(config) => {
                Ok(AnyFtl::Zoned(Box::new(ZonedFtl::format(media, config.clone(), run, link)?)))
            }
            Self::Interval(config) => {
                let ftl = IntervalFtl::format_interval(media, config, run, link)?;
                Ok(AnyFtl::Interval(Box::new(ftl)))
            }
            Self::Coupled(config) => {
                let ftl = CoupledFtl::format(media, config.clone(), run, link)?;
                Ok(AnyFtl::Coupled(Box::new(ftl)))
            }
        }
    }

    /// Mounts what is on `media`, reached over a link with this timing, beginning at `now`; [`Ftl::now`] is when
    /// it was done.
    ///
    /// # Errors
    /// The media comes back with the reason: power went off again, the choices do not fit, or the media
    /// holds something else.
    pub fn mount<M: OpenChannel>(
        &self,
        media: M,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<AnyFtl<M>, (M, FtlError)> {
        match self {
            Self::Pblk(config) => {
                let media = Linked::new(media, link);
                Ok(AnyFtl::Pblk(Box::new(Pblk::recover(media, config.clone(), run, now)?)))
            }
            Self::Device(config) => {
                let ftl = DeviceFtl::recover(media, config.clone(), run, link, now)?;
                Ok(AnyFtl::Device(Box::new(ftl)))
            }
            Self::Zoned(config) => {
                let ftl = ZonedFtl::recover(media, config.clone(), run, link, now)?;
                Ok(AnyFtl::Zoned(Box::new(ftl)))
            }
            Self::Interval(config) => {
                let ftl = IntervalFtl::recover_interval(media, config, run, link, now)?;
                Ok(AnyFtl::Interval(Box::new(ftl)))
            }
            Self::Coupled(config) => {
                let ftl = CoupledFtl::recover(media, config.clone(), run, link, now)?;
                Ok(AnyFtl::Coupled(Box::new(ftl)))
            }
        }
    }

    /// How a page-mapped FTL chooses victims, in the words of theory, and the bytes of a mapping unit; none for FTLs and policies
    /// of which theory has no closed law.
    #[must_use]
    pub const fn victim_law(&self) -> Option<(VictimLaw, u64)> {
        let (victim, map_unit_bytes) = match self {
            Self::Pblk(config) => (config.victim, SECTOR_BYTES),
            Self::Device(config) => (config.victim, config.map_unit_bytes as u64),
            Self::Zoned(_) | Self::Interval(_) | Self::Coupled(_) => return None,
        };
        match victim {
            Victim::Greedy | Victim::PblkLists => Some((VictimLaw::Greedy, map_unit_bytes)),
            Victim::Fifo => Some((VictimLaw::Fifo, map_unit_bytes)),
            Victim::CostBenefit | Victim::Random | Victim::DChoices(_) => None,
        }
    }

    /// Keys in which a stack must agree with a state that it is to run on, beside those of the media.
    #[must_use]
    pub const fn binding_keys(&self) -> &'static [&'static str] {
        match self {
            Self::Pblk(_) => &["ftl.kind", "ftl.capacity_rules", "ftl.op_percent"],
            Self::Device(_) => &["ftl.kind", "ftl.op_percent", "ftl.instances", "ftl.map_unit"],
            Self::Zoned(_) => &[
                "ftl.kind",
                "ftl.op_percent",
                "ftl.instances",
                "ftl.map_unit",
                "ftl.random.size",
                "ftl.zone.dies",
                "ftl.zone.size",
                "ftl.zone.capacity",
                "ftl.zone.spare_chunks",
                "ftl.zone.instances",
            ],
            Self::Interval(_) => &[
                "ftl.kind",
                "ftl.op_percent",
                "ftl.instances",
                "ftl.random.size",
                "ftl.map.partition",
            ],
            Self::Coupled(_) => &[
                "ftl.kind",
                "ftl.op_percent",
                "ftl.instances",
                "ftl.random.size",
                "ftl.rho",
                "ftl.superblock.spare_chunks",
            ],
        }
    }

    /// Keys that have no effect while a device is made and preconditioned.
    #[must_use]
    pub const fn run_only_keys(&self) -> &'static [&'static str] {
        match self {
            Self::Pblk(_) => &["ftl.cpu", "ftl.map_update"],
            Self::Device(_) | Self::Coupled(_) | Self::Interval(_) => {
                &["ftl.buffer.flush", "ftl.map_access_ns"]
            }
            Self::Zoned(_) => &["ftl.buffer.flush"],
        }
    }

    /// Whether its work takes time of the host's cores.
    #[must_use]
    pub fn charges_host(&self) -> bool {
        match self {
            Self::Pblk(config) => !config.cpu.is_free(),
            Self::Device(_) | Self::Zoned(_) | Self::Coupled(_) | Self::Interval(_) => false,
        }
    }

    /// Whether the number of its write buffers is that of pblk's `write_buffers`.
    #[must_use]
    pub fn uses_write_buffers(&self) -> bool {
        match self {
            Self::Pblk(config) => config.uses_write_buffers(),
            Self::Device(_) | Self::Zoned(_) | Self::Coupled(_) | Self::Interval(_) => false,
        }
    }

    /// Bytes of a block of a mapping table that is cached; none of a resident one.
    #[must_use]
    pub fn map_block_bytes(&self) -> Option<u64> {
        match self {
            Self::Pblk(config) => match &config.map {
                MapKind::Cached(map) => Some(map.block_bytes.into()),
                MapKind::Resident => None,
            },
            Self::Device(_) | Self::Zoned(_) | Self::Coupled(_) | Self::Interval(_) => None,
        }
    }

    /// The choice by which it breaks the promises of a block device after a power cut on purpose: its
    /// key, and what a campaign needs.
    #[must_use]
    pub fn breaks_promises(&self) -> Option<(&'static str, &'static str)> {
        let buffer = match self {
            Self::Pblk(config) => {
                let why = "loses discards by design; campaigns need \"durable\"";
                return (config.discard == Discard::Kernel).then_some(("ftl.discard", why));
            }
            Self::Device(config) => &config.buffer,
            Self::Zoned(config) => &config.pages.buffer,
            Self::Interval(config) => &config.pages.buffer,
            Self::Coupled(config) => &config.pages.buffer,
        };
        let why = "loses what was flushed by design; campaigns need \"program\"";
        (buffer.flush != Flush::Program).then_some(("ftl.buffer.flush", why))
    }
}

/// An FTL of any kind on the open-channel SSD `M`.
#[derive(Debug)]
pub enum AnyFtl<M: OpenChannel> {
    /// A pblk.
    Pblk(Box<Pblk<M>>),
    /// A conventional SSD.
    Device(Box<DeviceFtl<M>>),
    /// A zoned SSD.
    Zoned(Box<ZonedFtl<M>>),
    /// An SSD with interval maps.
    Interval(Box<IntervalFtl<M>>),
    /// A coupled SSD.
    Coupled(Box<CoupledFtl<M>>),
}

/// Calls the same method of whichever kind it is. The first two kinds are found by a compare each; the
/// call of another one is out of line, or all of them would go through a table of jumps.
macro_rules! of_each {
    ($any:expr, $ftl:ident => $call:expr) => {
        match $any {
            AnyFtl::Pblk($ftl) => $call,
            AnyFtl::Device($ftl) => $call,
            other => out_of_line(|| match other {
                AnyFtl::Pblk($ftl) => $call,
                AnyFtl::Device($ftl) => $call,
                AnyFtl::Zoned($ftl) => $call,
                AnyFtl::Interval($ftl) => $call,
                AnyFtl::Coupled($ftl) => $call,
            }),
        }
    };
}

#[inline(never)]
fn out_of_line<R>(call: impl FnOnce() -> R) -> R {
    call()
}

impl<M: OpenChannel> AnyFtl<M> {
    /// [`BlockDevice::submit`], out of line by a function that takes the bio where it is: a closure would
    /// have it copied for every kind.
    #[inline(never)]
    fn submit_to_any(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        of_each!(self, ftl => ftl.submit(now, bio, token))
    }

    /// What only its kind counts.
    #[must_use]
    pub fn detail(&self) -> Detail {
        match self {
            Self::Pblk(ftl) => Detail::Pblk(Box::new(ftl.own_counts())),
            Self::Device(ftl) => Detail::Device(ftl.own_counts()),
            Self::Zoned(ftl) => Detail::Zoned(ftl.own_counts()),
            Self::Interval(ftl) => Detail::Interval(ftl.own_counts()),
            Self::Coupled(ftl) => Detail::Coupled(ftl.own_counts()),
        }
    }
}

impl<M: OpenChannel> BlockDevice for AnyFtl<M> {
    #[inline]
    fn caps(&self) -> &DeviceCaps {
        of_each!(self, ftl => ftl.caps())
    }

    #[inline]
    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        match self {
            Self::Pblk(ftl) => ftl.submit(now, bio, token),
            Self::Device(ftl) => ftl.submit(now, bio, token),
            other => other.submit_to_any(now, bio, token),
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        of_each!(self, ftl => ftl.next_event())
    }

    #[inline]
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        of_each!(self, ftl => ftl.advance(now, done));
    }

    #[inline]
    fn attention(&self) -> Attention {
        of_each!(self, ftl => ftl.attention())
    }

    #[inline]
    fn prefetch_far(&self, lba: Lba) {
        of_each!(self, ftl => ftl.prefetch_far(lba));
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        of_each!(self, ftl => ftl.prefetch_near(op, lba));
    }
}

impl<M: OpenChannel> Ftl for AnyFtl<M> {
    type Media = M;

    fn kind(&self) -> FtlKind {
        of_each!(self, ftl => ftl.kind())
    }

    #[inline]
    fn now(&self) -> Nanos {
        of_each!(self, ftl => ftl.now())
    }

    fn size(&self) -> DeviceSize {
        of_each!(self, ftl => ftl.size())
    }

    #[inline]
    fn sectors(&self) -> SectorCounts {
        of_each!(self, ftl => ftl.sectors())
    }

    fn report(&self) -> FtlReport {
        of_each!(self, ftl => ftl.report())
    }

    fn reset_counts(&mut self) {
        of_each!(self, ftl => ftl.reset_counts());
    }

    fn memory(&self) -> MemoryUse {
        of_each!(self, ftl => ftl.memory())
    }

    fn rest(&self) -> Option<Rest> {
        of_each!(self, ftl => ftl.rest())
    }

    fn erase_units(&self) -> Vec<EraseUnit> {
        of_each!(self, ftl => ftl.erase_units())
    }

    fn free_erase_units(&self) -> u64 {
        of_each!(self, ftl => ftl.free_erase_units())
    }

    fn mapped_sectors(&self) -> u64 {
        of_each!(self, ftl => ftl.mapped_sectors())
    }

    fn appended_sectors(&self) -> u64 {
        of_each!(self, ftl => ftl.appended_sectors())
    }

    fn attach(&mut self, attach: Attach) {
        of_each!(self, ftl => ftl.attach(attach));
    }

    fn keep_flushed(&mut self, keeps: bool) {
        of_each!(self, ftl => ftl.keep_flushed(keeps));
    }

    fn cpu_spans(&mut self, room: Option<usize>) -> Vec<CpuSpan> {
        of_each!(self, ftl => ftl.cpu_spans(room))
    }

    fn link(&self) -> &HostLink {
        of_each!(self, ftl => ftl.link())
    }

    fn media(&self) -> &M {
        of_each!(self, ftl => ftl.media())
    }

    fn media_mut(&mut self) -> &mut M {
        of_each!(self, ftl => ftl.media_mut())
    }

    fn power_off(self) -> M {
        of_each!(self, ftl => ftl.power_off())
    }

    fn check_invariants(&self) -> Result<(), String> {
        of_each!(self, ftl => ftl.check_invariants())
    }
}
