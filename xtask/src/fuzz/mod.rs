//! `cargo xtask fuzz`: the targets of `fuzz/` under libFuzzer, each for some time, as many at once as there are cores.
//!
//! `fuzz/.cargo/config.toml` has the compiler flags for coverage, so the pinned toolchain builds the targets; no crate has
//! unsafe code that a sanitizer would check. Seeds are the corpora of tests, examples and papers (`seeds`), and `fuzz/seeds`;
//! libFuzzer adds to them what reaches new code, in the build directory. A finding is a file that reproduces it: `cargo
//! xtask fuzz TARGET --input FILE` runs the target with that file alone.

mod seeds;

use crate::files::listed;
use crate::repository::{Repository, cores};
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The package, and its targets.
const PACKAGE: &str = "fuzz";
const TARGETS: &str = "fuzz/src/bin";
/// Seconds of a target unless others are given.
const SECONDS: u64 = 60;
/// Memory and time after which an input is a finding.
const MEMORY_MIB: u32 = 1024;
const TIMEOUT_S: u32 = 10;

/// What is run, and for how long.
pub(crate) struct Options {
    /// The target; `None`: all.
    pub(crate) target: Option<String>,
    /// Seconds of each.
    pub(crate) seconds: u64,
    /// The only input.
    pub(crate) input: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { target: None, seconds: SECONDS, input: None }
    }
}

/// Runs the targets and returns whether they found nothing.
///
/// # Errors
/// There is no such target, or something cannot be built, read or written.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let targets = chosen(targets(repository.root())?, options.target.as_deref())?;
    let fuzzer = Fuzzer::new(repository)?;
    if let Some(input) = &options.input {
        let input = std::path::absolute(input).map_err(|e| format!("{}: {e}", input.display()))?;
        let [target] = &targets[..] else { return Err("--input goes with one TARGET".into()) };
        return succeeds(&mut fuzzer.run(target, &[&input])?);
    }
    if !succeeds(&mut fuzzer.build(&targets))? {
        return Err("the targets do not build".into());
    }
    for target in &targets {
        seeds::collect(repository.root(), target, &fuzzer.folder("seeds", target)?)?;
    }
    fuzzer.run_all(targets, options.seconds)
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

fn succeeds(command: &mut Command) -> Result<bool, String> {
    Ok(command.status().map_err(|e| format!("cargo: {e}"))?.success())
}

/// The package of the targets, and the folder of its builds, seeds, corpora, findings and logs.
struct Fuzzer {
    package: PathBuf,
    home: PathBuf,
}

impl Fuzzer {
    fn new(repository: &Repository) -> Result<Self, String> {
        let home = repository.target().join("fuzz");
        let home = std::path::absolute(&home).map_err(|e| format!("{}: {e}", home.display()))?;
        Ok(Self { package: repository.root().join(PACKAGE), home })
    }

    /// A folder of a target, which exists.
    fn folder(&self, kind: &str, target: &str) -> Result<PathBuf, String> {
        let folder = self.home.join(kind).join(target);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(folder)
    }

    /// A command of cargo, which takes the flags from the folder where it runs.
    fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.package).stdin(Stdio::null());
        cargo.args([command, "--quiet", "--release", "--locked", "--target-dir"]);
        cargo.arg(self.home.join("build"));
        cargo
    }

    fn build(&self, targets: &[String]) -> Command {
        let mut command = self.cargo("build");
        command.args(targets.iter().flat_map(|target| ["--bin", target]));
        command
    }

    /// A target on these inputs, files or folders; its temporary files stay in the build directory.
    fn run(&self, target: &str, inputs: &[&Path]) -> Result<Command, String> {
        let mut command = self.cargo("run");
        command.args(["--bin", target, "--"]).args(inputs);
        command.args([format!("-rss_limit_mb={MEMORY_MIB}"), format!("-timeout={TIMEOUT_S}")]);
        command.env("TMPDIR", self.folder("scratch", target)?);
        Ok(command)
    }

    /// All these targets, as many at once as there are cores; whether they found nothing. They take as long as each other,
    /// so the one that began first is waited for.
    fn run_all(&self, targets: Vec<String>, seconds: u64) -> Result<bool, String> {
        let cores = cores();
        let (mut running, mut passed) = (VecDeque::new(), true);
        for target in targets {
            if running.len() >= cores {
                passed &= running.pop_front().map_or(Ok(true), Running::finish)?;
            }
            running.push_back(self.start(target, seconds)?);
        }
        running.into_iter().try_fold(passed, |passed, one| Ok(one.finish()? && passed))
    }

    fn start(&self, target: String, seconds: u64) -> Result<Running, String> {
        let (corpus, seeds) = (self.folder("corpus", &target)?, self.folder("seeds", &target)?);
        let findings = self.folder("findings", &target)?;
        let log = self.home.join(format!("{target}.log"));
        let failed = |e: std::io::Error| format!("{}: {e}", log.display());
        let mut command = self.run(&target, &[&corpus, &seeds])?;
        command.args([
            format!("-max_total_time={seconds}"),
            // CI must not fail by chance; a longer run goes on where a shorter one ends, through the corpus.
            "-seed=1".to_owned(),
            format!("-artifact_prefix={}/", findings.display()),
            "-print_final_stats=1".to_owned(),
        ]);
        let out = File::create(&log).map_err(failed)?;
        let err = out.try_clone().map_err(failed)?;
        let child = command.stdout(out).stderr(err).spawn().map_err(|e| format!("cargo: {e}"))?;
        Ok(Running { target, log, child })
    }
}

/// A target that is running.
struct Running {
    target: String,
    log: PathBuf,
    child: Child,
}

impl Running {
    /// Waits for its end, and reports what it did or found; whether it found nothing.
    fn finish(mut self) -> Result<bool, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.log.display());
        let passed = self.child.wait().map_err(failed)?.success();
        let text = std::fs::read(&self.log).map_err(failed)?;
        let text = String::from_utf8_lossy(&text);
        match passed {
            true => println!("{}: {}", self.target, statistics(&text)),
            false => println!("{}: {}", self.target, finding(&self.target, &text, &self.log)),
        }
        Ok(passed)
    }
}

/// What libFuzzer's last lines say of a target that found nothing.
fn statistics(log: &str) -> String {
    let of = |mark| after(log, mark).and_then(|rest| rest.split(' ').next()).unwrap_or("?");
    format!(
        "no finding in {} executions, {} per second; {} edges covered, {} MiB at most",
        of("stat::number_of_executed_units:"),
        of("stat::average_exec_per_sec:"),
        of(" cov: "),
        of("stat::peak_rss_mb:")
    )
}

/// What happened in a target, and how to reproduce it.
fn finding(target: &str, log: &str, file: &Path) -> String {
    let mut marks = ["panicked at ", "ERROR: libFuzzer: "].into_iter();
    let what = marks.find_map(|mark| after(log, mark)).unwrap_or("it failed");
    let input = after(log, "Test unit written to ")
        .map(|input| format!("\n  cargo xtask fuzz {target} --input {input}"));
    format!("{what} ({}){}", file.display(), input.unwrap_or_default())
}

/// What follows `mark` in the last line that has it.
fn after<'a>(log: &'a str, mark: &str) -> Option<&'a str> {
    log.lines().rev().find_map(|line| line.split_once(mark)).map(|(_, rest)| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of the package are its targets.
    #[test]
    fn targets_are_files() {
        let all = targets(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert_eq!(chosen(all.clone(), Some("wml")), Ok(vec!["wml".to_owned()]));
        let error = chosen(all, Some("wm")).unwrap_err();
        assert!(error.starts_with("no target \"wm\": expected one of command_line, "), "{error}");
    }

    /// A finding is reported with what happened and the file that reproduces it.
    #[test]
    fn findings_are_reported() {
        let log = "thread '<unnamed>' panicked at a.rs:1:2:\nno\nartifact_prefix='x/'; Test unit written to x/crash-1\n";
        let line = finding("job", log, Path::new("job.log"));
        assert_eq!(line, "a.rs:1:2: (job.log)\n  cargo xtask fuzz job --input x/crash-1");
    }

    /// Executions and coverage are those at the end.
    #[test]
    fn executions_are_reported() {
        let log = "#8\tNEW    cov: 7 ft: 8\n#12\tDONE   cov: 56 ft: 78 corp: 1/2b\n\
                   stat::number_of_executed_units: 12\nstat::average_exec_per_sec:     6\nstat::peak_rss_mb:  34\n";
        let expected =
            "no finding in 12 executions, 6 per second; 56 edges covered, 34 MiB at most";
        assert_eq!(statistics(log), expected);
    }
}
