//! Write amplification, from the sectors that an FTL counted.

use nandscape_ftl::SectorCounts;

/// Write amplification, three ways (DESIGN, decision 10). `None` without user writes.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct WriteAmplification {
    /// (user + garbage collection) / user.
    pub gc: Option<f64>,
    /// (user + garbage collection + padding) / user: what pblk reports.
    pub gc_pad: Option<f64>,
    /// All media writes / user.
    pub media: Option<f64>,
}

impl WriteAmplification {
    /// From counted sectors.
    #[must_use]
    pub fn of(sectors: &SectorCounts) -> Self {
        let per_user = |sum: u64| (sectors.user > 0).then(|| sum as f64 / sectors.user as f64);
        let gc = sectors.user + sectors.gc;
        let gc_pad = gc + sectors.pad;
        let media = gc_pad + sectors.line_meta + sectors.map + sectors.trim;
        Self { gc: per_user(gc), gc_pad: per_user(gc_pad), media: per_user(media) }
    }
}
