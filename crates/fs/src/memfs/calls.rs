//! The contract, call by call.

use super::node::{Body, DOT, DOT_DOT, Directory, ROOT, State, check_name};
use super::{MemFs, PAGE, SIZE_MAX};
use crate::contract::{
    Allocate, Attr, Caller, Data, DirEntry, Fh, FileSystem, FsError, Ino, Io, Kind, NAME_MAX,
    OpenFlags, RenameMode, Result, SetAttr, StatFs, Whence, WriteHint, XattrMode,
};
use async_trait::async_trait;
use std::collections::BTreeMap;

/// The longest target of a symbolic link.
const TARGET_MAX: usize = 4_095;
/// Bytes of all extended attributes of a file, each with so many more.
const XATTRS_MAX: usize = 4_096;
const XATTR_OVERHEAD: usize = 16;
/// Prefixes of extended attributes.
const XATTR_PREFIXES: [&[u8]; 4] = [b"user.", b"trusted.", b"security.", b"system."];

fn check_xattr_name(name: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(FsError::OutOfRange("the length of an attribute's name"));
    }
    let prefix = XATTR_PREFIXES.into_iter().find(|prefix| name.starts_with(prefix));
    let prefix = prefix.ok_or(FsError::Unsupported("a namespace of attributes"))?;
    if name.len() == prefix.len() || name.contains(&0) {
        return Err(FsError::Invalid("an attribute's name"));
    }
    Ok(())
}

#[async_trait(?Send)]
impl FileSystem for MemFs {
    fn root(&self) -> Ino {
        ROOT
    }

    async fn lookup(&self, _caller: Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        let state = self.look()?;
        let directory = state.living_directory(dir)?;
        let ino = match name {
            b"." => dir,
            b".." => directory.parent,
            _ if name.len() > NAME_MAX => return Err(FsError::NameTooLong),
            _ => directory.get(name).ok_or(FsError::NoEntry)?,
        };
        Ok(state.node(ino)?.attr)
    }

    async fn getattr(&self, _caller: Caller, ino: Ino) -> Result<Attr> {
        Ok(self.look()?.node(ino)?.attr)
    }

    async fn setattr(&self, _caller: Caller, ino: Ino, change: SetAttr) -> Result<Attr> {
        let (mut state, now) = (self.change()?, self.now());
        if let Some(size) = change.size {
            Self::set_length(&mut state, ino, size)?;
        }
        let node = state.node_mut(ino)?;
        node.touch(now, change.size.is_some());
        let attr = &mut node.attr;
        attr.mode = change.mode.unwrap_or(attr.mode);
        attr.uid = change.uid.unwrap_or(attr.uid);
        attr.gid = change.gid.unwrap_or(attr.gid);
        attr.atime = change.atime.unwrap_or(attr.atime);
        attr.mtime = change.mtime.unwrap_or(attr.mtime);
        Ok(*attr)
    }

    async fn create(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr> {
        self.make(caller, dir, name, Body::File(BTreeMap::new()), mode)
    }

    async fn mkdir(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr> {
        self.make(caller, dir, name, Body::Directory(Directory::new(dir)), mode)
    }

    async fn symlink(&self, caller: Caller, dir: Ino, name: &[u8], target: &[u8]) -> Result<Attr> {
        match target.len() {
            0 => Err(FsError::NoEntry),
            len if len > TARGET_MAX => Err(FsError::NameTooLong),
            _ if target.contains(&0) => Err(FsError::Invalid("a target has no NUL")),
            _ => self.make(caller, dir, name, Body::Symlink(target.to_vec()), 0o777),
        }
    }

    async fn readlink(&self, _caller: Caller, ino: Ino) -> Result<Vec<u8>> {
        match &self.look()?.node(ino)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(FsError::Invalid("not a symbolic link")),
        }
    }

    async fn link(&self, _caller: Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let (mut state, now) = (self.change()?, self.now());
        let attr = state.node(ino)?.attr;
        if attr.kind == Kind::Directory {
            return Err(FsError::NotPermitted);
        }
        if state.living_directory(dir)?.get(name).is_some() {
            return Err(FsError::Exists);
        }
        check_name(name)?;
        if attr.links == 0 {
            return Err(FsError::NoEntry);
        }
        state.change_directory(dir, now, 0, |directory| directory.insert(name, ino))?;
        let node = state.node_mut(ino)?;
        node.attr.links += 1;
        node.touch(now, false);
        Ok(node.attr)
    }

    async fn unlink(&self, _caller: Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.take_name(dir, name, false)
    }

    async fn rmdir(&self, _caller: Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.take_name(dir, name, true)
    }

    async fn rename(
        &self,
        _caller: Caller,
        (from, old): (Ino, &[u8]),
        (to, new): (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        let (mut state, now) = (self.change()?, self.now());
        check_name(old)?;
        check_name(new)?;
        let moved = state.named(from, old)?;
        let over = state.living_directory(to)?.get(new);
        if state.node(moved)?.directory().is_ok() && state.is_above(moved, to) {
            return Err(FsError::Invalid("a directory does not move below itself"));
        }
        let is_dir =
            |state: &State, ino| i32::from(state.node(ino).is_ok_and(|n| n.directory().is_ok()));
        let subdirs = is_dir(&state, moved);
        match (over, mode) {
            (Some(_), RenameMode::NoReplace) => return Err(FsError::Exists),
            (None, RenameMode::Exchange) => return Err(FsError::NoEntry),
            (Some(other), _) if other == moved => return Ok(()),
            (Some(other), RenameMode::Exchange) => {
                if is_dir(&state, other) == 1 && state.is_above(other, from) {
                    return Err(FsError::Invalid("a directory does not move below itself"));
                }
                let back = is_dir(&state, other);
                state.change_directory(from, now, back - subdirs, |dir| dir.insert(old, other))?;
                state.set_parent(other, from, now)?;
                state.change_directory(to, now, subdirs - back, |dir| dir.insert(new, moved))?;
                return state.set_parent(moved, to, now);
            }
            (Some(other), RenameMode::Replace) => {
                state.check_replace(moved, other, from)?;
                let replaced = is_dir(&state, other);
                state.change_directory(to, now, -replaced, |dir| dir.remove(new))?;
                state.unlink(other, now)?;
            }
            (None, _) => {}
        }
        state.change_directory(from, now, -subdirs, |dir| dir.remove(old))?;
        state.change_directory(to, now, subdirs, |dir| dir.insert(new, moved))?;
        state.set_parent(moved, to, now)
    }

    async fn readdir(
        &self,
        _caller: Caller,
        dir: Ino,
        cookie: u64,
        count: usize,
    ) -> Result<Vec<DirEntry>> {
        let state = self.look()?;
        let node = state.node(dir)?;
        let directory = node.directory()?;
        if node.is_removed() {
            return Ok(Vec::new());
        }
        let dots = [(DOT, dir, &b"."[..]), (DOT_DOT, directory.parent, b"..")];
        let names = directory.names.iter().map(|(name, (cookie, ino))| (*cookie, *ino, &name[..]));
        let mut all: Vec<_> = dots.into_iter().chain(names).filter(|it| it.0 > cookie).collect();
        all.sort_unstable_by_key(|it| it.0);
        all.truncate(count.max(1));
        let entry = |(cookie, ino, name): (u64, Ino, &[u8])| {
            let kind = state.node(ino)?.attr.kind;
            Ok(DirEntry { cookie, ino, kind, name: name.to_vec() })
        };
        all.into_iter().map(entry).collect()
    }

    async fn open(&self, _caller: Caller, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        self.change()?.node_mut(ino)?.opens += 1;
        Ok(Fh { ino, flags })
    }

    async fn close(&self, _caller: Caller, ino: Ino) -> Result<()> {
        let mut state = self.change()?;
        let node = state.node_mut(ino)?;
        let opens = node.opens.checked_sub(1);
        node.opens = opens.ok_or(FsError::Invalid("closed without an open"))?;
        state.free_if_unused(ino);
        Ok(())
    }

    async fn read(&self, _caller: Caller, ino: Ino, offset: u64, len: u64, io: Io) -> Result<Data> {
        let state = self.look()?;
        let node = state.node(ino)?;
        node.pages()?;
        if io == Io::Direct && !offset.is_multiple_of(PAGE) {
            return Err(FsError::Invalid("direct I/O begins at multiples of 4,096"));
        }
        let end = offset.saturating_add(len).min(node.attr.size);
        if offset >= end {
            return Ok(Data::Bytes(Vec::new()));
        }
        let pages = offset / PAGE..end.div_ceil(PAGE);
        let content = pages.map(|page| node.page(page)).collect::<Result<_>>()?;
        Ok(Data::from_pages(content, (offset % PAGE) as usize, (end - offset) as usize))
    }

    async fn write(
        &self,
        _caller: Caller,
        ino: Ino,
        offset: u64,
        data: Data,
        io: Io,
    ) -> Result<u64> {
        self.write_at(ino, Some(offset), &data, io).map(|(_, written)| written)
    }

    async fn write_at_end(
        &self,
        _caller: Caller,
        ino: Ino,
        data: Data,
        io: Io,
    ) -> Result<(u64, u64)> {
        self.write_at(ino, None, &data, io)
    }

    async fn seek(&self, _caller: Caller, ino: Ino, offset: u64, whence: Whence) -> Result<u64> {
        let state = self.look()?;
        let node = state.node(ino)?;
        let (pages, size) = (node.pages()?, node.attr.size);
        if offset >= size {
            return Err(FsError::BeyondEnd);
        }
        let mut rest = offset / PAGE..size.div_ceil(PAGE);
        let found = match whence {
            Whence::Data => pages.range(rest).next().map(|(page, _)| *page),
            Whence::Hole => rest.find(|page| !pages.contains_key(page)),
        };
        match (found, whence) {
            (Some(page), _) => Ok(offset.max(page * PAGE)),
            (None, Whence::Data) => Err(FsError::BeyondEnd),
            (None, Whence::Hole) => Ok(size),
        }
    }

    /// Memory has no places that a hint could choose from.
    async fn set_write_hint(&self, _caller: Caller, ino: Ino, _hint: WriteHint) -> Result<()> {
        self.change()?.node(ino)?.pages().map(drop)
    }

    async fn fallocate(
        &self,
        _caller: Caller,
        ino: Ino,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        let (mut state, now) = (self.change()?, self.now());
        let end = offset.checked_add(len).filter(|end| *end <= SIZE_MAX);
        let end = end.ok_or(FsError::FileTooBig)?;
        state.node(ino)?.pages()?;
        if len == 0 {
            return Err(FsError::Invalid("no bytes to allocate"));
        }
        if !matches!(what, Allocate::Reserve { .. }) {
            Self::punch(&mut state, ino, offset..end)?;
        }
        if let Allocate::Reserve { keep_size } | Allocate::ZeroRange { keep_size } = what {
            for page in offset / PAGE..end.div_ceil(PAGE) {
                let content = state.node(ino)?.page(page)?;
                self.put_page(&mut state, ino, page, content)?;
            }
            let size = &mut state.node_mut(ino)?.attr.size;
            *size = if keep_size { *size } else { end.max(*size) };
        }
        state.node_mut(ino)?.touch(now, true);
        Ok(())
    }

    /// Nothing here outlives the process.
    async fn fsync(&self, _caller: Caller, ino: Ino) -> Result<()> {
        self.change()?.node(ino).map(drop)
    }

    async fn fdatasync(&self, caller: Caller, ino: Ino) -> Result<()> {
        self.fsync(caller, ino).await
    }

    async fn syncfs(&self, _caller: Caller) -> Result<()> {
        self.change().map(drop)
    }

    async fn statfs(&self, _caller: Caller) -> Result<StatFs> {
        let state = self.look()?;
        let free = self.config.blocks - state.used_blocks;
        Ok(StatFs {
            block_bytes: PAGE as u32,
            blocks: self.config.blocks,
            free,
            available: free,
            kept: 0,
            files: self.config.inodes,
            files_free: self.config.inodes - state.nodes.len() as u64,
        })
    }

    async fn getxattr(&self, _caller: Caller, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        check_xattr_name(name)?;
        self.look()?.node(ino)?.xattrs.get(name).cloned().ok_or(FsError::NoData)
    }

    async fn setxattr(
        &self,
        _caller: Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> Result<()> {
        check_xattr_name(name)?;
        let (mut state, now) = (self.change()?, self.now());
        let node = state.node_mut(ino)?;
        match (node.xattrs.contains_key(name), mode) {
            (true, XattrMode::Create) => return Err(FsError::Exists),
            (false, XattrMode::Replace) => return Err(FsError::NoData),
            _ => {}
        }
        let others = node.xattrs.iter().filter(|(other, _)| &other[..] != name);
        let bytes = |(name, value): (&Vec<u8>, &Vec<u8>)| name.len() + value.len() + XATTR_OVERHEAD;
        let taken: usize = others.map(bytes).sum();
        if taken + name.len() + value.len() + XATTR_OVERHEAD > XATTRS_MAX {
            return Err(FsError::NoSpace);
        }
        node.xattrs.insert(name.to_vec(), value.to_vec());
        node.touch(now, false);
        Ok(())
    }

    async fn listxattr(&self, _caller: Caller, ino: Ino) -> Result<Vec<Vec<u8>>> {
        Ok(self.look()?.node(ino)?.xattrs.keys().cloned().collect())
    }

    async fn removexattr(&self, _caller: Caller, ino: Ino, name: &[u8]) -> Result<()> {
        check_xattr_name(name)?;
        let (mut state, now) = (self.change()?, self.now());
        let node = state.node_mut(ino)?;
        node.xattrs.remove(name).ok_or(FsError::NoData)?;
        node.touch(now, false);
        Ok(())
    }

    async fn unmount(&self) -> Result<()> {
        self.change()?.unmounted = true;
        Ok(())
    }
}
