//! How targets read their bytes: numbers one by one, and the texts of several files in one.

use nandscape_workload::fio::Environment;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// How the line begins that precedes the text of each file but the first; the file's name is the rest of it.
const MARK: &str = "=== ";

/// Whole numbers out of bytes; zeroes after their end.
pub(crate) struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    /// Out of these bytes.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all bytes were read.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next number, of so many bytes.
    pub(crate) fn number<const BYTES: usize>(&mut self) -> u64 {
        let mut number = [0; 8];
        let length = BYTES.min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        number[..length].copy_from_slice(bytes);
        self.0 = rest;
        u64::from_le_bytes(number)
    }

    /// The next number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.number::<4>() as usize).checked_rem(end).unwrap_or(0)
    }

    /// The bytes that were not read.
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// The texts of files in one input. There are no other files, and no variables.
pub(crate) struct Files<'a> {
    /// The first, which has no name.
    pub(crate) first: &'a str,
    others: BTreeMap<&'a str, &'a str>,
}

impl<'a> Files<'a> {
    /// Those of an input; `None`: it is no text.
    pub(crate) fn of(input: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(input).ok()?;
        let mut files = Self { first: "", others: BTreeMap::new() };
        let (mut name, mut from, mut at) = (None, 0, 0);
        for line in text.split_inclusive('\n') {
            if let Some(next) = line.strip_prefix(MARK) {
                files.put(name, &text[from..at]);
                (name, from) = (Some(next.trim()), at + line.len());
            }
            at += line.len();
        }
        files.put(name, &text[from..]);
        Some(files)
    }

    fn put(&mut self, name: Option<&'a str>, text: &'a str) {
        match name {
            None => self.first = text,
            Some(name) => drop(self.others.insert(name, text)),
        }
    }

    /// Takes out the text of this name; nothing without one.
    pub(crate) fn take(&mut self, name: &str) -> &'a str {
        self.others.remove(name).unwrap_or_default()
    }

    /// The others, in order of their names.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.others.iter().map(|(name, text)| (*name, *text))
    }
}

impl Environment for Files<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let found = path.to_str().and_then(|name| self.others.get(name));
        found.map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}
