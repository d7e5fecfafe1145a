//! Makes the calls of a case on a mounted file system, and tells the model before each what it does.
//!
//! A call that cannot be made, because a path leads to nothing or the volume is full, is a fault of the case: the names
//! that the calls before it left say so, before the file system is asked. What the file system refuses beyond that is a
//! violation.

use crate::calls::{Call, Content, FileRef};
use crate::device::drive::CheckFailure;
use crate::fs::model::{Model, Node, ROOT, Scope, parent};
use crate::fs::tree::{Fs, PAGE, bytes_of, identity, pages_in};
use nandscape_block::{Payload, SectorData};
use nandscape_fs::contract::{
    Allocate, Attr, Caller, Data, Fh, FsError, Ino, Io, OpenFlags, RenameMode, SetAttr, XattrMode,
};
use nandscape_rt::Handle;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Why a call has no end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The case asks for what cannot be.
    Case(String),
    /// The file system does what it must not.
    Failed(CheckFailure),
}

/// What a call has returned is wrong.
fn failed(what: impl Into<String>) -> Stop {
    Stop::Failed(CheckFailure::new(what))
}

impl From<FsError> for Stop {
    fn from(error: FsError) -> Self {
        match error {
            FsError::NoSpace => Self::Case("no space: the volume is too small for this".to_owned()),
            // Limits of the format, which the model does not know.
            FsError::Invalid(_)
            | FsError::NameTooLong
            | FsError::OutOfRange(_)
            | FsError::TooManyLinks
            | FsError::FileTooBig
            | FsError::Unsupported(_) => Self::Case(error.to_string()),
            other => failed(other.to_string()),
        }
    }
}

type Made<T = ()> = Result<T, Stop>;

/// A case under way.
pub(super) struct Player {
    handle: Handle,
    fs: Fs,
    /// The directory that the case takes for the root.
    root: Ino,
    model: Rc<RefCell<Model>>,
    open: BTreeMap<String, (Fh, Node)>,
}

/// A file that a call is about.
#[derive(Clone, Copy)]
struct Target {
    ino: Ino,
    node: Node,
    /// Where the call has a handle: its flags are obeyed.
    opened: Option<Fh>,
}

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };

impl Player {
    pub(super) fn new(handle: Handle, fs: Fs, root: Ino, model: Rc<RefCell<Model>>) -> Self {
        Self { handle, fs, root, model, open: BTreeMap::new() }
    }

    /// Makes a call, to its end.
    pub(super) async fn play(&mut self, call: &Call) -> Made {
        match call {
            Call::Create(_)
            | Call::Mkdir(_)
            | Call::Symlink(..)
            | Call::Link(..)
            | Call::Rename(..)
            | Call::Exchange(..)
            | Call::Unlink(_)
            | Call::Rmdir(_) => self.change_names(call).await?,
            Call::Open(path, handle, flags) => self.open(path, handle, *flags).await?,
            Call::Close(handle) => {
                let Some((fh, _)) = self.open.remove(handle) else { return Err(not_open(handle)) };
                self.fs.close(ME, fh.ino).await?;
            }
            Call::Fsync(file) => {
                let (ino, node) = self.any(file).await?;
                let sync = self.model.borrow_mut().sync_begins(Scope::Whole(node));
                self.fs.fsync(ME, ino).await?;
                self.model.borrow_mut().synced(&sync);
            }
            Call::Fdatasync(file) => {
                let target = self.file(file).await?;
                let sync = self.model.borrow_mut().sync_begins(Scope::Content(target.node));
                self.fs.fdatasync(ME, target.ino).await?;
                self.model.borrow_mut().synced(&sync);
            }
            Call::Sync => {
                let sync = self.model.borrow_mut().sync_begins(Scope::All);
                self.fs.syncfs(ME).await?;
                self.model.borrow_mut().synced(&sync);
            }
            Call::Sleep(time) => self.handle.sleep(*time).await,
            Call::Write { .. }
            | Call::Append { .. }
            | Call::Truncate(..)
            | Call::Allocate(..)
            | Call::Chmod(..)
            | Call::Chown(..)
            | Call::Setxattr(..)
            | Call::Removexattr(..) => self.change_file(call).await?,
        }
        self.model.borrow_mut().call_ended();
        Ok(())
    }

    /// Makes a call that changes names.
    async fn change_names(&self, call: &Call) -> Made {
        match call {
            Call::Create(path) => self.create(path).await.map(drop)?,
            Call::Mkdir(path) => {
                let (dir, name) = self.vacancy(path).await?;
                let _undo = self.model.borrow_mut().mkdir(path).1;
                let made = self.fs.mkdir(ME, dir, name, 0o755).await?;
                self.made(&made);
            }
            Call::Symlink(path, target) => {
                let (dir, name) = self.vacancy(path).await?;
                if target.length == 0 {
                    return Err(Stop::Case("a target of 0 bytes".to_owned()));
                }
                let target = target.bytes();
                let _undo = self.model.borrow_mut().symlink(path, &target).1;
                let made = self.fs.symlink(ME, dir, name, &target).await?;
                self.made(&made);
            }
            Call::Link(from, to) => {
                let node =
                    self.expect(from, |model, node| !model.is_directory(node), NO_DIRECTORY)?;
                let (dir, name) = self.vacancy(to).await?;
                let ino = self.walk(from).await?.ino;
                let _undo = self.model.borrow_mut().link(node, to);
                self.fs.link(ME, ino, dir, name).await?;
            }
            Call::Rename(from, to) => self.rename(from, to).await?,
            Call::Exchange(one, other) => self.exchange(one, other).await?,
            Call::Unlink(path) => {
                self.expect(path, |model, node| !model.is_directory(node), NO_DIRECTORY)?;
                let (dir, name) = self.place(path).await?;
                let _undo = self.model.borrow_mut().remove(path);
                self.fs.unlink(ME, dir, name).await?;
            }
            Call::Rmdir(path) => {
                self.expect(path, Model::is_directory, A_DIRECTORY)?;
                self.expect_empty(path)?;
                let (dir, name) = self.place(path).await?;
                let _undo = self.model.borrow_mut().remove(path);
                self.fs.rmdir(ME, dir, name).await?;
            }
            other => unreachable!("{other} changes no name"),
        }
        Ok(())
    }

    /// Makes a call that changes content or attributes of a file.
    async fn change_file(&self, call: &Call) -> Made {
        match call {
            Call::Write { file, offset, length, content, direct } => {
                let target = self.file_to_write(file).await?;
                self.write(target, *offset, *length, content, *direct).await?;
            }
            Call::Append { file, length, content, direct } => {
                let target = self.file_to_write(file).await?;
                let size = self.model.borrow().size(target.node);
                self.write(target, size, *length, content, *direct).await?;
            }
            Call::Truncate(file, size) => {
                let target = self.file(file).await?;
                self.model.borrow_mut().truncate(target.node, *size);
                let change = SetAttr { size: Some(*size), ..SetAttr::default() };
                self.fs.setattr(ME, target.ino, change).await?;
            }
            Call::Allocate(file, what, offset, length) => {
                let target = self.file_to_write(file).await?;
                self.allocate(target, *what, *offset..*offset + *length).await?;
            }
            Call::Chmod(file, mode) => self.set_owner(file, Some(*mode), None).await?,
            Call::Chown(file, uid) => self.set_owner(file, None, Some(*uid)).await?,
            Call::Setxattr(file, name, bytes) => {
                let (target, bytes) = (self.file(file).await?, bytes.bytes());
                let name = name.as_bytes();
                self.model.borrow_mut().set_xattr(target.node, name, Some(&bytes));
                self.fs.setxattr(ME, target.ino, name, &bytes, XattrMode::Set).await?;
            }
            Call::Removexattr(file, name) => {
                let (target, name) = (self.file(file).await?, name.as_bytes());
                if !self.model.borrow().xattrs(target.node).contains_key(name) {
                    return Err(Stop::Case(format!("{file}: no such attribute")));
                }
                self.model.borrow_mut().set_xattr(target.node, name, None);
                self.fs.removexattr(ME, target.ino, name).await?;
            }
            other => unreachable!("{other} changes no file"),
        }
        Ok(())
    }

    fn made(&self, attr: &Attr) {
        self.model.borrow_mut().made(identity(attr));
    }

    async fn create(&self, path: &str) -> Made<Target> {
        let (dir, name) = self.vacancy(path).await?;
        let node = self.model.borrow_mut().create(path, 0o644).0;
        let made = self.fs.create(ME, dir, name, 0o644).await?;
        self.made(&made);
        self.model.borrow_mut().call_ended();
        Ok(Target { ino: made.ino, node, opened: None })
    }

    async fn rename(&self, from: &str, to: &str) -> Made {
        let moved = self.node(from)?;
        if to == "." || to.starts_with(&format!("{from}/")) {
            return Err(Stop::Case(format!("{to}: nothing moves below itself")));
        }
        self.expect_directory_of(to)?;
        let replaced = self.model.borrow().names().get(to).copied();
        let [moves, goes] = [Some(moved), replaced]
            .map(|node| node.is_some_and(|node| self.model.borrow().is_directory(node)));
        match replaced {
            Some(_) if moves != goes => {
                let why = format!("{to}: one of both is a directory");
                return Err(Stop::Case(why));
            }
            Some(_) if goes => self.expect_empty(to)?,
            _ => {}
        }
        let (from_place, to_place) = (self.place(from).await?, self.place(to).await?);
        let _undo = self.model.borrow_mut().rename(from, to);
        Ok(self.fs.rename(ME, from_place, to_place, RenameMode::Replace).await?)
    }

    async fn exchange(&self, one: &str, other: &str) -> Made {
        let nodes = [self.node(one)?, self.node(other)?];
        let is_below = |one: &str, other: &str| other.starts_with(&format!("{one}/"));
        if is_below(one, other) || is_below(other, one) {
            return Err(Stop::Case(format!("{other}: nothing moves below itself")));
        }
        let (one_place, other_place) = (self.place(one).await?, self.place(other).await?);
        if nodes[0] != nodes[1] {
            let _undo = self.model.borrow_mut().exchange(one, other);
        }
        Ok(self.fs.rename(ME, one_place, other_place, RenameMode::Exchange).await?)
    }

    async fn write(
        &self,
        target: Target,
        offset: u64,
        length: u64,
        content: &Content,
        direct: bool,
    ) -> Made {
        let flags = target.opened.map(|fh| fh.flags).unwrap_or_default();
        let direct = direct || flags.direct;
        let offset = match flags.append {
            true => self.model.borrow().size(target.node),
            false => offset,
        };
        let range = offset..offset + length;
        if direct && !(range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE)) {
            let why = format!("direct: bytes {} to {}: no whole pages", range.start, range.end);
            return Err(Stop::Case(why));
        }
        for (page, part) in pages_in(range.clone()) {
            let with = content.page(page);
            self.model.borrow_mut().write(target.node, page, part, &with);
        }
        let data = data(range, content);
        let Some(fh) = target.opened else {
            let io = if direct { Io::Direct } else { Io::Buffered };
            return Ok(self.fs.write_all(ME, target.ino, offset, data, io).await?);
        };
        let scope = match (flags.sync, flags.dsync) {
            (true, _) => Some(Scope::Whole(target.node)),
            (_, true) => Some(Scope::Content(target.node)),
            _ => None,
        };
        let sync = scope.map(|scope| self.model.borrow_mut().sync_of_call(scope));
        let fh = Fh { flags: OpenFlags { direct, ..flags }, ..fh };
        let written = self.fs.write_open(ME, fh, offset, data).await?;
        if written != (offset, length) {
            return Err(failed(format!(
                "{written:?} was written in place of {:?}",
                (offset, length)
            )));
        }
        sync.into_iter().for_each(|sync| self.model.borrow_mut().synced(&sync));
        Ok(())
    }

    async fn allocate(&self, target: Target, what: Allocate, range: Range<u64>) -> Made {
        {
            let mut model = self.model.borrow_mut();
            match what {
                Allocate::Reserve { keep_size: true } => {}
                Allocate::Reserve { keep_size: false } => model.grow(target.node, range.end),
                Allocate::PunchHole => model.zero(target.node, &range),
                Allocate::ZeroRange { keep_size } => {
                    model.zero(target.node, &range);
                    if !keep_size {
                        model.grow(target.node, range.end);
                    }
                }
            }
        }
        let length = range.end - range.start;
        Ok(self.fs.fallocate(ME, target.ino, what, range.start, length).await?)
    }

    async fn set_owner(&self, file: &FileRef, mode: Option<u16>, uid: Option<u32>) -> Made {
        let target = self.file(file).await?;
        self.model.borrow_mut().set_owner(target.node, mode, uid);
        let change = SetAttr { mode, uid, ..SetAttr::default() };
        Ok(self.fs.setattr(ME, target.ino, change).await.map(drop)?)
    }

    async fn open(&mut self, path: &str, handle: &str, flags: OpenFlags) -> Made {
        if self.open.contains_key(handle) {
            return Err(Stop::Case(format!("@{handle}: a file is open under this name")));
        }
        let target = self.file(&FileRef::Path(path.to_owned())).await?;
        let fh = self.fs.open(ME, target.ino, flags).await?;
        self.open.insert(handle.to_owned(), (fh, target.node));
        Ok(())
    }

    /// What a path leads to by the calls so far.
    fn node(&self, path: &str) -> Made<Node> {
        let node = self.model.borrow().names().get(path).copied();
        node.ok_or_else(|| Stop::Case(format!("{path}: no such file or directory")))
    }

    fn expect(&self, path: &str, is: impl Fn(&Model, Node) -> bool, what: &str) -> Made<Node> {
        let node = self.node(path)?;
        match is(&self.model.borrow(), node) {
            true => Ok(node),
            false => Err(Stop::Case(format!("{path}: {what}"))),
        }
    }

    fn expect_empty(&self, dir: &str) -> Made {
        match self.model.borrow().children(dir).first() {
            None => Ok(()),
            Some(child) => Err(Stop::Case(format!("{dir}: not empty: {child}"))),
        }
    }

    fn expect_directory_of(&self, path: &str) -> Made {
        match parent(path) {
            Some(dir) => self.expect(dir, Model::is_directory, A_DIRECTORY).map(drop),
            None => Ok(()),
        }
    }

    /// Where a new name goes.
    async fn vacancy<'a>(&self, path: &'a str) -> Made<(Ino, &'a [u8])> {
        self.expect_directory_of(path)?;
        if path == "." || self.model.borrow().names().contains_key(path) {
            return Err(Stop::Case(format!("{path}: exists already")));
        }
        self.place(path).await
    }

    /// The directory of a path, and the last name.
    async fn place<'a>(&self, path: &'a str) -> Made<(Ino, &'a [u8])> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let dir = match parent(path) {
            Some(dir) => self.walk(dir).await?.ino,
            None => self.root,
        };
        Ok((dir, name.as_bytes()))
    }

    async fn walk(&self, path: &str) -> Made<Attr> {
        let mut attr = self.fs.getattr(ME, self.root).await?;
        for name in path.split('/').filter(|name| *name != ".") {
            attr = self.fs.lookup(ME, attr.ino, name.as_bytes()).await?;
        }
        Ok(attr)
    }

    /// A regular file.
    async fn file(&self, file: &FileRef) -> Made<Target> {
        match file {
            FileRef::Handle(handle) => match self.open.get(handle) {
                Some((fh, node)) => Ok(Target { ino: fh.ino, node: *node, opened: Some(*fh) }),
                None => Err(not_open(handle)),
            },
            FileRef::Path(path) => {
                let node = self.expect(path, Model::is_file, "no regular file")?;
                Ok(Target { ino: self.walk(path).await?.ino, node, opened: None })
            }
        }
    }

    /// The same; a path that leads to nothing gets a file.
    async fn file_to_write(&self, file: &FileRef) -> Made<Target> {
        match file {
            FileRef::Path(path) if !self.model.borrow().names().contains_key(path) => {
                self.create(path).await
            }
            file => self.file(file).await,
        }
    }

    /// Anything that can be synced.
    async fn any(&self, file: &FileRef) -> Made<(Ino, Node)> {
        match file {
            FileRef::Path(path) if path == "." => Ok((self.root, ROOT)),
            FileRef::Path(path) => {
                let is = |model: &Model, node| model.is_file(node) || model.is_directory(node);
                let node = self.expect(path, is, "a symbolic link cannot be opened")?;
                Ok((self.walk(path).await?.ino, node))
            }
            FileRef::Handle(_) => self.file(file).await.map(|target| (target.ino, target.node)),
        }
    }
}

const NO_DIRECTORY: &str = "a directory";
const A_DIRECTORY: &str = "no directory";

fn not_open(handle: &str) -> Stop {
    Stop::Case(format!("@{handle}: no open file of this name"))
}

/// The bytes of a range of a file with this content.
fn data(range: Range<u64>, content: &Content) -> Data {
    if range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE) {
        let contents: Vec<SectorData> =
            pages_in(range).map(|(page, _)| content.page(page)).collect();
        let count = contents.len() as u32;
        return Data::Sectors(Payload::collect(contents), count);
    }
    let bytes =
        pages_in(range).flat_map(|(page, part)| bytes_of(&content.page(page))[part].to_vec());
    Data::Bytes(bytes.collect())
}
