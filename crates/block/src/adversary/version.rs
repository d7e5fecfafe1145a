//! What writes leave in the cache of the adversary, and how a power cut chooses among it.

use crate::bio::Flags;
use crate::payload::SectorData;

/// What a sector holds after a write landed.
#[derive(Clone)]
pub(super) struct Version {
    /// The number of the write.
    pub(super) write: u64,
    /// When it landed, counted in landings of sectors.
    pub(super) landed: u64,
    pub(super) flags: Flags,
    pub(super) data: SectorData,
}

/// How a cut chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutStyle {
    /// Of each sector any version, by its own throw.
    EachSector,
    /// Each write whole or not at all, by its own throw.
    EachWrite,
    /// Nothing.
    Nothing,
    /// All.
    Everything,
    /// Only what landed last.
    Newest,
    /// Only what landed first.
    Oldest,
    /// All but one write.
    AllButOne,
    /// Only one write.
    OnlyOne,
    /// Only what belongs to a journal and has no FUA.
    OnlyJournal,
    /// Only what does not.
    NoJournal,
}

impl CutStyle {
    /// All styles.
    pub const ALL: [Self; 10] = [
        Self::EachSector,
        Self::EachWrite,
        Self::Nothing,
        Self::Everything,
        Self::Newest,
        Self::Oldest,
        Self::AllButOne,
        Self::OnlyOne,
        Self::OnlyJournal,
        Self::NoJournal,
    ];
}
