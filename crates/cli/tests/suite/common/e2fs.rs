//! e2fsprogs, called in a test's folder. What a test needs and the machine lacks skips it with a message;
//! with `NANDSCAPE_REQUIRE_E2FS` set, as in `.ci/run`, it fails.

use crate::common::{Folder, err, out};
use std::process::Command;

/// Whether e2fsprogs is installed; a test that gets `false` returns.
pub(crate) fn installed() -> bool {
    let found = |tool: &&str| Command::new(tool).arg("-V").output().is_ok();
    let installed = ["mke2fs", "e2fsck", "debugfs"].iter().all(found);
    let required = std::env::var_os("NANDSCAPE_REQUIRE_E2FS").is_some();
    assert!(installed || !required, "NANDSCAPE_REQUIRE_E2FS is set, but e2fsprogs is missing");
    if !installed {
        eprintln!("skipped: e2fsprogs is not installed");
    }
    installed
}

/// Runs a tool that must succeed, and gives what it printed.
pub(crate) fn tool(folder: &Folder, name: &str, args: &[&str]) -> String {
    let output = Command::new(name).args(args).current_dir(&folder.0).output().unwrap();
    let said = format!("{}{}", out(&output), err(&output));
    assert_eq!(output.status.code(), Some(0), "{name} {args:?}: {said}");
    said
}

/// The content of a file in an image.
pub(crate) fn content(folder: &Folder, image: &str, file: &str) -> Vec<u8> {
    let to = folder.0.join("dumped");
    tool(folder, "debugfs", &["-R", &format!("dump {file} dumped"), image]);
    let content = std::fs::read(&to).unwrap_or_else(|error| panic!("{file} in {image}: {error}"));
    std::fs::remove_file(&to).unwrap();
    content
}
