//! Seeds of fuzz targets: what the repository has of each kind of input, in the form in which targets read it.
//!
//! Targets that read several texts take them from one input, each but the first after a line `=== NAME`
//! (`fuzz/src/input.rs`): a text gets those files of its folder that it names.

use crate::files::{listed, text};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The first byte of a trace whose format is to be recognised.
const ANY_FORMAT: u8 = 0x1f;
/// Choices that a first byte makes, at least as many as targets have.
const CHOICES: u8 = 8;
/// Bytes of seeds without a meaning.
const NOISE: usize = 96;

/// Puts the seeds of a target into a folder.
///
/// # Errors
/// What cannot be read or written.
pub(super) fn collect(root: &Path, target: &str, folder: &Path) -> Result<(), String> {
    let mut seeds = match target {
        "job" => each(root, JOBS, with_named)?,
        "command_line" => {
            each(root, JOBS, |file, _| text(file).map(|text| options(&text).into_bytes()))?
        }
        "wml" => each(root, WORKLOADS, |file, _| text(file).map(String::into_bytes))?,
        "stack" => each(root, &[("crates/lab/stacks", "toml")], |file, _| {
            text(file).map(String::into_bytes)
        })?,
        "trace" => each(root, TRACES, |file, _| Ok([&[ANY_FORMAT][..], &bytes(file)?].concat()))?,
        "sweep" => each(root, SWEEPS, with_named)?,
        "paper" => {
            BTreeMap::from([("tiny".to_owned(), paper(&root.join("crates/paper/tests/tiny"))?)])
        }
        "results" => each(root, &[("crates/paper/src/checks", "json")], |file, _| bytes(file))?,
        _ => (0..CHOICES).map(|choice| (format!("noise-{choice}"), noise(choice))).collect(),
    };
    let own = root.join("fuzz/seeds").join(target);
    for file in listed(&own).unwrap_or_default() {
        seeds.insert(name(&file), bytes(&file)?);
    }
    for (name, seed) in seeds {
        let file = folder.join(name);
        fs::write(&file, seed).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

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
const TRACES: Sources = &[("crates/workload/tests/traces", "")];
const SWEEPS: Sources =
    &[("examples", "toml"), ("papers/gcj", "toml"), ("crates/paper/tests/tiny", "toml")];

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

/// The options of a job file as they stand on a command line, one in each line.
fn options(job: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every target has seeds, and those of several texts hold what they name.
    #[test]
    fn every_target_has_seeds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let scratch = std::env::temp_dir().join(format!("nandscape-seeds-{}", std::process::id()));
        for target in super::super::targets(&root).unwrap() {
            let folder = scratch.join(&target);
            fs::create_dir_all(&folder).unwrap();
            collect(&root, &target, &folder).unwrap();
            assert!(!listed(&folder).unwrap().is_empty(), "{target}");
        }
        let sweep = text(&scratch.join("sweep/2-space.toml")).unwrap();
        assert!(
            sweep.contains("\n=== small.toml\n") && sweep.contains("\n=== mixed.fio\n"),
            "{sweep}"
        );
        fs::remove_dir_all(&scratch).unwrap();
    }

    /// The options before the first name are those of `[global]`.
    #[test]
    fn job_files_become_options() {
        let job = "; a job\n[global]\nbs=4k\n\n[a]\nrw=read # reads\ndirect\n";
        assert_eq!(options(job), "bs=4k\nname=a\nrw=read\ndirect\n");
    }
}
