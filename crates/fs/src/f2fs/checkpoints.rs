//! The last checkpoint, and what a mount keeps for the next one.

use super::counts::Rolled;
use super::format::{CP_CRC_RECOVERY, CP_NOCRC_RECOVERY, Checkpoint};
use super::inode::Inode;
use super::mount_info::MountInfo;
use super::options::FsyncMode;
use super::orphans::Orphans;
use crate::contract::Result;
use nandscape_rt::sync::Mutex;
use nandscape_rt::{Nanos, Shadow, invariant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Why a checkpoint is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// `sync`, an fsync that needs one, a timer.
    Sync,
    /// Segments are to be reused.
    Space,
    /// Roll-forward has ended.
    Recovery,
    /// The volume is unmounted: the next mount has nothing to recover.
    Umount,
}

/// Checkpoints since mount that cleaning asked for.
#[derive(Default)]
pub(crate) struct OfCleaning {
    pub(crate) count: Cell<u64>,
    /// Blocks that they wrote: of directories, nodes, NAT, SIT, SSA, packs.
    pub(crate) blocks: Cell<u64>,
}

impl OfCleaning {
    /// One of so many blocks was written.
    pub(crate) fn note(&self, blocks: u64) {
        self.count.set(self.count.get() + 1);
        self.blocks.set(self.blocks.get() + blocks);
    }
}

/// The last checkpoint, and what the next one needs.
pub(crate) struct Checkpoints {
    mount: Rc<MountInfo>,
    /// As written last.
    pub(crate) last: RefCell<Checkpoint>,
    /// The pack that holds it: 0 or 1.
    pub(crate) pack: Cell<u32>,
    /// Its checksum.
    pub(crate) crc: Cell<u32>,
    pub(crate) orphans: Orphans,
    /// Directories that lost or changed names since, where an fsync is to bring names along (`TRANS_DIR_INO`).
    pub(crate) changed_dirs: RefCell<BTreeSet<u32>>,
    /// One is written at a time.
    pub(crate) writing: Mutex<()>,
    /// When it was written.
    pub(crate) written_at: Cell<Nanos>,
    /// Blocks of the warm node log, which has the chain of fsyncs since, that were written from mount to it.
    pub(crate) chain_from: Cell<u64>,
    /// Checkpoints since mount.
    pub(crate) count: Cell<u64>,
    /// Blocks of packs, NAT and SIT written since mount.
    pub(crate) blocks: Cell<u64>,
    /// Those that cleaning asked for.
    pub(crate) of_cleaning: OfCleaning,
    /// Blocks of SSA written since mount.
    pub(crate) summary_blocks: Cell<u64>,
    /// When the volume was mounted, and how many seconds it was mounted before.
    pub(crate) mounted_at: Nanos,
    pub(crate) mounted_before_s: u64,
    /// What mount rolled forward.
    pub(crate) rolled: Cell<Rolled>,
    /// The pack that was durable last, noted where it was written.
    durable: Cell<Shadow<DurablePack>>,
}

/// A pack that is durable.
#[derive(Clone, Copy)]
struct DurablePack {
    /// Its first block.
    start: u32,
    version: u64,
    crc: u32,
}

impl Checkpoints {
    pub(crate) fn new(
        mount: Rc<MountInfo>,
        last: Checkpoint,
        (pack, crc): (u32, u32),
        most_orphans: u32,
    ) -> Self {
        let mounted_before_s = last.elapsed_time;
        let rt = &mount.env.rt.clone();
        Self {
            durable: Cell::new(Shadow::new(|| DurablePack {
                start: mount.layout.pack(pack).0,
                version: last.checkpoint_ver,
                crc,
            })),
            mount,
            last: RefCell::new(last),
            pack: Cell::new(pack),
            crc: Cell::new(crc),
            orphans: Orphans::new(most_orphans),
            changed_dirs: RefCell::default(),
            writing: Mutex::new(rt, "checkpoint", ()),
            written_at: Cell::new(rt.now()),
            chain_from: Cell::new(0),
            count: Cell::new(0),
            blocks: Cell::new(0),
            of_cleaning: OfCleaning::default(),
            summary_blocks: Cell::new(0),
            mounted_at: rt.now(),
            mounted_before_s,
            rolled: Cell::default(),
        }
    }

    /// A pack is about to be written.
    pub(crate) fn check_pack(&self, start: u32, version: u64) {
        let durable = self.durable.get();
        invariant!(
            durable.agrees(|last| last.start != start),
            "a pack is not written over the last one"
        );
        invariant!(
            durable.agrees(|last| last.version + 1 == version),
            "versions of checkpoints follow each other"
        );
    }

    /// A pack is durable.
    pub(crate) fn note_durable(&self, start: u32, version: u64, crc: u32) {
        self.durable.set(Shadow::new(|| DurablePack { start, version, crc }));
    }

    /// What the footers of nodes carry, by which roll-forward knows that they follow the last checkpoint
    /// (`cpver_of_node`).
    pub(crate) fn node_version(&self) -> u64 {
        let last = self.last.borrow();
        let carried = (last.checkpoint_ver, self.crc.get());
        invariant!(
            self.durable.get().agrees(|pack| (pack.version, pack.crc) == carried),
            "nodes carry the version and the checksum of the last checkpoint"
        );
        let with_crc = last.has(CP_CRC_RECOVERY);
        let crc = if with_crc { u64::from(self.crc.get()) << 32 } else { 0 };
        last.checkpoint_ver | crc
    }

    /// Whether a node was written after the last checkpoint (`is_recoverable_dnode`).
    pub(crate) fn is_recoverable(&self, cp_ver: u64) -> bool {
        if self.last.borrow().has(CP_NOCRC_RECOVERY) {
            return cp_ver as u32 == self.last.borrow().checkpoint_ver as u32;
        }
        cp_ver == self.node_version()
    }

    /// An fsync in this directory brings its names along, if the mount asks for that (`TRANS_DIR_INO`).
    pub(crate) fn note_changed_dir(&self, dir: &Inode) {
        if self.mount.options.fsync_mode == FsyncMode::Strict {
            self.changed_dirs.borrow_mut().insert(dir.number);
        }
    }

    /// Makes an inode an orphan, if the name that is about to go is its last one.
    ///
    /// # Errors
    /// [`FsError::NoSpace`](crate::contract::FsError::NoSpace) if a checkpoint has no room for it.
    pub(crate) fn note_orphan(&self, inode: &Inode) -> Result<()> {
        if inode.is_dir() || inode.links() <= 1 {
            self.orphans.add(inode.number)?;
        }
        Ok(())
    }

    /// Seconds for which the volume was mounted so far (`get_mtime`).
    pub(crate) fn mounted_time(&self) -> u64 {
        let since = self.mount.env.rt.now().saturating_sub(self.mounted_at).0 / 1_000_000_000;
        self.mounted_before_s.saturating_add(since)
    }
}
