//! Inodes of a file system in memory, and the names that lead to them.

use super::PAGE;
use crate::contract::{Attr, Caller, FsError, Ino, Kind, NAME_MAX, Result, Timestamp};
use nandscape_block::{SectorData, Tag};
use std::collections::BTreeMap;

/// The root directory.
pub(super) const ROOT: Ino = Ino(1);
/// Cookies of `.` and `..`.
pub(super) const DOT: u64 = 1;
pub(super) const DOT_DOT: u64 = 2;

pub(super) struct State {
    pub(super) nodes: BTreeMap<Ino, Node>,
    pub(super) next: u64,
    pub(super) used_blocks: u64,
    pub(super) unmounted: bool,
}

pub(super) struct Node {
    pub(super) attr: Attr,
    pub(super) opens: u32,
    pub(super) body: Body,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

pub(super) enum Body {
    /// Pages that have a block; others are holes.
    File(BTreeMap<u64, SectorData>),
    Directory(Directory),
    Symlink(Vec<u8>),
}

/// Names, each with its cookie, which is never used again: so a listing shows what stays once.
pub(super) struct Directory {
    pub(super) parent: Ino,
    pub(super) names: BTreeMap<Vec<u8>, (u64, Ino)>,
    next_cookie: u64,
}

impl Directory {
    pub(super) const fn new(parent: Ino) -> Self {
        Self { parent, names: BTreeMap::new(), next_cookie: DOT_DOT + 1 }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Ino> {
        self.names.get(name).map(|(_, ino)| *ino)
    }

    pub(super) fn insert(&mut self, name: &[u8], ino: Ino) {
        self.names.insert(name.to_vec(), (self.next_cookie, ino));
        self.next_cookie += 1;
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        self.names.remove(name);
    }
}

pub(super) fn check_name(name: &[u8]) -> Result<()> {
    match name {
        b"" => Err(FsError::NoEntry),
        _ if name.len() > NAME_MAX => Err(FsError::NameTooLong),
        b"." | b".." => Err(FsError::Invalid("`.` and `..` are not names of files")),
        _ if name.contains(&b'/') || name.contains(&0) => {
            Err(FsError::Invalid("a name has neither `/` nor NUL"))
        }
        _ => Ok(()),
    }
}

impl Node {
    pub(super) fn new(ino: Ino, body: Body, mode: u16, caller: Caller, now: Timestamp) -> Self {
        let (kind, links, size) = match &body {
            Body::File(_) => (Kind::File, 1, 0),
            Body::Directory(_) => (Kind::Directory, 2, PAGE),
            Body::Symlink(target) => (Kind::Symlink, 1, target.len() as u64),
        };
        let (uid, gid) = (caller.uid, caller.gid);
        let (generation, blocks) = (ino.0 as u32, 0);
        let (atime, mtime, ctime, crtime) = (now, now, now, now);
        let attr = Attr {
            ino,
            generation,
            kind,
            mode,
            links,
            uid,
            gid,
            size,
            blocks,
            atime,
            mtime,
            ctime,
            crtime,
        };
        Self { attr, opens: 0, body, xattrs: BTreeMap::new() }
    }

    /// In a directory with the set-group-id bit, what is made gets the directory's group, and a directory that bit.
    pub(super) const fn inherit_group(&mut self, dir: &Attr) {
        const SET_GROUP_ID: u16 = 0o2000;
        if dir.mode & SET_GROUP_ID != 0 {
            self.attr.gid = dir.gid;
            if matches!(self.attr.kind, Kind::Directory) {
                self.attr.mode |= SET_GROUP_ID;
            }
        }
    }

    /// Whether it is a directory that has no name any more.
    pub(super) fn is_removed(&self) -> bool {
        self.attr.links == 0
    }

    pub(super) fn directory(&self) -> Result<&Directory> {
        match &self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(FsError::NotDirectory),
        }
    }

    pub(super) fn directory_mut(&mut self) -> Result<&mut Directory> {
        match &mut self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(FsError::NotDirectory),
        }
    }

    pub(super) fn pages(&self) -> Result<&BTreeMap<u64, SectorData>> {
        match &self.body {
            Body::File(pages) => Ok(pages),
            Body::Directory(_) => Err(FsError::IsDirectory),
            Body::Symlink(_) => Err(FsError::Invalid("neither a file nor a directory")),
        }
    }

    pub(super) fn pages_mut(&mut self) -> Result<&mut BTreeMap<u64, SectorData>> {
        self.pages()?;
        match &mut self.body {
            Body::File(pages) => Ok(pages),
            _ => Err(FsError::IsDirectory),
        }
    }

    /// A page, zeroes if it has no block.
    pub(super) fn page(&self, page: u64) -> Result<SectorData> {
        Ok(self.pages()?.get(&page).cloned().unwrap_or(SectorData::Tag(Tag::ZERO)))
    }

    pub(super) fn touch(&mut self, now: Timestamp, content: bool) {
        self.attr.ctime = now;
        if content {
            self.attr.mtime = now;
        }
    }
}

impl State {
    pub(super) fn node(&self, ino: Ino) -> Result<&Node> {
        self.nodes.get(&ino).ok_or(FsError::NoEntry)
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> Result<&mut Node> {
        self.nodes.get_mut(&ino).ok_or(FsError::NoEntry)
    }

    /// A directory that names may be added to or taken from.
    pub(super) fn living_directory(&self, ino: Ino) -> Result<&Directory> {
        let node = self.node(ino)?;
        let directory = node.directory()?;
        if node.is_removed() { Err(FsError::NoEntry) } else { Ok(directory) }
    }

    pub(super) fn named(&self, dir: Ino, name: &[u8]) -> Result<Ino> {
        self.living_directory(dir)?.get(name).ok_or(FsError::NoEntry)
    }

    /// Frees an inode that has no name and is not open.
    pub(super) fn free_if_unused(&mut self, ino: Ino) {
        if self.nodes.get(&ino).is_some_and(|node| node.attr.links == 0 && node.opens == 0)
            && let Some(Node { body: Body::File(pages), .. }) = self.nodes.remove(&ino)
        {
            self.used_blocks -= pages.len() as u64;
        }
    }

    /// Changes a name's directory; `subdirs` counts the directories in it.
    pub(super) fn change_directory(
        &mut self,
        ino: Ino,
        now: Timestamp,
        subdirs: i32,
        change: impl FnOnce(&mut Directory),
    ) -> Result<()> {
        let node = self.node_mut(ino)?;
        change(node.directory_mut()?);
        node.attr.links = node.attr.links.saturating_add_signed(subdirs);
        node.touch(now, true);
        Ok(())
    }

    /// Takes one name from an inode, a directory's only one.
    pub(super) fn unlink(&mut self, ino: Ino, now: Timestamp) -> Result<()> {
        let node = self.node_mut(ino)?;
        let is_dir = node.attr.kind == Kind::Directory;
        node.attr.links = if is_dir { 0 } else { node.attr.links - 1 };
        node.touch(now, false);
        self.free_if_unused(ino);
        Ok(())
    }

    /// Whether `ino` is `dir` or lies above it.
    pub(super) fn is_above(&self, ino: Ino, mut dir: Ino) -> bool {
        while dir != ino && dir != ROOT {
            let Ok(directory) = self.node(dir).and_then(Node::directory) else { return false };
            dir = directory.parent;
        }
        dir == ino
    }

    /// Whether a name that leads to `moved` may come to lead to `over` in `dir`.
    pub(super) fn check_replace(&self, moved: Ino, over: Ino, from: Ino) -> Result<()> {
        let [moved_dir, over_dir] =
            [moved, over].map(|ino| self.node(ino).is_ok_and(|node| node.directory().is_ok()));
        if over_dir && self.is_above(over, from) {
            return Err(FsError::NotEmpty);
        }
        match (moved_dir, over_dir) {
            (true, false) => Err(FsError::NotDirectory),
            (false, true) => Err(FsError::IsDirectory),
            (true, true) if !self.node(over)?.directory()?.names.is_empty() => {
                Err(FsError::NotEmpty)
            }
            _ => Ok(()),
        }
    }

    /// Lets `ino` lead back to the directory that it was moved to.
    pub(super) fn set_parent(&mut self, ino: Ino, parent: Ino, now: Timestamp) -> Result<()> {
        let node = self.node_mut(ino)?;
        node.touch(now, false);
        if let Ok(directory) = node.directory_mut() {
            directory.parent = parent;
        }
        Ok(())
    }
}
