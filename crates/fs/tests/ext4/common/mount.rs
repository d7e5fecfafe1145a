//! Images mounted by the running kernel.
//!
//! That needs root and loop devices. Where there are none, the test goes on without, with a message;
//! with `NANDSCAPE_REQUIRE_LOOP` set, as in `.ci/run` where the machine can, it fails.

use super::{Scratch, run, text};
use std::path::{Path, PathBuf};

/// How often a busy mount is asked to go.
const TRIES: u32 = 1_000;

/// A file system of an image, mounted until the value goes.
pub(crate) struct LoopMount(PathBuf);

impl LoopMount {
    /// Mounts an image with these options; `None` where the machine cannot.
    pub(crate) fn new(scratch: &Scratch, image: &Path, options: &str) -> Option<Self> {
        match Self::attempt(scratch, image, options)? {
            Ok(mount) => Some(mount),
            Err(said) => panic!("mount {}: {said}", image.display()),
        }
    }

    /// The same of an image that the kernel may refuse; `Err` is what it then says.
    pub(crate) fn attempt(
        scratch: &Scratch,
        image: &Path,
        options: &str,
    ) -> Option<Result<Self, String>> {
        let at = scratch.path("mounted");
        std::fs::create_dir_all(&at).expect("a folder to mount at");
        let options = format!("loop,{options}");
        let mounted = run("mount", &["-t", "ext4", "-o", &options, text(image), text(&at)]);
        if mounted.status.success() {
            return Some(Ok(Self(at)));
        }
        let said = String::from_utf8_lossy(&mounted.stderr).into_owned();
        let required = std::env::var_os("NANDSCAPE_REQUIRE_LOOP").is_some();
        let able = !said.contains("permission denied")
            && !said.contains("must be superuser")
            && !said.contains("failed to setup loop device");
        if able {
            return Some(Err(said));
        }
        assert!(!required, "mount {}: {said}", image.display());
        eprintln!("skipped: this machine cannot mount images: {said}");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for LoopMount {
    /// A process that another test is about to start holds files of the mount, until it has begun: then the
    /// mount is busy, and what was written to it is not in the image yet.
    fn drop(&mut self) {
        // If it never goes, the test misses in the image what was written.
        let _ = (0..TRIES).any(|_| run("umount", &[text(&self.0)]).status.success());
    }
}
