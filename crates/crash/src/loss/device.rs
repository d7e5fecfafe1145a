//! What injected faults made unreadable on a conventional SSD. Its erase units have no end metadata, so the
//! address of a lost copy is lost with it, and a mount drops the whole mapping unit of a lost sector.

use crate::draw::device;
use crate::loss::{Faulty, Loss, discarded, lost_copies, lost_data};
use nandscape_block::{Lba, SECTOR_BYTES, SectorData, Tag};
use nandscape_ftl::FtlConfig;
use nandscape_media::{KEY_MAX, KEY_TRIM, OpenChannel, Ppa};

/// Erase units, which hold mapping units of so many sectors and their out-of-band data alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EraseUnits {
    unit: u64,
}

impl EraseUnits {
    /// Those of a conventional SSD with these choices.
    pub(crate) fn of(config: &FtlConfig) -> Option<Self> {
        let unit = device::of(config)?.map_unit_bytes / SECTOR_BYTES as u32;
        Some(Self { unit: unit.into() })
    }
}

impl Loss for EraseUnits {
    fn copies(&self, media: &Faulty, lba: Lba) -> Vec<SectorData> {
        lost_copies(media, lba)
    }

    fn forgotten(&self, media: &Faulty) -> Vec<(Lba, SectorData)> {
        let mut forgotten = Vec::new();
        for at in lost_data(media) {
            // A chunk holds whole mapping units, and packed addresses count its sectors from a power of two.
            let first = at.0 - at.0 % self.unit;
            for at in (first..first + self.unit).map(Ppa) {
                match media.oob(at).key {
                    key if key <= KEY_MAX => forgotten.push((Lba(key.into()), media.data(at))),
                    KEY_TRIM if !media.readable(at) => {
                        let zeroes = |lba| (lba, SectorData::Tag(Tag::ZERO));
                        forgotten.extend(discarded(&media.data(at)).map(zeroes));
                    }
                    _ => {}
                }
            }
        }
        forgotten
    }
}
