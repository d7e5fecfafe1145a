//! Oracles of campaigns on file systems: the tools of each kind, run as processes.

mod e2fsck;
mod fsck_f2fs;
mod scratch;

use crate::output::Failure;
use e2fsck::E2fsck;
use fsck_f2fs::FsckF2fs;
use nandscape_crash::fs::Oracle;
use nandscape_fs::FsKind;
use scratch::Scratch;

/// The oracle of a kind, if the machine has it.
pub(super) fn find(kind: FsKind) -> Result<Box<dyn Oracle + Sync>, Failure> {
    match kind {
        FsKind::Ext4 => Ok(Box::new(E2fsck::find()?)),
        FsKind::F2fs => Ok(Box::new(FsckF2fs::find()?)),
    }
}
