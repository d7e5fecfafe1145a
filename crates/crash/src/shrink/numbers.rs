//! Sets of numbers, as text in ranges: `3,7-9`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The largest number: no load draws more requests.
const LARGEST: u32 = 1 << 20;

/// Numbers in order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Numbers(BTreeSet<u32>);

impl Numbers {
    /// Those from 1 to `last`.
    #[must_use]
    pub fn up_to(last: u32) -> Self {
        (1..=last).collect()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a number is among them.
    #[must_use]
    pub fn has(&self, number: u32) -> bool {
        self.0.contains(&number)
    }

    /// The largest one.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.0.last().copied()
    }

    /// Adds a number.
    pub fn insert(&mut self, number: u32) {
        self.0.insert(number);
    }

    /// Removes a number.
    pub fn remove(&mut self, number: u32) {
        self.0.remove(&number);
    }

    /// The numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<u32> for Numbers {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<u32> = self.iter().collect();
        for (index, run) in numbers.chunk_by(|one, next| one + 1 == *next).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match run {
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                single => write!(f, "{comma}{}", single[0])?,
            }
        }
        Ok(())
    }
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut numbers = Self::default();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{range}: the range ends before it begins"));
            }
            numbers.0.extend(first..=last);
        }
        Ok(numbers)
    }
}

/// A number of the campaign's.
pub(super) fn number(text: &str) -> Result<u32, String> {
    let parsed = text.parse().ok().filter(|number| *number <= LARGEST);
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    parsed.filter(|_| digits).ok_or_else(|| format!("'{text}': expected a number up to {LARGEST}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges() {
        let text = "3,7-9,11-12";
        let numbers: Numbers = text.parse().unwrap();
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [3, 7, 8, 9, 11, 12]);
        assert_eq!(numbers.to_string(), text);
        for (wrong, part) in [
            ("", "''"),
            ("1,", "''"),
            ("9-7", "9-7: the range ends"),
            ("x", "'x'"),
            ("+1", "'+1'"),
            ("1-99999999", "'99999999'"),
        ] {
            let error = wrong.parse::<Numbers>().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
