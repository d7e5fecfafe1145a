//! The link between a host and a device, and what the device's controller adds to a command: fetch of
//! commands, latency of reads, and transfers by reservation.
//!
//! Parameters are NVMeVirt's (`presets.rs` names the source of each). As there, both directions share
//! one bandwidth. A host FTL stands on [`Linked`], which has every command cross the link.

mod linked;
pub(crate) mod presets;

pub use linked::Linked;

use crate::command::{Crossing, DataOut};
use crate::nand::LinkScheduling;
use crate::nand::lane::{Lane, TransferCost};
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;

/// Parameters of a link and its controller. All are plain numbers, so that a stack file may override
/// each. Durations above [`LinkTiming::NS_MAX`] count as that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkTiming {
    /// From the submission of a write or reset until its unit may begin.
    pub command_ns: u64,
    /// From the submission of a read of at most `read_small_bytes` until its unit may begin.
    pub read_small_ns: u64,
    /// From the submission of a larger read until its unit may begin.
    pub read_large_ns: u64,
    /// Largest read that counts as small.
    pub read_small_bytes: u64,
    /// Bandwidth; 0 means transfers take no time.
    pub bytes_per_s: u64,
    /// Fixed part of the time that the controller takes to accept a write.
    pub buffer_base_ns: u64,
    /// The part of it for each sector, besides the transfer.
    pub buffer_sector_ns: u64,
    /// Placing of transfers.
    pub placing: LinkScheduling,
}

impl LinkTiming {
    /// The longest single duration: 10 s.
    pub const NS_MAX: u64 = 10_000_000_000;

    /// Everything takes no time: for preconditioning and for theory.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            command_ns: 0,
            read_small_ns: 0,
            read_large_ns: 0,
            read_small_bytes: 0,
            bytes_per_s: 0,
            buffer_base_ns: 0,
            buffer_sector_ns: 0,
            placing: LinkScheduling::Backfill,
        }
    }

    /// The timing with every duration within bounds, so that no sum of them overflows.
    fn bounded(mut self) -> Self {
        for ns in [
            &mut self.command_ns,
            &mut self.read_small_ns,
            &mut self.read_large_ns,
            &mut self.buffer_base_ns,
            &mut self.buffer_sector_ns,
        ] {
            *ns = (*ns).min(Self::NS_MAX);
        }
        self
    }
}

/// What crossed a link, since the counts were last reset.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkUse {
    /// Time that transfers took.
    pub busy: Nanos,
}

impl LinkUse {
    /// Adds what the same link counted later.
    pub const fn extend(&mut self, later: &Self) {
        self.busy = self.busy.saturating_add(later.busy);
    }
}

/// A link and its reservations.
#[derive(Clone, Debug)]
pub struct HostLink {
    timing: LinkTiming,
    small_sectors: u32,
    cost: TransferCost,
    lane: Lane,
}

impl HostLink {
    /// A link at rest.
    #[must_use]
    pub fn new(timing: LinkTiming) -> Self {
        let timing = timing.bounded();
        Self {
            small_sectors: u32::try_from(timing.read_small_bytes / SECTOR_BYTES)
                .unwrap_or(u32::MAX),
            cost: TransferCost::new(timing.bytes_per_s),
            lane: Lane::new(timing.placing),
            timing,
        }
    }

    /// When the device has a command without data.
    #[inline]
    #[must_use]
    pub const fn command(&self, now: Nanos) -> Nanos {
        Nanos(now.0 + self.timing.command_ns)
    }

    /// When a unit may begin a read of `sectors` sectors.
    #[inline]
    #[must_use]
    pub const fn read_ready(&self, now: Nanos, sectors: u32) -> Nanos {
        let small = sectors <= self.small_sectors;
        let latency = if small { self.timing.read_small_ns } else { self.timing.read_large_ns };
        Nanos(now.0 + latency)
    }

    /// When the device has the data of a write: its controller accepts the command, then the data cross.
    #[inline]
    pub fn data_in(&mut self, now: Nanos, sectors: u32) -> Nanos {
        let t = &self.timing;
        let accepted = now.0 + t.buffer_base_ns + t.buffer_sector_ns * u64::from(sectors);
        Nanos(self.lane.place(now.0, accepted, self.cost.ns(sectors)))
    }

    /// Where data of the device's own buffer or of its NAND go towards the host.
    #[inline]
    pub const fn data_out(&mut self) -> ToHost<'_> {
        ToHost { link: self }
    }

    /// Reserves the transfer of a piece that is ready.
    #[inline]
    fn cross(&mut self, now: Nanos, ready: Nanos, sectors: u32) -> Crossing {
        let ns = self.cost.ns(sectors);
        let end = Nanos(self.lane.place(now.0, ready.0, ns));
        Crossing { start: Nanos(end.0 - ns), end }
    }

    /// Time of a buffer that is charged like the device's own, one transfer included: no source
    /// tells accepting and serving apart.
    #[inline]
    #[must_use]
    pub fn buffer_legacy(&self, sectors: u32) -> Nanos {
        let t = &self.timing;
        let accepting = t.buffer_base_ns + t.buffer_sector_ns * u64::from(sectors);
        Nanos(accepting + self.cost.ns(sectors))
    }

    /// What was counted since the last reset.
    #[must_use]
    pub const fn counts(&self) -> LinkUse {
        LinkUse { busy: Nanos(self.lane.busy_ns) }
    }

    /// Resets the counts.
    pub const fn reset_counts(&mut self) {
        self.lane.busy_ns = 0;
    }
}

/// Pieces of a read on their way over the link.
#[derive(Debug)]
pub struct ToHost<'a> {
    link: &'a mut HostLink,
}

impl DataOut for ToHost<'_> {
    #[inline]
    fn is_instant(&self) -> bool {
        self.link.timing.bytes_per_s == 0
    }

    #[inline]
    fn piece(&mut self, now: Nanos, left_channel: Nanos, sectors: u32) -> Crossing {
        self.link.cross(now, left_channel, sectors)
    }
}

/// Pieces of a read on their way over the link, and on to `out`.
struct Through<'a, O> {
    link: &'a mut HostLink,
    out: &'a mut O,
}

impl<O: DataOut> DataOut for Through<'_, O> {
    #[inline]
    fn is_instant(&self) -> bool {
        self.link.timing.bytes_per_s == 0 && self.out.is_instant()
    }

    #[inline]
    fn piece(&mut self, now: Nanos, left_channel: Nanos, sectors: u32) -> Crossing {
        let Crossing { start, end } = self.link.cross(now, left_channel, sectors);
        Crossing { start, end: self.out.piece(now, end, sectors).end }
    }
}
