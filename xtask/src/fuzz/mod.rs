//! `cargo xtask fuzz`: the targets of `crates/inputs` under libFuzzer, which looks for inputs that no test has.
//!
//! `--explore` lets each target search for some CPU seconds (`explore`), then keeps in `fuzz/corpus` what reaches code that
//! nothing else there reaches (`merge`); the tests of `crates/inputs` replay that corpus without libFuzzer. `--merge` does
//! the second alone. A finding is a file that reproduces it: `cargo xtask fuzz TARGET --input FILE` runs the target with
//! that file alone.

mod explore;
mod fuzzer;
mod merge;

use crate::files::listed;
use crate::repository::{Repository, cores};
use fuzzer::Fuzzer;
use std::path::{Path, PathBuf};

/// Folder of the targets' programs.
const TARGETS: &str = "fuzz/src/bin";
/// CPU seconds of a target unless others are given.
const CPU_SECONDS: u64 = 60;

/// What is run.
pub(crate) struct Options {
    /// The target; `None`: all.
    pub(crate) target: Option<String>,
    pub(crate) task: Task,
}

/// What is done with targets.
pub(crate) enum Task {
    /// They search, and what they find is merged.
    Explore(Exploration),
    /// What earlier explorations found is merged.
    Merge,
    /// The only input.
    Input(PathBuf),
}

/// How targets search.
pub(crate) struct Exploration {
    /// CPU seconds of each.
    pub(crate) cpu_seconds: u64,
    /// What libFuzzer's seeds are derived from.
    pub(crate) seed: u64,
    /// Targets at once.
    pub(crate) jobs: usize,
}

impl Default for Exploration {
    fn default() -> Self {
        Self { cpu_seconds: CPU_SECONDS, seed: 1, jobs: cores() }
    }
}

/// Runs the targets and returns whether they found nothing.
///
/// # Errors
/// There is no such target, or something cannot be built, read or written.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let targets = chosen(targets(repository.root())?, options.target.as_deref())?;
    let fuzzer = Fuzzer::new(repository)?;
    if let Task::Input(input) = &options.task {
        let input = std::path::absolute(input).map_err(|e| format!("{}: {e}", input.display()))?;
        let [target] = &targets[..] else { return Err("--input goes with one TARGET".into()) };
        fuzzer.build(&targets)?;
        return fuzzer.shown(target, &input);
    }
    fuzzer.build(&targets)?;
    fuzzer.write_seeds()?;
    let passed = match &options.task {
        Task::Explore(exploration) => explore::explore(&fuzzer, &targets, exploration)?,
        Task::Merge | Task::Input(_) => true,
    };
    targets.iter().try_for_each(|target| merge::merge(&fuzzer, target))?;
    Ok(passed)
}

/// All targets, in order of their names.
fn targets(root: &Path) -> Result<Vec<String>, String> {
    let files = listed(&root.join(TARGETS))?;
    Ok(files.iter().filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect())
}

fn chosen(targets: Vec<String>, name: Option<&str>) -> Result<Vec<String>, String> {
    match name {
        None => Ok(targets),
        Some(name) if targets.iter().any(|target| target == name) => Ok(vec![name.to_owned()]),
        Some(name) => Err(format!("no target {name:?}: expected one of {}", targets.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The programs of the package are its targets.
    #[test]
    fn targets_are_files() {
        let all = targets(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert_eq!(chosen(all.clone(), Some("wml")), Ok(vec!["wml".to_owned()]));
        let error = chosen(all, Some("wm")).unwrap_err();
        assert!(error.starts_with("no target \"wm\": expected one of command_line, "), "{error}");
    }
}
