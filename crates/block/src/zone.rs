//! Zones: identities, states, actions and limits, after the NVMe ZNS command set.

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

/// One entry of a zone report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneInfo {
    /// First sector.
    pub start: crate::Lba,
    /// Writable sectors.
    pub capacity: u64,
    /// Next sector to be written.
    pub write_pointer: crate::Lba,
    /// State.
    pub state: ZoneState,
}

/// Limits of a zoned region. Sizes in sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
}
