//! A mounted volume: what all operations share.

pub(crate) mod pages;

use self::pages::PageReader;
use crate::f2fs::append::AppendSpace;
use crate::f2fs::checkpoints::Checkpoints;
use crate::f2fs::cleaner::Cleaner;
use crate::f2fs::inode::{Inode, InodeLists};
use crate::f2fs::inode_table::InodeTable;
use crate::f2fs::meta_pages::MetaPages;
use crate::f2fs::mount_info::MountInfo;
use crate::f2fs::moves::GcJournal;
use crate::f2fs::nat::{NodeParts, Nodes};
use crate::f2fs::operations::Operations;
use crate::f2fs::segment::Segments;
use crate::f2fs::segment_manager::SegmentManager;
use crate::f2fs::sending::Writes;
use crate::f2fs::zones::Zones;
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
    this: Weak<Self>,
}

/// What a mount has read of a volume.
pub(crate) struct VolumeParts {
    pub(crate) mount: Rc<MountInfo>,
    pub(crate) segments: Segments,
    pub(crate) nodes: NodeParts,
    pub(crate) meta: Rc<Inode>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) inode_lists: Rc<InodeLists>,
    pub(crate) gc_journal: Option<GcJournal>,
    pub(crate) zones: Option<Zones>,
    pub(crate) append: Option<AppendSpace>,
}

impl Volume {
    /// A volume of which a mount has read so much.
    pub(crate) fn new(parts: VolumeParts) -> Rc<Self> {
        let VolumeParts { mount, segments, nodes, meta, checkpoints, .. } = parts;
        let (inode_lists, gc_journal, zones) = (parts.inode_lists, parts.gc_journal, parts.zones);
        let append = parts.append;
        let is_ordered = zones.is_some() || append.as_ref().is_some_and(AppendSpace::is_coupled);
        let operations = Operations::new(Rc::clone(&mount));
        let zone_blocks = zones.as_ref().map(|zones| zones.geometry.blocks);
        let writes = Writes::new(Rc::clone(&mount), zone_blocks, is_ordered);
        let inodes = InodeTable::new(Rc::clone(&mount), inode_lists);
        let cleaner = Cleaner::new(Rc::clone(&mount), gc_journal);
        Rc::new_cyclic(|this| {
            let reader = PageReader::new(this);
            let meta = MetaPages::new(Rc::clone(&mount), reader.clone(), meta);
            let area = (zones, append);
            let segments = SegmentManager::new(Rc::clone(&mount), meta.clone(), segments, area);
            let nodes = Nodes::new(Rc::clone(&mount), (reader, meta), nodes);
            Self {
                inodes,
                mount,
                segments,
                nodes,
                checkpoints,
                operations,
                cleaner,
                writes,
                this: this.clone(),
            }
        })
    }

    /// The volume itself, to be kept by what reads for it.
    pub(crate) fn this(&self) -> Option<Rc<Self>> {
        self.this.upgrade()
    }
}
