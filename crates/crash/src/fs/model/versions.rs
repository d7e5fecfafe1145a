//! Versions of one thing: what a sync covered last, and what came after it. A power cut may leave any of
//! these, and nothing older.

/// Number of an event of one writer. A sync covers what was done up to the event at which it began.
pub(crate) type Moment = u64;

/// The versions of one thing.
#[derive(Clone, Debug)]
pub(crate) struct Versions<T> {
    covered: T,
    /// Oldest first.
    later: Vec<(Moment, T)>,
}

impl<T: Default> Default for Versions<T> {
    fn default() -> Self {
        Self::of(T::default())
    }
}

impl<T> Versions<T> {
    /// One version, which is covered.
    pub(crate) const fn of(covered: T) -> Self {
        Self { covered, later: Vec::new() }
    }

    pub(crate) const fn covered(&self) -> &T {
        &self.covered
    }

    pub(crate) fn newest(&self) -> &T {
        self.later.last().map_or(&self.covered, |(_, newest)| newest)
    }

    /// A version comes to be.
    pub(crate) fn push(&mut self, at: Moment, version: T) {
        self.later.push((at, version));
    }

    /// Whether there is more than what was covered.
    pub(crate) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// What came after the covered version, oldest first.
    pub(crate) fn later(&self) -> impl Iterator<Item = &T> {
        self.later.iter().map(|(_, version)| version)
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        [&self.covered].into_iter().chain(self.later())
    }

    /// What was there at a moment is covered: nothing older comes back. Returns whether that is a new
    /// version.
    pub(crate) fn cover(&mut self, until: Moment) -> bool {
        let count = self.later.partition_point(|(at, _)| *at <= until);
        match self.later.drain(..count).next_back() {
            Some((_, covered)) => {
                self.covered = covered;
                true
            }
            None => false,
        }
    }
}
