//! The reference model: a tree in memory that does what POSIX says, and knows nothing of blocks,
//! caches or journals. It shares no code with what it judges but the words of the contract.

use nandscape_fs::contract::{Allocate, Attr, Ino, Kind, RenameMode, Timestamp};
use std::collections::BTreeMap;

/// Linux's numbers of errors.
pub(crate) mod errno {
    pub(crate) const NOENT: i32 = 2;
    pub(crate) const EXIST: i32 = 17;
    pub(crate) const NOTDIR: i32 = 20;
    pub(crate) const ISDIR: i32 = 21;
    pub(crate) const INVAL: i32 = 22;
    pub(crate) const PERM: i32 = 1;
    pub(crate) const NOTEMPTY: i32 = 39;
    pub(crate) const NODATA: i32 = 61;
}

/// A number of Linux's, or success.
pub(crate) type Outcome<T> = Result<T, i32>;

/// What a node holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    File(Vec<u8>),
    Directory(BTreeMap<Vec<u8>, usize>),
    Symlink(Vec<u8>),
}

/// A file, directory or symbolic link.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) ino: Ino,
    pub(crate) content: Content,
    pub(crate) mode: u16,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: Option<Timestamp>,
    pub(crate) links: u32,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) opens: u32,
}

impl Node {
    pub(crate) fn kind(&self) -> Kind {
        match self.content {
            Content::File(_) => Kind::File,
            Content::Directory(_) => Kind::Directory,
            Content::Symlink(_) => Kind::Symlink,
        }
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.kind() == Kind::Directory
    }
}

/// The tree; node 0 is the root.
pub(crate) struct Model(pub(crate) BTreeMap<usize, Node>, usize);

impl Model {
    /// A root with these names in it already.
    pub(crate) fn new(root: Attr) -> Self {
        let content = Content::Directory(BTreeMap::new());
        let mut model = Self(BTreeMap::new(), 0);
        model.add(root, content);
        model
    }

    pub(crate) fn add(&mut self, attr: Attr, content: Content) -> usize {
        let id = self.1;
        self.1 += 1;
        let node = Node {
            ino: attr.ino,
            links: if matches!(content, Content::Directory(_)) { 2 } else { 1 },
            content,
            mode: attr.mode,
            owner: (attr.uid, attr.gid),
            mtime: None,
            xattrs: BTreeMap::new(),
            opens: 0,
        };
        self.0.insert(id, node);
        id
    }

    pub(crate) fn node(&self, id: usize) -> &Node {
        &self.0[&id]
    }

    pub(crate) fn node_mut(&mut self, id: usize) -> &mut Node {
        self.0.get_mut(&id).expect("a node")
    }

    pub(crate) fn names(&self, dir: usize) -> Outcome<&BTreeMap<Vec<u8>, usize>> {
        match &self.node(dir).content {
            Content::Directory(names) => Ok(names),
            _ => Err(errno::NOTDIR),
        }
    }

    fn names_mut(&mut self, dir: usize) -> &mut BTreeMap<Vec<u8>, usize> {
        match &mut self.node_mut(dir).content {
            Content::Directory(names) => names,
            _ => panic!("a directory"),
        }
    }

    pub(crate) fn lookup(&self, dir: usize, name: &[u8]) -> Outcome<usize> {
        self.names(dir)?.get(name).copied().ok_or(errno::NOENT)
    }

    /// Whether a name may be made.
    pub(crate) fn may_make(&self, dir: usize, name: &[u8]) -> Outcome<()> {
        if self.names(dir)?.contains_key(name) { Err(errno::EXIST) } else { Ok(()) }
    }

    pub(crate) fn make(&mut self, dir: usize, name: &[u8], attr: Attr, content: Content) -> usize {
        let is_dir = matches!(content, Content::Directory(_));
        let id = self.add(attr, content);
        self.names_mut(dir).insert(name.to_vec(), id);
        self.node_mut(dir).links += u32::from(is_dir);
        id
    }

    pub(crate) fn may_link(&self, node: usize, dir: usize, name: &[u8]) -> Outcome<()> {
        if self.node(node).is_dir() {
            return Err(errno::PERM);
        }
        self.may_make(dir, name)
    }

    pub(crate) fn link(&mut self, node: usize, dir: usize, name: &[u8]) {
        self.names_mut(dir).insert(name.to_vec(), node);
        self.node_mut(node).links += 1;
    }

    fn is_empty(&self, dir: usize) -> bool {
        self.names(dir).is_ok_and(BTreeMap::is_empty)
    }

    /// Removes a name if that is allowed.
    pub(crate) fn remove(&mut self, dir: usize, name: &[u8], rmdir: bool) -> Outcome<()> {
        let id = self.lookup(dir, name)?;
        match (self.node(id).is_dir(), rmdir) {
            (true, false) => return Err(errno::ISDIR),
            (false, true) => return Err(errno::NOTDIR),
            (true, true) if !self.is_empty(id) => return Err(errno::NOTEMPTY),
            _ => {}
        }
        self.names_mut(dir).remove(name);
        self.lose_link(dir, id);
        Ok(())
    }

    fn lose_link(&mut self, dir: usize, id: usize) {
        if self.node(id).is_dir() {
            self.node_mut(dir).links -= 1;
            self.node_mut(id).links = 0;
        } else {
            self.node_mut(id).links -= 1;
        }
        self.forget_unused(id);
    }

    pub(crate) fn forget_unused(&mut self, id: usize) {
        if self.node(id).links == 0 && self.node(id).opens == 0 {
            self.0.remove(&id);
        }
    }

    /// Whether `below` is `above` or lies under it.
    fn is_below(&self, below: usize, above: usize) -> bool {
        below == above
            || self.names(above).is_ok_and(|names| {
                names
                    .values()
                    .any(|child| self.node(*child).is_dir() && self.is_below(below, *child))
            })
    }

    pub(crate) fn rename(
        &mut self,
        (from, name): (usize, &[u8]),
        (to, new): (usize, &[u8]),
        mode: RenameMode,
    ) -> Outcome<()> {
        let moved = self.lookup(from, name)?;
        let victim = self.lookup(to, new).ok();
        if mode == RenameMode::NoReplace && victim.is_some() {
            return Err(errno::EXIST);
        }
        let is_dir = self.node(moved).is_dir();
        if is_dir && self.is_below(to, moved) {
            return Err(errno::INVAL);
        }
        if mode == RenameMode::Exchange {
            let other = victim.ok_or(errno::NOENT)?;
            if self.node(other).is_dir() && self.is_below(from, other) {
                return Err(errno::INVAL);
            }
            self.names_mut(to).insert(new.to_vec(), moved);
            self.names_mut(from).insert(name.to_vec(), other);
            self.reparent(moved, from, to);
            self.reparent(other, to, from);
            return Ok(());
        }
        if victim == Some(moved) {
            return Ok(());
        }
        if let Some(victim) = victim {
            match (is_dir, self.node(victim).is_dir()) {
                (true, false) => return Err(errno::NOTDIR),
                (false, true) if self.is_below(from, victim) => return Err(errno::NOTEMPTY),
                (false, true) => return Err(errno::ISDIR),
                (true, true) if !self.is_empty(victim) => return Err(errno::NOTEMPTY),
                _ => {}
            }
            self.names_mut(to).remove(new);
            self.lose_link(to, victim);
        }
        self.names_mut(from).remove(name);
        self.names_mut(to).insert(new.to_vec(), moved);
        self.reparent(moved, from, to);
        Ok(())
    }

    fn reparent(&mut self, moved: usize, from: usize, to: usize) {
        if self.node(moved).is_dir() {
            self.node_mut(from).links -= 1;
            self.node_mut(to).links += 1;
        }
    }

    fn bytes_mut(&mut self, id: usize) -> &mut Vec<u8> {
        match &mut self.node_mut(id).content {
            Content::File(bytes) => bytes,
            _ => panic!("a file"),
        }
    }

    pub(crate) fn bytes(&self, id: usize) -> &[u8] {
        match &self.node(id).content {
            Content::File(bytes) => bytes,
            _ => panic!("a file"),
        }
    }

    pub(crate) fn write(&mut self, id: usize, offset: u64, data: &[u8]) {
        let bytes = self.bytes_mut(id);
        let end = offset as usize + data.len();
        if !data.is_empty() && bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(data);
        self.node_mut(id).mtime = None;
    }

    pub(crate) fn truncate(&mut self, id: usize, size: u64) {
        self.bytes_mut(id).resize(size as usize, 0);
        self.node_mut(id).mtime = None;
    }

    pub(crate) fn fallocate(&mut self, id: usize, what: Allocate, offset: u64, len: u64) {
        let bytes = self.bytes_mut(id);
        let (start, end) = (offset as usize, (offset + len) as usize);
        if !matches!(what, Allocate::Reserve { .. }) {
            let zeroed = start.min(bytes.len())..end.min(bytes.len());
            bytes[zeroed].fill(0);
        }
        let keeps = matches!(
            what,
            Allocate::PunchHole
                | Allocate::Reserve { keep_size: true }
                | Allocate::ZeroRange { keep_size: true }
        );
        if !keeps && bytes.len() < end {
            bytes.resize(end, 0);
        }
        self.node_mut(id).mtime = None;
    }
}
