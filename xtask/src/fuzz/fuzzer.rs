//! The programs of `fuzz/`: how they are built and run, and the folder of what they need and find.
//!
//! `fuzz/.cargo/config.toml` has the compiler flags for coverage, so the pinned toolchain builds them; no crate has unsafe
//! code that a sanitizer would check. An input may take ten CPU seconds: libFuzzer measures time on the wall, in which a busy
//! machine may do nothing, so what it reports is run once more, alone, under a limit of the kernel.

use crate::repository::Repository;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The package of the programs.
const PACKAGE: &str = "fuzz";
/// Where the corpora are that tests replay.
const CORPUS: &str = "fuzz/corpus";
/// Memory and CPU time after which an input is a finding.
const MEMORY_MIB: u32 = 1024;
const CPU_SECONDS: u32 = 10;
/// What the kernel sends to a program whose CPU time is over.
const SIGXCPU: i32 = 24;

/// The package, and the folder of its builds, seeds, corpora, findings and logs.
pub(super) struct Fuzzer {
    root: PathBuf,
    home: PathBuf,
}

impl Fuzzer {
    pub(super) fn new(repository: &Repository) -> Result<Self, String> {
        let absolute = |path: PathBuf| {
            std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        let home = absolute(repository.target().join("fuzz"))?;
        Ok(Self { root: absolute(repository.root().to_owned())?, home })
    }

    /// A folder of a target, which exists.
    pub(super) fn folder(&self, kind: &str, target: &str) -> Result<PathBuf, String> {
        made(self.home.join(kind).join(target))
    }

    /// The corpus of a target that tests replay.
    pub(super) fn corpus(&self, target: &str) -> Result<PathBuf, String> {
        made(self.root.join(CORPUS).join(target))
    }

    /// Where a target writes what it does.
    pub(super) fn log(&self, target: &str, task: &str) -> PathBuf {
        self.home.join(format!("{target}.{task}.log"))
    }

    /// A command of cargo, which takes the flags from the folder where it runs.
    fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(cargo());
        cargo.current_dir(self.root.join(PACKAGE)).stdin(Stdio::null());
        cargo.args([command, "--quiet", "--release", "--locked", "--target-dir"]);
        cargo.arg(self.home.join("build"));
        cargo
    }

    /// Builds these targets.
    pub(super) fn build(&self, targets: &[String]) -> Result<(), String> {
        let mut build = self.cargo("build");
        build.args(targets.iter().flat_map(|target| ["--bin", target]));
        match status(&mut build)?.success() {
            true => Ok(()),
            false => Err("the targets do not build".into()),
        }
    }

    /// Writes the seeds of all targets into their folders `seeds`.
    pub(super) fn write_seeds(&self) -> Result<(), String> {
        let mut write = Command::new(cargo());
        write.current_dir(&self.root).stdin(Stdio::null());
        // Built with the tests, which most who explore have run.
        write.args(["run", "--quiet", "--locked", "--profile", "test"]);
        write.args(["--package", "nandscape-inputs", "--example", "seeds", "--"]);
        write.arg(self.home.join("seeds"));
        match status(&mut write)?.success() {
            true => Ok(()),
            false => Err("the seeds cannot be written".into()),
        }
    }

    /// A target on these inputs, files or folders; its temporary files stay in the build directory. Cargo replaces itself by
    /// the target, so limits and CPU time of the process are those of the target.
    pub(super) fn run(
        &self,
        target: &str,
        inputs: &[&Path],
        wall_s: u32,
    ) -> Result<Command, String> {
        let mut command = self.cargo("run");
        command.args(["--bin", target, "--"]).args(inputs);
        command.args([format!("-rss_limit_mb={MEMORY_MIB}"), format!("-timeout={wall_s}")]);
        command.env("TMPDIR", self.folder("scratch", target)?);
        Ok(command)
    }

    /// A target that explores: an input that takes as many seconds on the wall as it may take CPU seconds ends it.
    pub(super) fn exploring(&self, target: &str, inputs: &[&Path]) -> Result<Command, String> {
        self.run(target, inputs, CPU_SECONDS)
    }

    /// A target on one input, which the kernel ends after the CPU time of an input.
    fn alone(&self, target: &str, input: &Path) -> Result<Command, String> {
        let run = self.run(target, &[input], 0)?;
        let mut limited = Command::new("sh");
        limited.current_dir(self.root.join(PACKAGE)).stdin(Stdio::null());
        limited.args([
            "-c",
            &format!("ulimit -S -c 0; ulimit -S -t {CPU_SECONDS}; exec \"$@\""),
            "sh",
        ]);
        limited.arg(run.get_program()).args(run.get_args());
        limited.env("TMPDIR", self.folder("scratch", target)?);
        Ok(limited)
    }

    /// Whether a target comes to an end on an input that is alone.
    pub(super) fn ends_in_time(&self, target: &str, input: &Path) -> Result<bool, String> {
        let mut alone = self.alone(target, input)?;
        Ok(status(alone.stdout(Stdio::null()).stderr(Stdio::null()))?.success())
    }

    /// Runs a target on one input before the eyes of a user; whether it is no finding.
    pub(super) fn shown(&self, target: &str, input: &Path) -> Result<bool, String> {
        let status = status(&mut self.alone(target, input)?)?;
        if status.signal() == Some(SIGXCPU) {
            println!("{target}: more than {CPU_SECONDS} CPU seconds");
        }
        Ok(status.success())
    }
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn status(command: &mut Command) -> Result<ExitStatus, String> {
    command.status().map_err(|e| format!("{}: {e}", command.get_program().to_string_lossy()))
}

fn made(folder: PathBuf) -> Result<PathBuf, String> {
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}
