//! A mounted volume: what all operations share.

use super::file_commit::FileCommit;
use super::inode::Inode;
use super::journal::Tid;
use super::meta::Meta;
use super::options::MountOptions;
use super::orphan::Orphans;
use super::rules::OmittedRule;
use crate::contract::{Caller, Result};
use crate::vfs::{InodeCache, SpaceReservation, VolumeEnv};
use nandscape_rt::sync::RwLock;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Files that have new data which a transaction must find on the device.
pub(crate) type Ordered = BTreeMap<u32, BTreeMap<u32, Rc<Inode>>>;

/// A mounted volume.
pub(crate) struct Volume {
    pub(crate) env: VolumeEnv<Inode>,
    pub(crate) options: MountOptions,
    pub(crate) meta: Meta,
    pub(crate) inodes: InodeCache<Inode>,
    /// Shared by changes of names in one directory, exclusive for renames.
    pub(crate) namespace: RwLock<()>,
    /// Inodes without a name that are still open or being freed, and those that are being cut.
    pub(crate) orphans: Orphans,
    pub(crate) ordered: RefCell<Ordered>,
    pub(crate) file_commit: FileCommit,
}

impl Volume {
    /// Whether this rule is left out.
    pub(crate) fn omits(&self, rule: OmittedRule) -> bool {
        self.meta.omits(rule)
    }

    /// Notes that a file has new data which the transaction must find on the device.
    pub(crate) fn order(&self, tid: Tid, inode: &Rc<Inode>) {
        let mut ordered = self.ordered.borrow_mut();
        ordered.entry(tid.0).or_default().insert(inode.number, Rc::clone(inode));
    }

    /// Free blocks that may be reserved for the caller.
    pub(crate) fn available_blocks(&self, caller: Caller) -> u64 {
        let counts = !self.omits(OmittedRule::Reservation);
        let reserved = if counts { self.env.space.reserved() } else { 0 };
        self.meta.alloc.available(&self.meta, caller, reserved)
    }

    /// Reserves blocks for an operation that takes up to so many.
    ///
    /// # Errors
    /// [`FsError::NoSpace`](crate::contract::FsError::NoSpace).
    pub(crate) fn reserve(&self, caller: Caller, blocks: u64) -> Result<SpaceReservation<'_>> {
        self.env.space.reserve(self.available_blocks(caller), blocks)
    }
}
