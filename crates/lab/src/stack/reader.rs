//! The typed reader of a stack's tables. Reading *is* the grammar: a key that no reader asked for is an
//! error when its section closes, and what was read, defaults included, is written down as the
//! resolved stack in the same pass.

use super::document::{Node, Table, Value};
use super::place::{Place, StackError};
use super::units::{did_you_mean, parse_size, parse_time, show_size, show_time};
use nandscape_rt::Nanos;
use std::collections::BTreeMap;

/// Keys that have another name now: the old one and the new one, in full.
const MOVED: &[(&str, &str)] = &[
    ("fs.call_ns", "host.syscall_ns"),
    ("fs.copy_ns", "host.copy_ns"),
    ("media.timing.command_ns", "link.command_ns"),
    ("media.timing.firmware_small_ns", "link.read_small_ns"),
    ("media.timing.firmware_large_ns", "link.read_large_ns"),
    ("media.timing.firmware_small_bytes", "link.read_small_bytes"),
    ("media.timing.pcie_bytes_per_s", "link.bytes_per_s"),
    ("media.timing.buffer_base_ns", "link.buffer_base_ns"),
    ("media.timing.buffer_sector_ns", "link.buffer_sector_ns"),
    ("media.timing.late_ns", "media.timing.max_read_preemption_ns"),
    ("media.timing.suspensions", "media.timing.max_suspensions"),
    ("ftl.special_ring", "ftl.special_buffer"),
    ("fs.make", "fs.format"),
    ("fs.records", "fs.ijournal_area"),
];

/// Words that had another name in earlier versions: the key, the old word, and the word now.
const RENAMED_WORDS: &[(&str, &str, &str)] = &[("ftl.gc.journal_lines", "left-to-die", "exempt")];

/// What the key with this full name is called now, if it had another name.
pub(crate) fn renamed_key(key: &str) -> Option<&'static str> {
    MOVED.iter().find(|(old, _)| *old == key).map(|(_, now)| *now)
}

/// What `word` of the key with this full name is called now, if it had another name.
pub(crate) fn renamed_word(key: &str, word: &str) -> Option<&'static str> {
    let of_word = |(path, old, _): &&(&str, &str, &str)| (*path, *old) == (key, word);
    RENAMED_WORDS.iter().find(of_word).map(|(_, _, now)| *now)
}

/// A type that a value can be read as.
pub trait Field: Sized {
    /// What an error says was expected.
    const EXPECTED: &'static str;
    /// The value, if it is one.
    fn read(node: &Node) -> Option<Self>;
    /// As TOML.
    fn show(&self) -> String;
}

impl Field for u64 {
    const EXPECTED: &'static str = "a whole number";
    fn read(node: &Node) -> Option<Self> {
        if let Value::Integer(number) = node.value { number.try_into().ok() } else { None }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Field for u32 {
    const EXPECTED: &'static str = "a whole number up to 4,294,967,295";
    fn read(node: &Node) -> Option<Self> {
        u64::read(node)?.try_into().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Field for f64 {
    const EXPECTED: &'static str = "a number";
    fn read(node: &Node) -> Option<Self> {
        match node.value {
            Value::Float(number) => Some(number).filter(|number| number.is_finite()),
            Value::Integer(number) => Some(number as Self),
            _ => None,
        }
    }
    fn show(&self) -> String {
        format!("{self:?}")
    }
}

impl Field for bool {
    const EXPECTED: &'static str = "true or false";
    fn read(node: &Node) -> Option<Self> {
        if let Value::Boolean(truth) = node.value { Some(truth) } else { None }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Field for String {
    const EXPECTED: &'static str = "a string";
    fn read(node: &Node) -> Option<Self> {
        match (&node.value, &node.raw) {
            (Value::String(text), _) => Some(text.clone()),
            (Value::Integer(_) | Value::Float(_) | Value::Boolean(_), Some(raw)) => {
                Some(raw.to_string())
            }
            _ => None,
        }
    }
    fn show(&self) -> String {
        toml::Value::String(self.clone()).to_string()
    }
}

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size(pub u64);

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_size(text).map(Self).ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }
}

impl Field for Size {
    const EXPECTED: &'static str = "a size such as \"64MiB\"";
    fn read(node: &Node) -> Option<Self> {
        match &node.value {
            Value::String(text) => parse_size(text).map(Self),
            Value::Integer(bytes) => u64::try_from(*bytes).ok().map(Self),
            _ => None,
        }
    }
    fn show(&self) -> String {
        show_size(self.0).show()
    }
}

/// A span of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span(pub(super) Nanos);

impl Field for Span {
    const EXPECTED: &'static str = "a time such as \"5s\" or \"500ms\"";
    fn read(node: &Node) -> Option<Self> {
        if let Value::String(text) = &node.value { parse_time(text).map(Self) } else { None }
    }
    fn show(&self) -> String {
        show_time(self.0).show()
    }
}

/// A pair of sizes, first and end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SizeRange(pub(super) u64, pub(super) u64);

impl Field for SizeRange {
    const EXPECTED: &'static str = "two sizes, first and end, such as [\"0\", \"64MiB\"]";
    fn read(node: &Node) -> Option<Self> {
        let Value::Array(pair) = &node.value else { return None };
        let [first, end] = pair.as_slice() else { return None };
        Some(Self(Size::read(first)?.0, Size::read(end)?.0)).filter(|range| range.0 < range.1)
    }
    fn show(&self) -> String {
        format!("[{}, {}]", Size(self.0).show(), Size(self.1).show())
    }
}

/// The words that a key may hold.
pub(super) struct Words<T: 'static> {
    /// Each with what it means.
    pub(super) here: &'static [(&'static str, T)],
}

impl<T: Copy> Words<T> {
    /// The meaning of `word`, or why it has none.
    pub(super) fn read(&self, word: &str) -> Result<T, String> {
        if let Some((_, meaning)) = self.here.iter().find(|(name, _)| *name == word) {
            return Ok(*meaning);
        }
        let names = || self.here.iter().map(|(name, _)| *name);
        let expected = names().collect::<Vec<_>>().join(" | ");
        Err(format!("expected {expected}, found \"{word}\"{}", did_you_mean(word, names())))
    }
}

/// Keys that go with one value of another key.
struct Foreign {
    keys: &'static [&'static str],
    with: &'static str,
    value: &'static str,
}

/// One table of a stack while it is read.
pub struct Section<'a> {
    path: &'static str,
    table: Option<&'a Table>,
    place: Place,
    asked: Vec<&'static str>,
    /// Keys that were given, and not as they would be without that.
    chosen: Vec<&'static str>,
    /// Keys that mean something where another key has another value, and which.
    foreign: Vec<Foreign>,
    /// The resolved stack as far as it was read.
    lines: String,
}

/// Where the values of a stack stand, for what is found wrong with them only later.
pub(super) fn places(table: &Table) -> Places {
    let mut places = Places::new();
    note_places(table, "", &mut places);
    places
}

/// Full key, and where its value stands.
pub(super) type Places = BTreeMap<String, Place>;

fn note_places(table: &Table, path: &str, places: &mut Places) {
    for (key, node) in table {
        let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if let Value::Table(below) = &node.value {
            note_places(below, &full, places);
        }
        places.insert(full, node.place.clone());
    }
}

impl<'a> Section<'a> {
    /// The root of a file that begins at `place`.
    #[must_use]
    pub fn root(table: &'a Table, place: &Place) -> Self {
        Self::entry(table, "", place)
    }

    /// One of the tables in a list that is called `path` in messages; it begins at `place`.
    #[must_use]
    pub fn entry(table: &'a Table, path: &'static str, place: &Place) -> Self {
        let (table, place) = (Some(table), place.clone());
        Self::of(path, table, place)
    }

    fn of(path: &'static str, table: Option<&'a Table>, place: Place) -> Self {
        let (asked, chosen, foreign) = (Vec::new(), Vec::new(), Vec::new());
        Self { path, table, place, asked, chosen, foreign, lines: String::new() }
    }

    /// The table under `key`, called `path` in messages; absent is the same as empty.
    pub(super) fn section(
        &mut self,
        key: &'static str,
        path: &'static str,
    ) -> Result<Self, StackError> {
        let table = self.table(key)?;
        let node = self.node(key).filter(|_| table.is_some());
        let place = node.map_or(&self.place, |node| &node.key_place).clone();
        Ok(Self::of(path, table, place))
    }

    /// The table under `key`, whose keys are free; none when not given.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn table(&mut self, key: &'static str) -> Result<Option<&'a Table>, StackError> {
        match self.node(key).map(|node| (&node.value, node)) {
            None => Ok(None),
            Some((Value::Table(table), _)) => Ok(Some(table)),
            Some((other, node)) => {
                let message = format!("expected a table, found {}", other.describe());
                Err(self.error_at(&node.place, key, message))
            }
        }
    }

    /// Whether nothing at all was said in this section.
    pub(super) fn is_absent(&self) -> bool {
        self.table.is_none()
    }

    /// The value of `key`, if given.
    ///
    /// # Errors
    /// It is of another type.
    pub fn optional<T: Field>(&mut self, key: &'static str) -> Result<Option<T>, StackError> {
        let value: Option<T> = self.unwritten(key)?;
        if let Some(value) = &value {
            self.write(key, &value.show());
        }
        Ok(value)
    }

    /// The value of `key`, if given, for the caller to write down.
    pub(super) fn unwritten<T: Field>(
        &mut self,
        key: &'static str,
    ) -> Result<Option<T>, StackError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        T::read(node).map(Some).ok_or_else(|| {
            let message = format!("expected {}, found {}", T::EXPECTED, node.value.describe());
            self.error_at(&node.place, key, message)
        })
    }

    /// The value of `key`, or `default`.
    pub(super) fn or<T: Field>(&mut self, key: &'static str, default: T) -> Result<T, StackError> {
        let plain = default.show();
        let value = self.unwritten(key)?.unwrap_or(default);
        self.write_unless(&plain, key, &value.show());
        Ok(value)
    }

    /// The value of `key`, which must be given.
    ///
    /// # Errors
    /// It is missing or of another type.
    pub fn required<T: Field>(&mut self, key: &'static str) -> Result<T, StackError> {
        self.optional(key)?.ok_or_else(|| {
            let message = format!("is missing; expected {}", T::EXPECTED);
            self.error_at(&self.place, key, message)
        })
    }

    /// The meaning of the word under `key`, or of `default`; it is written down as `show` has it.
    pub(super) fn word<T>(
        &mut self,
        key: &'static str,
        default: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
        show: impl FnOnce(&T, &str) -> String,
    ) -> Result<T, StackError> {
        let node = self.node(key);
        if let Some(Value::Array(_)) = node.map(|node| &node.value) {
            return Err(self.reject(key, "combining several is not in this version"));
        }
        let word = self.unwritten(key)?.unwrap_or_else(|| default.to_owned());
        let meaning = read(&word).map_err(|message| {
            let now = renamed_word(&self.full(key), &word);
            self.reject(key, now.map_or(message, |now| format!("\"{word}\" is \"{now}\" now")))
        })?;
        let text = show(&meaning, &word).show();
        if word == default {
            self.line(key, &text)
        } else {
            self.write(key, &text)
        }
        Ok(meaning)
    }

    /// One of `words`, `default` when not given.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        default: &str,
        words: &Words<T>,
    ) -> Result<T, StackError> {
        self.word(key, default, |word| words.read(word), |_, word| word.to_owned())
    }

    /// One of `words`, if given.
    pub(super) fn optional_choice<T: Copy>(
        &mut self,
        key: &'static str,
        words: &Words<T>,
    ) -> Result<Option<T>, StackError> {
        match self.node(key) {
            Some(_) => self.choice(key, "", words).map(Some),
            None => Ok(None),
        }
    }

    /// The string under `key`, or the strings of a list there, with their places.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn strings(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Vec<(String, Place)>>, StackError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let nodes = match &node.value {
            Value::Array(nodes) if !nodes.is_empty() => nodes,
            _ => std::slice::from_ref(node),
        };
        let string = |node: &Node| match &node.value {
            Value::String(text) => Ok((text.clone(), node.place.clone())),
            other => {
                let message = format!("expected strings, found {}", other.describe());
                Err(self.error_at(&node.place, key, message))
            }
        };
        nodes.iter().map(string).collect::<Result<_, _>>().map(Some)
    }

    /// The tables of the list under `key`, each to be read by itself; none if not given.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn entries(&mut self, key: &'static str) -> Result<Vec<Section<'a>>, StackError> {
        let Some(node) = self.node(key) else { return Ok(Vec::new()) };
        let wrong = |node: &Node| {
            let message = format!("expected [[{key}]] tables, found {}", node.value.describe());
            self.error_at(&node.place, key, message)
        };
        let Value::Array(nodes) = &node.value else { return Err(wrong(node)) };
        let entry = |node: &'a Node| match &node.value {
            Value::Table(table) => Ok(Section::entry(table, key, &node.place)),
            _ => Err(wrong(node)),
        };
        nodes.iter().map(entry).collect()
    }

    /// An error about the value of `key` if `holds` is false.
    pub(super) fn check(&self, key: &str, holds: bool, rule: &str) -> Result<(), StackError> {
        if holds { Ok(()) } else { Err(self.reject(key, rule)) }
    }

    /// An error about the value of `key`, at the value's place or, if not given, at the section's.
    #[must_use]
    pub fn reject(&self, key: &str, message: impl Into<String>) -> StackError {
        self.error_at(self.place_of(key), key, message)
    }

    /// Where the value of `key` stands, or where the section begins if it is not given.
    #[must_use]
    pub fn place_of(&self, key: &str) -> &Place {
        let node = self.table.and_then(|table| table.get(key));
        node.map_or(&self.place, |node| &node.place)
    }

    /// Whether `key` holds a table.
    pub(super) fn holds_table(&self, key: &str) -> bool {
        let node = self.table.and_then(|table| table.get(key));
        matches!(node.map(|node| &node.value), Some(Value::Table(_)))
    }

    /// Ends the section: every key in it must have been asked for. Returns the resolved lines.
    ///
    /// # Errors
    /// The first key that no reader asked for.
    pub fn close(self) -> Result<String, StackError> {
        let unknown = |(key, _): &(&String, &Node)| !self.asked.contains(&key.as_str());
        let Some((key, node)) = self.table.into_iter().flatten().find(unknown) else {
            return Ok(self.lines);
        };
        let path = self.full(key);
        let message = match renamed_key(&path) {
            Some(now) => format!("is {now} now"),
            None => self.unknown_key(key),
        };
        Err(StackError::new(&node.key_place, path, message))
    }

    /// Refuses keys that had another name in earlier versions, given as old name and name now.
    ///
    /// # Errors
    /// The first such key.
    pub fn refuse_renamed(&self, renamed: &[(&str, &str)]) -> Result<(), StackError> {
        let now = |key: &str| renamed.iter().find(|(old, _)| *old == key).map(|(_, now)| *now);
        let mut given = self.table.into_iter().flatten();
        let found = given.find_map(|(key, node)| Some((key, &node.key_place, now(key)?)));
        found.map_or(Ok(()), |(key, place, now)| {
            Err(StackError::new(place, self.full(key), format!("is {now} now")))
        })
    }

    /// Writes down `key = text`, which was chosen, as part of the resolved stack.
    pub(super) fn write(&mut self, key: &'static str, text: &str) {
        self.chosen.push(key);
        self.line(key, text);
    }

    /// The same for a key that is `plain` when it is not chosen.
    pub(super) fn write_unless(&mut self, plain: &str, key: &'static str, text: &str) {
        if text == plain { self.line(key, text) } else { self.write(key, text) }
    }

    fn line(&mut self, key: &str, text: &str) {
        self.lines.push_str(&format!("{key} = {text}\n"));
    }

    /// Keys that were chosen so far: given, and not as they would be without that.
    pub(super) fn chosen(&self) -> &[&'static str] {
        &self.chosen
    }

    /// Of these keys, those that this section does not ask for are refused when it closes because they go with this value
    /// of another key, instead of as unknown.
    pub(super) fn foreign(
        &mut self,
        keys: &'static [&'static str],
        with: &'static str,
        value: &'static str,
    ) {
        self.foreign.push(Foreign { keys, with, value });
    }

    /// Refuses keys that are given although they mean nothing here, for this reason.
    pub(super) fn refuse(&mut self, keys: &[&'static str], why: &str) -> Result<(), StackError> {
        let given = |key: &&&'static str| self.node(key).is_some();
        keys.iter().find(given).map_or(Ok(()), |key| Err(self.reject(key, why)))
    }

    fn unknown_key(&self, key: &str) -> String {
        let going_with = |foreign: &&Foreign| foreign.keys.contains(&key);
        if let Some(Foreign { with, .. }) = self.foreign.iter().find(going_with) {
            let all = self.foreign.iter().filter(going_with);
            let values: Vec<_> = all.map(|foreign| foreign.value).collect();
            return format!("goes with {with} = {} only", values.join(" or "));
        }
        let hint = did_you_mean(key, self.asked.iter().copied());
        format!("unknown key{hint} (known here: {})", self.asked.join(", "))
    }

    /// What stands under `key`, which is known from now on.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.table?.get(key)
    }

    fn error_at(&self, place: &Place, key: &str, message: impl Into<String>) -> StackError {
        StackError::new(place, self.full(key), message)
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::document::parse;

    /// A key of something else is refused by what it belongs to, unless this section has it, too.
    #[test]
    fn foreign_keys_are_refused_by_their_owner() {
        let refusal = |text: &str| {
            let table = parse(&"a.toml".into(), text).unwrap();
            let mut section = Section::entry(&table, "ftl", &Place::Argument("stack"));
            section.foreign(&["limiter", "gc", "ring"], "ftl.kind", "pblk");
            section.foreign(&["flush", "gc"], "ftl.kind", "zoned");
            let _: Option<u32> = section.optional("ring").unwrap();
            section.close().map_err(|error| error.to_string())
        };
        assert_eq!(refusal("ring = 5\n"), Ok("ring = 5\n".to_owned()));
        let why = "ftl.limiter: goes with ftl.kind = pblk only";
        assert_eq!(refusal("limiter = \"kernel\"\n"), Err(format!("a.toml:1:1: {why}")));
        let table = refusal("[gc]\nvictim = \"fifo\"\n").unwrap_err();
        assert!(table.ends_with("ftl.gc: goes with ftl.kind = pblk or zoned only"), "{table}");
        let unknown = refusal("limitr = 1\n").unwrap_err();
        assert!(unknown.ends_with("ftl.limitr: unknown key (known here: ring)"), "{unknown}");
    }
}
