//! Replay of fuzz inputs: every target does with each file of `fuzz/corpus/TARGET`, and with each seed, what it may: return.
//! No fuzzer is involved, so this is an ordinary test of parsers and image readers on inputs that reach most of their code.

use nandscape_inputs::{TARGETS, seeds};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Inputs by their names.
type Inputs = BTreeMap<String, Vec<u8>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names in a folder of the repository.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// What the repository has for a target: the files of its corpus, and its seeds.
fn inputs(target: &str) -> Inputs {
    let folder = format!("fuzz/corpus/{target}");
    let files = names(&folder).into_iter().map(|name| {
        let file = format!("{folder}/{name}");
        let bytes = std::fs::read(root().join(&file)).unwrap();
        (file, bytes)
    });
    let seeds = seeds::of(&root(), target).unwrap();
    files.chain(seeds.into_iter().map(|(name, seed)| (format!("seed {name}"), seed))).collect()
}

/// Runs a target on all inputs; the names of those at which it panics, with what the panic says.
fn failures(target: impl Fn(&[u8]), inputs: &Inputs) -> Vec<String> {
    let failure = |(name, input): (&String, &Vec<u8>)| {
        let panic = catch_unwind(AssertUnwindSafe(|| target(input))).err()?;
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        Some(format!("{name}: {text}"))
    };
    inputs.iter().filter_map(failure).collect()
}

fn replay(name: &str) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).unwrap();
    let failures = failures(target, &inputs(name));
    assert!(failures.is_empty(), "target {name} panics at\n{}", failures.join("\n"));
}

/// A test of each target, so that they run beside each other.
macro_rules! replays {
    ($($target:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($target)),*];
        $(#[test]
        fn $target() {
            replay(stringify!($target));
        })*
    };
}

replays! { command_line ext4 f2fs job media paper results stack state sweep trace wml }

/// Each target is replayed, has a program for libFuzzer, and a corpus; there is no corpus of anything else.
#[test]
fn every_target_has_a_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(REPLAYED.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), targets);
    assert_eq!(names("fuzz/corpus"), targets);
    let programs = targets.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names("fuzz/src/bin"), programs);
}

/// A panic of a target is reported with the input that causes it, and with no other.
#[test]
fn a_panic_names_its_input() {
    let target = |input: &[u8]| {
        assert!(input.len() < 10, "an input is {} bytes long", input.len());
    };
    let mut inputs: Inputs = (0..10).map(|length| (length.to_string(), vec![0; length])).collect();
    assert!(failures(target, &inputs).is_empty());
    inputs.insert("fuzz/corpus/long".into(), vec![0; 12]);
    assert_eq!(failures(target, &inputs), ["fuzz/corpus/long: an input is 12 bytes long"]);
}

/// Every target has seeds, and those of several texts hold what they name.
#[test]
fn every_target_has_seeds() {
    for (target, _) in TARGETS {
        assert!(!seeds::of(&root(), target).unwrap().is_empty(), "{target}");
    }
    let sweep = seeds::of(&root(), "sweep").unwrap().remove("2-space.toml").unwrap();
    let sweep = String::from_utf8(sweep).unwrap();
    assert!(sweep.contains("\n=== small.toml\n") && sweep.contains("\n=== mixed.fio\n"), "{sweep}");
}

/// The options before the first name are those of `[global]`.
#[test]
fn job_files_become_options() {
    let job = "; a job\n[global]\nbs=4k\n\n[a]\nrw=read # reads\ndirect\n";
    assert_eq!(seeds::options(job), "bs=4k\nname=a\nrw=read\ndirect\n");
}
