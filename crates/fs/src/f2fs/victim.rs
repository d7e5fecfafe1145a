//! The choice of the section that is cleaned next (`get_victim_by_default` in fs/f2fs/gc.c).
//!
//! In the foreground it is one that the background has chosen, or the one with the fewest valid blocks (greedy); with a GC
//! journal one that the journal can free, unless a checkpoint pays. In the background it has few valid blocks that have not
//! changed for long (cost-benefit), or is old enough ([`age_threshold`]).

use super::age_threshold::{self, Candidate};
use super::cleaner::{Cleaner, GcKind};
use super::format::SegNo;
use super::options::VictimPolicy;
use super::segment::Segments;

/// Sections that a search in the background looks at (`DEF_MAX_VICTIM_SEARCH`).
const BACKGROUND_SEARCH: u32 = 4096;

/// The mean time of the segments of a section.
fn section_mtime(segments: &Segments, section: u32, per_section: u32) -> u64 {
    let numbers = section * per_section..(section + 1) * per_section;
    let times =
        numbers.filter_map(|number| segments.segment(SegNo(number)).map(|found| found.mtime));
    times.fold(0, u64::saturating_add) / u64::from(per_section)
}

/// The range of ages of segments, for cost-benefit.
struct Ages {
    oldest: u64,
    newest: u64,
}

impl Ages {
    fn of(segments: &Segments) -> Self {
        let times = (0..segments.count()).filter_map(|number| {
            segments.segment(SegNo(number)).filter(|found| found.valid > 0).map(|found| found.mtime)
        });
        let (mut oldest, mut newest) = (u64::MAX, 0);
        for time in times {
            (oldest, newest) = (oldest.min(time), newest.max(time));
        }
        Self { oldest, newest }
    }

    /// What cleaning a section is worth (`get_cb_cost`): much free space, and old data.
    fn benefit(&self, segments: &Segments, section: u32, per_section: u32, valid: u32) -> u64 {
        let mtime = section_mtime(segments, section, per_section);
        let per_segment = segments.capacity().of_section() / segments.capacity().segments();
        let utilisation =
            u64::from(valid / segments.capacity().segments()) * 100 / u64::from(per_segment.max(1));
        let age = match self.newest.checked_sub(self.oldest).filter(|span| *span > 0) {
            Some(span) => {
                100 - 100 * mtime.clamp(self.oldest, self.newest).saturating_sub(self.oldest) / span
            }
            None => 0,
        };
        100 * (100 - utilisation.min(100)) * age / (100 + utilisation)
    }
}

/// What a search for a victim looks at.
pub(super) struct VictimSearch<'a> {
    pub(super) segments: &'a Segments,
    /// With a GC journal: blocks that a checkpoint would cost now.
    pub(super) checkpoint_blocks: Option<u64>,
    /// Seconds for which the volume was mounted before this mount.
    pub(super) mounted_before_s: u64,
}

impl VictimSearch<'_> {
    /// The section with the fewest valid blocks. With a GC journal, of those that it can free, unless another one has so
    /// many fewer that a checkpoint pays.
    fn cheapest(&self, sections: impl Iterator<Item = u32> + Clone) -> Option<u32> {
        let segments = self.segments;
        let valid = |section: &u32| u64::from(segments.section_valid(*section));
        let fewest = sections.clone().min_by_key(valid)?;
        let Some(checkpoint_blocks) = self.checkpoint_blocks else { return Some(fewest) };
        if !segments.is_pinned_section(fewest) {
            return Some(fewest);
        }
        let freed = sections.filter(|section| !segments.is_pinned_section(*section));
        let freed = freed.min_by_key(valid);
        freed
            .filter(|section| valid(section) <= valid(&fewest) + checkpoint_blocks)
            .or(Some(fewest))
    }
}

impl Cleaner {
    /// The section to clean next.
    pub(super) fn victim(&self, kind: GcKind, search: &VictimSearch<'_>) -> Option<u32> {
        let segments = search.segments;
        let per_section = self.mount.layout.segments_per_section();
        let capacity = *segments.capacity();
        let sections = segments.count() / per_section;
        let is_dirty = |section: &u32| {
            let valid = segments.section_valid(*section);
            valid > 0
                && valid < capacity.of_section()
                && !segments.is_open_section(*section)
                && !segments.is_prepared_section(*section)
        };
        match kind {
            GcKind::Foreground => {
                let marked = self.background_victims.borrow();
                let chosen = marked.iter().copied().find(is_dirty);
                chosen.or_else(|| search.cheapest((0..sections).filter(is_dirty)))
            }
            GcKind::Background => {
                let age = Ages::of(segments);
                let from = self.last_victim.get();
                let all = (0..sections).map(|step| (from + step) % sections);
                let marked = self.background_victims.borrow();
                let candidates = all.filter(is_dirty).filter(|section| !marked.contains(section));
                let candidates = candidates.take(BACKGROUND_SEARCH as usize);
                let benefit = |section: &u32| {
                    let valid = segments.section_valid(*section);
                    let benefit = age.benefit(segments, *section, per_section, valid);
                    (benefit, std::cmp::Reverse(*section))
                };
                let best = match self.mount.options.victim {
                    VictimPolicy::CostBenefit => candidates.max_by_key(benefit),
                    VictimPolicy::AgeThreshold => self.choose_by_age(search, candidates),
                };
                if let Some(section) = best {
                    self.last_victim.set((section + 1) % sections);
                }
                best
            }
        }
    }

    /// The section that age-threshold cleaning chooses among these.
    fn choose_by_age(
        &self,
        search: &VictimSearch<'_>,
        sections: impl Iterator<Item = u32>,
    ) -> Option<u32> {
        let segments = search.segments;
        let per_section = self.mount.layout.segments_per_section();
        let candidate = |section| {
            let mtime = section_mtime(segments, section, per_section);
            Candidate { section, mtime, valid: segments.section_valid(section) }
        };
        let candidates: Vec<_> = sections.map(candidate).collect();
        let threshold_s = self.mount.options.age_threshold.0 / 1_000_000_000;
        let mut ages = self.victim_ages.get();
        let mut choose = |threshold_s| {
            age_threshold::choose(
                &candidates,
                &mut ages,
                threshold_s,
                segments.capacity().of_section(),
            )
        };
        let chosen = choose(threshold_s);
        // A volume that was not mounted for so long has no old sections.
        let is_young = search.mounted_before_s < threshold_s;
        let chosen = if is_young { chosen.or_else(|| choose(0)) } else { chosen };
        self.victim_ages.set(ages);
        chosen
    }
}
