//! fsync (`f2fs_do_sync_file` in fs/f2fs/file.c): the file's dirty nodes go to the warm node log with the fsync mark, by
//! which a mount finds them after the last checkpoint and rolls the file forward; where that would not do, a
//! checkpoint is written.

use super::checkpoints::Reason;
use super::format::{CP_UMOUNT, Nid};
use super::inode::{Dirty, Inode};
use super::node::{FsyncMarks, NodeSet};
use super::options::FsyncMode;
use super::rules::OmittedRule;
use super::volume::Volume;
use crate::contract::{Kind, Result};
use std::rc::Rc;

impl Volume {
    /// Makes durable what leads to a file's data, which is on the device; whether nothing is left to be flushed.
    pub(super) async fn fsync(self: &Rc<Self>, inode: &Rc<Inode>, data_only: bool) -> Result<bool> {
        inode.syncs_in_place.set(false);
        // What a checkpoint that is being written has taken looks clean, and is not durable yet.
        drop(self.operations.begin().await?);
        let ino = Nid(inode.number);
        let is_dirty = inode.dirty.get() > if data_only { Dirty::Times } else { Dirty::No };
        let is_written = self.inodes.lists.appended.borrow().contains(&inode.number)
            && !self.mount.omits(OmittedRule::AppendedFlush);
        let node_waits = self.nodes.dirty.borrow().contains(&(inode.number, inode.number))
            || self.nodes.nat.borrow().needs_inode_update(ino);
        if !is_dirty && !is_written && !node_waits {
            // What was written in place is durable with a flush, until a checkpoint had one.
            let is_updated = self.inodes.lists.updated.borrow().contains(&inode.number);
            return Ok(!is_updated || self.mount.omits(OmittedRule::UpdatedFlush));
        }
        // What was written stays noted until a checkpoint has it: another fsync of the file may find its nodes clean while
        // this one has yet to flush them.
        self.sync_nodes(inode, data_only).await
    }

    async fn sync_nodes(self: &Rc<Self>, inode: &Rc<Inode>, data_only: bool) -> Result<bool> {
        let ino = Nid(inode.number);
        if self.needs_checkpoint(inode) {
            return self.write_checkpoint_and(Reason::Sync, || inode.get_pino()).await;
        }
        let enough = if data_only { Dirty::Times } else { Dirty::No };
        loop {
            let op = self.operations.begin().await?;
            self.nodes.join_xattrs(inode).await;
            if inode.dirty.get() > enough {
                self.nodes.update_inode(&op, inode).await?;
            }
            let marks = FsyncMarks {
                ino: inode.number,
                fsync: true,
                dentry: self.nodes.nat.borrow().needs_dentry_mark(ino)
                    && !self.mount.omits(OmittedRule::DentryMark),
            };
            let all = self.send_nodes(&op, NodeSet::Of(inode.number), Some(marks)).await?;
            drop(op);
            // Otherwise the last node that was written has no mark, or the inode itself was not written.
            let is_marked = !self.nodes.nat.borrow().needs_inode_update(ino);
            let waits = !self.mount.omits(OmittedRule::FsyncNodeWait);
            if waits {
                // Another fsync of the file may have sent what this one found clean.
                self.nodes.in_flight.settle().await;
                self.mount.check_running()?;
            }
            // If not all were sent, a node was dirty again while its last write was in flight.
            if is_marked && (all || !waits) {
                break;
            }
            if !is_marked {
                inode.mark(Dirty::Content);
            }
        }
        Ok(self.mount.omits(OmittedRule::FsyncFlush))
    }

    /// Whether roll-forward could not bring the file back (`need_do_checkpoint`).
    fn needs_checkpoint(&self, inode: &Inode) -> bool {
        let raw = inode.raw.borrow();
        let nat = self.nodes.nat.borrow();
        let parent_is_there =
            nat.is_checkpointed(Nid(raw.pino)) || self.mount.omits(OmittedRule::FsyncParent);
        let strict = self.mount.options.fsync_mode == FsyncMode::Strict;
        inode.kind() != Kind::File
            || self.checkpoints.last.borrow().has(CP_UMOUNT)
            || (raw.links != 1 && !self.mount.omits(OmittedRule::FsyncLink))
            || (inode.has_wrong_pino() && !self.mount.omits(OmittedRule::FsyncRename))
            || !self.nodes.space.has_room_for_roll_forward()
            || !parent_is_there
            || self.mount.options.active_logs == 2
            || (strict
                && nat.needs_dentry_mark(Nid(inode.number))
                && self.checkpoints.changed_dirs.borrow().contains(&raw.pino))
    }
}
