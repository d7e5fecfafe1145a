//! Oracles of campaigns on file systems: the tools of each kind, run as processes.

mod e2fsck;

use crate::output::Failure;
use e2fsck::E2fsck;
use nandscape_crash::fs::Oracle;
use nandscape_fs::FsKind;

/// The oracle of a kind, if the machine has it.
pub(super) fn find(kind: FsKind) -> Result<Box<dyn Oracle + Sync>, Failure> {
    match kind {
        FsKind::Ext4 => Ok(Box::new(E2fsck::find()?)),
    }
}
