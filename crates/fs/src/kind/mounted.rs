//! Mounted file systems, as the crates above see them: how each kind answers what is asked of all.

use super::counts::{FsCounts, FsDetail};
use crate::config::MountReport;
use crate::contract::FileSystem;
use crate::counts::{FsMemory, FsSpace};
use crate::ext4::Ext4;
use crate::f2fs::F2fs;
use nandscape_rt::Host;
use std::rc::Rc;

/// A mounted file system: calls, and counts.
pub trait MountedFs: FileSystem {
    /// What it counted since it was mounted. [`FsCounts::since`] makes a window of two of these.
    fn counts(&self) -> FsCounts;

    /// What it keeps in memory now.
    fn memory(&self) -> FsMemory;

    /// Bytes of memory that its parts take now, by name, for kinds that can say; counts them all.
    fn memory_parts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Its segments and blocks now, for kinds that have segments.
    fn space(&self) -> Option<FsSpace> {
        None
    }

    /// The error that made it read-only, if one did.
    fn fault(&self) -> Option<String> {
        None
    }

    /// From now on its work takes time of the cores of `host`, if it was configured to cost anything. Without a host, as
    /// while files are laid out, it costs nothing.
    fn attach_host(&self, _host: &Host) {}
}

/// A mounted file system, and what mounting it had to recover.
pub type Mounted = (Rc<dyn MountedFs>, MountReport);

/// The same, of whatever kind.
pub(super) fn erased<F: MountedFs + 'static>((fs, report): (F, MountReport)) -> Mounted {
    (Rc::new(fs), report)
}

// What a kind has as its own function goes before that of the trait: `Ext4::memory` is the one in `ext4`.

impl MountedFs for Ext4 {
    fn counts(&self) -> FsCounts {
        FsCounts::of(self.env(), FsDetail::Ext4(Ext4::counts(self)))
    }

    fn memory(&self) -> FsMemory {
        Ext4::memory(self)
    }

    fn fault(&self) -> Option<String> {
        Ext4::fault(self)
    }
}

impl MountedFs for F2fs {
    fn counts(&self) -> FsCounts {
        FsCounts::of(self.env(), FsDetail::F2fs(F2fs::counts(self)))
    }

    fn memory(&self) -> FsMemory {
        F2fs::memory(self)
    }

    fn memory_parts(&self) -> Vec<(&'static str, u64)> {
        F2fs::memory_parts(self)
    }

    fn space(&self) -> Option<FsSpace> {
        Some(F2fs::space(self))
    }

    fn fault(&self) -> Option<String> {
        F2fs::fault(self)
    }

    fn attach_host(&self, host: &Host) {
        F2fs::attach_host(self, host);
    }
}
