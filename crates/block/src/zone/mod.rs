//! Zones: identities, states, actions, limits and refusals, after the NVMe Zoned Namespace command set. What follows from
//! them is the business of the table that every zoned device has (`zone_table.rs`).

mod status;

pub use status::ZoneStatus;

use crate::address::Lba;

/// Index of a zone among all zones of the device, in order of address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ZoneId(pub u32);

/// Zone management actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneAction {
    /// Explicitly open.
    Open,
    /// Close: keeps its data and its write pointer.
    Close,
    /// Finish: no more writes until a reset.
    Finish,
    /// Reset: empties the zone.
    Reset,
}

/// Zone states, as `nvme zns report-zones` names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneState {
    /// Nothing written.
    Empty,
    /// Opened by a write.
    ImplicitlyOpened,
    /// Opened by a command.
    ExplicitlyOpened,
    /// Has data and is not open.
    Closed,
    /// Cannot be written further.
    Full,
    /// Data can be read, never written.
    ReadOnly,
    /// Gone.
    Offline,
}

impl ZoneState {
    /// The code of the state in a zone report ("Zone Descriptor Data Structure").
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Empty => 0x1,
            Self::ImplicitlyOpened => 0x2,
            Self::ExplicitlyOpened => 0x3,
            Self::Closed => 0x4,
            Self::ReadOnly => 0xd,
            Self::Full => 0xe,
            Self::Offline => 0xf,
        }
    }

    /// The name that `nvme zns report-zones` prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "EMPTY",
            Self::ImplicitlyOpened => "IMP_OPENED",
            Self::ExplicitlyOpened => "EXP_OPENED",
            Self::Closed => "CLOSED",
            Self::ReadOnly => "READONLY",
            Self::Full => "FULL",
            Self::Offline => "OFFLINE",
        }
    }

    /// Whether the zone is open, and thereby takes part of what "Max Open Resources" bounds.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpened | Self::ExplicitlyOpened)
    }

    /// Whether the zone is open or closed, and thereby takes part of what "Max Active Resources" bounds.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }

    /// Whether no command writes the zone again: its media failed.
    #[must_use]
    pub const fn is_failed(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Offline)
    }
}

/// One entry of a zone report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneInfo {
    /// First sector.
    pub start: Lba,
    /// Writable sectors.
    pub capacity: u64,
    /// Next sector to be written.
    pub write_pointer: Lba,
    /// State.
    pub state: ZoneState,
}

impl ZoneInfo {
    /// End of what can be written.
    #[must_use]
    pub const fn end(&self) -> Lba {
        self.start.plus(self.capacity)
    }

    /// Sectors below the write pointer.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.write_pointer.0 - self.start.0
    }
}

/// Limits of a zoned region. Sizes in sectors.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ZoneLimits {
    /// Address distance between zones.
    pub zone_sectors: u64,
    /// Writable sectors of a zone.
    pub capacity: u64,
    /// Zones open at once; 0 means no limit.
    pub max_open: u32,
    /// Zones open or closed at once; 0 means no limit.
    pub max_active: u32,
    /// Whether zone append is served.
    pub append: bool,
    /// What the length of a write must be a multiple of (Linux `zone_write_granularity`); 0 means 1.
    pub write_sectors: u32,
}
