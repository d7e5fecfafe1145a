//! What a device can do. Whatever it lacks it refuses with [`crate::BlockError::Unsupported`].

use crate::zone::ZoneLimits;
use std::ops::Range;

/// Whether completed writes with FUA are durable by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fua {
    /// The device refuses the flag.
    #[default]
    Refused,
    /// The device honours the flag.
    Honoured,
}

/// Capabilities and limits of a device. Sizes in sectors of 4 KiB.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct DeviceCaps {
    /// Addressable sectors.
    pub sectors: u64,
    /// Regions writable at random, for devices that are only partly so; empty means all of it.
    pub random_regions: Vec<Range<u64>>,
    /// Zones and their limits, for zoned devices.
    pub zones: Option<ZoneLimits>,
    /// Regions in which the device itself may move data and then sends upcalls.
    pub device_owned: Vec<Range<u64>>,
    /// Number of placement handles; 0 means hints are ignored.
    pub placement_handles: u16,
    /// Sectors of an aligned write that survive a power cut whole or not at all.
    pub atomic_sectors: u32,
    /// Treatment of FUA.
    pub fua: Fua,
    /// Whether acknowledged writes may be lost without a flush.
    pub volatile_cache: bool,
    /// Discard granularity in sectors; 0 means discards are refused.
    pub discard_sectors: u32,
    /// Whether discarded sectors read as zeroes.
    pub discard_zeroes: bool,
    /// Whether narrower flush scopes than [`crate::FlushScope::All`] are honoured (else widened).
    pub scoped_flush: bool,
    /// Largest bio, in sectors.
    pub max_sectors: u32,
    /// Whether content is kept at all.
    pub keeps_content: bool,
}
