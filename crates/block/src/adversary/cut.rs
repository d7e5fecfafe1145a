//! What a power cut keeps of what no flush covered. Each style keeps a subset that the crash model
//! permits: of each sector the durable version, or any one that landed or was in flight.

use super::cache::{Cache, Version};
use crate::bio::Flags;
use nandscape_rt::Stream;

/// How a cut chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutStyle {
    /// Of each sector any version, by its own throw.
    EachSector,
    /// Each write whole or not at all, by its own throw.
    EachWrite,
    /// Nothing.
    Nothing,
    /// All.
    Everything,
    /// Only what landed last.
    Newest,
    /// Only what landed first.
    Oldest,
    /// All but one write.
    AllButOne,
    /// Only one write.
    OnlyOne,
    /// Only what belongs to a journal and has no FUA.
    OnlyJournal,
    /// Only what does not.
    NoJournal,
}

impl CutStyle {
    /// All styles.
    pub const ALL: [Self; 10] = [
        Self::EachSector,
        Self::EachWrite,
        Self::Nothing,
        Self::Everything,
        Self::Newest,
        Self::Oldest,
        Self::AllButOne,
        Self::OnlyOne,
        Self::OnlyJournal,
        Self::NoJournal,
    ];
}

impl Cache {
    /// Power fails: each sector keeps one version, as a style that is drawn has it.
    pub(super) fn cut(&mut self, rng: &mut Stream) -> CutStyle {
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
        style
    }

    /// Which versions a style keeps.
    fn choice(&self, style: CutStyle, rng: &mut Stream) -> impl Fn(&Version) -> bool + use<> {
        let versions = || self.volatile.values().flatten();
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
