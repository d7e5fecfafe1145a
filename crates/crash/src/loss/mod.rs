//! What media lost, and whether a mount can know of it: read from media alone, by what is documented of a
//! kind's format. A new kind has a file here and an arm in [`of`].

mod pblk;

use nandscape_block::{Lba, SectorData};
use nandscape_ftl::FtlConfig;
use nandscape_media::{FaultInjector, Geometry, Media, MemoryStore};
use std::fmt;

/// The media of a campaign's device, which fail as the scenario has it.
pub(crate) type Faulty = FaultInjector<Media<MemoryStore>>;

/// What media lost under a kind of FTL.
pub(crate) trait Loss: fmt::Debug {
    /// What the copies of a sector held that media lost.
    fn copies(&self, media: &Faulty, lba: Lba) -> Vec<SectorData>;

    /// Contents of lost copies whose addresses a mount cannot know, and what lost records discarded.
    fn forgotten(&self, media: &Faulty) -> Vec<(Lba, SectorData)>;
}

/// That of a kind; none for choices that fit no device of this shape.
pub(crate) fn of(config: &FtlConfig, geometry: &Geometry) -> Option<Box<dyn Loss>> {
    use crate::draw::pblk::config::KIND as PBLK;
    match config.kind() {
        PBLK => Some(Box::new(pblk::Lines::of(config, geometry)?)),
    }
}
