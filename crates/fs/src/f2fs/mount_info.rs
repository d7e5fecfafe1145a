//! What all parts of a mounted volume share: what they stand on, what does not change, and whether an error has stopped
//! the volume.

use super::cpu::{Cpu, Work};
use super::format::{
    self, BlockAddr, InodeFeatures, Layout, NodeFooter, NodeRole, SegNo, SegmentType, Superblock,
    node_flag,
};
use super::inode::{Inode, META_INO};
use super::options::MountOptions;
use super::reads::Reads;
use super::rules::OmittedRule;
use super::segment::Block;
use crate::contract::{FsError, Kind, Result, WriteHint};
use crate::vfs::{Pages, VolumeEnv};
use nandscape_block::{Bio, BlockError, Reply};
use nandscape_rt::defect;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// What all parts of a mounted volume share.
pub(crate) struct MountInfo {
    pub(crate) env: VolumeEnv<Inode>,
    /// Reads of files and nodes on their way.
    pub(crate) reads: Reads,
    pub(crate) options: MountOptions,
    /// The host's cores, if work on them costs anything.
    pub(crate) cpu: Cpu,
    pub(crate) sb: Superblock,
    pub(crate) layout: Layout,
    /// A write of metadata failed, or one contradicts another: nothing is written any more (`CP_ERROR_FLAG`).
    pub(crate) stopped: Cell<bool>,
    /// The first error that stopped it.
    pub(crate) fault: RefCell<Option<FsError>>,
}

impl MountInfo {
    pub(crate) fn new(
        env: VolumeEnv<Inode>,
        options: MountOptions,
        (sb, layout): (Superblock, Layout),
    ) -> Self {
        let cpu = Cpu::new(options.cpu, options.gc_without);
        let moves_blocks = layout.space().is_some() && env.device.caps().has_upcalls();
        let reads = Reads::new(&env.rt, moves_blocks);
        let (stopped, fault) = (Cell::new(false), RefCell::default());
        Self { env, reads, options, cpu, sb, layout, stopped, fault }
    }

    /// Submits a read of blocks of files or nodes.
    pub(crate) fn submit_read(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<> {
        let reading = self.reads.begin();
        let reply = self.env.device.submit(bio);
        async move {
            let _reading = reading;
            reply.await
        }
    }

    /// Notes that an error stops all writes of metadata.
    pub(super) fn note_fault(&self, error: &FsError) {
        self.stopped.set(true);
        // What finds it stopped is no reason.
        if *error != FsError::ReadOnly {
            self.fault.borrow_mut().get_or_insert_with(|| error.clone());
        }
    }

    /// Waits for a core of the host, and until it has done `work`; not at all where work costs nothing.
    #[inline]
    pub(crate) async fn pay(&self, work: Work) {
        if self.cpu.is_charged() {
            self.cpu.pay(&self.env.rt, work).await;
        }
    }

    /// That no error has stopped the volume.
    pub(crate) fn check_running(&self) -> Result<()> {
        if self.stopped.get() { Err(FsError::ReadOnly) } else { Ok(()) }
    }

    /// Whether a rule is left out.
    pub(crate) fn omits(&self, rule: OmittedRule) -> bool {
        self.options.omit == Some(rule)
    }

    /// Where the summaries of a segment lie.
    ///
    /// # Errors
    /// A defect: a segment that is none.
    pub(crate) fn summary_block(&self, segment: SegNo) -> Result<BlockAddr> {
        let at = self.layout.summary_block(segment);
        at.ok_or_else(|| defect!("{segment:?} has a block of summaries").into())
    }

    /// Whether what leads to data must be durable after it.
    pub(crate) fn requires_order(&self) -> bool {
        self.options.ordered_data && self.keeps_rules()
    }

    /// Whether the mount leaves out no rule: what rules keep holds then.
    pub(crate) const fn keeps_rules(&self) -> bool {
        self.options.omit.is_none() && !self.options.gc_without.checkpoint()
    }

    /// The features of the volume that decide how inodes are read.
    pub(crate) fn inode_features(&self) -> InodeFeatures {
        let features = self.sb.features();
        InodeFeatures {
            extra_attr: features.has(format::Feature::EXTRA_ATTR),
            flexible_inline_xattr: features.has(format::Feature::FLEXIBLE_INLINE_XATTR),
            inode_checksum: features.has(format::Feature::INODE_CHECKSUM),
        }
    }

    /// Writes the checksum of an inode's block, if it has one.
    pub(crate) fn seal_inode(&self, bytes: &mut Block) {
        if let Some(seed) = self.sb.checksum_seed() {
            format::seal_inode(bytes, self.inode_features(), seed.0);
        }
    }

    /// The log for the first of some dirty pages, and how many from there on belong to it: those that cleaning moves are
    /// cold.
    pub(super) fn log_of_pages(&self, inode: &Inode, pages: Pages) -> (SegmentType, u64) {
        let mut moving = inode.moving.borrow_mut();
        if !moving.remove(&pages.start) {
            let next = moving.range(pages.clone()).next().copied().unwrap_or(pages.end);
            return (self.data_log(inode), next - pages.start);
        }
        let cold = if self.options.active_logs == 2 {
            SegmentType::HotData
        } else {
            SegmentType::ColdData
        };
        (cold, 1)
    }

    /// The log for data of a file (`__get_segment_type`).
    pub(crate) fn data_log(&self, inode: &Inode) -> SegmentType {
        let log = match (inode.kind(), inode.write_hint.get()) {
            (Kind::File, WriteHint::Extreme) => SegmentType::ColdData,
            (Kind::File, WriteHint::Short) => SegmentType::HotData,
            (Kind::File, _) if inode.is_cold() => SegmentType::ColdData,
            (Kind::File, _) if inode.is_hot() => SegmentType::HotData,
            (Kind::File, _) => SegmentType::WarmData,
            _ => SegmentType::HotData,
        };
        match (self.options.active_logs, inode.kind()) {
            (2, _) => SegmentType::HotData,
            (4, Kind::Directory) => SegmentType::HotData,
            (4, _) => SegmentType::ColdData,
            _ => log,
        }
    }

    /// The log for a node block (`__get_segment_type`).
    pub(crate) fn node_log(&self, bytes: &Block) -> SegmentType {
        let footer = NodeFooter::parse(bytes);
        let is_dnode =
            footer.role().is_some_and(|role| role.has_addrs() || role == NodeRole::Xattr);
        let log = match (is_dnode, footer.has(node_flag::COLD)) {
            (true, true) => SegmentType::WarmNode,
            (true, false) => SegmentType::HotNode,
            (false, _) => SegmentType::ColdNode,
        };
        match (self.options.active_logs, log) {
            (2, _) => SegmentType::HotNode,
            (4, SegmentType::HotNode) => SegmentType::ColdNode,
            _ => log,
        }
    }

    /// Directories and long symbolic links with dirty pages.
    pub(super) fn dirty_dirs(&self) -> Vec<Rc<Inode>> {
        let mut dirs = self.env.cache.dirty_files();
        let is_dir = |inode: &Rc<Inode>| inode.number > META_INO && inode.kind() != Kind::File;
        dirs.retain(is_dir);
        dirs
    }

    /// Dirty pages of directories.
    pub(crate) fn dirty_dir_pages(&self) -> u64 {
        self.dirty_dirs().iter().map(|dir| dir.pages.dirty()).sum()
    }

    /// Ends what runs in the background, so that the device can be used by others; nothing is written.
    pub(super) fn detach(&self) {
        self.env.calls.close();
        self.env.cache.stop();
        self.stopped.set(true);
    }
}
