//! The tiny paper of the tests, as it stands and with a change.

use std::path::{Path, PathBuf};

/// The folder of the tiny paper.
pub(crate) fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiny")
}

/// What `look` makes of a copy of the tiny paper, called `name`, in which `file` says `to` where it first
/// said `from`.
pub(crate) fn changed<T>(
    name: &str,
    file: &str,
    (from, to): (&str, &str),
    look: impl FnOnce(&Path) -> T,
) -> T {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for entry in std::fs::read_dir(tiny()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    assert!(text.contains(from), "{from}");
    std::fs::write(folder.join(file), text.replacen(from, to, 1)).unwrap();
    let seen = look(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    seen
}
