//! What a preconditioned device follows from, as text and as its hash.
//!
//! The text is the resolved stack without what preconditioning never sees: name, host, hints, timing and
//! CPU costs (they are off meanwhile) and the limit of RAM. All other keys count, whether they are known to matter
//! or not. Of the timing only that there is one counts: then random overwrites end with a settling phase, which has
//! a separate timing. The program is no part of it; a cache adds its own.

use super::FORMAT_VERSION;
use crate::stack::reader::{renamed_key, renamed_word};
use crate::stack::{DEFAULT_CORES, FaultsFrom, Stack};
use nandscape_ftl::FtlConfig;
use std::fmt;

/// Sections that count.
const SECTIONS: [&str; 3] = ["media", "ftl", "precondition"];
/// Keys of these that do not, beside those of the FTL.
const LEFT_OUT: [&str; 5] = [
    "media.timing",
    "media.memory_cap",
    "media.faults.slow_unit",
    "media.faults.slow_percent",
    "media.faults.from",
];
/// Keys of faults.
const FAULTS: &str = "media.faults.";
/// The one of them that is about the media themselves, not about commands.
const BAD_CHUNKS: &str = "media.faults.bad_chunk_rate";
/// Keys in which a stack must agree with a state that it is to run on, beside those of the FTL.
const BINDING: [&str; 8] = [
    "media.groups",
    "media.units",
    "media.chunks",
    "media.sectors",
    "media.ws_min",
    "media.ws_opt",
    "media.mw_cunits",
    "media.payload",
];

/// Names a state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateKey(pub u128);

impl fmt::Display for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl StateKey {
    /// The hash of such a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128(text.as_bytes()))
    }
}

/// All that the preconditioned device of a stack and a seed follows from: lines of `key = value`.
#[must_use]
pub fn text(stack: &Stack, seed: u64) -> String {
    let mut lines = format!("format = {FORMAT_VERSION}\nseed = {seed}\n");
    for (key, value) in stack.resolved_keys().filter(|(key, _)| counts(key, &stack.ftl)) {
        if let Some(value) = before_measuring(stack, &key, value) {
            lines.push_str(&format!("{key} = {value}\n"));
        }
    }
    if stack.precondition.overwrites() && !stack.timing().nand.is_instant() {
        lines.push_str("precondition.settled = true\n");
    }
    if let Some(buffers) = buffers_of_cores(stack) {
        lines.push_str(&format!("ftl.write_buffers = {buffers}\n"));
    }
    lines
}

/// The number of write buffers of a stack that uses it and does not set it, where the cores of its host make it
/// another than the default. Copies of garbage collection go to all of them while a device is preconditioned.
fn buffers_of_cores(stack: &Stack) -> Option<u32> {
    let derived = stack.ftl.uses_write_buffers() && !stack.sets("ftl.write_buffers");
    stack.host.cores.filter(|&cores| derived && cores != DEFAULT_CORES)
}

/// What a key is while a device is preconditioned: faults that begin with the measured phase are none, as in a stack
/// that sets no rate.
fn before_measuring<'a>(stack: &Stack, key: &str, value: &'a str) -> Option<&'a str> {
    let faults = &stack.media.faults;
    if faults.from == FaultsFrom::Start || !key.starts_with(FAULTS) {
        return Some(value);
    }
    match (faults.bad_chunk_rate > 0.0, key == BAD_CHUNKS) {
        (false, _) => None,
        (true, true) => Some(value),
        (true, false) => Some("0.0"),
    }
}

fn counts(key: &str, ftl: &FtlConfig) -> bool {
    let section = key.split('.').next().unwrap_or_default();
    let left_out = LEFT_OUT.contains(&key) || ftl.run_only_keys().contains(&key);
    SECTIONS.contains(&section) && !left_out
}

/// A key in which a state is not what a stack and a seed would make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The key.
    pub key: String,
    /// What the state has; empty: nothing.
    pub state: String,
    /// What the stack has, likewise.
    pub stack: String,
}

impl Difference {
    /// Whether a stack with this FTL cannot run on the state.
    #[must_use]
    pub fn is_required(&self, ftl: &FtlConfig) -> bool {
        let key = self.key.as_str();
        BINDING.contains(&key) || ftl.binding_keys().contains(&key)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            |value: &str| if value.is_empty() { "not given".into() } else { value.to_owned() };
        let Self { key, state, stack } = self;
        write!(f, "{key} is {} in the state, {} in the stack", shown(state), shown(stack))
    }
}

/// A line of a state's text with the names that its key and its word have now.
fn renamed(line: &str) -> String {
    let Some((key, value)) = line.split_once(" = ") else { return line.to_owned() };
    let key = renamed_key(key).unwrap_or(key);
    match renamed_word(key, value.trim_matches('"')) {
        Some(word) => format!("{key} = \"{word}\""),
        None => format!("{key} = {value}"),
    }
}

/// Where the texts of a state and of a stack differ. Names of earlier versions in the state count as the names now.
pub(crate) fn differences(state: &str, stack: &str) -> Vec<Difference> {
    let state = &state.lines().map(|line| renamed(line) + "\n").collect::<String>();
    let get = |text: &str, key: &str| {
        let line = text.lines().filter_map(|line| line.split_once(" = ")).find(|(k, _)| *k == key);
        line.map_or_else(String::new, |(_, value)| value.to_owned())
    };
    let keys = |text: &str| {
        let keys = text.lines().filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()));
        keys.collect::<Vec<_>>()
    };
    let mut all = keys(stack);
    all.extend(keys(state).into_iter().filter(|key| get(stack, key).is_empty()));
    let pair = |key: String| Difference { state: get(state, &key), stack: get(stack, &key), key };
    all.into_iter().map(pair).filter(|pair| pair.state != pair.stack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[&str], seed: u64) -> StateKey {
        StateKey::of(&text(&Stack::load("pblk", set).unwrap(), seed))
    }

    /// What preconditioning never sees changes no key; everything else does.
    #[test]
    fn the_key_is_of_what_a_state_follows_from() {
        let plain = of(&[], 1);
        let blind = [
            "name=other",
            "host.cores=4",
            "hints.journal_range=[\"0\", \"1MiB\"]",
            "media.timing={ preset = \"qemu-ocssd\", planes = 4, read_priority = \"suspend\" }",
            "media.memory_cap=1GiB",
            "ftl.cpu=qemu",
            "ftl.map_update=atomic",
        ];
        for set in blind {
            assert_eq!(of(&[set], 1), plain, "{set}");
        }
        let seen = [
            "media.chunks=61",
            "media.timing=none",
            "media.payload=none",
            "media.endurance_erases=9",
            "media.faults.program_rate=0.1",
            "ftl.op_percent=12",
            "ftl.write_buffers=4",
            "ftl.gc.victim=fifo",
            "ftl.limiter=reserve-2",
            "precondition.fill=0.5",
            "precondition.recipe=snia-wipc",
        ];
        for set in seen {
            assert_ne!(of(&[set], 1), plain, "{set}");
        }
        assert_ne!(of(&[], 2), plain);
    }

    /// Faults that begin with the measured phase change no key: the state is that of a stack without them, with the
    /// same bad chunks.
    #[test]
    fn faults_of_the_measured_phase_change_no_key() {
        let later = "media.faults.from=measured";
        let rates = ["media.faults.program_rate=0.1", "media.faults.unreadable_rate=0.2"];
        let bad = "media.faults.bad_chunk_rate=0.01";
        assert_eq!(of(&[rates[0], rates[1], later], 1), of(&[], 1));
        assert_eq!(of(&[rates[0], later, bad], 1), of(&[bad], 1));
        assert_eq!(of(&[rates[0], "media.faults.from=start"], 1), of(&rates[..1], 1));
        assert_ne!(of(&[rates[0], bad], 1), of(&[bad], 1));
        assert_ne!(of(&[rates[0], later, bad], 1), of(&[rates[0], later], 1));
    }

    /// A state that an earlier version named differs from no stack by names alone.
    #[test]
    fn names_of_earlier_versions_are_no_differences() {
        let set = ["ftl.special_buffer=1024", "ftl.gc.journal_lines=exempt"];
        let now = text(&Stack::load("js-pblk", &set).unwrap(), 1);
        let before = now.replace("special_buffer", "special_ring").replace("exempt", "left-to-die");
        assert_ne!(before, now);
        assert!(differences(&before, &now).is_empty());
        let other = before.replace("special_ring = 1024", "special_ring = 2048");
        let found: Vec<_> = differences(&other, &now).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["ftl.special_buffer is 2048 in the state, 1024 in the stack"]);
    }

    /// Cores of the host count as far as write buffers follow from them.
    #[test]
    fn cores_count_where_they_are_write_buffers() {
        let of = |name, set: &[&str]| text(&Stack::load(name, set).unwrap(), 1);
        let plain = of("mt-ftl", &[]);
        assert_eq!(of("mt-ftl", &["host.cores=4"]), plain);
        let two = of("mt-ftl", &["host.cores=2"]);
        assert_eq!(two, format!("{plain}ftl.write_buffers = 2\n"));
        assert_ne!(of("mt-ftl", &["host.cores=2", "ftl.write_buffers=4"]), two);
        assert_eq!(of("pblk", &["host.cores=2"]), of("pblk", &[]));
    }

    #[test]
    fn differences_name_keys_and_both_values() {
        let ftl = Stack::load("pblk", &[] as &[&str]).unwrap().ftl;
        let found = differences(
            "a = 1\nb = 2\nmedia.groups = 2\nftl.op_percent = 11\nftl.cpu = 1\n",
            "a = 1\nmedia.groups = 4\nc = 3\nftl.op_percent = 12\n",
        );
        let found: Vec<_> = found.iter().map(|d| (d.to_string(), d.is_required(&ftl))).collect();
        let text = |text: &str, binding| (text.to_owned(), binding);
        assert_eq!(
            found,
            [
                text("media.groups is 2 in the state, 4 in the stack", true),
                text("c is not given in the state, 3 in the stack", false),
                text("ftl.op_percent is 11 in the state, 12 in the stack", true),
                text("b is 2 in the state, not given in the stack", false),
                text("ftl.cpu is 1 in the state, not given in the stack", false),
            ]
        );
    }
}
