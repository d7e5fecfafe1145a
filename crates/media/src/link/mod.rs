//! The link between a host and a device, and what the device's controller adds to a command: fetch of
//! commands, accepting writes, latency of reads, and transfers by reservation.
//!
//! Parameters are NVMeVirt's (`presets.rs` names the source of each). As there, both directions share
//! one bandwidth unless the link is full duplex. A host FTL stands on [`Linked`], which has every
//! command and every sector cross the link once.

mod linked;
pub(crate) mod presets;

pub use linked::Linked;

use crate::command::{Crossing, DataOut};
use crate::nand::LinkScheduling;
use crate::nand::lane::{Lane, TransferCost};
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;

/// Which transfers share the link's bandwidth.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Duplex {
    /// All of them, as in NVMeVirt (`ssd_advance_pcie` serves reads and the write buffer).
    #[default]
    Shared,
    /// Those of one direction: each has the whole bandwidth, as on PCIe.
    Full,
}

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
    /// Whether the two directions share it.
    pub duplex: Duplex,
    /// Fixed part of the time that the controller takes to accept a write, before its data cross.
    pub buffer_base_ns: u64,
    /// The part of it for each sector.
    pub buffer_sector_ns: u64,
    /// Placing of transfers.
    pub placing: LinkScheduling,
    /// Most bytes of a command that carries data (NVMe's MDTS); 0 means that there is no limit. The host divides what is
    /// larger.
    pub mdts_bytes: u64,
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
            duplex: Duplex::Shared,
            buffer_base_ns: 0,
            buffer_sector_ns: 0,
            placing: LinkScheduling::Backfill,
            mdts_bytes: 0,
        }
    }

    /// Everything takes no time, and commands are as large as this link takes them.
    #[must_use]
    pub const fn untimed(&self) -> Self {
        Self { mdts_bytes: self.mdts_bytes, ..Self::none() }
    }

    /// Most sectors of a command that carries data: one at least.
    #[must_use]
    pub fn max_sectors(&self) -> u32 {
        match self.mdts_bytes {
            0 => u32::MAX,
            bytes => u32::try_from(bytes / SECTOR_BYTES).unwrap_or(u32::MAX).max(1),
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
    /// Bytes of sectors that went to the device.
    pub to_device_bytes: u64,
    /// Bytes of sectors that went to the host.
    pub to_host_bytes: u64,
    /// Time that transfers to the device took.
    pub to_device_busy: Nanos,
    /// Time that transfers to the host took.
    pub to_host_busy: Nanos,
}

impl LinkUse {
    /// Adds what the same link counted later.
    pub const fn extend(&mut self, later: &Self) {
        self.to_device_bytes += later.to_device_bytes;
        self.to_host_bytes += later.to_host_bytes;
        self.to_device_busy = self.to_device_busy.saturating_add(later.to_device_busy);
        self.to_host_busy = self.to_host_busy.saturating_add(later.to_host_busy);
    }
}

/// A link and its reservations.
#[derive(Clone, Debug)]
pub struct HostLink {
    timing: LinkTiming,
    small_sectors: u32,
    cost: TransferCost,
    /// Transfers to the device, and of a shared link all.
    to_device: Lane,
    /// Transfers to the host, of a full-duplex link.
    to_host: Lane,
    counts: LinkUse,
}

impl HostLink {
    /// Most sectors of a command that carries data.
    #[must_use]
    pub fn max_sectors(&self) -> u32 {
        self.timing.max_sectors()
    }

    /// A link at rest.
    #[must_use]
    pub fn new(timing: LinkTiming) -> Self {
        let timing = timing.bounded();
        Self {
            small_sectors: u32::try_from(timing.read_small_bytes / SECTOR_BYTES)
                .unwrap_or(u32::MAX),
            cost: TransferCost::new(timing.bytes_per_s),
            to_device: Lane::new(timing.placing),
            to_host: Lane::new(timing.placing),
            counts: LinkUse::default(),
            timing,
        }
    }

    /// When the device has a command without data that the host sends at `sent`.
    #[inline]
    #[must_use]
    pub const fn command(&self, sent: Nanos) -> Nanos {
        Nanos(sent.0 + self.timing.command_ns)
    }

    /// When a unit may begin a read of `sectors` sectors that the host sends at `sent`.
    #[inline]
    #[must_use]
    pub const fn read_ready(&self, sent: Nanos, sectors: u32) -> Nanos {
        let small = sectors <= self.small_sectors;
        let latency = if small { self.timing.read_small_ns } else { self.timing.read_large_ns };
        Nanos(sent.0 + latency)
    }

    /// When the controller has accepted a command without data that the host sends at `sent`: the fixed part
    /// of what a write takes. It acts on nothing else, so the command is complete then.
    #[inline]
    #[must_use]
    pub const fn accepted(&self, sent: Nanos) -> Nanos {
        Nanos(self.command(sent).0 + self.timing.buffer_base_ns)
    }

    /// When a read of `sectors` sectors that hold nothing, submitted at `now`, is complete: the controller takes
    /// as long as for any read, and zeroes cross the link; no unit is involved.
    #[inline]
    pub fn read_unwritten(&mut self, now: Nanos, sectors: u32) -> Nanos {
        let ready = self.read_ready(now, sectors);
        self.data_out(sectors).piece(now, ready, sectors).end
    }

    /// Reserves the transfer of a write of `sectors` sectors, submitted at `now`, that the host sends
    /// at `sent`: the controller accepts the command, then the data cross. The device has the write
    /// when the crossing ends.
    #[inline]
    pub fn data_in(&mut self, now: Nanos, sent: Nanos, sectors: u32) -> Crossing {
        let timing = &self.timing;
        let accepting = timing.buffer_base_ns + timing.buffer_sector_ns * u64::from(sectors);
        let ready = sent.0 + timing.command_ns + accepting;
        let ns = self.cost.ns(sectors);
        let end = self.to_device.place(now.0, ready, ns);
        self.counts.to_device_bytes += u64::from(sectors) * SECTOR_BYTES;
        self.counts.to_device_busy.0 += ns;
        Crossing { start: Nanos(end - ns), end: Nanos(end) }
    }

    /// Takes the `sectors` sectors of a read to the host.
    #[inline]
    pub const fn data_out(&mut self, sectors: u32) -> ToHost<'_> {
        self.counts.to_host_bytes += sectors as u64 * SECTOR_BYTES;
        ToHost { link: self }
    }

    /// What was counted since the last reset.
    #[must_use]
    pub const fn counts(&self) -> LinkUse {
        self.counts
    }

    /// Resets the counts.
    pub fn reset_counts(&mut self) {
        self.counts = LinkUse::default();
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
        let link = &mut *self.link;
        let ns = link.cost.ns(sectors);
        let lane = match link.timing.duplex {
            Duplex::Shared => &mut link.to_device,
            Duplex::Full => &mut link.to_host,
        };
        let end = lane.place(now.0, left_channel.0, ns);
        link.counts.to_host_busy.0 += ns;
        Crossing { start: Nanos(end - ns), end: Nanos(end) }
    }
}
