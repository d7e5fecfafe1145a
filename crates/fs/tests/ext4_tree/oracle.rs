//! The tree as others read it: the running kernel through a loop mount, and debugfs.
//!
//! A loop mount needs root and loop devices. Where there are none, that part is skipped with a message;
//! with `NANDSCAPE_REQUIRE_LOOP` set it fails.

use crate::common::{Scratch, debugfs, run, text};
use crate::model::{Content, Model};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A mount that goes with the value.
pub(crate) struct LoopMount(PathBuf);

impl LoopMount {
    /// Mounts an image with these options; `None` where that is not possible at all.
    pub(crate) fn new(image: &Path, scratch: &Scratch, options: &str) -> Option<Self> {
        let at = scratch.path("mount");
        std::fs::create_dir_all(&at).expect("a folder");
        let options = format!("loop,{options}");
        let mounted = run("mount", &["-t", "ext4", "-o", &options, text(image), text(&at)]);
        if mounted.status.success() {
            return Some(Self(at));
        }
        let said = String::from_utf8_lossy(&mounted.stderr).into_owned();
        let required = std::env::var_os("NANDSCAPE_REQUIRE_LOOP").is_some();
        assert!(!required, "NANDSCAPE_REQUIRE_LOOP is set: {said}");
        eprintln!("skipped: no loop mounts here: {said}");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        let unmounted = run("umount", &[text(&self.0)]);
        if !std::thread::panicking() {
            assert!(unmounted.status.success(), "umount {}", self.0.display());
        }
    }
}

/// The kernel and debugfs read what the model says from an image.
pub(crate) fn check_image(image: &Path, scratch: &Scratch, model: &Model) {
    if let Some(mount) = LoopMount::new(image, scratch, "ro") {
        compare(mount.path(), model, 0, true);
    }
    let dumped = scratch.path("dumped");
    std::fs::create_dir_all(&dumped).expect("a folder");
    debugfs(image, &format!("rdump / {}", text(&dumped)));
    compare(&dumped, model, 0, false);
    std::fs::remove_dir_all(&dumped).expect("a folder");
}

/// The names below a directory and what they lead to. `whole`: attributes too.
fn compare(at: &Path, model: &Model, dir: usize, whole: bool) {
    let names = model.names(dir).expect("a directory");
    let listed = std::fs::read_dir(at).expect("a directory").map(|entry| entry.expect("a name"));
    let mut listed: Vec<Vec<u8>> =
        listed.map(|entry| entry.file_name().as_bytes().to_vec()).collect();
    listed.sort();
    assert!(listed.iter().eq(names.keys()), "{}: {listed:?}", at.display());
    for (name, id) in names {
        let path = at.join(OsStr::from_bytes(name));
        let node = model.node(*id);
        let seen = std::fs::symlink_metadata(&path).expect("attributes");
        match &node.content {
            Content::Directory(_) => compare(&path, model, *id, whole),
            Content::Symlink(target) => {
                let read = std::fs::read_link(&path).expect("a target");
                assert_eq!(read.as_os_str().as_bytes(), target, "{}", path.display());
            }
            Content::File(bytes) => {
                assert!(std::fs::read(&path).expect("data") == *bytes, "{}", path.display());
            }
        }
        if !whole {
            continue;
        }
        assert_eq!(seen.nlink(), u64::from(node.links), "{}", path.display());
        assert_eq!((seen.uid(), seen.gid()), node.owner, "{}", path.display());
        assert_eq!(seen.mode() & 0o7777, u32::from(node.mode), "{}", path.display());
        if let Some(mtime) = node.mtime {
            let time = (seen.mtime(), seen.mtime_nsec());
            assert_eq!(time, (mtime.seconds, mtime.nanos.into()), "{}", path.display());
        }
    }
}
