//! The description of the keys of stack files against their readers: the keys that each section knows, their
//! defaults, words and bounds.

use nandscape_lab::stack::keys::{Default, Entry, Values, When, entries, find};
use nandscape_lab::stack::{Stack, StackError};
use std::collections::BTreeSet;

const FTLS: [&str; 5] = ["pblk", "pagemap", "zoned", "interval", "coupled"];
const FILE_SYSTEMS: [&str; 3] = ["", "ext4", "f2fs"];

/// A device and nothing else, so that everything else is at its default.
const DEVICE: &str = "[media]\ngroups = 4\nunits = 4\nchunks = 64\nsectors = 512\nws_min = 1\nws_opt = 8\n\
                      mw_cunits = 16\ntiming = \"nvmevirt-970pro\"\n";

/// A kind of FTL, and a kind of file system or none.
#[derive(Clone, Copy)]
struct Kinds {
    ftl: &'static str,
    fs: &'static str,
}

impl Kinds {
    fn all() -> impl Iterator<Item = Self> {
        FTLS.into_iter().flat_map(|ftl| FILE_SYSTEMS.map(|fs| Self { ftl, fs }))
    }

    fn have(self, entry: &Entry) -> bool {
        match entry.group.when {
            When::Always => true,
            When::Ftl(kinds) => kinds.contains(&self.ftl),
            When::Fs(kinds) => kinds.contains(&self.fs),
            When::NoFs => self.fs.is_empty(),
        }
    }

    /// The keys that stacks of these kinds have.
    fn entries(self) -> impl Iterator<Item = Entry> {
        entries().filter(move |entry| self.have(entry))
    }

    fn load(self, more: &[String]) -> Result<Stack, StackError> {
        let mut set = vec![format!("ftl.kind={}", self.ftl)];
        if !self.fs.is_empty() {
            set.push(format!("fs.kind={}", self.fs));
        }
        set.extend_from_slice(more);
        Stack::parse("device.toml", DEVICE, &set)
    }
}

/// What the reader of a key wants chosen before it takes the key.
fn needs(name: &str) -> &'static [&'static str] {
    match name {
        "ftl.gc.d" => &["ftl.gc.victim=d-choices"],
        "ftl.core_choice" => &["ftl.routing=per-core"],
        "ftl.gc.journal_lines" => &["ftl.routing=journal"],
        "ftl.map.blind_percent" => &["ftl.map.kind=cached", "ftl.map.write_miss=blind"],
        "ftl.map.protected_percent" => &["ftl.map.kind=cached", "ftl.map.policy=dftl"],
        "fs.small_volume" => &["fs.allocation=adaptive"],
        "fs.gc_journal" | "fs.checkpoint_cost" => &["fs.reclaim=gc-journal"],
        "fs.age_threshold" => &["fs.victim=age-threshold"],
        _ => &[],
    }
}

/// The same for all keys below a section.
fn needs_of(entry: &Entry, kinds: Kinds) -> Vec<String> {
    let name = entry.name();
    let of_map: &[&str] = match kinds.ftl {
        "pblk" if name.starts_with("ftl.map.") && name != "ftl.map.kind" => {
            &["ftl.map.kind=cached"]
        }
        _ => &[],
    };
    of_map.iter().chain(needs(&name)).map(|set| (*set).to_owned()).collect()
}

/// The names below `section`, one step each.
fn below(section: &str, entries: impl Iterator<Item = Entry>) -> BTreeSet<String> {
    let prefix = if section.is_empty() { String::new() } else { format!("{section}.") };
    let step = |entry: Entry| {
        let name = entry.name();
        let rest = name.strip_prefix(&prefix)?;
        rest.split('.').next().map(str::to_owned)
    };
    entries.filter_map(step).collect()
}

/// The keys that the reader of `section` knows: it lists them where a key is unknown.
fn known(section: &str, kinds: Kinds) -> BTreeSet<String> {
    let dot = if section.is_empty() { "" } else { "." };
    let mut set = vec![format!("{section}{dot}no_such_key=1")];
    if section.starts_with("ftl.map") && kinds.ftl == "pblk" {
        set.push("ftl.map.kind=cached".to_owned());
    }
    let error = kinds.load(&set).unwrap_err().to_string();
    let (_, known) = error.split_once("(known here: ").unwrap_or_else(|| panic!("{error}"));
    known.trim_end_matches(')').split(", ").map(str::to_owned).collect()
}

/// Sections of the keys of these kinds.
fn sections(kinds: Kinds) -> BTreeSet<String> {
    let above = |entry: Entry| {
        let name = entry.name();
        name.match_indices('.').map(|(at, _)| name[..at].to_owned()).collect::<Vec<_>>()
    };
    kinds.entries().flat_map(above).collect()
}

/// Every key that a reader asks for is described, for the kinds that have it, and no other.
#[test]
fn described_keys_are_those_that_are_read() {
    for kinds in Kinds::all() {
        for section in sections(kinds) {
            let described = below(&section, kinds.entries());
            let known = known(&section, kinds);
            let place = format!("[{section}] with {} on {}", kinds.fs, kinds.ftl);
            if section == "host" {
                // It refuses the keys of the other kinds by a reason, so it knows them.
                assert!(described.is_subset(&known), "{place}");
                assert!(known.is_subset(&below(&section, entries())), "{place}");
            } else {
                assert_eq!(described, known, "{place}");
            }
        }
    }
    let kinds = Kinds { ftl: "pblk", fs: "ext4" };
    let mut described = below("", kinds.entries());
    assert!(described.remove("extends"), "read before the sections");
    assert_eq!(described, known("", kinds));
}

/// What a stack means, without its text.
fn meaning(stack: &Stack) -> String {
    let Stack { host, media, link, ftl, fs, hints, precondition, .. } = stack;
    let sizes = (host.cores_or_default(), host.memory_or_default());
    let host = (sizes, &host.device_cache, host.memory_of, host.cost);
    let media =
        (media.geometry, media.timing.nand, media.payload, &media.faults, media.memory_cap_bytes);
    let fs = fs.as_ref().map(|fs| &fs.config);
    format!("{host:?} {media:?} {link:?} {ftl:?} {fs:?} {hints:?} {precondition:?}")
}

/// A key set to its default is as if it was not set.
#[test]
fn defaults_change_nothing() {
    for kinds in Kinds::all() {
        for entry in kinds.entries() {
            let name = entry.name();
            let Default::Is(default) = entry.key.default else { continue };
            let kind = [("ftl.kind", kinds.ftl), ("fs.kind", kinds.fs)];
            if kind.iter().any(|(key, kind)| *key == name && *kind != default) {
                continue;
            }
            let mut set = needs_of(&entry, kinds);
            let without = kinds.load(&set).unwrap_or_else(|error| panic!("{name}: {error}"));
            set.push(format!("{name}={default}"));
            let with = kinds.load(&set).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(meaning(&with), meaning(&without), "{name}={default} on {}", kinds.ftl);
        }
    }
}

/// A word that is none is refused with those that are described, in their order; so are numbers beyond the bounds.
#[test]
fn words_and_bounds_are_those_of_the_readers() {
    for kinds in Kinds::all() {
        for entry in kinds.entries() {
            let name = entry.name();
            let refusal = |value: String| {
                let mut set = needs_of(&entry, kinds);
                set.push(format!("{name}={value}"));
                let error = kinds.load(&set).expect_err(&format!("{name}={value}"));
                assert_eq!(error.key, name, "{name}={value}: {error}");
                error.message
            };
            match entry.key.values {
                Values::Words(words) | Values::Preset(words) => {
                    let message = refusal("no-such-word".to_owned());
                    let expected = format!("expected {}, found", words.join(" | "));
                    assert!(message.contains(&expected), "{name}: {message}, not {expected}");
                }
                Values::Range(first, last) => {
                    refusal((last + 1).to_string());
                    refusal((i128::from(first) - 1).to_string());
                }
                Values::Bool => drop(refusal("2".to_owned())),
                _ => {}
            }
        }
    }
}

/// Costs of a preset are those that the description has.
#[test]
fn presets_cost_what_is_described() {
    let mut checked = 0;
    for entry in entries().filter(|entry| entry.group.prefix.ends_with(".cpu")) {
        let Default::By(rule) = entry.key.default else { continue };
        for part in rule.split([';', ',']).skip(1) {
            let (preset, cost) = part.split_once(": ").unwrap();
            let preset = preset.trim().trim_matches('`');
            let kinds = Kinds { ftl: "pblk", fs: "f2fs" };
            let section = entry.group.prefix;
            let with = |set: String| {
                meaning(&kinds.load(&[format!("{section}.preset={preset}"), set]).unwrap())
            };
            let key = entry.name();
            let same = with(format!("{key}={cost}"));
            assert_eq!(same, with(format!("{section}.preset={preset}")), "{key}, {preset}");
            assert_ne!(same, with(format!("{key}=77")), "{key}, {preset}");
            checked += 1;
        }
    }
    assert_eq!(checked, 28);
}

/// A text selects keys by name, else by description; else the message suggests one.
#[test]
fn keys_are_found() {
    let names =
        |text: &str| -> Vec<String> { find(text).unwrap().iter().map(Entry::name).collect() };
    assert_eq!(names("ftl.gc.period"), ["ftl.gc.period"]);
    assert!(names("gc").contains(&"fs.background_gc".to_owned()));
    assert!(names("superblock)").contains(&"ftl.line_set".to_owned()));
    let error = find("gc.victm").unwrap_err();
    assert!(error.ends_with("did you mean \"gc.victim\"?"), "{error}");
}
