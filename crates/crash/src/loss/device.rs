//! What injected faults made unreadable on a conventional SSD. Its erase units have no end metadata, so the
//! address of a lost copy is lost with it, and a mount drops the whole mapping unit of a lost sector.

use crate::draw::device;
use crate::loss::{Faulty, Loss, held, lost_data};
use nandscape_block::{Lba, SECTOR_BYTES, SectorData};
use nandscape_ftl::FtlConfig;
use nandscape_ftl::device::Config;
use nandscape_media::{KEY_TRIM, OpenChannel, Ppa};

/// Erase units, which hold mapping units of so many sectors and their out-of-band data alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EraseUnits {
    unit: u64,
    power_safe: bool,
}

impl EraseUnits {
    /// Those of a conventional SSD with these choices.
    pub(crate) fn of(config: &FtlConfig) -> Option<Self> {
        Some(Self::with(device::of(config)?))
    }

    /// Those of a page-mapped region with these choices.
    pub(crate) const fn with(config: &Config) -> Self {
        let unit = config.map_unit_bytes / SECTOR_BYTES as u32;
        Self { unit: unit as u64, power_safe: config.buffer.power_safe }
    }
}

impl Loss for EraseUnits {
    fn durable_unit(&self) -> Option<u32> {
        (!self.power_safe).then_some(self.unit as u32)
    }

    /// Trim records are one sector of their unit, and are lost with that one alone.
    fn forgotten(&self, media: &Faulty) -> Vec<(Lba, SectorData)> {
        // A chunk holds whole mapping units, and packed addresses count its sectors from a power of two.
        let unit = |at: Ppa| {
            let first = at.0 - at.0 % self.unit;
            (first..first + self.unit).map(Ppa)
        };
        let dropped = |at: &Ppa| media.oob(*at).key != KEY_TRIM || !media.readable(*at);
        let dropped = lost_data(media).flat_map(unit).filter(dropped);
        dropped.flat_map(|at| held(media, at)).collect()
    }
}
