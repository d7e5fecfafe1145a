//! What a seed leans towards: families of what goes wrong rarely.

/// What a scenario leans towards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScenarioFamily {
    /// Everything at random.
    Mixed,
    /// Overwrites of a small span, rarely flushed.
    Overwrite,
    /// Batches of writes, each followed by a commit.
    Journal,
    /// Many barriers among many unfinished writes.
    Barriers,
    /// Discards, flushes, and cuts right after them.
    Trims,
    /// Frequent program and erase failures under overwrites.
    Failures,
}

impl ScenarioFamily {
    pub(crate) const ALL: [Self; 6] =
        [Self::Mixed, Self::Overwrite, Self::Journal, Self::Barriers, Self::Trims, Self::Failures];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Overwrite => "overwrite",
            Self::Journal => "journal",
            Self::Barriers => "barriers",
            Self::Trims => "trims",
            Self::Failures => "failures",
        }
    }
}
