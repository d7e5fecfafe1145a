//! The load: writers, each in a directory of its own, that make, write, cut, move and remove files and
//! directories and sync them often, and say to their [`Model`] what they do before they do it.
//!
//! The volume is nearly full, so that blocks of removed directories are soon those of files; lengths
//! and holes are drawn so that extent trees grow nodes of their own.

use super::model::{Model, Node, ROOT, parent};
use super::tree::{Fs, PAGE, identity};
use nandscape_block::{Payload, SectorData, Tag};
use nandscape_fs::contract::{Attr, Caller, Data, FsError, Ino, Io, Kind, RenameMode, SetAttr};
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::RefCell;
use std::rc::Rc;

/// Directories below a writer's, and names of files in each.
const DIRS: u64 = 3;
const FILES: u64 = 3;
/// Directories that are changed now and then: only the oldest transactions of a log know of them.
const SHELVES: u64 = 12;
/// Pages that a file may have.
const PAGES: u64 = 12;
const SHELF: &str = "shelf";
/// Pages of a write.
const WRITE_PAGES: u64 = 4;
/// Files of a directory that is soon removed, and its names' length: two blocks of names.
const SHORT_LIVED: u64 = 24;
const LONG_NAME: usize = 200;

/// What a seed chooses about the load of all writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Style {
    /// Writers.
    pub(crate) writers: u16,
    /// Operations of each until it stops.
    pub(crate) operations: u64,
    /// Of a hundred operations so many are syncs.
    pub(crate) sync_percent: u64,
    /// Longest pause; none is 0.
    pub(crate) pause_ns: u64,
}

/// One writer.
pub(crate) struct Writer {
    handle: Handle,
    fs: Fs,
    caller: Caller,
    style: Style,
    model: Rc<RefCell<Model>>,
    rng: Stream,
    next_tag: u64,
}

impl Writer {
    /// The writer of a model; `round` keeps its tags from being those of another round.
    pub(crate) fn new(
        handle: &Handle,
        fs: &Fs,
        number: u16,
        style: Style,
        model: &Rc<RefCell<Model>>,
        seed: u64,
        round: u32,
    ) -> Self {
        Self {
            handle: handle.clone(),
            fs: fs.clone(),
            caller: Caller { thread: number, core: number, uid: 0, gid: 0 },
            style,
            model: Rc::clone(model),
            rng: Stream::new(seed, &format!("writer-{number}-{round}")),
            next_tag: u64::from(number + 1) << 48 | u64::from(round + 1) << 32,
        }
    }

    /// Works until it has done enough.
    pub(crate) async fn run(mut self) -> Result<(), FsError> {
        for _ in 0..self.style.operations {
            if self.rng.below(100) < self.style.sync_percent {
                self.sync().await?;
                continue;
            }
            match self.rng.below(40) {
                0..=19 => self.write().await?,
                20..=23 => self.truncate().await?,
                24..=27 => self.rename().await?,
                28..=30 => self.unlink().await?,
                31..=32 => self.make_directory().await?,
                33 => self.remove_directory().await?,
                34 => self.move_directory().await?,
                35 => self.use_blocks_again().await?,
                36 => self.use_shelf().await?,
                _ => self.pause().await,
            }
        }
        Ok(())
    }

    async fn pause(&mut self) {
        if self.style.pause_ns > 0 {
            let pause = Nanos(self.rng.below(self.style.pause_ns));
            self.handle.sleep(pause).await;
        }
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        let zeroes = "0".repeat(LONG_NAME - 2);
        let line = line().replace(&zeroes, "");
        self.model.borrow_mut().tell(format!("{} {line}", self.handle.now()));
    }

    /// A path where a file may be: in a directory that exists.
    fn any_path(&mut self) -> String {
        let (dir, name) = (self.rng.below(DIRS + 1), self.rng.below(FILES));
        let path = format!("d{dir}/f{name}");
        let model = self.model.borrow();
        match parent(&path).is_some_and(|dir| model.names().contains_key(dir)) {
            true => path,
            false => format!("f{name}"),
        }
    }

    /// A file that exists, if there is any.
    fn any_file(&mut self) -> Option<(String, Node)> {
        let model = self.model.borrow();
        let busy = |path: &str| !path.starts_with(SHELF);
        let names = || model.names().iter().filter(|(path, _)| busy(path));
        let files = || names().filter(|(_, node)| model.is_file(**node));
        let count = files().count() as u64;
        let index = (count > 0).then(|| self.rng.below(count))?;
        files().nth(index as usize).map(|(path, node)| (path.clone(), *node))
    }

    /// Walks to a path from the writer's directory; the empty one is that directory.
    async fn walk(&self, path: &str) -> Result<Attr, FsError> {
        let root = self.model.borrow().root().to_owned();
        let mut at = self.fs.lookup(self.caller, self.fs.root(), root.as_bytes()).await?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = self.fs.lookup(self.caller, at.ino, name.as_bytes()).await?;
        }
        Ok(at)
    }

    /// The directory of a path, and the last name.
    async fn place<'a>(&self, path: &'a str) -> Result<(Ino, &'a [u8]), FsError> {
        let dir = parent(path).unwrap_or("");
        let name = path.rsplit('/').next().unwrap_or(path);
        Ok((self.walk(dir).await?.ino, name.as_bytes()))
    }

    /// The file at a path, made if need be.
    async fn file(&self, path: &str) -> Result<(Ino, Node), FsError> {
        let known = self.model.borrow().names().get(path).copied();
        if let Some(node) = known {
            return Ok((self.walk(path).await?.ino, node));
        }
        let (dir, name) = self.place(path).await?;
        self.tell(|| format!("create {path}"));
        let node = self.model.borrow_mut().make(path, Kind::File);
        let attr = self.fs.create(self.caller, dir, name, 0o644).await?;
        self.model.borrow_mut().made(identity(&attr));
        Ok((attr.ino, node))
    }

    /// Writes anywhere, at the end, or over what is there.
    async fn write(&mut self) -> Result<(), FsError> {
        let path = self.any_path();
        let (ino, node) = self.file(&path).await?;
        let end = self.model.borrow().size(node).div_ceil(PAGE);
        let first = match self.rng.below(3) {
            0 => end.min(PAGES - 1),
            1 if end > 0 => self.rng.below(end),
            _ => self.rng.below(PAGES),
        };
        let count = (1 + self.rng.below(WRITE_PAGES)).min(PAGES - first);
        self.write_pages(&path, (ino, node), first, count).await
    }

    async fn write_pages(
        &mut self,
        path: &str,
        (ino, node): (Ino, Node),
        first: u64,
        count: u64,
    ) -> Result<(), FsError> {
        let tag = Tag::new(self.next_tag);
        self.next_tag += count;
        let contents: Vec<_> = (0..count).map(|n| SectorData::Tag(tag.plus(n))).collect();
        self.model.borrow_mut().write(node, first, &contents);
        let io = if self.rng.chance(0.15) { Io::Direct } else { Io::Buffered };
        self.tell(|| format!("write {path} pages {first}+{count} tag {:x} {io:?}", tag.bits()));
        let data = Data::Sectors(Payload::Run(tag), count as u32);
        self.fs.write_all(self.caller, ino, first * PAGE, data, io).await
    }

    async fn truncate(&mut self) -> Result<(), FsError> {
        let Some((path, node)) = self.any_file() else { return Ok(()) };
        let pages = self.rng.below(PAGES);
        let size = pages * PAGE + if self.rng.chance(0.5) { self.rng.below(PAGE) } else { 0 };
        let ino = self.walk(&path).await?.ino;
        self.model.borrow_mut().truncate(node, size);
        self.tell(|| format!("truncate {path} to {size}"));
        let change = SetAttr { size: Some(size), ..SetAttr::default() };
        self.fs.setattr(self.caller, ino, change).await.map(drop)
    }

    async fn rename(&mut self) -> Result<(), FsError> {
        let Some((from, _)) = self.any_file() else { return Ok(()) };
        let to = self.any_path();
        if from == to {
            return Ok(());
        }
        self.move_name(&from, &to).await
    }

    async fn move_name(&mut self, from: &str, to: &str) -> Result<(), FsError> {
        let (from_place, to_place) = (self.place(from).await?, self.place(to).await?);
        self.model.borrow_mut().rename(from, to);
        self.tell(|| format!("rename {from} to {to}"));
        self.fs.rename(self.caller, from_place, to_place, RenameMode::Replace).await
    }

    async fn unlink(&mut self) -> Result<(), FsError> {
        match self.any_file() {
            Some((path, _)) => self.unlink_path(&path).await,
            None => Ok(()),
        }
    }

    async fn unlink_path(&mut self, path: &str) -> Result<(), FsError> {
        let (dir, name) = self.place(path).await?;
        self.model.borrow_mut().remove(path);
        self.tell(|| format!("unlink {path}"));
        self.fs.unlink(self.caller, dir, name).await
    }

    /// A directory's name, and whether there is one.
    fn any_directory(&mut self) -> (String, bool) {
        let path = format!("d{}", self.rng.below(DIRS));
        let exists = self.model.borrow().names().contains_key(&path);
        (path, exists)
    }

    async fn make_directory(&mut self) -> Result<(), FsError> {
        match self.any_directory() {
            (path, false) => self.mkdir(&path).await,
            _ => Ok(()),
        }
    }

    async fn mkdir(&mut self, path: &str) -> Result<(), FsError> {
        let (dir, name) = self.place(path).await?;
        self.tell(|| format!("mkdir {path}"));
        self.model.borrow_mut().make(path, Kind::Directory);
        let attr = self.fs.mkdir(self.caller, dir, name, 0o755).await?;
        self.model.borrow_mut().made(identity(&attr));
        Ok(())
    }

    /// Removes a directory with all that is in it.
    async fn remove_directory(&mut self) -> Result<(), FsError> {
        match self.any_directory() {
            (path, true) => self.remove_whole(&path).await,
            _ => Ok(()),
        }
    }

    async fn remove_whole(&mut self, path: &str) -> Result<(), FsError> {
        let below = format!("{path}/");
        let children: Vec<String> = {
            let model = self.model.borrow();
            model.names().keys().filter(|child| child.starts_with(&below)).cloned().collect()
        };
        for child in children {
            self.unlink_path(&child).await?;
        }
        let (dir, name) = self.place(path).await?;
        self.model.borrow_mut().remove(path);
        self.tell(|| format!("rmdir {path}"));
        self.fs.rmdir(self.caller, dir, name).await
    }

    async fn move_directory(&mut self) -> Result<(), FsError> {
        let ((from, is), (to, taken)) = (self.any_directory(), self.any_directory());
        if !is || taken {
            return Ok(());
        }
        self.move_name(&from, &to).await
    }

    /// A directory of several blocks comes and goes, each time durably, and files take its blocks.
    async fn use_blocks_again(&mut self) -> Result<(), FsError> {
        let dir = "short".to_owned();
        if !self.model.borrow().names().contains_key(&dir) {
            self.mkdir(&dir).await?;
        }
        for number in 0..SHORT_LIVED {
            self.file(&format!("{dir}/{number:0>LONG_NAME$}")).await?;
        }
        self.sync_path("", ROOT).await?;
        self.remove_whole(&dir).await?;
        self.sync_path("", ROOT).await?;
        for _ in 0..3 {
            let path = self.any_path();
            let (ino, node) = self.file(&path).await?;
            self.model.borrow_mut().truncate(node, 0);
            self.tell(|| format!("truncate {path} to 0"));
            let change = SetAttr { size: Some(0), ..SetAttr::default() };
            self.fs.setattr(self.caller, ino, change).await?;
            self.write_pages(&path, (ino, node), 0, PAGES).await?;
            self.sync_path(&path, node).await?;
        }
        Ok(())
    }

    /// A directory that is left alone most of the time gets a file or loses it, durably.
    async fn use_shelf(&mut self) -> Result<(), FsError> {
        let dir = format!("{SHELF}{}", self.rng.below(SHELVES));
        if !self.model.borrow().names().contains_key(&dir) {
            self.mkdir(&dir).await?;
        }
        let file = format!("{dir}/f");
        let exists = self.model.borrow().names().contains_key(&file);
        match exists {
            true => self.unlink_path(&file).await?,
            false => drop(self.file(&file).await?),
        }
        let node = self.model.borrow().names().get(&dir).copied();
        match node {
            Some(node) => self.sync_path(&dir, node).await,
            None => Ok(()),
        }
    }

    async fn sync(&mut self) -> Result<(), FsError> {
        match (self.rng.below(20), self.any_file()) {
            (0, _) => self.sync_all().await,
            (1..=3, _) | (_, None) => self.sync_any_directory().await,
            (4..=9, Some((path, node))) => self.sync_data(&path, node).await,
            (_, Some((path, node))) => self.sync_path(&path, node).await,
        }
    }

    async fn sync_any_directory(&mut self) -> Result<(), FsError> {
        let (path, _) = self.any_directory();
        let known = self.model.borrow().names().get(&path).copied();
        match known {
            Some(node) => self.sync_path(&path, node).await,
            None => self.sync_path("", ROOT).await,
        }
    }

    async fn sync_all(&mut self) -> Result<(), FsError> {
        self.tell(|| "syncfs".to_owned());
        self.fs.syncfs(self.caller).await?;
        self.tell(|| "synced all".to_owned());
        self.model.borrow_mut().synced_all();
        Ok(())
    }

    async fn sync_data(&mut self, path: &str, node: Node) -> Result<(), FsError> {
        let ino = self.walk(path).await?.ino;
        self.tell(|| format!("fdatasync {path}"));
        self.model.borrow_mut().sync_begins(node, path);
        self.fs.fdatasync(self.caller, ino).await?;
        self.tell(|| format!("synced data of {path}"));
        self.model.borrow_mut().synced(node, true);
        Ok(())
    }

    async fn sync_path(&mut self, path: &str, node: Node) -> Result<(), FsError> {
        let ino = self.walk(path).await?.ino;
        self.tell(|| format!("fsync {path}"));
        self.model.borrow_mut().sync_begins(node, path);
        self.fs.fsync(self.caller, ino).await?;
        self.tell(|| format!("synced {path}"));
        self.model.borrow_mut().synced(node, false);
        Ok(())
    }
}
