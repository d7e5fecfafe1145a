//! A folder in which the binary is called, and what it says there.

pub(crate) mod document;
pub(crate) mod e2fs;
pub(crate) mod parts;
pub(crate) mod running;

use std::path::PathBuf;
use std::process::{Command, Output};

/// A stack small enough that runs take no time.
const SMALL: &str = "name = \"small\"\nextends = \"pblk\"\n[media]\nchunks = 48\nsectors = 128\n\
                     [ftl]\nop_percent = 35\n[precondition]\nfill = 1.0\nrandom_overwrite = 0.5\n";
const JOB: &str = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=4\nnumber_ios=2000\nfsync=50\n";

/// A folder of one test, with a small stack and job in it; removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// A new one, with `small.toml` and `job.fio`.
    pub(crate) fn new(name: &str) -> Self {
        let folder = Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        std::fs::create_dir_all(&folder.0).unwrap();
        folder.write("small.toml", SMALL);
        folder.write("job.fio", JOB);
        folder
    }

    /// A file in it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    /// The binary, called there.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.args(args).current_dir(&self.0).env("XDG_CACHE_HOME", self.0.join("cache"));
        command
    }

    /// What the binary says there.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Its standard output.
pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Its standard error.
pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
