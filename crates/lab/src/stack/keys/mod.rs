//! What the keys of stack files mean: for each key the values that it takes, its default and a description.
//!
//! This is the only description of the keys. `nandscape keys` prints it, and the tables of docs/formats/stack.md are
//! made from it. The readers beside this module decide what is accepted; a test compares them with this description:
//! the keys that they ask for, their defaults and their words.

mod fs;
mod host;
mod markdown;
mod media;
mod pblk;
mod ssd;

pub use markdown::{plain, table};

use super::units::did_you_mean;
use std::fmt;

/// Keys that are described together, in one table of docs/formats/stack.md.
#[derive(Debug)]
pub struct Group {
    /// What the table is called there.
    pub name: &'static str,
    /// What the full name of each key begins with, without the dot after it.
    pub prefix: &'static str,
    /// The stacks that have these keys.
    pub when: When,
    /// The keys.
    pub keys: &'static [Key],
}

/// A key.
#[derive(Debug)]
pub struct Key {
    /// Its name below the prefix of its group.
    pub name: &'static str,
    /// What it takes.
    pub values: Values,
    /// What holds where it is not given.
    pub default: Default,
    /// What it means, as Markdown whose links begin at docs/formats.
    pub meaning: &'static str,
}

const fn key(name: &'static str, values: Values, default: Default, meaning: &'static str) -> Key {
    Key { name, values, default, meaning }
}

/// The stacks that have a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// All.
    Always,
    /// Those with an FTL of one of these kinds.
    Ftl(&'static [&'static str]),
    /// Those with a file system of one of these kinds.
    Fs(&'static [&'static str]),
    /// Those without a file system.
    NoFs,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => Ok(()),
            Self::Ftl(kinds) => write!(f, "ftl.kind = {}", kinds.join(" | ")),
            Self::Fs(kinds) => write!(f, "fs.kind = {}", kinds.join(" | ")),
            Self::NoFs => f.write_str("without [fs]"),
        }
    }
}

/// What a key takes. The text of a variant is a rule for its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// One of these words.
    Words(&'static [&'static str]),
    /// The name of one of these presets, or a table.
    Preset(&'static [&'static str]),
    /// True or false.
    Bool,
    /// A whole number from the first to the last.
    Range(u64, u64),
    /// A number.
    Number(&'static str),
    /// Bytes, as a number or with a unit.
    Size(&'static str),
    /// A time with a unit.
    Time(&'static str),
    /// Text.
    Text(&'static str),
    /// A list.
    List(&'static str),
}

impl Values {
    /// The type in one word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Words(_) => "word",
            Self::Preset(_) => "preset",
            Self::Bool => "bool",
            Self::Range(..) | Self::Number(_) => "number",
            Self::Size(_) => "size",
            Self::Time(_) => "time",
            Self::Text(_) => "text",
            Self::List(_) => "list",
        }
    }
}

/// What holds where a key is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Default {
    /// This value, always.
    Is(&'static str),
    /// A value that follows from something else, as Markdown.
    By(&'static str),
    /// There is none.
    Nothing,
    /// The key has to be given.
    Required,
}

/// All keys, in the order of docs/formats/stack.md.
pub static GROUPS: [&Group; 22] = [
    &host::STACK,
    &host::NO_FS,
    &host::HOST_CACHE,
    &media::MEDIA,
    &media::TIMING,
    &media::LINK,
    &pblk::FTL,
    &pblk::PBLK,
    &pblk::MAP,
    &pblk::FTL_CPU,
    &ssd::SSD,
    &ssd::PAGEMAP,
    &ssd::ZONED,
    &ssd::INTERVAL,
    &ssd::COUPLED,
    &ssd::FIRMWARE,
    &fs::FS,
    &fs::FS_CACHE,
    &fs::EXT4,
    &fs::F2FS,
    &fs::FS_CPU,
    &host::PREPARATION,
];

/// A key and the group that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its group.
    pub group: &'static Group,
    /// The key.
    pub key: &'static Key,
}

impl Entry {
    /// Its full name, such as `ftl.gc.victim`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.group.prefix {
            "" => self.key.name.to_owned(),
            prefix => format!("{prefix}.{}", self.key.name),
        }
    }
}

/// All keys.
pub fn entries() -> impl Iterator<Item = Entry> {
    GROUPS.into_iter().flat_map(|group| group.keys.iter().map(move |key| Entry { group, key }))
}

/// The keys whose full name contains `text`; if there are none, those whose description does.
///
/// # Errors
/// No key has it; the message suggests one.
pub fn find(text: &str) -> Result<Vec<Entry>, String> {
    let text = text.trim().to_lowercase();
    let named: Vec<Entry> = entries().filter(|entry| entry.name().contains(&text)).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let describes = |entry: &Entry| plain(entry.key.meaning).to_lowercase().contains(&text);
    let described: Vec<Entry> = entries().filter(describes).collect();
    if !described.is_empty() {
        return Ok(described);
    }
    let names: Vec<String> = entries().map(|entry| entry.name()).collect();
    let steps = text.split('.').count();
    let ends = names.iter().map(|name| last_steps(name, steps));
    let hint = did_you_mean(&text, ends);
    Err(format!("no key and no description of a key contains \"{text}\"{hint}"))
}

/// The last so many steps of a name, or all.
fn last_steps(name: &str, steps: usize) -> &str {
    let dot = name.rmatch_indices('.').nth(steps.saturating_sub(1));
    dot.map_or(name, |(at, _)| &name[at + 1..])
}
