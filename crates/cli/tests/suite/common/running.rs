//! The binary while it runs: to be interrupted, and gone with the test that started it.

use super::Folder;
use std::fs::File;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Becomes the process named behind it, beside a shell that waits at a pipe: a line tells that the process
/// has ended, the pipe's end shows that its parent was killed, and then the process is, too.
const WATCHED: &str = "exec 3<&0; { read -r ended <&3 || kill -KILL $$; } >/dev/null 2>&1 & \
                       exec \"$0\" \"$@\" </dev/null 3<&-";

/// A process that ends with this, however the test ends.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// The pipe; without it, the process is killed.
    pub(crate) watcher: Option<ChildStdin>,
}

impl Running {
    /// The binary, called in `folder`; its standard error is piped.
    pub(crate) fn start(folder: &Folder, args: &[&str]) -> Self {
        Self::start_with(folder, args, Stdio::piped())
    }

    /// The same with another standard error.
    pub(crate) fn start_with(folder: &Folder, args: &[&str], stderr: Stdio) -> Self {
        let command = folder.command(args);
        let mut watched = Command::new("sh");
        watched.args(["-c", WATCHED]).arg(command.get_program()).args(args);
        watched.current_dir(&folder.0);
        watched.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let stdout = File::create(folder.0.join("stdout")).unwrap();
        watched.stdin(Stdio::piped()).stdout(stdout).stderr(stderr);
        let mut child = watched.spawn().unwrap();
        let watcher = child.stdin.take();
        Self { child, watcher }
    }

    /// As Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends the signal of this name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Neither means anything to a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(watcher) = &mut self.watcher {
            let _ = watcher.write_all(b"\n");
        }
    }
}
