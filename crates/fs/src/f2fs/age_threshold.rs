//! Age-threshold choice of the section that is cleaned in the background (`atgc`; `add_victim_entry` and
//! `atgc_lookup_victim` in fs/f2fs/gc.c, from Linux 5.10 on).
//!
//! Sections that changed lately are no candidates: their blocks may soon be invalid without being moved. Of the others
//! the oldest ones are weighed: 60 parts of 100 by age, 40 by the blocks that cleaning would free. Ages are seconds of
//! mounted time, so a volume that was not mounted for as long as the threshold would have no candidates at all; it has
//! no threshold.
//!
//! With adaptive logging the kernel also writes what it moves from such a section to holes of segments of the same age
//! (`AT_SSR`); here it goes to the cold log as all that is moved does.

/// Sections that are weighed: so many percent of the candidates (`DEF_GC_THREAD_CANDIDATE_RATIO`), or so many if that
/// is more (`DEF_GC_THREAD_MAX_CANDIDATE_COUNT`).
const CANDIDATE_PERCENT: usize = 20;
const CANDIDATES_MIN: usize = 10;
/// Parts of 100 by which age counts (`DEF_GC_THREAD_AGE_WEIGHT`).
const AGE_WEIGHT: u64 = 60;
/// The whole span of ages, and all blocks of a section, in the units in which they are compared
/// (`DEFAULT_ACCURACY_CLASS`).
const ACCURACY: u64 = 10_000;

/// A section that may be cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) section: u32,
    /// Mean time of its segments' last writes, in seconds of mounted time.
    pub(crate) mtime: u64,
    /// Its valid blocks; neither none nor all.
    pub(crate) valid: u32,
}

/// The oldest and the youngest section that was ever a candidate (`dirty_min_mtime`, `dirty_max_mtime`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AgeRange {
    oldest: u64,
    youngest: u64,
}

impl Default for AgeRange {
    fn default() -> Self {
        Self { oldest: u64::MAX, youngest: 0 }
    }
}

impl AgeRange {
    fn include(&mut self, mtime: u64) {
        self.oldest = self.oldest.min(mtime);
        self.youngest = self.youngest.max(mtime);
    }
}

/// Chooses among candidates, which are given in the order of the search; `blocks` is how many a section has. `range`
/// goes on from the search before.
pub(crate) fn choose(
    candidates: &[Candidate],
    range: &mut AgeRange,
    threshold_s: u64,
    blocks: u32,
) -> Option<u32> {
    let mut old = Vec::new();
    for candidate in candidates {
        range.include(candidate.mtime);
        if range.youngest - candidate.mtime >= threshold_s {
            old.push(*candidate);
        }
    }
    // Stable: of one age, the one that was found first.
    old.sort_by_key(|candidate| candidate.mtime);
    let weighed = CANDIDATES_MIN.max(CANDIDATE_PERCENT * old.len() / 100);
    let mut best: Option<(u64, u64, u32)> = None;
    for candidate in old.iter().take(weighed) {
        let age = age_score(candidate.mtime, range);
        let worth = age + free_score(candidate.valid, blocks);
        if best.is_none_or(|(most, oldest, _)| (worth, age) > (most, oldest)) {
            best = Some((worth, age, candidate.section));
        }
    }
    best.map(|(_, _, section)| section)
}

/// What the age of a section is worth.
fn age_score(mtime: u64, range: &AgeRange) -> u64 {
    let end = range.youngest.saturating_add(1);
    let span = end.saturating_sub(range.oldest).max(1);
    let accuracy = (u64::MAX / span / 100).min(ACCURACY);
    accuracy.saturating_mul(end.saturating_sub(mtime)) / span * AGE_WEIGHT
}

/// What its invalid blocks are worth.
fn free_score(valid: u32, blocks: u32) -> u64 {
    let invalid = u64::from(blocks.saturating_sub(valid));
    ACCURACY * invalid / u64::from(blocks.max(1)) * (100 - AGE_WEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const BLOCKS: u32 = 1_024;

    fn of(sections: &[(u64, u32)]) -> Vec<Candidate> {
        let candidate = |(section, (mtime, valid)): (u32, &(u64, u32))| Candidate {
            section,
            mtime: *mtime,
            valid: *valid,
        };
        (0..).zip(sections).map(candidate).collect()
    }

    /// What the kernel's comments say, for each section by itself: who is old enough, who is among the oldest, and
    /// which of these has the most points.
    fn by_definition(candidates: &[Candidate], before: AgeRange, threshold: u64) -> Option<u32> {
        let mtimes = |count: usize| candidates[..count].iter().map(|one| one.mtime);
        let youngest = |count: usize| mtimes(count).chain([before.youngest]).max().unwrap_or(0);
        let all = candidates.len();
        let oldest = mtimes(all).chain([before.oldest]).min().unwrap_or(0);
        let is_old = |index: usize| youngest(index + 1) - candidates[index].mtime >= threshold;
        let old: Vec<usize> = (0..all).filter(|index| is_old(*index)).collect();
        let older = |index: usize, other: usize| {
            (candidates[other].mtime, other) < (candidates[index].mtime, index)
        };
        let rank = |index: usize| old.iter().filter(|other| older(index, **other)).count();
        let weighed = (old.len() * 20 / 100).max(10);
        let points = |index: usize| {
            let Candidate { mtime, valid, .. } = candidates[index];
            let (end, span) = (youngest(all) + 1, youngest(all) + 1 - oldest);
            let age = 10_000 * (end - mtime) / span * 60;
            (age + 10_000 * u64::from(BLOCKS - valid) / u64::from(BLOCKS) * 40, age)
        };
        let beats = |index: usize, other: usize| {
            (points(index), rank(other)) > (points(other), rank(index))
        };
        let ranked: Vec<usize> =
            old.iter().copied().filter(|index| rank(*index) < weighed).collect();
        let best = ranked
            .iter()
            .find(|index| ranked.iter().all(|other| other == *index || beats(**index, *other)));
        best.map(|index| candidates[*index].section)
    }

    proptest! {
        /// The choice is that of the definition, one search after the other.
        #[test]
        fn the_choice_follows_its_definition(
            searches in vec(vec((0..2_000_u64, 1..BLOCKS), 0..80), 1..3),
            threshold in prop_oneof![Just(0), 0..2_500_u64],
        ) {
            let mut range = AgeRange::default();
            for sections in searches {
                let candidates = of(&sections);
                let expected = by_definition(&candidates, range, threshold);
                let found = choose(&candidates, &mut range, threshold, BLOCKS);
                prop_assert_eq!(found, expected);
            }
        }
    }

    /// Young sections are none, however empty; among old ones both age and invalid blocks count.
    #[test]
    fn young_sections_are_left_alone() {
        let chosen = |sections: &[(u64, u32)], threshold| {
            choose(&of(sections), &mut AgeRange::default(), threshold, BLOCKS)
        };
        let sections = [(0, 1_000), (900, 1), (1_000, 500)];
        assert_eq!(chosen(&sections, 0), Some(0), "age weighs more");
        assert_eq!(chosen(&[(400, 1_000), (500, 1), (0, 1_023), (1_000, 500)], 0), Some(1));
        // The first search learns of the youngest section as it goes.
        assert_eq!(chosen(&sections, 1), None);
        let mut range = AgeRange::default();
        assert_eq!(choose(&of(&sections), &mut range, 100, BLOCKS), None);
        assert_eq!(choose(&of(&sections), &mut range, 100, BLOCKS), Some(0));
        assert_eq!(choose(&of(&sections[1..]), &mut range, 200, BLOCKS), None);
    }

    /// Times from a damaged volume overflow nothing.
    #[test]
    fn any_time_will_do() {
        let sections = [(u64::MAX, 1), (0, 1_023), (u64::MAX - 1, 2), (1, 700)];
        let mut range = AgeRange::default();
        choose(&of(&sections), &mut range, 0, BLOCKS);
        assert_eq!(choose(&of(&sections), &mut range, 10, BLOCKS), Some(3));
        assert_eq!(choose(&of(&sections), &mut range, u64::MAX, 0), Some(1));
    }
}
