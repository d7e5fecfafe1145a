//! The tree as others read it: the running kernel through a loop mount, and debugfs.

use super::model::{Content, Model};
use crate::common::mount::LoopMount;
use crate::common::{Scratch, debugfs, text};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The kernel and debugfs read what the model says from an image.
pub(crate) fn check_image(image: &Path, scratch: &Scratch, model: &Model) {
    if let Some(mount) = LoopMount::new(scratch, image, "ro") {
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
