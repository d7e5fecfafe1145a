//! Inodes between the table on disk and memory.

use super::data_path::SIZE_MAX;
use super::error::corrupt;
use super::format::{
    self, Editable, ExtentNode, INODE_BYTES_KNOWN, INODE_BYTES_OLD, Place, ROOT_INODE, flag, mode,
};
use super::inode::{Inode, kept};
use super::tx::Tx;
use super::volume::Volume;
use crate::contract::{Attr, Caller, FsError, Ino, Result, SetAttr};
use crate::vfs::DataPath;
use nandscape_rt::invariant;
use std::rc::Rc;

impl Volume {
    /// An inode that a caller names: the root, or one that is no part of the format itself.
    ///
    /// # Errors
    /// [`FsError::NoEntry`] if there is none.
    pub(crate) async fn inode_of(&self, ino: Ino) -> Result<Rc<Inode>> {
        self.env.calls.check_open()?;
        let number = u32::try_from(ino.0).map_err(|_| FsError::NoEntry)?;
        if number != ROOT_INODE && !self.meta.is_ordinary(number) {
            return Err(FsError::NoEntry);
        }
        let inode = self.inode(number).await?;
        let gone = inode.links() == 0 && inode.opens.get() == 0;
        if gone || inode.deleted.get() { Err(FsError::NoEntry) } else { Ok(inode) }
    }

    /// A directory that a caller names.
    pub(crate) async fn dir_of(&self, ino: Ino) -> Result<Rc<Inode>> {
        let inode = self.inode_of(ino).await?;
        if inode.is_dir() { Ok(inode) } else { Err(FsError::NotDirectory) }
    }

    /// An inode that has a name or is open, from memory or from the table.
    ///
    /// # Errors
    /// [`FsError::NoEntry`] if there is none; what the table still says of a file that is gone is of no
    /// use.
    pub(crate) async fn inode(&self, number: u32) -> Result<Rc<Inode>> {
        self.inode_with(number, 1).await
    }

    /// An inode that may have lost its last name before mount.
    pub(crate) async fn orphan(&self, number: u32) -> Result<Rc<Inode>> {
        self.inode_with(number, 0).await
    }

    async fn inode_with(&self, number: u32, links: u16) -> Result<Rc<Inode>> {
        if let Some(known) = self.inodes.get(number) {
            return Ok(known);
        }
        let (block, slot) = self.meta.inode_slot(number)?;
        let buffer = self.meta.read_block(block).await?;
        let raw = buffer
            .with(|bytes| format::Inode::parse(&bytes[slot], number, &self.meta.sb.borrow()))?;
        if raw.mode == 0 || raw.links_count < links {
            return Err(FsError::NoEntry);
        }
        if raw.has(flag::INLINE_DATA | flag::ENCRYPT) {
            return Err(FsError::Unsupported("inline or encrypted data"));
        }
        let has_blocks = matches!(raw.file_type(), mode::REGULAR | mode::DIR | mode::SYMLINK);
        if has_blocks && !raw.has(flag::EXTENTS) && raw.fast_symlink().is_none() {
            return Err(FsError::Unsupported("a file without extents"));
        }
        let place = Place::Inode(number);
        if raw.size > SIZE_MAX {
            return Err(corrupt("size beyond the last block of a file", place));
        }
        if raw.has(flag::EXTENTS) {
            self.meta.alloc.system_zone.check_node(&ExtentNode::parse(&raw.map, place)?, place)?;
        }
        // Another task may have read it first, and its copy counts.
        if let Some(known) = self.inodes.get(number) {
            return Ok(known);
        }
        let seed = raw.seed(number, &self.meta.sb.borrow());
        let inode = Inode::new(&self.env.rt, &self.env.cache, number, raw, seed);
        // What changed it last is not known any more; it cannot be newer than this.
        inode.sync_tid.set(self.meta.last_tid.get());
        inode.datasync_tid.set(self.meta.last_tid.get());
        Ok(self.keep_inode(inode))
    }

    /// Changes attributes, and the length with its content.
    pub(crate) async fn set_attributes(self: &Rc<Self>, ino: Ino, change: SetAttr) -> Result<Attr> {
        let inode = self.inode_of(ino).await?;
        let _exclusive = inode.lock_exclusive().await?;
        inode.check_changeable()?;
        if let Some(size) = change.size {
            self.check_range(&inode, size, 0)?;
            self.set_length(&inode, size).await?;
        }
        let tx = self.meta.begin(4, 0).await?;
        inode.touch(self.env.now(), false);
        inode.set(&change);
        self.meta.write_inode(&tx, &inode, false).await?;
        tx.stop();
        Ok(inode.attr())
    }

    /// Keeps an inode in memory.
    fn keep_inode(&self, inode: Rc<Inode>) -> Rc<Inode> {
        let is_idle = |inode: &Inode| {
            let is_idle = inode.is_idle();
            invariant!(
                !is_idle || !inode.deferred.get(),
                "inode {} leaves memory when all its changes are in its block",
                inode.number
            );
            is_idle
        };
        self.inodes.insert(inode.number, inode, is_idle)
    }

    /// A new inode, whose place in the table is zeroes until the caller writes it: one link (a directory:
    /// two), no content.
    pub(crate) async fn new_inode(
        &self,
        tx: &Tx,
        caller: Caller,
        parent: &Inode,
        file_mode: u16,
    ) -> Result<Rc<Inode>> {
        let is_dir = file_mode & mode::TYPE == mode::DIR;
        let number = self.meta.alloc.take_inode(&self.meta, tx, parent.number, is_dir).await?;
        if self.inodes.get(number).is_some() {
            let what = "inode bitmap: an inode in use is free";
            return Err(corrupt(what, Place::Inode(number)));
        }
        let (block, slot) = self.meta.inode_slot(number)?;
        let buffer = self.meta.read_block(block).await?;
        tx.edit_parts(&buffer, |block| block.part(slot).fill(0)).await?;
        let raw = self.new_raw(caller, parent, file_mode);
        let seed = raw.seed(number, &self.meta.sb.borrow());
        Ok(self.keep_inode(Inode::new(&self.env.rt, &self.env.cache, number, raw, seed)))
    }

    fn new_raw(&self, caller: Caller, parent: &Inode, file_mode: u16) -> format::Inode {
        const SET_GROUP_ID: u16 = 0o2000;
        let is_dir = file_mode & mode::TYPE == mode::DIR;
        let inherits = parent.raw.borrow().mode & SET_GROUP_ID != 0;
        let mut raw = format::Inode {
            mode: file_mode | if inherits && is_dir { SET_GROUP_ID } else { 0 },
            uid: caller.uid,
            gid: if inherits { parent.raw.borrow().gid } else { caller.gid },
            links_count: if is_dir { 2 } else { 1 },
            generation: self.meta.alloc.generations.borrow_mut().bits() as u32,
            ..format::Inode::default()
        };
        if self.meta.sb.borrow().inode_bytes() >= INODE_BYTES_KNOWN {
            raw.extra_isize = (INODE_BYTES_KNOWN - INODE_BYTES_OLD) as u16;
        }
        let now = kept(&raw, self.env.now());
        if raw.extra_isize > 0 {
            raw.set_crtime(now);
        }
        raw.set_atime(now);
        raw.set_ctime(now);
        raw.set_mtime(now);
        if file_mode & mode::TYPE != mode::SYMLINK {
            raw.flags |= flag::EXTENTS;
            ExtentNode::empty_root().encode(&mut raw.map);
        }
        raw
    }
}
