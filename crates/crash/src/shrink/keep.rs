//! Which numbered operations of a load are sent.

use super::numbers::Numbers;

/// All operations, or these alone.
#[derive(Clone, Default, Debug)]
pub(crate) struct Keep(Option<Numbers>);

impl Keep {
    /// These alone.
    pub(crate) const fn only(numbers: Numbers) -> Self {
        Self(Some(numbers))
    }

    /// Whether all are.
    pub(crate) const fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Whether an operation is.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.0.as_ref().is_none_or(|numbers| numbers.has(number))
    }

    /// The last one of a load of so many.
    pub(crate) fn last(&self, of: u32) -> u32 {
        self.0.as_ref().map_or(of, |numbers| numbers.last().unwrap_or(0).min(of))
    }

    /// Those up to a number.
    pub(crate) fn up_to(&self, number: u32) -> Numbers {
        match &self.0 {
            None => Numbers::up_to(number),
            Some(numbers) => numbers.iter().take_while(|one| *one <= number).collect(),
        }
    }

    /// The first ones, so many.
    pub(crate) fn first(&self, count: usize) -> Numbers {
        match &self.0 {
            None => Numbers::up_to(count as u32),
            Some(numbers) => numbers.iter().take(count).collect(),
        }
    }
}
