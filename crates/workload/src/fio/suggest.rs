//! "Did you mean": the known key closest to a mistyped one.

use super::{keys, known};

/// Typing errors that still let a key be recognised.
const DISTANCE_MAX: usize = 2;

/// The known key within two typing errors of `typed`, the closest one if there are several.
pub(super) fn closest(typed: &str) -> Option<&'static str> {
    let machine = known::MACHINE.iter().flat_map(|(_, names)| names.iter());
    keys::supported_keys()
        .chain(machine.chain(known::UNSUPPORTED).copied())
        .filter(|name| name.len().abs_diff(typed.len()) <= DISTANCE_MAX)
        .map(|name| (edit_distance(typed.as_bytes(), name.as_bytes()), name))
        .filter(|(distance, name)| *distance <= DISTANCE_MAX && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein's distance, in the units of the slices.
#[must_use]
pub fn edit_distance<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slip is recognised, another word is not.
    #[test]
    fn the_closest_key_within_two_slips() {
        assert_eq!(closest("iodepht"), Some("iodepth"));
        assert_eq!(closest("runtim"), Some("runtime"));
        assert_eq!(closest("rwmixreads"), Some("rwmixread"));
        assert_eq!(closest("frobnicate"), None);
        assert_eq!(closest("x"), None);
    }
}
