//! Lengths, holes, attributes and fsync of files (fs/f2fs/file.c).
//!
//! An fsync (`f2fs_do_sync_file`): the file's dirty nodes go to the warm node log with the fsync mark, by which a mount finds
//! them after the last checkpoint and rolls the file forward; where that would not do, a checkpoint is written.
//! Invariant: of the nodes that the file had at the fsync none is dirty or on its way when it returns.

use super::balance::Balance;
use super::checkpoints::Reason;
use super::cpu::Work;
use super::error::corrupt;
use super::format::{BlockAddr, CP_UMOUNT, Inode as RawInode, Nid, inline};
use super::inode::{Dirty, Inode};
use super::node::{Found, FsyncMarks, NodeSet, NodeWrite, Walked};
use super::options::FsyncMode;
use super::rules::OmittedRule;
use super::segment::Block;
use super::volume::Volume;
use crate::contract::{Allocate, FsError, Kind, Result, XattrMode};
use crate::vfs::content::{self, Writer};
use crate::vfs::writeback::write_blocks;
use crate::vfs::{DataPath, PAGE};
use nandscape_rt::invariant;
use std::rc::Rc;

impl Volume {
    /// Changes the length of a file; the caller holds its lock alone (`f2fs_setattr`, `f2fs_truncate`).
    pub(crate) async fn set_length(self: &Rc<Self>, inode: &Rc<Inode>, size: u64) -> Result<()> {
        let shrinks = size < inode.size.get();
        if !shrinks {
            if inode.is_inline() && size > inode.inline_capacity() {
                self.convert_inline(inode).await?;
            }
            self.empty_tail(inode, size).await?;
            inode.set_size(size);
            inode.touch(self.mount.env.now(), true);
            inode.mark(Dirty::Content);
            return Ok(());
        }
        if !inode.is_inline() {
            // The zeroes after the new end are on the device before the end is.
            content::zero_tail(self, inode, size).await?;
        }
        let _cut = inode.invalidate_lock.write().await;
        inode.set_size(size);
        let first = size.div_ceil(PAGE);
        inode.pages.written(0..u64::MAX).await;
        inode.forget_pages(first);
        let op = self.operations.begin().await?;
        let extents = inode.extent_lock.write().await;
        let mut walked = Walked::default();
        if inode.is_inline() {
            inode.cut_inline_page(size);
            self.nodes.cut_inline(&op, inode, size).await?;
        } else {
            walked = self.nodes.cut_from(&op, &self.segments, inode, first).await?;
        }
        // Reading ahead may have brought back what still had a block.
        inode.forget_pages(first);
        inode.touch(self.mount.env.now(), true);
        inode.mark(Dirty::Content);
        drop(extents);
        self.nodes.pay_walked(walked).await;
        Ok(())
    }

    /// A file is to grow to `size`, and reads as zeroes where it is not written: blocks after its end, which a power cut
    /// left there, go. The kernel shows what they hold. Where the file keeps its size, pages after its end stay reserved;
    /// elsewhere roll-forward would take them for a longer file.
    pub(super) async fn empty_tail(&self, inode: &Inode, size: u64) -> Result<()> {
        let grows = size > inode.size.get() && !inode.is_inline();
        if !grows
            || self.mount.omits(OmittedRule::GrowthTail)
            || !inode.may_have_tail.replace(false)
        {
            return Ok(());
        }
        let _cut = inode.invalidate_lock.write().await;
        let first = inode.size.get().div_ceil(PAGE);
        inode.pages.written(first..u64::MAX).await;
        inode.forget_pages(first);
        let op = self.operations.begin().await?;
        let extents = inode.extent_lock.write().await;
        let walked = match inode.keeps_size() {
            true => self.nodes.free_blocks(&op, &self.segments, inode, &(first..u64::MAX)).await?,
            false => self.nodes.free_pages(&op, &self.segments, inode, &(first..u64::MAX)).await?,
        };
        // Cleaning may have brought back what still had a block.
        inode.forget_pages(first);
        drop(extents);
        self.nodes.pay_walked(walked).await;
        Ok(())
    }

    /// Gives a range of a file its blocks, or takes them; the caller holds the inode's lock alone (`f2fs_fallocate`).
    pub(crate) async fn allocate(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        if len == 0 {
            return Err(FsError::Invalid("no bytes to allocate"));
        }
        let end = self.check_range(inode, offset, len)?;
        if !matches!(what, Allocate::Reserve { .. }) {
            inode.check_changeable()?;
        }
        self.convert_inline(inode).await?;
        if !matches!(what, Allocate::Reserve { .. }) {
            self.punch(writer, inode, offset, end).await?;
        }
        let pages = offset / PAGE..end.div_ceil(PAGE);
        let (done, size) = match what {
            Allocate::PunchHole => (Ok(()), 0),
            Allocate::Reserve { keep_size } | Allocate::ZeroRange { keep_size } => {
                self.empty_tail(inode, if keep_size { 0 } else { end }).await?;
                let reserved = self.reserve_some(inode, &pages).await;
                if keep_size && end > inode.size.get() {
                    inode.raw.borrow_mut().advise |= super::format::advise::KEEP_SIZE;
                }
                // With too little space the file has what it got: roll-forward would make it so long.
                let (done, reached) = match reserved {
                    Ok(all) if all >= pages.end => (Ok(()), end),
                    Ok(some) => (Err(FsError::NoSpace), some * PAGE),
                    Err(error) => (Err(error), 0),
                };
                (done, if keep_size { 0 } else { reached })
            }
        };
        inode.set_size(inode.size.get().max(size));
        inode.touch(self.mount.env.now(), true);
        inode.mark(Dirty::Content);
        done
    }

    /// Makes a hole: zeroes in the pages at its ends, no blocks in between (`punch_hole`).
    async fn punch(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        offset: u64,
        end: u64,
    ) -> Result<()> {
        let _cut = inode.invalidate_lock.write().await;
        let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
        let zero = async |from, to| {
            writer.throttle.note(content::zero_in_page(self, inode, from, to - from).await?);
            Ok(())
        };
        if offset / PAGE == end / PAGE {
            return zero(offset, end).await;
        }
        zero(offset, first * PAGE).await?;
        zero(last * PAGE, end).await?;
        inode.pages.written(first..last).await;
        inode.pages.discard(first..last);
        let op = self.operations.begin().await?;
        let extents = inode.extent_lock.write().await;
        let walked = self.nodes.free_pages(&op, &self.segments, inode, &(first..last)).await?;
        // Reading ahead may have brought a page back before its block was gone.
        inode.pages.discard(first..last);
        drop(extents);
        self.nodes.pay_walked(walked).await;
        Ok(())
    }

    /// Sets an attribute, or removes it; the caller holds the inode's lock alone.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] also if the attributes would not fit the inode and one node.
    pub(crate) async fn change_xattr(
        &self,
        inode: &Inode,
        name: &[u8],
        value: Option<&[u8]>,
        how: XattrMode,
    ) -> Result<()> {
        let (area, needs_node) = self.nodes.changed_xattrs(inode, name, value, how).await?;
        let op = self.operations.begin().await?;
        self.nodes.store_xattrs(&op, &self.segments, inode, (&area, needs_node)).await?;
        inode.touch(self.mount.env.now(), false);
        inode.mark(Dirty::Content);
        Ok(())
    }

    /// Moves the content of a file out of its inode, to a block (`f2fs_convert_inline_inode`). The block is on the device
    /// before the inode forgets the content, so a checkpoint has one or the other, and so has an fsync.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]; errors of the device.
    pub(crate) async fn convert_inline(self: &Rc<Self>, inode: &Rc<Inode>) -> Result<()> {
        if inode.is_inline() && inode.size.get() > 0 {
            self.mount.pay(Work::NodePages(1)).await;
            self.mount.pay(Work::Allocation(1)).await;
        }
        // A page on its way into the inode has arrived.
        inode.pages.written(0..1).await;
        let op = self.operations.begin().await?;
        let _extents = inode.extent_lock.write().await;
        if !inode.is_inline() {
            return Ok(());
        }
        let content = match inode.pages.peek(0) {
            Some(content) => content,
            None => self.nodes.inline_page(inode).await?,
        };
        let is_empty = inode.size.get() == 0;
        let place = inode.layout.get().inline_data();
        if !is_empty {
            self.nodes.space.take_some(1)?;
        }
        let flags = inode.raw.borrow().inline & !(inline::DATA | inline::DATA_EXIST);
        // The node says so at once: it may be written before it gets the inode's other fields, and roll-forward would take
        // it for an inode whose blocks have gone.
        let change = |bytes: &mut Block| {
            bytes[place].fill(0);
            let mut raw = RawInode::parse(bytes);
            raw.inline = flags;
            raw.encode(bytes);
        };
        self.nodes.edit_node(&op, Nid(inode.number), change).await?;
        inode.raw.borrow_mut().inline = flags;
        inode.mark(Dirty::Content);
        if is_empty {
            return Ok(());
        }
        inode.add_blocks(1);
        let Found::Node(dnode) = self.nodes.find_dnode(inode, 0).await? else {
            return Err(corrupt("inode without addresses", inode.number));
        };
        self.nodes.set_address(&op, dnode, BlockAddr::NEW).await?;
        let log = self.mount.data_log(inode);
        let moved = self.move_pages(&op, inode, (dnode, log), 0, 1).await?;
        let start = moved.ok_or(FsError::NoSpace)?.start;
        if !inode.pages.waiting(&(0..1)).0 {
            // A sync may have covered it in the inode, whose next one must not be durable before the block.
            inode.note_relocated();
        }
        write_blocks(&**self, inode, start.0.into(), &[content], true).await
    }

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
        let waits = !self.mount.omits(OmittedRule::FsyncNodeWait);
        loop {
            let op = self.operations.begin().await?;
            self.pay_for_nodes(inode, enough).await;
            // Until the nodes are sent no page of the file gets another block, which they would lead to.
            let extents = inode.extent_lock.read().await;
            self.settle_data_before_nodes(inode).await?;
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
            let write = NodeWrite { volume: self, op: &op, marks: Some(marks) };
            let all = write.send(NodeSet::Of(inode.number)).await?;
            let is_left = cfg!(debug_assertions) && self.nodes.has_dirty_nodes(inode.number);
            drop(extents);
            drop(op);
            // Otherwise the last node that was written has no mark, or the inode itself was not written.
            let is_marked = !self.nodes.nat.borrow().needs_inode_update(ino);
            // If not all were sent, a node was dirty again while its last write was in flight.
            let is_sent = is_marked && (all || !waits);
            if waits || !is_sent {
                // Another fsync of the file may have sent what this one found clean.
                self.nodes.in_flight.settle().await;
                self.mount.check_running()?;
            }
            if is_sent {
                invariant!(
                    !is_left || !self.mount.keeps_rules(),
                    "inode {}: an fsync leaves none of its nodes dirty",
                    inode.number
                );
                break;
            }
            if !is_marked {
                inode.mark(Dirty::Content);
            }
        }
        Ok(self.mount.omits(OmittedRule::FsyncFlush))
    }

    /// Pays for bringing the inode to its node page, and for the nodes of a file that an fsync is about to write.
    async fn pay_for_nodes(&self, inode: &Inode, enough: Dirty) {
        if !self.mount.cpu.is_charged() {
            return;
        }
        let ino = inode.number;
        let mut nodes = self.nodes.dirty.borrow().range((ino, 0)..=(ino, u32::MAX)).count() as u64;
        if inode.dirty.get() > enough {
            nodes += u64::from(!self.nodes.dirty.borrow().contains(&(ino, ino)));
            self.mount.pay(Work::NodePages(1)).await;
        }
        self.mount.pay(Work::NodeWrites(nodes)).await;
    }

    /// Waits for data that the nodes of an fsync must not be durable before: their PREFLUSH covers only what has ended.
    async fn settle_data_before_nodes(&self, inode: &Inode) -> Result<()> {
        if self.nodes_follow_data(inode.number) {
            self.writes.metadata_in_flight.settle().await;
            if self.mount.options.ordered_data {
                self.writes.data_in_flight.settle().await;
            }
            self.mount.check_running()?;
        }
        Ok(())
    }

    /// Whether the nodes of a file's fsync must not be durable before its data: what cleaning moved, or what left the inode,
    /// was covered at its old place.
    pub(crate) fn nodes_follow_data(&self, ino: u32) -> bool {
        let is_moved = self.inodes.lists.moved.borrow().contains(&ino);
        self.mount.options.ordered_data || (is_moved && !self.mount.omits(OmittedRule::MovedFlush))
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
            || Balance::of(self).lacks_sections_to_recover()
            || !parent_is_there
            || self.mount.options.active_logs == 2
            || (strict
                && nat.needs_dentry_mark(Nid(inode.number))
                && self.checkpoints.changed_dirs.borrow().contains(&raw.pino))
    }
}
