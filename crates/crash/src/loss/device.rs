//! What injected faults made unreadable on a conventional SSD. Its erase units have no end metadata, so the
//! address of a lost copy is lost with it.

use crate::loss::{Faulty, Loss, forgotten_sectors, lost_copies};
use nandscape_block::{Lba, SectorData};

/// Erase units, which hold sectors and their out-of-band data alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EraseUnits;

impl Loss for EraseUnits {
    fn copies(&self, media: &Faulty, lba: Lba) -> Vec<SectorData> {
        lost_copies(media, lba)
    }

    fn forgotten(&self, media: &Faulty) -> Vec<(Lba, SectorData)> {
        forgotten_sectors(media, |_| false)
    }
}
