//! A structure as `dump` shows it: lines of text, and the same as JSON. Each part is added once, in both forms, so
//! neither lacks what the other has.
//!
//! Names in JSON are those of the text, with underscores for blanks. Ranges in text are inclusive, as debugfs prints them.
//! Bytes of names and values are escaped as in Rust's byte strings (`\xff`, `\n`).

use serde_json::{Map, Value};
use std::fmt::{self, Display, Write};
use std::ops::Range;

/// Seconds per day.
const DAY_S: i64 = 86_400;

/// What is shown of a structure.
#[derive(Clone, PartialEq, Debug)]
pub struct Dump {
    /// Lines to read.
    pub text: String,
    /// The same as JSON.
    pub json: Map<String, Value>,
    /// Columns of a field's name in the text.
    name_width: usize,
}

impl Dump {
    pub(crate) fn new(name_width: usize) -> Self {
        Self { text: String::new(), json: Map::new(), name_width }
    }

    /// A line of text alone.
    pub(crate) fn note(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// A field whose text is that of its value.
    pub(crate) fn field(&mut self, name: &str, value: impl Display + Into<Value>) {
        self.line(name, &value);
        self.json.insert(key(name), value.into());
    }

    /// A field whose text is not that of its value.
    pub(crate) fn shown(&mut self, name: &str, text: impl Display, value: impl Into<Value>) {
        self.line(name, &text);
        self.json.insert(key(name), value.into());
    }

    /// A line of text, and an element of a list.
    pub(crate) fn row(&mut self, list: &str, line: fmt::Arguments<'_>, element: impl Into<Value>) {
        self.note(line);
        self.element(list, element);
    }

    /// A field in the text, and an element of a list.
    pub(crate) fn item(
        &mut self,
        list: &str,
        name: &str,
        text: impl Display,
        element: impl Into<Value>,
    ) {
        self.line(name, &text);
        self.element(list, element);
    }

    /// A list that is there even if it stays empty.
    pub(crate) fn list(&mut self, list: &str) {
        self.json.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    }

    /// Something that cannot be read or is wrong.
    pub(crate) fn problem(&mut self, problem: impl Display) {
        let problem = problem.to_string();
        self.row("problems", format_args!("unsound: {problem}"), problem.clone());
    }

    /// An element of a list, whose text is there.
    pub(crate) fn element(&mut self, list: &str, element: impl Into<Value>) {
        self.list(list);
        if let Some(Value::Array(elements)) = self.json.get_mut(list) {
            elements.push(element.into());
        }
    }

    fn line(&mut self, name: &str, text: &dyn Display) {
        let width = self.name_width;
        self.note(format_args!("{name:<width$} {text}"));
    }
}

fn key(name: &str) -> String {
    name.to_lowercase().replace(' ', "_")
}

/// A range as debugfs prints it: `15-24`, or `15` alone.
pub(crate) fn inclusive(range: Range<u64>) -> String {
    match range.end.saturating_sub(1) {
        last if last > range.start => format!("{}-{last}", range.start),
        _ => range.start.to_string(),
    }
}

/// A time in ISO 8601, in UTC: `2026-11-27T10:00:00.250000000Z`, without a fraction if that is zero.
pub(crate) fn iso8601(seconds: i64, nanos: u32) -> String {
    let (year, month, day) = date(seconds.div_euclid(DAY_S));
    let of_day = seconds.rem_euclid(DAY_S);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = if nanos == 0 { String::new() } else { format!(".{nanos:09}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Year, month and day of a day after 1970-01-01, in the proleptic Gregorian calendar.
///
/// Years are counted from March on, so that the leap day is the last one. (E. G. Richards, "Mapping Time", 1998.)
fn date(day: i64) -> (i128, i128, i128) {
    // Days of 400, 100, 4 years and of one; days from 0000-03-01 to 1970-01-01.
    const ERA: i128 = 146_097;
    const EPOCH: i128 = 719_468;
    let day = i128::from(day) + EPOCH;
    let (era, day) = (day.div_euclid(ERA), day.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on have 30.6 days on average.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, after) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + after, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Dates around leap days, before 1970, and at the ends of what fits.
    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_508_708, "2026-11-24T08:25:08Z"),
        ] {
            assert_eq!(iso8601(seconds, 0), expected);
        }
        assert_eq!(iso8601(0, 5), "1970-01-01T00:00:00.000000005Z");
        assert!(iso8601(i64::MIN, 0).ends_with('Z') && iso8601(i64::MAX, 0).ends_with('Z'));
    }

    /// What is added is in both forms, once.
    #[test]
    fn text_and_json_have_the_same() {
        let mut dump = Dump::new(8);
        dump.field("NAT version", 3_u32);
        dump.shown("mode", "0755", 0o755);
        dump.list("names");
        dump.row("extents", format_args!("  ({}):{}", inclusive(0..10), inclusive(15..25)), 1);
        dump.row("extents", format_args!("  ({}):{}", inclusive(10..11), inclusive(40..41)), 2);
        dump.problem("no such node");
        assert_eq!(
            dump.text,
            "NAT version 3\nmode     0755\n  (0-9):15-24\n  (10):40\nunsound: no such node\n"
        );
        let expected = json!({
            "nat_version": 3, "mode": 493, "names": [], "extents": [1, 2], "problems": ["no such node"],
        });
        assert_eq!(Value::Object(dump.json), expected);
    }
}
