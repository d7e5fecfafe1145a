//! Names: create, link, unlink, rename and their kin.
//!
//! Locks: `namespace` shared, then the directory, then the file, so always down the tree; a rename
//! takes `namespace` exclusively and may then lock in any order. All are held while a transaction is begun,
//! and a commit needs none of them.

use super::dir::{Found, FreeSlot};
use super::error::corrupt;
use super::format::{Place, mode};
use super::inode::{Inode, LINKS_MAX};
use super::rules::OmittedRule;
use super::tx::Tx;
use super::volume::Volume;
use crate::contract::{Caller, FsError, Ino, NAME_MAX, Result};
use std::rc::Rc;

/// Credits of an operation on names: splits of a directory and its index, the new inode, the parents,
/// bitmaps and descriptors, the superblock.
pub(super) const NAME_CREDITS: u32 = 48;
/// Blocks that such an operation may take.
pub(super) const NAME_BLOCKS: u64 = 10;

/// Whether a name may stand in a directory.
pub(super) fn check_name(name: &[u8]) -> Result<()> {
    match name {
        b"" => Err(FsError::NoEntry),
        b"." | b".." => Err(FsError::Invalid("`.` and `..` are not names of files")),
        _ if name.len() > NAME_MAX => Err(FsError::NameTooLong),
        _ if name.contains(&b'/') || name.contains(&0) => {
            Err(FsError::Invalid("a name has neither `/` nor NUL"))
        }
        _ => Ok(()),
    }
}

/// What a new name is to lead to.
pub(crate) enum NewInode {
    File,
    Directory,
    /// With its target.
    Symlink(Vec<u8>),
}

impl NewInode {
    const fn type_bits(&self) -> u16 {
        match self {
            Self::File => mode::REGULAR,
            Self::Directory => mode::DIR,
            Self::Symlink(_) => mode::SYMLINK,
        }
    }
}

impl Volume {
    /// A directory that is still there, once its lock is held.
    pub(super) fn check_alive(dir: &Inode) -> Result<()> {
        if dir.links() == 0 || dir.deleted.get() { Err(FsError::NoEntry) } else { Ok(()) }
    }

    /// What a name leads to.
    pub(crate) async fn look_up(&self, dir: Ino, name: &[u8]) -> Result<Rc<Inode>> {
        if name.len() > NAME_MAX {
            return Err(FsError::NameTooLong);
        }
        let dir = self.dir_of(dir).await?;
        let _shared = dir.i_rwsem.read().await;
        Self::check_alive(&dir)?;
        if matches!(name, b"." | b"..") {
            let found = self.meta.find(&dir, name).await?.ok_or(FsError::NoEntry)?;
            return self.inode_of(Ino(found.inode().into())).await;
        }
        self.named(&dir, name).await?.map(|(_, inode)| inode).ok_or(FsError::NoEntry)
    }

    /// Where a name other than `.` and `..` stands, and what it leads to.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if it leads to the directory itself, the root, a free inode, or one of the
    /// format's own.
    pub(super) async fn named(
        &self,
        dir: &Inode,
        name: &[u8],
    ) -> Result<Option<(Found, Rc<Inode>)>> {
        let Some(found) = self.meta.find(dir, name).await? else { return Ok(None) };
        let number = found.inode();
        let wrong = || corrupt("directory: a name leads nowhere", Place::Inode(dir.number));
        if number == dir.number || !self.meta.is_ordinary(number) {
            return Err(wrong());
        }
        match self.inode(number).await {
            Ok(inode) if inode.links() > 0 => Ok(Some((found, inode))),
            Ok(_) | Err(FsError::NoEntry) => Err(wrong()),
            Err(error) => Err(error),
        }
    }

    /// What goes with a name that changes: a directory leads back to where its name stands, so that
    /// locks go down the tree.
    pub(super) async fn check_back(&self, dir: &Inode, inode: &Inode) -> Result<()> {
        if inode.is_dir() && Box::pin(self.meta.parent_of(inode)).await? != dir.number {
            return Err(corrupt("directory: .. leads elsewhere", Place::Inode(inode.number)));
        }
        Ok(())
    }

    /// Makes a file, directory or symbolic link.
    pub(crate) async fn make(
        &self,
        caller: Caller,
        dir: Ino,
        name: &[u8],
        what: &NewInode,
        permissions: u16,
    ) -> Result<Rc<Inode>> {
        let _namespace = self.namespace.read().await;
        let dir = self.dir_of(dir).await?;
        let _exclusive = dir.i_rwsem.write().await;
        Self::check_alive(&dir)?;
        let free_slot = self.meta.free_slot(&dir, name).await?;
        check_name(name)?;
        dir.check_addable()?;
        if matches!(what, NewInode::Directory) {
            self.meta.may_add_subdir(&dir)?;
        }
        let _reservation = self.reserve(caller, NAME_BLOCKS)?;
        let tx = self.meta.begin(NAME_CREDITS, 0).await?;
        let file_mode = what.type_bits() | permissions & !mode::TYPE;
        let inode = self.new_inode(&tx, caller, &dir, file_mode).await?;
        let made = self.fill_new(&tx, &dir, free_slot, &inode, name, what).await;
        if made.is_ok() {
            self.file_commit.note_new(&tx, &dir, &inode, name);
        } else {
            inode.raw.borrow_mut().links_count = 0;
            self.orphans.add(&self.meta, &tx, &inode).await?;
            self.meta.write_inode(&tx, &inode, false).await?;
        }
        tx.stop();
        if made.is_err() {
            self.delete(&inode).await?;
        }
        made.map(|()| inode)
    }

    /// Gives a new inode its content and its name.
    async fn fill_new(
        &self,
        tx: &Tx,
        dir: &Inode,
        free_slot: FreeSlot,
        inode: &Inode,
        name: &[u8],
        what: &NewInode,
    ) -> Result<()> {
        match what {
            NewInode::File => {}
            NewInode::Directory => Box::pin(self.meta.make_dir(tx, inode, dir.number)).await?,
            NewInode::Symlink(target) => Box::pin(self.set_target(tx, inode, target)).await?,
        }
        self.meta.add_name(tx, dir, free_slot, name, inode.number, what.type_bits()).await?;
        if matches!(what, NewInode::Directory) {
            dir.add_subdir();
        }
        dir.touch(self.env.now(), true);
        self.meta.write_inode(tx, dir, true).await?;
        self.meta.write_inode(tx, inode, true).await
    }

    /// Keeps the target of a symbolic link in the inode or, if it is long, in a block.
    async fn set_target(&self, tx: &Tx, inode: &Inode, target: &[u8]) -> Result<()> {
        if !inode.raw.borrow_mut().set_fast_symlink(target) {
            {
                let mut raw = inode.raw.borrow_mut();
                raw.flags |= super::format::flag::EXTENTS;
                super::format::ExtentNode::empty_root().encode(&mut raw.map);
                raw.size = target.len() as u64;
            }
            let taken =
                self.meta.alloc.take_blocks(&self.meta, tx, self.meta.home_of(inode), 1).await?;
            let buffer = tx.fresh(taken.start)?;
            tx.change(&buffer, |bytes| bytes[..target.len()].copy_from_slice(target))?;
            self.meta.map_blocks(tx, inode, 0, taken, false).await?;
        }
        inode.set_size(target.len() as u64);
        Ok(())
    }

    /// The target of a symbolic link.
    pub(crate) async fn target(&self, inode: &Inode) -> Result<Vec<u8>> {
        if let Some(target) = inode.raw.borrow().fast_symlink() {
            return Ok(target.to_vec());
        }
        let crate::vfs::Mapped::Blocks { start, .. } = self.meta.map_extent(inode, 0, 1).await?
        else {
            return Err(FsError::corrupt("symbolic link", format!("inode {}", inode.number)));
        };
        let buffer = self.meta.read_block(start).await?;
        let len = inode.size.get().min(4096) as usize;
        Ok(buffer.with(|bytes| bytes[..len].to_vec()))
    }

    /// Gives a file another name.
    pub(crate) async fn add_link(
        &self,
        caller: Caller,
        ino: Ino,
        dir: Ino,
        name: &[u8],
    ) -> Result<Rc<Inode>> {
        let _namespace = self.namespace.read().await;
        let inode = self.inode_of(ino).await?;
        let dir = self.dir_of(dir).await?;
        if inode.is_dir() {
            return Err(FsError::NotPermitted);
        }
        let _exclusive = dir.i_rwsem.write().await;
        Self::check_alive(&dir)?;
        let free_slot = self.meta.free_slot(&dir, name).await?;
        check_name(name)?;
        dir.check_addable()?;
        inode.check_changeable()?;
        let _file = inode.i_rwsem.write().await;
        match inode.links() {
            0 => return Err(FsError::NoEntry),
            LINKS_MAX.. => return Err(FsError::TooManyLinks),
            _ => {}
        }
        let _reservation = self.reserve(caller, NAME_BLOCKS)?;
        let tx = self.meta.begin(NAME_CREDITS, 0).await?;
        let file_mode = inode.raw.borrow().mode;
        self.meta.add_name(&tx, &dir, free_slot, name, inode.number, file_mode).await?;
        if !self.omits(OmittedRule::RecordLink) {
            self.file_commit.exclude(&tx, inode.number);
        }
        inode.raw.borrow_mut().links_count += 1;
        inode.touch(self.env.now(), false);
        dir.touch(self.env.now(), true);
        if !self.omits(OmittedRule::LinkCount) {
            self.meta.write_synced(&tx, &inode, OmittedRule::LinkSync).await?;
        }
        self.meta.write_inode(&tx, &dir, true).await?;
        tx.stop();
        drop(_file);
        Ok(inode)
    }

    /// Takes a name away: of a directory, which must be empty, or of anything else.
    pub(crate) async fn take_name(&self, dir: Ino, name: &[u8], is_dir: bool) -> Result<()> {
        let namespace = self.namespace.read().await;
        let dir = self.dir_of(dir).await?;
        match name {
            b"." if is_dir => return Err(FsError::Invalid("`.` cannot be removed")),
            b".." if is_dir => return Err(FsError::NotEmpty),
            b"." | b".." => return Err(FsError::IsDirectory),
            _ if name.len() > NAME_MAX => return Err(FsError::NameTooLong),
            _ => {}
        }
        let exclusive = dir.i_rwsem.write().await;
        let (found, inode) = self.named(&dir, name).await?.ok_or(FsError::NoEntry)?;
        self.check_back(&dir, &inode).await?;
        inode.check_removable(&dir)?;
        let file = self.lock_below(&dir, &inode).await?;
        match (inode.is_dir(), is_dir) {
            (true, false) => return Err(FsError::IsDirectory),
            (false, true) => return Err(FsError::NotDirectory),
            (true, true) if !Box::pin(self.meta.is_empty_dir(&inode)).await? => {
                return Err(FsError::NotEmpty);
            }
            _ => {}
        }
        let tx = self.meta.begin(NAME_CREDITS, 0).await?;
        self.file_commit.exclude(&tx, dir.number);
        self.meta.remove_found(&tx, &dir, &found).await?;
        let orphan = inode.opens.get() == 0 || !self.omits(OmittedRule::OpenUnlink);
        self.lose_link(&tx, &dir, &inode, orphan).await?;
        dir.touch(self.env.now(), true);
        self.meta.write_inode(&tx, &dir, true).await?;
        tx.stop();
        drop((namespace, exclusive, file));
        self.delete_if_unused(&inode).await
    }

    /// Counts a name less, in the transaction that took it from `dir`. Without names it is an orphan, if it
    /// is to be one.
    pub(super) async fn lose_link(
        &self,
        tx: &Tx,
        dir: &Inode,
        inode: &Rc<Inode>,
        orphan: bool,
    ) -> Result<()> {
        if !self.omits(OmittedRule::RecordUnlink) {
            self.file_commit.exclude(tx, inode.number);
        }
        // The count is the media's, which may be too low.
        let links = if inode.is_dir() { 0 } else { inode.links().saturating_sub(1) };
        if inode.is_dir() {
            dir.remove_subdir();
        }
        inode.raw.borrow_mut().links_count = links;
        inode.touch(self.env.now(), false);
        if links == 0 && orphan {
            self.orphans.add(&self.meta, tx, inode).await?;
        }
        self.meta.write_inode(tx, inode, true).await
    }

    /// Frees an inode if its last name is gone and it is not open.
    pub(crate) async fn delete_if_unused(&self, inode: &Rc<Inode>) -> Result<()> {
        if inode.links() == 0 && inode.opens.get() == 0 { self.delete(inode).await } else { Ok(()) }
    }
}
