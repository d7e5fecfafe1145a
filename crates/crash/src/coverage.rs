//! What a campaign on files has reached: calls, states, and steps of recovery, with counts. Calls and states
//! are listed here, so that one that no seed reached shows as a zero; counts of the file system and of its
//! recovery come with their own names.

use crate::kernel_loss::KernelLoss;
use nandscape_fs::Promises;
use nandscape_rt::words::{counted, grouped};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

/// Calls of the contract, with the flags and outcomes that matter.
const CALLS: [&str; 50] = [
    "close",
    "create",
    "create: no space",
    "fallocate: reserve",
    "fallocate: reserve, length kept",
    "fallocate: punch hole",
    "fallocate: zero range",
    "fallocate: zero range, length kept",
    "fallocate: no space",
    "fdatasync",
    "fsync of a directory",
    "fsync of a file",
    "getattr",
    "getxattr",
    "link",
    "link: no space",
    "listxattr",
    "lookup",
    "mkdir",
    "mkdir: no space",
    "open",
    "read",
    "read, direct",
    "readdir",
    "readlink",
    "removexattr",
    "rename of a directory",
    "rename: exchange",
    "rename: new name",
    "rename: no replace",
    "rename: replace",
    "rmdir",
    "seek",
    "set_write_hint",
    "setattr: mode or owner",
    "setattr: shorter",
    "setattr: longer",
    "setxattr in the inode",
    "setxattr in a block",
    "setxattr: no space",
    "statfs",
    "symlink, long",
    "symlink, short",
    "syncfs",
    "unlink",
    "write",
    "write, append",
    "write, direct",
    "write, O_SYNC or O_DSYNC",
    "write: no space",
];

/// States in which calls or cuts came.
const STATES: [&str; 14] = [
    "cut, no sync in progress",
    "cut, sync in progress",
    "cut, unlinked file open",
    "direct and buffered writes of a file mixed",
    "page of JBD2's magic written",
    "page written beside a sync of its file, then synced",
    "rename over a file that is open",
    "rename over a synced file",
    "space ran out",
    "sync of an unlinked file",
    "truncate of an unlinked file",
    "unlink of an open file",
    "write into preallocated space",
    "write of a part of a page",
];

/// How often something was lost.
const TIMES: [&str; 2] = ["time", "times"];

/// The group of what power cuts took by the kernel's rules.
const LOSSES: &str = "as the kernel, not as POSIX";

/// Characters of a line of a table of counts, and of a count.
const LINE: usize = 112;
const COUNT: usize = 11;

/// Counts by group and name.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Coverage(BTreeMap<(&'static str, &'static str), u64>);

impl Coverage {
    /// Every call, state and loss that a file system with these promises can show, none reached.
    #[must_use]
    pub fn listed(promises: Promises) -> Self {
        let calls = CALLS.into_iter().map(|call| ("calls", call));
        let states = STATES.into_iter().map(|state| ("states", state));
        let losses = KernelLoss::ALL.into_iter().filter(|loss| loss.is_permitted_by(promises));
        let losses = losses.map(|loss| (LOSSES, loss.name()));
        Self(calls.chain(states).chain(losses).map(|row| (row, 0)).collect())
    }

    /// A power cut took so much.
    pub(crate) fn lost(&mut self, loss: KernelLoss, count: u64) {
        self.count(LOSSES, loss.name(), count);
    }

    /// What power cuts took by the kernel's rules, on one line; none if they took nothing.
    #[must_use]
    pub fn losses(&self) -> Option<String> {
        let lost = self.rows().filter(|(group, _, count)| *group == LOSSES && *count > 0);
        let lost: Vec<String> =
            lost.map(|(_, name, count)| format!("{name}, {}", counted(count, TIMES))).collect();
        let all = lost.join("; ");
        (!all.is_empty())
            .then(|| format!("lost as the kernel loses it, not as POSIX expects: {all}"))
    }

    /// A call was made.
    pub(crate) fn call(&mut self, call: &'static str) {
        debug_assert!(CALLS.contains(&call), "{call} is not listed");
        self.count("calls", call, 1);
    }

    /// A state was reached.
    pub(crate) fn state(&mut self, state: &'static str) {
        debug_assert!(STATES.contains(&state), "{state} is not listed");
        self.count("states", state, 1);
    }

    /// Adds a count of any group.
    pub(crate) fn count(&mut self, group: &'static str, name: &'static str, count: u64) {
        *self.0.entry((group, name)).or_default() += count;
    }

    /// Group, name and count of each row, in order.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.0.iter().map(|((group, name), count)| (*group, *name, *count))
    }

    /// Whether there are no rows at all: the campaign was none on files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Coverage {
    /// A table for each group, and what was not reached.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<_> = self.rows().collect();
        for (index, group) in rows.chunk_by(|one, other| one.0 == other.0).enumerate() {
            write!(f, "{}  {}:", if index == 0 { "" } else { "\n" }, group[0].0)?;
            let width = group.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
            let columns = (LINE / (width + COUNT + 3)).max(1);
            for (index, (_, name, count)) in group.iter().enumerate() {
                f.write_str(if index % columns == 0 { "\n    " } else { "  " })?;
                write!(f, "{name:width$} {:>COUNT$}", grouped(*count))?;
            }
        }
        let none = rows.iter().filter(|row| row.2 == 0);
        let none: Vec<String> = none.map(|(group, name, _)| format!("{group}: {name}")).collect();
        match &none[..] {
            [] => Ok(()),
            none => write!(f, "\n  not reached: {}", none.join("; ")),
        }
    }
}

impl AddAssign<&Self> for Coverage {
    fn add_assign(&mut self, other: &Self) {
        for (row, count) in &other.0 {
            *self.0.entry(*row).or_default() += count;
        }
    }
}
