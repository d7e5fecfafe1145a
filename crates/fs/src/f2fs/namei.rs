//! Names: create, link, unlink and their kin. After fs/f2fs/namei.c.
//!
//! Locks: `namespace` shared, then the directory, then the file, so always down the tree; a rename takes `namespace`
//! alone and may then lock in any order. Then the `invalidate_lock` of the directory that loses a name, then a share of
//! the checkpoint lock. Room is made before any of these.
//!
//! What can find no space comes before the first change that others would see; an error of the device after that
//! stops the volume, whose last checkpoint stays as it is.

use super::dir::Found;
use super::error::corrupt;
use super::format::{Nid, Superblock, advise, inline, mode};
use super::inode::{Dirty, Inode, LINKS_MAX, ROOT_INO};
use super::nat::Nodes;
use super::operations::Op;
use super::rules::OmittedRule;
use super::segment::Block;
use super::volume::Volume;
use crate::contract::{Caller, FsError, Ino, NAME_MAX, Result};
use std::rc::Rc;

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
pub(crate) enum New {
    File,
    Directory,
    /// With its target.
    Symlink(Vec<u8>),
}

impl New {
    const fn type_bits(&self) -> u16 {
        match self {
            Self::File => mode::REGULAR,
            Self::Directory => mode::DIR,
            Self::Symlink(_) => mode::SYMLINK,
        }
    }
}

/// Whether a file name has an extension, at its end or before another one (`is_extension_exist`).
fn has_extension(name: &[u8], extension: &[u8]) -> bool {
    extension == b"*"
        || (1..name.len().saturating_sub(extension.len())).any(|dot| {
            let rest = name[dot + 1..].get(..extension.len());
            name[dot] == b'.' && rest.is_some_and(|rest| rest.eq_ignore_ascii_case(extension))
        })
}

/// What the extension of a file's name says about its data (`set_file_temperature`).
fn temperature(sb: &Superblock, name: &[u8]) -> u8 {
    let (cold, hot) = sb.extensions();
    let is_any = |known: &[&[u8]]| known.iter().any(|one| has_extension(name, one));
    match (is_any(&cold), is_any(&hot)) {
        (true, _) => advise::COLD,
        (false, true) => advise::HOT,
        (false, false) => 0,
    }
}

impl Volume {
    /// What a name leads to.
    pub(crate) async fn look_up(&self, dir: Ino, name: &[u8]) -> Result<Rc<Inode>> {
        if name.len() > NAME_MAX {
            return Err(FsError::NameTooLong);
        }
        let dir = self.dir_of(dir).await?;
        let _shared = dir.i_rwsem.read().await;
        dir.check_alive()?;
        if matches!(name, b"." | b"..") {
            let found = self.nodes.find(&dir, name).await?.ok_or(FsError::NoEntry)?;
            return self.inode_of(Ino(found.ino.into())).await;
        }
        let (_, inode) = self.named(&dir, name).await?.ok_or(FsError::NoEntry)?;
        inode.note_alias(dir.number, name);
        Ok(inode)
    }

    /// Where a name other than `.` and `..` stands, and what it leads to.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if it leads to the directory itself, the root, a free inode, or one of the format's own.
    pub(super) async fn named(
        &self,
        dir: &Inode,
        name: &[u8],
    ) -> Result<Option<(Found, Rc<Inode>)>> {
        let Some(found) = self.nodes.find(dir, name).await? else { return Ok(None) };
        let wrong = || corrupt("directory: a name leads nowhere", dir.number);
        let is_own = found.ino == dir.number || found.ino == ROOT_INO;
        if is_own || !self.nodes.is_ordinary(found.ino) {
            return Err(wrong());
        }
        match self.inode(found.ino).await {
            Ok(inode) if inode.links() > 0 => Ok(Some((found, inode))),
            Ok(_) | Err(FsError::NoEntry) => Err(wrong()),
            Err(error) => Err(error),
        }
    }

    /// Makes a file, directory or symbolic link.
    pub(crate) async fn make(
        &self,
        caller: Caller,
        dir: Ino,
        name: &[u8],
        what: &New,
        permissions: u16,
    ) -> Result<Rc<Inode>> {
        self.balance_fs().await?;
        let _namespace = self.inodes.namespace.read().await;
        let dir = self.dir_of(dir).await?;
        let _alone = dir.i_rwsem.write().await;
        dir.check_alive()?;
        self.nodes.check_free(&dir, name).await?;
        if matches!(what, New::Directory) {
            dir.may_add_subdir()?;
        }
        let op = self.operations.begin().await?;
        let vacancy = self.nodes.make_room(&op, &self.segments, &dir, name).await?;
        let file_mode = what.type_bits() | permissions & !mode::TYPE;
        let inode = self.new_inode(&op, caller, &dir, file_mode).await?;
        if let Err(error) = self.nodes.fill_new(&op, &dir, &inode, name, what).await {
            if !self.mount.omits(OmittedRule::RefusedInode) {
                self.unmake(&op, &inode).await?;
            }
            return Err(error);
        }
        let named = self.nodes.add_name(&op, &dir, vacancy, name, (inode.number, file_mode)).await;
        named.map_err(|error| self.writes.stop(error))?;
        if matches!(what, New::Directory) {
            dir.count_subdir(1);
        }
        Ok(inode)
    }

    /// Frees a new inode that got no name (`f2fs_handle_failed_inode`).
    async fn unmake(&self, op: &Op, inode: &Inode) -> Result<()> {
        inode.raw.borrow_mut().links = 0;
        inode.deleted.set(true);
        inode.pages.written(0..u64::MAX).await;
        inode.pages.discard(0..u64::MAX);
        let freed = self.free_inode(op, inode).await;
        freed.map_err(|error| self.writes.stop(error))
    }

    /// Gives a file another name.
    pub(crate) async fn add_link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Rc<Inode>> {
        self.balance_fs().await?;
        let _namespace = self.inodes.namespace.read().await;
        let inode = self.inode_of(ino).await?;
        let dir = self.dir_of(dir).await?;
        if inode.is_dir() {
            return Err(FsError::NotPermitted);
        }
        let _alone = dir.i_rwsem.write().await;
        dir.check_alive()?;
        self.nodes.check_free(&dir, name).await?;
        inode.check_changeable()?;
        let _file = inode.i_rwsem.write().await;
        match inode.links() {
            0 => return Err(FsError::NoEntry),
            LINKS_MAX => return Err(FsError::TooManyLinks),
            _ => {}
        }
        let op = self.operations.begin().await?;
        let vacancy = self.nodes.make_room(&op, &self.segments, &dir, name).await?;
        let file_mode = inode.raw.borrow().mode;
        let named = self.nodes.add_name(&op, &dir, vacancy, name, (inode.number, file_mode)).await;
        named.map_err(|error| self.writes.stop(error))?;
        inode.raw.borrow_mut().links += 1;
        inode.set_name(dir.number, name);
        inode.lose_pino();
        inode.touch(self.mount.env.now(), false);
        drop((op, _file));
        Ok(inode)
    }

    /// Takes a name away: of a directory, which must be empty, or of anything else.
    pub(crate) async fn take_name(&self, dir: Ino, name: &[u8], is_dir: bool) -> Result<()> {
        self.balance_for_removal().await?;
        let namespace = self.inodes.namespace.read().await;
        let dir = self.dir_of(dir).await?;
        match name {
            b"." if is_dir => return Err(FsError::Invalid("`.` cannot be removed")),
            b".." if is_dir => return Err(FsError::NotEmpty),
            b"." | b".." => return Err(FsError::IsDirectory),
            _ if name.len() > NAME_MAX => return Err(FsError::NameTooLong),
            _ => {}
        }
        let alone = dir.i_rwsem.write().await;
        let (found, inode) = self.named(&dir, name).await?.ok_or(FsError::NoEntry)?;
        self.nodes.check_back(&dir, &inode).await?;
        inode.check_removable(&dir)?;
        let file = self.lock_below(&dir, &inode).await?;
        match (inode.is_dir(), is_dir) {
            (true, false) => return Err(FsError::IsDirectory),
            (false, true) => return Err(FsError::NotDirectory),
            (true, true) if !self.nodes.is_empty_dir(&inode).await? => {
                return Err(FsError::NotEmpty);
            }
            _ => {}
        }
        let cut = dir.invalidate_lock.write().await;
        let op = self.operations.begin().await?;
        self.checkpoints.note_orphan(&inode)?;
        self.checkpoints.note_changed_dir(&dir);
        let removed = self.nodes.remove_name(&op, &self.segments, &dir, found).await;
        removed.map_err(|error| self.writes.stop(error))?;
        inode.lose_link(&dir, name, self.mount.env.now());
        drop((op, cut, file, alone, namespace));
        self.delete_if_unused(&inode).await
    }
}

impl Nodes {
    /// What goes with a name that changes: a directory leads back to where its name stands, so that locks go down the
    /// tree.
    pub(super) async fn check_back(&self, dir: &Inode, inode: &Inode) -> Result<()> {
        if inode.is_dir() && self.parent_of(inode).await? != dir.number {
            return Err(corrupt("directory: .. leads elsewhere", inode.number));
        }
        Ok(())
    }

    /// Whether a name may be added to a directory.
    async fn check_free(&self, dir: &Inode, name: &[u8]) -> Result<()> {
        if name.len() > NAME_MAX {
            return Err(FsError::NameTooLong);
        }
        if self.find(dir, name).await?.is_some() {
            return Err(FsError::Exists);
        }
        check_name(name)?;
        dir.check_addable()
    }

    /// Gives a new inode its content, and the name that it keeps for roll-forward.
    async fn fill_new(
        &self,
        op: &Op,
        dir: &Inode,
        inode: &Inode,
        name: &[u8],
        what: &New,
    ) -> Result<()> {
        inode.set_name(dir.number, name);
        match what {
            New::File => {
                inode.raw.borrow_mut().advise |= temperature(&self.mount.sb, name);
                Ok(())
            }
            New::Directory => self.make_empty(op, inode, dir.number).await,
            New::Symlink(target) => self.set_target(op, inode, target).await,
        }
    }

    /// Keeps the target of a symbolic link in the inode or, if it is long, in a block.
    async fn set_target(&self, op: &Op, inode: &Inode, target: &[u8]) -> Result<()> {
        if inode.is_inline() && target.len() as u64 <= inode.inline_capacity() {
            let at = inode.layout.get().inline_data().start;
            let write = |bytes: &mut Block| bytes[at..at + target.len()].copy_from_slice(target);
            self.edit_node(op, Nid(inode.number), write).await?;
            inode.raw.borrow_mut().inline |= inline::DATA_EXIST;
        } else {
            inode.raw.borrow_mut().inline &= !inline::DATA;
            let mut bytes: Box<Block> = Box::new([0; 4096]);
            let place = bytes.get_mut(..target.len()).ok_or(FsError::NameTooLong)?;
            place.copy_from_slice(target);
            self.add_block(op, inode, 0, bytes).await?;
        }
        inode.set_size(target.len() as u64);
        inode.mark(Dirty::Content);
        Ok(())
    }

    /// The target of a symbolic link.
    pub(crate) async fn target(&self, inode: &Inode) -> Result<Vec<u8>> {
        let content = self.read_pages(&inode.pages, 0..1).await?;
        let bytes = content.first().and_then(nandscape_block::SectorData::expand);
        let bytes = bytes.ok_or_else(|| corrupt("symbolic link", inode.number))?;
        let length = inode.size.get().min(bytes.len() as u64) as usize;
        Ok(bytes[..length].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::has_extension;

    #[test]
    fn extensions_are_found_before_another_one() {
        let has = |name: &str| has_extension(name.as_bytes(), b"mp4");
        assert!(has("a.mp4") && has("a.MP4") && has("a.mp4.tmp") && has("a.b.mp4x"));
        assert!(!has(".mp4") && !has("a.mp") && !has("amp4") && !has("mp4"));
        assert!(has_extension(b"anything", b"*"));
    }
}
