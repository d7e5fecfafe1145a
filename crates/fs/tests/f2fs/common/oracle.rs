//! Volumes that f2fs-tools make and fill, and what they find in one.

use super::{run, text};
use std::path::Path;

/// How much of a test is wanted: what the variable says, or `usual` if it is not there.
pub(crate) fn asked(variable: &str, usual: u64) -> u64 {
    let number = |said: String| {
        said.parse().unwrap_or_else(|_| panic!("{variable}={said}: expected a number"))
    };
    std::env::var(variable).map_or(usual, number)
}

/// Makes a volume, the same each time.
pub(crate) fn mkfs(image: &Path, options: &[&str]) {
    let fixed = ["-q", "-f", "-r", "-T", "0", "-U", "6f5a1c1e-6e0c-4f0b-9a5b-1d2f3c4b5a69"];
    let made = run("mkfs.f2fs", &[&fixed[..], options, &[text(image)]].concat());
    let said = [made.stdout, made.stderr].concat();
    assert!(made.status.success(), "mkfs.f2fs: {}", String::from_utf8_lossy(&said));
}

/// Loads a folder to the root of a volume. sload.f2fs ends with a check that mends, and exits as that does.
pub(crate) fn sload(image: &Path, folder: &Path) {
    let done = run("sload.f2fs", &["-f", text(folder), text(image)]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(matches!(done.status.code(), Some(0 | 1)), "sload.f2fs: {}\n{said}", done.status);
}

/// What fsck.f2fs says of a volume, which it does not change.
pub(crate) struct Checked {
    pub(crate) sound: bool,
    pub(crate) said: String,
}

/// Asks fsck.f2fs. Its exit code leaves out what it would only mend, and everything if a segment is of the
/// wrong type; what it prints does not.
pub(crate) fn fsck(image: &Path) -> Checked {
    let checked = run("fsck.f2fs", &["--dry-run", text(image)]);
    let out = [checked.stdout, checked.stderr].concat();
    let said = String::from_utf8_lossy(&out).into_owned();
    let complains = |line: &str| {
        let starts = ["[ASSERT]", "[FIX]", "\tError:", "NID["];
        starts.iter().any(|start| line.starts_with(start))
            || line.contains("[Fail]")
            || line.contains("Corrupted valid nat_bits")
    };
    let sound = checked.status.code() == Some(0) && !said.lines().any(complains);
    Checked { sound, said }
}
