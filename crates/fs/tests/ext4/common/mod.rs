//! The oracles: e2fsprogs and the running kernel, on image files. What a test needs and the machine
//! lacks skips it with a message; with `NANDSCAPE_REQUIRE_E2FS` set, as in `.ci/run`, it fails.

pub(crate) mod device;
pub(crate) mod examine;
pub(crate) mod f2fs;
pub(crate) mod image;
pub(crate) mod mount;
pub(crate) mod tree;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own for a test, gone with the value.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("nandscape-fs-{}-{number}", std::process::id());
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
        // What is left behind lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How much of a test is wanted: what the variable says, or `usual` if it is not there.
pub(crate) fn asked(variable: &str, usual: u64) -> u64 {
    let number = |said: String| {
        said.parse().unwrap_or_else(|_| panic!("{variable}={said}: expected a number"))
    };
    std::env::var(variable).map_or(usual, number)
}

/// Whether e2fsprogs is installed; a test that gets `false` returns.
pub(crate) fn e2fsprogs() -> bool {
    let installed = ["mke2fs", "e2fsck", "debugfs", "dumpe2fs"].iter().all(|tool| found(tool));
    let required = std::env::var_os("NANDSCAPE_REQUIRE_E2FS").is_some();
    assert!(
        installed || !required,
        "NANDSCAPE_REQUIRE_E2FS is set, but e2fsprogs is not installed"
    );
    if !installed {
        eprintln!("skipped: e2fsprogs is not installed");
    }
    installed
}

fn found(tool: &str) -> bool {
    Command::new(tool).arg("-V").output().is_ok()
}

/// A tool that knows no zone of time but UTC.
fn command(tool: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(tool);
    command.args(arguments).env("TZ", "UTC").env("LC_ALL", "C");
    command
}

/// Runs a tool, whatever it exits with.
pub(crate) fn run(tool: &str, arguments: &[&str]) -> Output {
    command(tool, arguments).output().unwrap_or_else(|error| panic!("{tool}: {error}"))
}

/// Runs a tool that must succeed, and gives what it printed.
pub(crate) fn output(tool: &str, arguments: &[&str]) -> String {
    succeeded(command(tool, arguments))
}

fn succeeded(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out
}

/// Makes a file system with mke2fs, as `/etc/mke2fs.conf` has it for ext4, of 4 KiB blocks and with
/// `options`.
pub(crate) fn mke2fs(image: &Path, options: &[&str]) {
    succeeded(mke2fs_command(image, options));
}

/// The same, as if it were so many seconds after 1970.
pub(crate) fn mke2fs_at(now: i64, image: &Path, options: &[&str]) {
    let mut command = mke2fs_command(image, options);
    command.env("E2FSPROGS_FAKE_TIME", now.to_string());
    succeeded(command);
}

fn mke2fs_command(image: &Path, options: &[&str]) -> Command {
    let fixed = ["-q", "-F", "-t", "ext4", "-b", "4096"];
    command("mke2fs", &[&fixed, options, &[text(image)]].concat())
}

/// What debugfs prints for a command.
pub(crate) fn debugfs(image: &Path, command: &str) -> String {
    output("debugfs", &["-R", command, text(image)])
}

/// Changes an image with debugfs, one command a line.
pub(crate) fn debugfs_write(image: &Path, script: &str) {
    let commands = image.with_extension("debugfs");
    std::fs::write(&commands, script).expect("a file of commands");
    output("debugfs", &["-w", "-f", text(&commands), text(image)]);
}

/// What `e2fsck -fn` says; it must find nothing.
pub(crate) fn assert_clean(image: &Path) {
    let checked = run("e2fsck", &["-fn", text(image)]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(0), "e2fsck -fn {}: {said}", image.display());
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}
