//! What a mounted volume keeps of the zones that are its sections: their geometry, and
//! sections that wait for their reset. [`zoned`](super::zoned) does the work.

mod geometry;

pub use geometry::ZoneGeometry;

use super::format::{FormatError, Layout, Place};
use super::segment::Capacity;
use crate::contract::{FsError, Result};
use nandscape_block::zone::ZoneId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// What was done with zones since mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ZoneCounts {
    /// Zones that were reset.
    pub(crate) resets: u64,
    /// Zones that were finished before they were full: a mount could not go on in them.
    pub(crate) finishes: u64,
}

/// The zones of a volume.
pub(crate) struct Zones {
    pub(super) geometry: ZoneGeometry,
    /// The first section that is a zone.
    pub(super) first_section: u32,
    /// Free sections that are held until they were reset.
    pub(super) freed: RefCell<BTreeSet<u32>>,
    counts: Cell<ZoneCounts>,
}

impl Zones {
    /// The zones of a volume with this layout, if sections are zones, whether the mount uses a GC journal or not.
    ///
    /// # Errors
    /// [`FsError::Incompatible`] if the volume does not fit the zones, or too few of them may be active.
    pub(crate) fn of(
        geometry: Option<ZoneGeometry>,
        layout: &Layout,
        journals: bool,
    ) -> Result<Option<Self>> {
        let Some(geometry) = geometry else { return Ok(None) };
        let main = layout.main_start().0;
        let fits = layout.blocks_per_section() == geometry.blocks
            && main.is_multiple_of(geometry.blocks)
            && main <= geometry.first;
        if !fits {
            let what = "sections that are not the zones of the device".to_owned();
            return Err(FormatError::Incompatible { place: Place::Superblock(0), what }.into());
        }
        geometry.check_active(journals).map_err(FsError::Incompatible)?;
        Ok(Some(Self {
            first_section: (geometry.first - main) / geometry.blocks,
            geometry,
            freed: RefCell::default(),
            counts: Cell::default(),
        }))
    }

    /// How much of each section can be written.
    pub(crate) const fn capacity(&self) -> Capacity {
        let Self { geometry, first_section, .. } = self;
        Capacity::zones(geometry.segments(), *first_section, geometry.capacity)
    }

    /// The zone of a section; none if the section is no zone.
    pub(super) fn zone_of(&self, section: u32) -> Option<ZoneId> {
        section.checked_sub(self.first_section).map(ZoneId)
    }

    pub(crate) const fn counts(&self) -> ZoneCounts {
        self.counts.get()
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut ZoneCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}
