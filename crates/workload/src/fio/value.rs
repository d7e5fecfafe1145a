//! The text behind a key's `=`, and the shapes it can have.

use super::error::Why;
use super::spec::JobSpec;
use super::units::{self, Amount};
use nandscape_rt::Nanos;

/// What a setter says: a remark about a value without effect, or what it expected instead.
pub(super) type Set = Result<Option<Why>, String>;

/// A key's effect on a job.
pub(super) type Setter = fn(&mut JobSpec, &Value<'_>) -> Set;

/// A value of a key, not yet understood.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    /// The text, if there was an `=`.
    pub(super) text: Option<&'a str>,
    /// Bytes of a `k`.
    pub(super) kb_base: u64,
}

impl<'a> Value<'a> {
    /// The text, which must be there.
    pub(super) fn text(&self, expected: &str) -> Result<&'a str, String> {
        self.text.filter(|text| !text.is_empty()).ok_or_else(|| expected.to_owned())
    }

    /// 0 or 1; a key alone is 1.
    pub(super) fn flag(&self) -> Result<bool, String> {
        match self.text {
            None | Some("1" | "true") => Ok(true),
            Some("0" | "false") => Ok(false),
            Some(_) => Err("0 or 1".into()),
        }
    }

    /// A count within `min..=max`.
    pub(super) fn count(&self, min: u64, max: u64) -> Result<u64, String> {
        let expected = || match max {
            u64::MAX => format!("a number, at least {min}"),
            _ => format!("a number from {min} to {max}"),
        };
        let count = units::bytes(self.text(&expected())?, self.kb_base);
        count.filter(|n| (min..=max).contains(n)).ok_or_else(expected)
    }

    /// A size or a percentage.
    pub(super) fn amount(&self) -> Result<Amount, String> {
        let expected = "a size such as 512m, or a percentage such as 50%";
        units::amount(self.text(expected)?, self.kb_base).ok_or_else(|| expected.into())
    }

    /// A time; a number without suffix counts in `plain`.
    pub(super) fn time(&self, plain: Nanos) -> Result<Nanos, String> {
        let expected = format!("a time such as 10s, 5m or 200us (a plain number: {plain} each)");
        units::time(self.text(&expected)?, plain).ok_or(expected)
    }

    /// A name followed by `:parameter`, or alone.
    pub(super) fn named(&self, expected: &str) -> Result<(&'a str, Option<&'a str>), String> {
        let text = self.text(expected)?;
        Ok(match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        })
    }

    /// Up to three sizes, for reads, writes and trims.
    pub(super) fn per_direction(&self, expected: &str) -> Result<[Option<u64>; 3], String> {
        self.each_direction(expected, |part| units::bytes(part, self.kb_base))
    }

    /// Up to three values, for reads, writes and trims, as fio spreads them: a value stands for the
    /// directions after it too, unless a comma ends it; what is empty stays as it was.
    pub(super) fn each_direction<T: Clone>(
        &self,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<[Option<T>; 3], String> {
        let parts: Vec<&str> = self.text(expected)?.split(',').map(str::trim).collect();
        if parts.len() > 3 {
            return Err(expected.into());
        }
        let mut values = [const { None }; 3];
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let value = parse(part).ok_or_else(|| expected.to_owned())?;
            let end = if index + 1 == parts.len() { 3 } else { index + 1 };
            values[index..end].fill(Some(value));
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fio's rules for comma-separated values.
    #[test]
    fn a_value_reaches_on_unless_a_comma_ends_it() {
        for (text, values) in [
            ("4k", [Some(4096); 3]),
            ("4k,8k", [Some(4096), Some(8192), Some(8192)]),
            ("4k,8k,", [Some(4096), Some(8192), None]),
            (",8k", [None, Some(8192), Some(8192)]),
            ("4k,", [Some(4096), None, None]),
            ("1,2,3", [Some(1), Some(2), Some(3)]),
        ] {
            let value = Value { text: Some(text), kb_base: 1024 };
            assert_eq!(value.per_direction("sizes"), Ok(values), "{text}");
        }
        let four = Value { text: Some("1,2,3,4"), kb_base: 1024 };
        assert!(four.per_direction("sizes").is_err());
    }
}
