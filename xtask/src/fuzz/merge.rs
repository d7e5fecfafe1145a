//! Merging: the committed corpus gets what explorations found, and is kept minimal.
//!
//! libFuzzer takes the inputs of the corpus and of explorations from the smallest to the largest and keeps each that reaches
//! something that neither a seed nor a smaller input reaches. Of these the smallest are kept that fit the target's share: the
//! repository is small, and tests that replay all of it are quick.

use super::fuzzer::Fuzzer;
use crate::files::listed;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Seconds on the wall after which an input is left out.
const WALL_S: u32 = 60;

/// KiB that each target may have in the corpus: 2 MiB in all. Chosen: texts are longer than the numbers that change volumes
/// and devices, and an input of these takes milliseconds.
const SHARES_KIB: [(&str, u64); 12] = [
    ("command_line", 128),
    ("ext4", 64),
    ("f2fs", 64),
    ("job", 192),
    ("media", 64),
    ("paper", 288),
    ("results", 288),
    ("stack", 224),
    ("state", 32),
    ("sweep", 320),
    ("trace", 192),
    ("wml", 192),
];

/// Bytes of the share of a target.
fn share(target: &str) -> Option<u64> {
    SHARES_KIB.iter().find(|(of, _)| *of == target).map(|(_, kib)| kib << 10)
}

/// Replaces the corpus of a target by what is worth keeping of it and of what explorations found.
///
/// # Errors
/// Something cannot be run, read or written.
pub(super) fn merge(fuzzer: &Fuzzer, target: &str) -> Result<(), String> {
    let share = share(target).ok_or_else(|| format!("{target} has no share of the corpus"))?;
    let corpus = fuzzer.corpus(target)?;
    let reaching = reaching(fuzzer, target, &corpus)?;
    let count = reaching.len();
    let kept = smallest(reaching, share);
    replace(&corpus, &kept)?;
    let bytes: u64 = kept.iter().map(|(bytes, _)| bytes).sum();
    let left = count - kept.len();
    println!("{target}: {} files, {bytes} bytes; {left} more have no room", kept.len());
    Ok(())
}

/// The inputs that reach what neither a seed nor a smaller one reaches, with their sizes.
fn reaching(fuzzer: &Fuzzer, target: &str, corpus: &Path) -> Result<Vec<(u64, PathBuf)>, String> {
    let (seeds, found) = (fuzzer.folder("seeds", target)?, fuzzer.folder("found", target)?);
    let merged = fuzzer.folder("merged", target)?;
    listed(&merged)?.iter().try_for_each(|file| remove(file))?;
    listed(&seeds)?.iter().try_for_each(|seed| copy(seed, &merged))?;
    let log = fuzzer.log(target, "merge");
    let failed = |e: std::io::Error| format!("{}: {e}", log.display());
    let scratch = fuzzer.folder("scratch", target)?;
    // libFuzzer keeps what is in the first folder, and adds to it.
    let mut command = fuzzer.run(target, &[&merged, corpus, &found], WALL_S)?;
    command.args(["-merge=1".to_owned(), format!("-artifact_prefix={}/", scratch.display())]);
    let out = File::create(&log).map_err(failed)?;
    let err = out.try_clone().map_err(failed)?;
    if !command.stdout(out).stderr(err).status().map_err(failed)?.success() {
        return Err(format!("{target} cannot be merged: {}", log.display()));
    }
    let seeds = names(&seeds)?;
    let added = listed(&merged)?.into_iter().filter(|file| !seeds.contains(&name(file)));
    added.map(|file| Ok((size(&file)?, file))).collect()
}

/// The smallest files that fit the share, those of one size in order of their names.
fn smallest(mut files: Vec<(u64, PathBuf)>, share: u64) -> Vec<(u64, PathBuf)> {
    files.sort();
    let mut total = 0;
    let fits = |(bytes, _): &&(u64, PathBuf)| {
        total += bytes;
        total <= share
    };
    let fitting = files.iter().take_while(fits).count();
    files.truncate(fitting);
    files
}

/// Makes a folder hold these files alone.
fn replace(folder: &Path, files: &[(u64, PathBuf)]) -> Result<(), String> {
    let kept: BTreeSet<String> = files.iter().map(|(_, file)| name(file)).collect();
    for file in listed(folder)?.iter().filter(|file| !kept.contains(&name(file))) {
        remove(file)?;
    }
    files.iter().try_for_each(|(_, file)| copy(file, folder))
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn names(folder: &Path) -> Result<BTreeSet<String>, String> {
    Ok(listed(folder)?.iter().map(|file| name(file)).collect())
}

fn size(file: &Path) -> Result<u64, String> {
    Ok(fs::metadata(file).map_err(|e| format!("{}: {e}", file.display()))?.len())
}

fn remove(file: &Path) -> Result<(), String> {
    fs::remove_file(file).map_err(|e| format!("{}: {e}", file.display()))
}

fn copy(file: &Path, folder: &Path) -> Result<(), String> {
    let to = folder.join(name(file));
    fs::copy(file, &to).map(drop).map_err(|e| format!("{}: {e}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::super::targets;
    use super::*;

    /// Bytes of the corpora together, at most: they are part of every clone.
    const BYTES_MAX: u64 = 2 << 20;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// Each target has a share, and all shares together are what the repository may hold.
    #[test]
    fn every_target_has_a_share() {
        let of: Vec<&str> = SHARES_KIB.iter().map(|(target, _)| *target).collect();
        assert_eq!(targets(&root()).unwrap(), of);
        assert!(SHARES_KIB.iter().map(|(_, kib)| kib << 10).sum::<u64>() <= BYTES_MAX);
    }

    /// The committed corpus of each target is within its share; no other is committed.
    #[test]
    fn corpora_are_within_their_shares() {
        let folders = fs::read_dir(root().join("fuzz/corpus")).unwrap();
        for folder in folders.map(|entry| entry.unwrap().path()) {
            let target = name(&folder);
            let share = share(&target).unwrap_or_else(|| panic!("{target} is no target"));
            let files = listed(&folder).unwrap();
            let bytes: u64 = files.iter().map(|file| size(file).unwrap()).sum();
            assert!(bytes <= share, "{target}: {bytes} bytes, of at most {share}");
        }
    }

    /// What is kept depends on sizes and names alone.
    #[test]
    fn small_files_are_kept() {
        let file = |bytes, name: &str| (bytes, PathBuf::from(name));
        let files = vec![file(600, "d"), file(300, "c"), file(500, "a"), file(300, "b")];
        let kept = |share| -> Vec<String> {
            smallest(files.clone(), share).iter().map(|(_, file)| name(file)).collect()
        };
        assert_eq!(kept(1_700), ["b", "c", "a", "d"]);
        assert_eq!(kept(1_100), ["b", "c", "a"]);
        assert_eq!(kept(1_099), ["b", "c"]);
        assert!(kept(299).is_empty());
    }
}
