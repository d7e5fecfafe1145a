//! A mounted volume: what all operations share.

use super::checkpoints::Checkpoints;
use super::cleaner::Cleaner;
use super::inode_table::InodeTable;
use super::mount_info::MountInfo;
use super::nat::Nodes;
use super::operations::Operations;
use super::segment_manager::SegmentManager;
use super::sending::Writes;
use std::rc::{Rc, Weak};

/// A mounted volume.
pub(crate) struct Volume {
    pub(crate) mount: Rc<MountInfo>,
    pub(crate) segments: SegmentManager,
    /// NAT, and node pages.
    pub(crate) nodes: Rc<Nodes>,
    /// The last checkpoint, and what the next one needs beside SIT and NAT.
    pub(crate) checkpoints: Checkpoints,
    pub(crate) inodes: InodeTable,
    pub(crate) operations: Operations,
    pub(crate) cleaner: Cleaner,
    pub(crate) writes: Writes,
    pub(super) this: Weak<Self>,
}

impl Volume {
    /// The volume itself, to be kept by what reads for it.
    pub(crate) fn this(&self) -> Option<Rc<Self>> {
        self.this.upgrade()
    }
}
