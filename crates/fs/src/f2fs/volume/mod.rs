//! A mounted volume: what all operations share.

pub(crate) mod pages;

use crate::f2fs::checkpoints::Checkpoints;
use crate::f2fs::cleaner::Cleaner;
use crate::f2fs::inode_table::InodeTable;
use crate::f2fs::mount_info::MountInfo;
use crate::f2fs::nat::Nodes;
use crate::f2fs::operations::Operations;
use crate::f2fs::segment_manager::SegmentManager;
use crate::f2fs::sending::Writes;
use std::rc::{Rc, Weak};

/// A mounted volume.
pub(crate) struct Volume {
    pub(crate) mount: Rc<MountInfo>,
    pub(crate) segments: SegmentManager,
    /// NAT, and node pages.
    pub(crate) nodes: Nodes,
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
