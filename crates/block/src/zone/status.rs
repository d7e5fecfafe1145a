//! Why a zoned device refuses a command, by the names and codes of the NVMe Zoned Namespace command set
//! (revision 1.1, section 2.1.1.2 "Command Specific Status"; generic codes from the NVMe base specification).

use std::fmt;

/// The status of a command that breaks a rule of its zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ZoneStatus {
    /// A zone number that the device does not have.
    NoSuchZone,
    /// A write beyond the writable capacity of its zone.
    BoundaryError,
    /// A write to a full zone.
    Full,
    /// A write to a zone whose media can only be read.
    ReadOnly,
    /// An access to a zone whose media failed.
    Offline,
    /// A write elsewhere than at the write pointer.
    NotAtWritePointer,
    /// A write whose length is no multiple of the write granularity.
    Granularity,
    /// Another zone would exceed the limit on active zones.
    TooManyActive,
    /// Another zone would exceed the limit on open zones, none of which can be closed for it.
    TooManyOpen,
    /// A zone management action that its zone's state does not allow.
    InvalidTransition,
}

impl ZoneStatus {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::NoSuchZone,
        Self::BoundaryError,
        Self::Full,
        Self::ReadOnly,
        Self::Offline,
        Self::NotAtWritePointer,
        Self::Granularity,
        Self::TooManyActive,
        Self::TooManyOpen,
        Self::InvalidTransition,
    ];

    /// The name that the specification gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSuchZone => "Invalid Field in Command",
            Self::BoundaryError => "Zone Boundary Error",
            Self::Full => "Zone Is Full",
            Self::ReadOnly => "Zone Is Read Only",
            Self::Offline => "Zone Is Offline",
            Self::NotAtWritePointer | Self::Granularity => "Zone Invalid Write",
            Self::TooManyActive => "Too Many Active Zones",
            Self::TooManyOpen => "Too Many Open Zones",
            Self::InvalidTransition => "Invalid Zone State Transition",
        }
    }

    /// Status code type and status code, as `0x1bc`.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::NoSuchZone => 0x002,
            Self::BoundaryError => 0x1b8,
            Self::Full => 0x1b9,
            Self::ReadOnly => 0x1ba,
            Self::Offline => 0x1bb,
            Self::NotAtWritePointer | Self::Granularity => 0x1bc,
            Self::TooManyActive => 0x1bd,
            Self::TooManyOpen => 0x1be,
            Self::InvalidTransition => 0x1bf,
        }
    }

    const fn why(self) -> &'static str {
        match self {
            Self::NoSuchZone => "no such zone",
            Self::BoundaryError => "a write past the zone's capacity",
            Self::Full => "a write to a full zone",
            Self::ReadOnly => "a write to a read-only zone",
            Self::Offline => "an access to an offline zone",
            Self::NotAtWritePointer => "a write away from the write pointer",
            Self::Granularity => "a write that is no multiple of the write granularity",
            Self::TooManyActive => "the limit on active zones is reached",
            Self::TooManyOpen => "the limit on open zones is reached",
            Self::InvalidTransition => "an action that the state of the zone does not allow",
        }
    }
}

impl fmt::Display for ZoneStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#05x}): {}", self.name(), self.code(), self.why())
    }
}
