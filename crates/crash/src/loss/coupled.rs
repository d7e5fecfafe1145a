//! A coupled SSD in campaigns loses no sectors: media that do are not drawn for it (`draw/coupled.rs`).

use crate::loss::{Faulty, Loss};
use nandscape_block::{Lba, SectorData};
use std::ops::Range;

/// Nothing is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nothing;

impl Loss for Nothing {
    fn copies(&self, _media: &Faulty, _sectors: Range<u64>) -> Vec<(Lba, SectorData)> {
        Vec::new()
    }

    fn durable_unit(&self) -> Option<u32> {
        None
    }

    fn forgotten(&self, _media: &Faulty) -> Vec<(Lba, SectorData)> {
        Vec::new()
    }
}
