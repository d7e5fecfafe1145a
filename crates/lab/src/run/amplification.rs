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

/// What media were written for, in media sectors per user sector; the parts add up to
/// [`WriteAmplification::media`]. Copies that became stale count as padding in the factor that pblk reports.
pub(super) fn parts(sectors: &SectorCounts) -> [(&'static str, f64); 6] {
    let parts = [
        ("user", sectors.user),
        ("gc", sectors.gc),
        ("stale", sectors.stale),
        ("pad", sectors.pad.saturating_sub(sectors.stale)),
        ("meta", sectors.line_meta + sectors.trim),
        ("map", sectors.map),
    ];
    parts.map(|(name, part)| (name, part as f64 / sectors.user.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts are the whole, and stale copies are no padding.
    #[test]
    fn parts_add_up() {
        let sectors = SectorCounts {
            user: 1_000,
            gc: 8_307,
            pad: 40,
            stale: 30,
            line_meta: 20,
            trim: 3,
            map: 7,
            journal: 5,
        };
        let parts = parts(&sectors);
        let sum: f64 = parts.iter().map(|(_, part)| part).sum();
        assert!((sum - WriteAmplification::of(&sectors).media.unwrap()).abs() < 1e-12);
        assert_eq!(parts[2..4], [("stale", 0.03), ("pad", 0.01)]);
    }
}
