//! The oracles: f2fs-tools, on image files. What a test needs and the machine lacks skips it with a
//! message; with `NANDSCAPE_REQUIRE_F2FS` set, as in `.ci/run`, it fails.

pub(crate) mod examine;
pub(crate) mod files;
pub(crate) mod image;
pub(crate) mod oracle;
pub(crate) mod slow;
pub(crate) mod source;
pub(crate) mod sparse;
pub(crate) mod tree;
pub(crate) mod volume;
pub(crate) mod watched;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// The version whose layouts are ours.
const VERSION: &str = "1.15.";

/// A folder for one test, removed with the value.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("nandscape-f2fs-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A sparse file of this size.
    pub(crate) fn image(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.path(name);
        let file = File::create(&path).expect("a file");
        file.set_len(bytes).expect("a sparse file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether f2fs-tools 1.15 are installed; a test that gets `false` returns.
pub(crate) fn f2fs_tools() -> bool {
    let tools = ["mkfs.f2fs", "fsck.f2fs", "dump.f2fs", "sload.f2fs"];
    let missing: Vec<_> = tools.into_iter().filter(|tool| !found(tool)).collect();
    let required = std::env::var_os("NANDSCAPE_REQUIRE_F2FS").is_some();
    assert!(missing.is_empty() || !required, "NANDSCAPE_REQUIRE_F2FS is set: {missing:?} missing");
    if !missing.is_empty() {
        eprintln!("skipped: {missing:?} of version {VERSION} are not installed");
    }
    missing.is_empty()
}

/// Whether a tool is there, in the version that tests compare with.
fn found(tool: &str) -> bool {
    let said = Command::new(tool).arg("-V").output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(VERSION))
}

/// Runs a tool, whatever it exits with.
pub(crate) fn run(tool: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(tool);
    command.args(arguments).env("TZ", "UTC").env("LC_ALL", "C");
    command.output().unwrap_or_else(|error| panic!("{tool}: {error}"))
}

/// What `fsck.f2fs --dry-run` says of an image; it must find nothing.
pub(crate) fn assert_clean(image: &Path) {
    let checked = run("fsck.f2fs", &["--dry-run", "-d", "1", text(image)]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(0), "fsck.f2fs {}: {said}", image.display());
    assert!(said.contains("[Ok..]") && !said.contains("[Fail]"), "{said}");
    for word in ["[ASSERT]", "[FIX]", "Invalid"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}
