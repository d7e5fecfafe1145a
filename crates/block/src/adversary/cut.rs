//! What a power cut keeps of what no flush covered. Each style keeps a subset that the crash model
//! permits: of each sector the durable version, or any one that landed or was in flight; of each zone a
//! prefix of its history.

use super::cache::Cache;
use super::version::{CutStyle, Version};
use crate::bio::Flags;
use nandscape_rt::Stream;
use std::collections::BTreeSet;

impl Cache {
    /// Power fails: each sector keeps one version, as a style that is drawn has it. Bios with the numbers
    /// in `waiting` leave nothing: they wait for their flush.
    pub(super) fn cut(&mut self, waiting: &BTreeSet<u64>, rng: &mut Stream) -> CutStyle {
        let style = CutStyle::ALL[rng.below(CutStyle::ALL.len() as u64) as usize];
        let keep = self.choice(style, rng);
        self.forget_completed();
        for (lba, mut versions) in std::mem::take(&mut self.volatile) {
            let kept = match style {
                CutStyle::EachSector => rng.below(versions.len() as u64 + 1).checked_sub(1),
                _ => versions.iter().rposition(&keep).map(|index| index as u64),
            };
            let kept = kept.map(|index| versions.swap_remove(index as usize));
            self.settle(lba, kept);
        }
        self.zones.cut(style, &keep, waiting, rng);
        style
    }

    /// Which versions a style keeps.
    fn choice(&self, style: CutStyle, rng: &mut Stream) -> impl Fn(&Version) -> bool + use<> {
        let versions = || self.volatile.values().flatten().chain(self.zones.uncovered());
        let landed = || versions().map(|version| version.landed);
        let (first, last) = (landed().min().unwrap_or(0), landed().max().unwrap_or(0));
        let bound = rng.within(first..last + 1);
        let any = rng.below(versions().count().max(1) as u64) as usize;
        let one = versions().nth(any).map_or(0, |version| version.write);
        let salt = rng.bits();
        move |version| match style {
            CutStyle::EachSector | CutStyle::Nothing => false,
            CutStyle::EachWrite => Stream::new(salt ^ version.write, "kept").chance(0.5),
            CutStyle::Everything => true,
            CutStyle::Newest => version.landed > bound,
            CutStyle::Oldest => version.landed <= bound,
            CutStyle::AllButOne => version.write != one,
            CutStyle::OnlyOne => version.write == one,
            CutStyle::OnlyJournal => is_of_journal(version.flags),
            CutStyle::NoJournal => !is_of_journal(version.flags),
        }
    }
}

fn is_of_journal(flags: Flags) -> bool {
    flags.has(Flags::JOURNAL) && !flags.has(Flags::FUA)
}
