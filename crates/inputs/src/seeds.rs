//! Seeds of fuzz targets: what the repository has of each kind of input, in the form in which targets read it.
//!
//! Targets that read several texts take them from one input, each but the first after a line `=== NAME` (`input.rs`): a
//! text gets those files of its folder that it names.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The first byte of a trace whose format is to be recognised.
const ANY_FORMAT: u8 = 0x1f;
/// Choices that a first byte makes, at least as many as targets have.
const CHOICES: u8 = 8;
/// Bytes of seeds without a meaning.
const NOISE: usize = 96;

/// Folders, and how the names of the files there end that are seeds.
type Sources = &'static [(&'static str, &'static str)];

const JOBS: Sources = &[
    ("crates/workload/tests/jobs", "fio"),
    ("crates/workload/tests/styles", "fio"),
    ("examples", "fio"),
];
const WORKLOADS: Sources = &[
    ("crates/workload/tests/wml", "f"),
    ("crates/workload/tests/wml/wrong", "f"),
    ("examples", "f"),
    ("papers/gcj", "f"),
];
const STACKS: Sources = &[("crates/lab/stacks", "toml")];
const TRACES: Sources = &[("crates/workload/tests/traces", "")];
const SWEEPS: Sources =
    &[("examples", "toml"), ("papers/gcj", "toml"), ("crates/paper/tests/tiny", "toml")];
const PAPER: &str = "crates/paper/tests/tiny";
const RESULTS: Sources = &[("crates/paper/src/checks", "json")];
/// A folder for each target whose seeds are no files of something else.
const OWN: &str = "fuzz/seeds";

/// The seeds of a target by their names; `root` is the repository.
///
/// # Errors
/// What cannot be read.
pub fn of(root: &Path, target: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut seeds = match target {
        "job" => each(root, JOBS, with_named)?,
        "command_line" => {
            each(root, JOBS, |file, _| text(file).map(|text| options(&text).into_bytes()))?
        }
        "wml" => each(root, WORKLOADS, |file, _| bytes(file))?,
        "stack" => each(root, STACKS, |file, _| bytes(file))?,
        "trace" => each(root, TRACES, |file, _| Ok([&[ANY_FORMAT][..], &bytes(file)?].concat()))?,
        "sweep" => each(root, SWEEPS, with_named)?,
        "paper" => BTreeMap::from([("tiny".to_owned(), paper(&root.join(PAPER))?)]),
        "results" => each(root, RESULTS, |file, _| bytes(file))?,
        _ => (0..CHOICES).map(|choice| (format!("noise-{choice}"), noise(choice))).collect(),
    };
    let own = root.join(OWN).join(target);
    if own.is_dir() {
        for file in listed(&own)? {
            seeds.insert(name(&file), bytes(&file)?);
        }
    }
    Ok(seeds)
}

/// A seed of each file of the sources, made by `make` of the file and the files beside it.
fn each(
    root: &Path,
    sources: Sources,
    make: impl Fn(&Path, &[PathBuf]) -> Result<Vec<u8>, String>,
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut seeds = BTreeMap::new();
    for (at, (folder, end)) in sources.iter().enumerate() {
        let beside = listed(&root.join(folder))?;
        for file in beside.iter().filter(|file| has_end(file, end)) {
            seeds.insert(format!("{at}-{}", name(file)), make(file, &beside)?);
        }
    }
    Ok(seeds)
}

fn has_end(file: &Path, end: &str) -> bool {
    end.is_empty() || file.extension().is_some_and(|extension| extension == end)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files of a folder, in order of their names.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e: io::Error| format!("{}: {e}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?.collect::<io::Result<Vec<_>>>();
    let mut files: Vec<PathBuf> = entries.map_err(failed)?.iter().map(fs::DirEntry::path).collect();
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

fn text(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|e| format!("{}: {e}", file.display()))
}

/// A text with those of the files beside it that it names, and that these name.
fn with_named(file: &Path, beside: &[PathBuf]) -> Result<Vec<u8>, String> {
    let mut all = text(file)?;
    let mut waiting: Vec<&PathBuf> = beside.iter().filter(|other| *other != file).collect();
    while let Some(at) = waiting.iter().position(|other| all.contains(&name(other))) {
        let other = waiting.remove(at);
        all = format!("{all}\n=== {}\n{}", name(other), text(other)?);
    }
    Ok(all.into_bytes())
}

/// A paper: `paper.toml`, and all other files of its folder.
fn paper(folder: &Path) -> Result<Vec<u8>, String> {
    let mut all = text(&folder.join("paper.toml"))?;
    for file in listed(folder)?.iter().filter(|file| name(file) != "paper.toml") {
        all += &format!("\n=== {}\n{}", name(file), text(file)?);
    }
    Ok(all.into_bytes())
}

/// The options of a job file as they stand on a command line, one in each line; those before the first name are those of
/// `[global]`.
pub fn options(job: &str) -> String {
    let option = |line: &str| {
        let line = line.split(['#', ';']).next().unwrap_or_default().trim();
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some("global") => None,
            Some(section) => Some(format!("name={section}\n")),
            None if line.is_empty() => None,
            None => Some(format!("{line}\n")),
        }
    };
    job.lines().filter_map(option).collect()
}

/// Bytes without a meaning, the same each time, after a first one that chooses.
fn noise(choice: u8) -> Vec<u8> {
    let mut register = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(choice) + 1);
    let mut next = || {
        register ^= register << 13;
        register ^= register >> 7;
        register ^= register << 17;
        register as u8
    };
    std::iter::once(choice).chain(std::iter::repeat_with(&mut next).take(NOISE)).collect()
}
