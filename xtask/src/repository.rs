//! Where the repository is, and programs that run in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Cores of this machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The repository that cargo runs this program for. The one that it was built from may differ if two share a
/// build directory.
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    pub(crate) fn of_this_run() -> Self {
        let xtask = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| "xtask".into());
        Self { root: Path::new(&xtask).join("..") }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo builds.
    pub(crate) fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), PathBuf::from)
    }

    /// Builds the program and returns its path.
    ///
    /// # Errors
    /// It does not build.
    pub(crate) fn release_binary(&self) -> Result<PathBuf, String> {
        if !self.cargo(&["build", "--release", "--quiet", "--locked"])? {
            return Err("the program does not build".into());
        }
        Ok(self.target().join("release/nandscape"))
    }

    /// Whether cargo succeeds. Its output is the caller's.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn cargo(&self, args: &[&str]) -> Result<bool, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo).args(args).current_dir(&self.root).status();
        Ok(status.map_err(|error| format!("cargo: {error}"))?.success())
    }
}
