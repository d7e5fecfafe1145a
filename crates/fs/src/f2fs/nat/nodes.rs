//! What a mount keeps of nodes: the NAT, free numbers, and which node pages are dirty; and reads of pages that only nodes
//! are needed for.

use super::copies::Copies;
use super::{FreeNids, Nat};
use crate::cache::{Backing, Mapping, PageLocation, read_pages};
use crate::contract::{FsError, Kind, Result};
use crate::f2fs::format::BlockAddr;
use crate::f2fs::inode::Inode;
use crate::f2fs::meta_pages::MetaPages;
use crate::f2fs::mount_info::MountInfo;
use crate::f2fs::space::Space;
use crate::vfs::{InFlight, Pages};
use nandscape_block::{AsyncDevice, Bio, BlockError, Reply, SectorData};
use nandscape_rt::BoxFuture;
use nandscape_rt::sync::Mutex;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::{Rc, Weak};

/// Nodes of a mounted volume.
pub(crate) struct Nodes {
    pub(crate) mount: Rc<MountInfo>,
    /// NAT blocks.
    pub(crate) meta: MetaPages,
    /// Blocks, nodes and inodes in use.
    pub(crate) space: Space,
    /// The inode whose page n is node n.
    pub(crate) file: Rc<Inode>,
    pub(crate) nat: RefCell<Nat>,
    pub(crate) free: RefCell<FreeNids>,
    /// Held while free numbers are looked for.
    pub(crate) search: Mutex<()>,
    /// Dirty node pages: (inode, node).
    pub(crate) dirty: RefCell<BTreeSet<(u32, u32)>>,
    /// Writes of nodes that have their blocks. An fsync waits for all before its own: roll-forward follows the log from
    /// block to block, and would end at one that is missing.
    pub(crate) in_flight: InFlight,
    /// While a mount replays the GC journal: where nodes lie that cleaning copied, whatever the NAT says.
    pub(crate) last_copies: RefCell<BTreeMap<u32, BlockAddr>>,
    /// What was last written of each.
    pub(crate) copies: RefCell<Copies>,
    /// Numbers of nodes that were removed since the last checkpoint: until the next one, roll-forward could take a new
    /// node of that number for the old one.
    pub(crate) removed: RefCell<Vec<u32>>,
    this: Weak<Self>,
}

/// What a mount has read of nodes.
pub(crate) struct NodeParts {
    pub(crate) file: Rc<Inode>,
    pub(crate) nat: Nat,
    pub(crate) free: FreeNids,
    pub(crate) space: Space,
}

impl Nodes {
    pub(crate) fn new(mount: Rc<MountInfo>, meta: MetaPages, parts: NodeParts) -> Rc<Self> {
        let NodeParts { file, nat, free, space } = parts;
        let rt = &mount.env.rt.clone();
        Rc::new_cyclic(|this| Self {
            mount,
            meta,
            space,
            file,
            nat: RefCell::new(nat),
            free: RefCell::new(free),
            search: Mutex::new(rt, "free node numbers", ()),
            dirty: RefCell::default(),
            in_flight: InFlight::new(rt, "nodes"),
            last_copies: RefCell::default(),
            copies: RefCell::default(),
            removed: RefCell::default(),
            this: this.clone(),
        })
    }

    /// Pages of nodes, directories and symbolic links, from memory or from the device. The future is on the heap: few reads
    /// wait for the device, and each future that looks at a node would be as large.
    pub(crate) fn read_pages<'a>(
        &self,
        pages: &'a Mapping<Inode>,
        range: Pages,
    ) -> BoxFuture<'a, Result<Vec<SectorData>>> {
        let backing = self.this.upgrade().map(NodeBacking);
        Box::pin(async move {
            let backing = backing.ok_or(FsError::ReadOnly)?;
            read_pages(&backing, pages, u16::MAX, range).await
        })
    }

    /// Whether node pages of an inode are dirty.
    pub(crate) fn has_dirty_nodes(&self, ino: u32) -> bool {
        self.dirty.borrow().range((ino, 0)..=(ino, u32::MAX)).next().is_some()
    }

    /// A checkpoint is durable: numbers that were removed before it are free.
    pub(crate) fn free_removed(&self) {
        let removed = std::mem::take(&mut *self.removed.borrow_mut());
        removed.into_iter().for_each(|nid| self.free.borrow_mut().put(nid));
    }
}

/// Nodes as the page cache sees them: where pages are that are read through them.
#[derive(Clone)]
struct NodeBacking(Rc<Nodes>);

impl Backing for NodeBacking {
    type File = Inode;

    fn device(&self) -> &AsyncDevice {
        &self.0.mount.env.device
    }

    async fn locate(&self, inode: &Rc<Inode>, page: u64, pages: u64) -> Result<PageLocation> {
        self.0.locate(inode, page, pages).await
    }

    fn submit_read(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<> {
        self.0.mount.submit_read(bio)
    }

    fn is_metadata(&self, inode: &Rc<Inode>) -> bool {
        inode.kind() != Kind::File
    }
}
