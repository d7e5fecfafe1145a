//! Seeded sequences of operations, done to a file system and to the model, which must agree at every
//! step.

use super::model::{Content, Model, Outcome, errno};
use nandscape_block::{Payload, SectorData, Tag};
use nandscape_fs::contract::{
    Allocate, Caller, Data, FileSystem, FsError, Ino, Io, Kind, OpenFlags, RenameMode, SetAttr,
    Timestamp, XattrMode,
};
use nandscape_rt::{Handle, Nanos, Stream};
use std::collections::BTreeMap;

/// Names in a directory that sequences choose from; few, so that they meet.
const NAMES: u64 = 24;
/// Files longer than this are not written further.
const FILE_MAX: u64 = 3 << 20;
/// `ENOSPC`.
const NOSPC: i32 = 28;

const CALLER: Caller = Caller { thread: 1, core: 0, uid: 0, gid: 0 };

/// How the sequence goes.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// Write whole sectors as tags where that is possible.
    pub(crate) tags: bool,
    /// Chance of direct I/O.
    pub(crate) direct: f64,
    /// Largest write.
    pub(crate) write_max: u64,
    /// Times of whole seconds, which inodes of 128 bytes keep.
    pub(crate) coarse_times: bool,
}

/// A file system and a model that went the same way.
pub(crate) struct Drive<F> {
    pub(crate) fs: F,
    pub(crate) model: Model,
    rng: Stream,
    handle: Handle,
    style: Style,
    next_tag: u64,
}

fn outcome<T>(result: Result<T, FsError>) -> Outcome<T> {
    result.map_err(|error| match error {
        FsError::Corrupt { .. } | FsError::Io(_) | FsError::ReadOnly => panic!("{error}"),
        error => error.errno(),
    })
}

/// Both succeed, or fail alike; a full volume may fail alone. Gives the file system's success.
fn agree<T>(what: &str, real: Outcome<T>, model: Outcome<()>) -> Option<T> {
    match (real, model) {
        (Ok(value), Ok(())) => Some(value),
        (Err(NOSPC), Ok(())) => None,
        (Err(real), Err(model)) => {
            assert_eq!(real, model, "{what}");
            None
        }
        (Ok(_), Err(model)) => panic!("{what}: succeeded, the model says {model}"),
        (Err(real), Ok(())) => panic!("{what}: failed with {real}"),
    }
}

impl<F: FileSystem> Drive<F> {
    pub(crate) async fn new(handle: &Handle, fs: F, seed: u64, style: Style) -> Self {
        let root = fs.getattr(CALLER, fs.root()).await.expect("a root");
        let mut model = Model::new(root);
        let found = fs.lookup(CALLER, fs.root(), b"lost+found").await.expect("lost+found");
        model.make(0, b"lost+found", found, Content::Directory(BTreeMap::new()));
        let rng = Stream::new(seed, "tree operations");
        Self { fs, model, rng, handle: handle.clone(), style, next_tag: seed << 32 | 1 }
    }

    fn pick(&mut self, want: impl Fn(&super::model::Node) -> bool) -> Option<usize> {
        let fit: Vec<usize> =
            self.model.0.iter().filter(|(_, node)| want(node)).map(|(id, _)| *id).collect();
        (!fit.is_empty()).then(|| fit[self.rng.below(fit.len() as u64) as usize])
    }

    fn dir(&mut self) -> usize {
        self.pick(|node| node.is_dir() && node.links > 0).unwrap_or(0)
    }

    fn file(&mut self) -> Option<usize> {
        self.pick(|node| node.kind() == Kind::File)
    }

    fn name(&mut self) -> Vec<u8> {
        let number = self.rng.below(NAMES);
        match number % 8 {
            0 => format!("{number:0>200}").into_bytes(),
            1 => vec![b'x', 0xc3, 0xa4, b'0' + number as u8],
            _ => format!("name{number}").into_bytes(),
        }
    }

    fn ino(&self, id: usize) -> Ino {
        self.model.node(id).ino
    }

    /// Does so many operations.
    pub(crate) async fn run(&mut self, operations: u64) {
        for _ in 0..operations {
            self.step().await;
        }
    }

    async fn step(&mut self) {
        match self.rng.below(100) {
            0..12 => self.create().await,
            12..16 => self.mkdir().await,
            16..19 => self.symlink().await,
            19..23 => self.link().await,
            23..29 => self.remove(false).await,
            29..32 => self.remove(true).await,
            32..40 => self.rename().await,
            40..62 => self.write().await,
            62..68 => self.truncate().await,
            68..73 => self.fallocate().await,
            73..76 => self.set_attributes().await,
            76..80 => self.xattr().await,
            80..84 => self.sync().await,
            84..91 => self.read().await,
            91..94 => self.list().await,
            94..97 => self.open_or_close().await,
            _ => self.handle.sleep(Nanos::from_ms(self.rng.below(9_000))).await,
        }
    }

    async fn create(&mut self) {
        let (dir, name) = (self.dir(), self.name());
        let may = self.model.may_make(dir, &name);
        let mode = self.rng.below(0o1000) as u16;
        let real = outcome(self.fs.create(CALLER, self.ino(dir), &name, mode).await);
        if let Some(attr) = agree("create", real, may) {
            assert_eq!((attr.kind, attr.mode, attr.size, attr.links), (Kind::File, mode, 0, 1));
            self.model.make(dir, &name, attr, Content::File(Vec::new()));
        }
    }

    async fn mkdir(&mut self) {
        let (dir, name) = (self.dir(), self.name());
        let may = self.model.may_make(dir, &name);
        let real = outcome(self.fs.mkdir(CALLER, self.ino(dir), &name, 0o755).await);
        if let Some(attr) = agree("mkdir", real, may) {
            self.model.make(dir, &name, attr, Content::Directory(BTreeMap::new()));
        }
    }

    async fn symlink(&mut self) {
        let (dir, name) = (self.dir(), self.name());
        let may = self.model.may_make(dir, &name);
        let len = [5, 59, 60, 200, 4000][self.rng.below(5) as usize];
        let target: Vec<u8> = (0..len).map(|i| b'a' + (i % 26) as u8).collect();
        let real = outcome(self.fs.symlink(CALLER, self.ino(dir), &name, &target).await);
        if let Some(attr) = agree("symlink", real, may) {
            let read = self.fs.readlink(CALLER, attr.ino).await;
            assert_eq!(read.expect("a target"), target);
            self.model.make(dir, &name, attr, Content::Symlink(target));
        }
    }

    async fn link(&mut self) {
        let (dir, name) = (self.dir(), self.name());
        let Some(node) = self.pick(|node| node.links > 0) else { return };
        let may = self.model.may_link(node, dir, &name);
        let real = outcome(self.fs.link(CALLER, self.ino(node), self.ino(dir), &name).await);
        if agree("link", real, may).is_some() {
            self.model.link(node, dir, &name);
        }
    }

    async fn remove(&mut self, rmdir: bool) {
        let (dir, name) = (self.dir(), self.name());
        let ino = self.ino(dir);
        let real = match rmdir {
            true => self.fs.rmdir(CALLER, ino, &name).await,
            false => self.fs.unlink(CALLER, ino, &name).await,
        };
        agree("remove", outcome(real), self.model.remove(dir, &name, rmdir));
    }

    async fn rename(&mut self) {
        let (from, name) = (self.dir(), self.name());
        let (to, new) = (self.dir(), self.name());
        let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
        let mode = modes[self.rng.below(3) as usize];
        let (a, b) = (self.ino(from), self.ino(to));
        let real = outcome(self.fs.rename(CALLER, (a, &name), (b, &new), mode).await);
        if real == Err(NOSPC) {
            return;
        }
        let model = self.model.rename((from, &name), (to, &new), mode);
        agree("rename", real, model);
    }

    /// New data: a run of tags, a part of one, or bytes.
    fn data(&mut self, offset: u64, len: u64) -> Data {
        let whole = offset.is_multiple_of(4096) && len.is_multiple_of(4096) && len > 0;
        let (tag, from) = (Tag::new(self.next_tag), (offset % 4096) as usize);
        let part = from..from + len as usize;
        if self.style.tags && whole {
            self.next_tag += len / 4096;
            return Data::Sectors(Payload::Run(tag), (len / 4096) as u32);
        }
        if self.style.tags && part.end <= 4096 {
            self.next_tag += 1;
            return Data::Part(SectorData::Tag(tag), part);
        }
        let fill = self.rng.bits();
        Data::Bytes((0..len).map(|i| (fill >> (i % 8 * 8)) as u8 ^ (i >> 9) as u8).collect())
    }

    /// A range of a file, in whole sectors half of the time.
    fn range(&mut self) -> (u64, u64) {
        let offset = self.rng.below(FILE_MAX - self.style.write_max);
        let shift = [20, 16, 12][self.rng.below(3) as usize];
        let offset = offset.min(1 << (shift + 1));
        let len = 1 + self.rng.below(self.style.write_max);
        if self.rng.chance(0.5) {
            (offset / 4096 * 4096, len.next_multiple_of(4096))
        } else {
            (offset, len)
        }
    }

    async fn write(&mut self) {
        let Some(file) = self.file() else { return };
        let (mut offset, len) = self.range();
        if self.rng.chance(0.3) {
            offset = self.model.bytes(file).len() as u64;
        }
        let data = self.data(offset, len);
        let aligned = offset.is_multiple_of(4096) && len.is_multiple_of(4096);
        let direct = aligned && self.rng.chance(self.style.direct);
        let io = if direct { Io::Direct } else { Io::Buffered };
        let written = self.fs.write(CALLER, self.ino(file), offset, data.clone(), io).await;
        self.model.node_mut(file).mtime = None;
        if let Some(written) = agree("write", outcome(written), Ok(())) {
            self.model.write(file, offset, &data.to_bytes()[..written as usize]);
        }
        self.check_size(file).await;
    }

    async fn check_size(&self, file: usize) {
        let attr = self.fs.getattr(CALLER, self.ino(file)).await.expect("attributes");
        assert_eq!(attr.size, self.model.bytes(file).len() as u64);
        assert_eq!(attr.links, self.model.node(file).links);
    }

    async fn truncate(&mut self) {
        let Some(file) = self.file() else { return };
        let len = self.model.bytes(file).len() as u64;
        let size = if self.rng.chance(0.7) { self.rng.below(len + 1) } else { self.range().0 };
        let change = SetAttr { size: Some(size), ..SetAttr::default() };
        let real = outcome(self.fs.setattr(CALLER, self.ino(file), change).await);
        if agree("truncate", real, Ok(())).is_some() {
            self.model.truncate(file, size);
        }
    }

    async fn fallocate(&mut self) {
        let Some(file) = self.file() else { return };
        let (offset, len) = self.range();
        let keep_size = self.rng.chance(0.5);
        let what = match self.rng.below(3) {
            0 => Allocate::Reserve { keep_size },
            1 => Allocate::PunchHole,
            _ => Allocate::ZeroRange { keep_size },
        };
        let real = outcome(self.fs.fallocate(CALLER, self.ino(file), what, offset, len).await);
        self.model.node_mut(file).mtime = None;
        match real {
            // The hole of a zero range is made before space for it is looked for.
            Err(NOSPC) if matches!(what, Allocate::ZeroRange { .. }) => {
                self.model.fallocate(file, Allocate::PunchHole, offset, len);
            }
            real => {
                if agree("fallocate", real, Ok(())).is_some() {
                    self.model.fallocate(file, what, offset, len);
                }
            }
        }
        self.check_size(file).await;
    }

    async fn set_attributes(&mut self) {
        let Some(node) = self.pick(|node| node.links > 0) else { return };
        let (mode, uid) = (self.rng.below(0o10000) as u16, self.rng.below(1 << 20) as u32);
        let (seconds, nanos) = if self.style.coarse_times { (32, 1) } else { (33, 1_000_000_000) };
        let seconds = self.rng.below(1 << seconds) as i64 - (1 << 31);
        let mtime = Timestamp { seconds, nanos: self.rng.below(nanos) as u32 };
        let (mode, uid, mtime) = (Some(mode), Some(uid), Some(mtime));
        let change = SetAttr { mode, uid, gid: uid, mtime, ..SetAttr::default() };
        let attr = self.fs.setattr(CALLER, self.ino(node), change).await.expect("new attributes");
        let node = self.model.node_mut(node);
        (node.mode, node.owner, node.mtime) = (attr.mode, (attr.uid, attr.gid), mtime);
        assert_eq!((Some(attr.mode), Some(attr.uid), Some(attr.mtime)), (mode, uid, mtime));
        if node.is_dir() {
            node.mtime = None;
        }
    }

    async fn xattr(&mut self) {
        let Some(node) = self.pick(|node| node.links > 0) else { return };
        let name = format!("user.attribute{}", self.rng.below(4)).into_bytes();
        let ino = self.ino(node);
        let known = self.model.node(node).xattrs.contains_key(&name);
        if self.rng.chance(0.3) {
            let may = if known { Ok(()) } else { Err(errno::NODATA) };
            let real = outcome(self.fs.removexattr(CALLER, ino, &name).await);
            if agree("removexattr", real, may).is_some() {
                self.model.node_mut(node).xattrs.remove(&name);
            }
            return;
        }
        let value = vec![b'v'; [0, 3, 40, 500, 1500][self.rng.below(5) as usize]];
        let real = self.fs.setxattr(CALLER, ino, &name, &value, XattrMode::Set).await;
        if agree("setxattr", outcome(real), Ok(())).is_some() {
            self.model.node_mut(node).xattrs.insert(name, value);
        }
    }

    async fn sync(&mut self) {
        let Some(node) = self.pick(|node| node.links > 0) else { return };
        let ino = self.ino(node);
        let result = match self.rng.below(8) {
            0 => self.fs.syncfs(CALLER).await,
            1..4 => self.fs.fdatasync(CALLER, ino).await,
            _ => self.fs.fsync(CALLER, ino).await,
        };
        result.expect("a sync");
    }

    async fn read(&mut self) {
        let Some(file) = self.file() else { return };
        let (offset, len) = self.range();
        let direct = offset.is_multiple_of(4096) && self.rng.chance(self.style.direct);
        let io = if direct { Io::Direct } else { Io::Buffered };
        let read = self.fs.read(CALLER, self.ino(file), offset, len, io).await.expect("data");
        let bytes = self.model.bytes(file);
        let end = ((offset + len) as usize).min(bytes.len());
        let expected = bytes.get(offset as usize..end).unwrap_or_default();
        assert!(read.to_bytes() == expected, "{io:?} read of {len} bytes from {offset}");
    }

    async fn list(&mut self) {
        let dir = self.dir();
        check_names(&self.fs, &self.model, dir).await;
    }

    /// Opens a node, or closes one; an open node survives its last name.
    async fn open_or_close(&mut self) {
        if let Some(open) = self.pick(|node| node.opens > 0)
            && self.rng.chance(0.5)
        {
            self.fs.close(CALLER, self.ino(open)).await.expect("a close");
            self.model.node_mut(open).opens -= 1;
            self.model.forget_unused(open);
        } else if let Some(node) = self.pick(|node| node.kind() == Kind::File && node.links > 0) {
            self.fs.open(CALLER, self.ino(node), OpenFlags::default()).await.expect("an open");
            self.model.node_mut(node).opens += 1;
        }
    }

    /// Closes everything.
    pub(crate) async fn close_all(&mut self) {
        while let Some(open) = self.pick(|node| node.opens > 0) {
            self.fs.close(CALLER, self.ino(open)).await.expect("a close");
            self.model.node_mut(open).opens -= 1;
            self.model.forget_unused(open);
        }
    }
}

/// The names of a directory are the model's, each once.
async fn check_names<F: FileSystem>(fs: &F, model: &Model, dir: usize) {
    let mut seen = BTreeMap::new();
    let mut cookie = 0;
    loop {
        let some = fs.readdir(CALLER, model.node(dir).ino, cookie, 7).await.expect("names");
        let Some(last) = some.last() else { break };
        cookie = last.cookie;
        for entry in some {
            let twice = seen.insert(entry.name.clone(), (entry.ino, entry.kind));
            assert!(twice.is_none(), "{:?} is listed twice", entry.name);
        }
    }
    assert_eq!(seen.remove(b".".as_slice()).map(|dot| dot.0), Some(model.node(dir).ino));
    assert!(seen.remove(b"..".as_slice()).is_some());
    let names = model.names(dir).expect("a directory").iter();
    let expected: BTreeMap<_, _> = names
        .map(|(name, id)| (name.clone(), (model.node(*id).ino, model.node(*id).kind())))
        .collect();
    assert_eq!(seen, expected);
}

/// The whole tree is the model's: names, attributes, content.
pub(crate) async fn check_tree<F: FileSystem>(fs: &F, model: &Model) {
    for (id, node) in &model.0 {
        let attr = fs.getattr(CALLER, node.ino).await.expect("attributes");
        assert_eq!((attr.kind, attr.links), (node.kind(), node.links), "{:?}", node.ino);
        assert_eq!((attr.mode, (attr.uid, attr.gid)), (node.mode, node.owner));
        if let Some(mtime) = node.mtime {
            assert_eq!(attr.mtime, mtime);
        }
        let mut names = fs.listxattr(CALLER, node.ino).await.expect("attributes");
        names.sort();
        assert!(names.iter().eq(node.xattrs.keys()), "{names:?}");
        for (name, value) in &node.xattrs {
            assert_eq!(&fs.getxattr(CALLER, node.ino, name).await.expect("a value"), value);
        }
        match &node.content {
            Content::Directory(_) => check_names(fs, model, *id).await,
            Content::Symlink(target) => {
                assert_eq!(&fs.readlink(CALLER, node.ino).await.expect("a target"), target);
            }
            Content::File(bytes) => {
                assert_eq!(attr.size, bytes.len() as u64);
                let len = bytes.len() as u64 + 1;
                let read = fs.read(CALLER, node.ino, 0, len, Io::Buffered).await.expect("data");
                assert!(read.to_bytes() == *bytes, "content of {:?}", node.ino);
            }
        }
    }
}
