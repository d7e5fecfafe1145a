//! Where the repository is, and programs that run in it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cores of this machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What git prints in a folder, with this file as its index if one is given.
///
/// # Errors
/// It fails.
pub(crate) fn git(folder: &Path, index: Option<&Path>, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(args).current_dir(folder);
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let output = command.output().map_err(|error| format!("git: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("git {}: {}", args[0], String::from_utf8_lossy(&output.stderr))),
    }
}

/// The repository that cargo runs this program for. The one that it was built from may differ if two share a
/// build directory. Its path has no `..`, as those in cargo's messages, in which programs are looked for.
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    pub(crate) fn of_this_run() -> Self {
        let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = xtask.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo builds.
    pub(crate) fn target(&self) -> PathBuf {
        self.root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
    }

    /// The commit that is checked out.
    ///
    /// # Errors
    /// Git does not know it.
    pub(crate) fn commit(&self) -> Result<String, String> {
        self.git(&["rev-parse", "HEAD"])
    }

    /// What git prints.
    ///
    /// # Errors
    /// It fails.
    pub(crate) fn git(&self, args: &[&str]) -> Result<String, String> {
        git(&self.root, None, args)
    }

    /// Builds the program with debug assertions and overflow checks, and returns its path. It is the one that tests run: built
    /// alone, its dependencies would have other features, and all would be compiled once more.
    ///
    /// # Errors
    /// It does not build.
    pub(crate) fn checked_binary(&self) -> Result<PathBuf, String> {
        self.built(&["test", "--workspace", "--no-run", "--quiet", "--locked"], "debug")
    }

    /// Builds the program and returns its path.
    ///
    /// # Errors
    /// It does not build.
    pub(crate) fn release_binary(&self) -> Result<PathBuf, String> {
        self.built(&["build", "--release", "--quiet", "--locked"], "release")
    }

    fn built(&self, args: &[&str], folder: &str) -> Result<PathBuf, String> {
        match self.cargo(args)? {
            true => Ok(self.target().join(folder).join("nandscape")),
            false => Err("the program does not build".into()),
        }
    }

    /// What cargo knows of the packages of a manifest.
    ///
    /// # Errors
    /// It cannot be started, or does not resolve them as they are locked.
    pub(crate) fn metadata(&self, manifest: &str) -> Result<Value, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args([
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--manifest-path",
            manifest,
        ]);
        let output = command.current_dir(&self.root).output();
        let output = output.map_err(|error| format!("cargo: {error}"))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("{manifest}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Whether cargo succeeds. Its output is the caller's.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn cargo(&self, args: &[&str]) -> Result<bool, String> {
        self.cargo_with(args, &[])
    }

    /// The same, with variables of its environment.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn cargo_with(
        &self,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<bool, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(args).envs(variables.iter().copied()).current_dir(&self.root);
        let status = command.status();
        Ok(status.map_err(|error| format!("cargo: {error}"))?.success())
    }
}
