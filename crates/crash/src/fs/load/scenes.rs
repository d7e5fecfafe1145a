//! Sequences of calls that single ones seldom make: each goes for a state in which file systems have lost
//! data.

use super::{Ended, PAGES, SHELF, Target, Writer, handle_of};
use crate::calls::FileRef;
use crate::draw::sample::log_uniform;
use crate::fs::model::Node;
use crate::fs::tree::PAGE;
use nandscape_fs::contract::{Allocate, Io, OpenFlags};
use nandscape_rt::Nanos;

/// Directories that are changed now and then.
const SHELVES: u64 = 12;
/// Files of a directory that is soon removed, and its names' length: two blocks of names.
const SHORT_LIVED: u64 = 24;
const LONG_NAME: usize = 200;
/// Extents of a file that has many: more than an inode and a block of them hold.
const EXTENTS: u64 = 90;
/// Pages by which all files grow.
const GROWN_PAGES: u64 = 3;
/// Files whose pages are scattered, writes at a time, and pages that these begin at.
const SCATTERED: u64 = 3;
const SCATTERED_WRITES: u64 = 40;
const SCATTERED_PAGES: u64 = 90;
/// Writes of a file that takes all space, and pages of each.
const FILL_WRITES: u64 = 40;
const FILL_PAGES: u64 = 24;

impl Writer {
    /// A directory of several blocks comes and goes, each time durably, and files take its blocks.
    pub(super) async fn use_blocks_again(&mut self) -> Ended {
        let dir = "short".to_owned();
        let exists = self.model.borrow().names().contains_key(&dir);
        if !exists && !self.mkdir(&dir).await? {
            return Ok(());
        }
        for number in 0..SHORT_LIVED {
            self.file(&format!("{dir}/{number:0>LONG_NAME$}")).await?;
        }
        self.sync_directory("").await?;
        self.remove_whole(&dir).await?;
        self.sync_directory("").await?;
        for _ in 0..3 {
            let path = self.any_path();
            let Some(target) = self.file(&path).await? else { continue };
            self.truncate_to(&target, 0).await?;
            self.write_pages(&target, 0, PAGES, Io::Buffered).await?;
            self.fsync(&target).await?;
        }
        Ok(())
    }

    /// A directory that is left alone most of the time gets a file or loses it, durably.
    pub(super) async fn use_shelf(&mut self) -> Ended {
        let dir = format!("{SHELF}{}", self.rng.below(SHELVES));
        let exists = self.model.borrow().names().contains_key(&dir);
        if !exists && !self.mkdir(&dir).await? {
            return Ok(());
        }
        let file = format!("{dir}/f");
        let exists = self.model.borrow().names().contains_key(&file);
        match exists {
            true => self.unlink_path(&file).await?,
            false => drop(self.file(&file).await?),
        }
        self.sync_directory(&dir).await
    }

    /// A page is written again while its write-back may be in flight, and then synced.
    pub(super) async fn redirty(&mut self) -> Ended {
        let path = self.any_path();
        let Some(target) = self.file(&path).await? else { return Ok(()) };
        let page = self.rng.below(PAGES);
        self.write_pages(&target, page, 1, Io::Buffered).await?;
        for _ in 0..1 + self.rng.below(3) {
            self.begin_fsync(&target).await?;
            let wait = Nanos(log_uniform(&mut self.rng, 1 << 20));
            self.handle.sleep(wait).await;
            match self.rng.chance(0.5) {
                true => self.write_pages(&target, page, 1, Io::Buffered).await?,
                false => self.write_bytes(&target, page * PAGE + 100, 200).await?,
            }
        }
        self.reached("page written beside a sync of its file, then synced");
        match self.rng.chance(0.5) {
            true => self.fsync(&target).await,
            false => self.fdatasync(&target).await,
        }
    }

    /// A file grows within a page, and fdatasync alone makes that durable.
    pub(super) async fn grow_and_sync(&mut self) -> Ended {
        let path = self.any_path();
        let Some(target) = self.file(&path).await? else { return Ok(()) };
        for _ in 0..1 + self.rng.below(4) {
            let size = self.model.borrow().size(target.node);
            if size > 2 * PAGES * PAGE {
                self.truncate_to(&target, 0).await?;
                continue;
            }
            let len = 1 + self.rng.below(300);
            self.write_bytes(&target, size, len).await?;
            self.fdatasync(&target).await?;
        }
        Ok(())
    }

    /// Every file becomes longer, and is read: what a cut left behind its end must not show.
    pub(super) async fn grow_all(&mut self) -> Ended {
        let files: Vec<(String, Node)> = {
            let model = self.model.borrow();
            let files = model.names().iter().filter(|(_, node)| model.is_file(**node));
            files.map(|(path, node)| (path.clone(), *node)).collect()
        };
        for (path, node) in files {
            let target = self.target(&path, node).await?;
            let size = self.model.borrow().size(node);
            self.truncate_to(&target, size + GROWN_PAGES * PAGE).await?;
            self.read_pages(&target, size / PAGE, GROWN_PAGES * PAGE).await?;
        }
        Ok(())
    }

    /// Space comes first, then content: buffered or direct, within the length or beyond it.
    pub(super) async fn preallocate(&mut self) -> Ended {
        let path = self.any_path();
        let Some(target) = self.file(&path).await? else { return Ok(()) };
        let keep_size = self.rng.chance(0.5);
        let first = self.rng.below(PAGES);
        let what = Allocate::Reserve { keep_size };
        self.allocate_range(&target, what, first * PAGE, 4 * PAGE).await?;
        if self.rng.chance(0.5) {
            self.fsync(&target).await?;
        }
        self.reached("write into preallocated space");
        let io = if self.rng.chance(0.5) { Io::Direct } else { Io::Buffered };
        let (at, count) = (first + self.rng.below(3), 1 + self.rng.below(2));
        self.write_pages(&target, at, count, io).await?;
        match self.rng.below(4) {
            0 => Ok(()),
            1 => self.fsync(&target).await,
            _ => self.fdatasync(&target).await,
        }
    }

    /// The way of editors: a new file is written and synced, and takes the name of the old one.
    pub(super) async fn replace(&mut self) -> Ended {
        let (old, Some(new)) = (self.any_path(), self.new_path()) else { return Ok(()) };
        let Some(target) = self.file(&old).await? else { return Ok(()) };
        self.write_pages(&target, 0, 2, Io::Buffered).await?;
        self.fsync(&target).await?;
        let Some(target) = self.file(&new).await? else { return Ok(()) };
        self.write_pages(&target, 0, 1, Io::Buffered).await?;
        self.fsync(&target).await?;
        self.reached("rename over a synced file");
        self.move_name(&new, &old).await?;
        match self.rng.below(3) {
            0 => Ok(()),
            1 => self.sync_directory("").await,
            _ => {
                let node = self.model.borrow().names().get(&old).copied();
                let Some(node) = node else { return Ok(()) };
                let target = self.target(&old, node).await?;
                self.fsync(&target).await
            }
        }
    }

    /// A file loses its name while it is open, and is used on.
    pub(super) async fn orphan(&mut self) -> Ended {
        let (path, false) = (self.any_path(), self.open.len() == super::OPEN_MAX) else {
            return Ok(());
        };
        let Some(target) = self.file(&path).await? else { return Ok(()) };
        if self.is_open(target.node) {
            return Ok(());
        }
        self.write_pages(&target, 0, 4, Io::Buffered).await?;
        if self.rng.chance(0.5) {
            self.fsync(&target).await?;
        }
        self.open_path(&path, target.node, OpenFlags::default()).await?;
        self.unlink_path(&path).await?;
        let unlinked = Target { name: FileRef::Handle(handle_of(target.node)), ..target };
        if self.rng.chance(0.7) {
            self.write_pages(&unlinked, 2, 4, Io::Buffered).await?;
        }
        match self.rng.below(3) {
            0 => self.fsync(&unlinked).await,
            1 => self.sync_directory("").await,
            _ => self.truncate_to(&unlinked, PAGE).await,
        }
    }

    /// A file of many extents is made durable and cut off, so that its cutting takes several transactions.
    pub(super) async fn many_extents(&mut self) -> Ended {
        let Some(target) = self.file("many").await? else { return Ok(()) };
        for index in 0..EXTENTS {
            self.write_pages(&target, 2 * index, 1, Io::Buffered).await?;
        }
        self.fsync(&target).await?;
        let size = self.rng.below(EXTENTS) * PAGE + self.rng.below(2) * 77;
        match self.rng.below(3) {
            0 => self.unlink_path("many").await,
            1 => {
                let what = Allocate::PunchHole;
                self.allocate_range(&target, what, size, EXTENTS * PAGE).await?;
                self.truncate_to(&target, 0).await
            }
            _ => self.truncate_to(&target, size).await,
        }
    }

    /// Pages of a few files are written over again and again, and nothing but these files is synced.
    pub(super) async fn scatter(&mut self) -> Ended {
        let name = format!("scattered{}", self.rng.below(SCATTERED));
        let Some(target) = self.file(&name).await? else { return Ok(()) };
        for _ in 0..1 + self.rng.below(SCATTERED_WRITES) {
            let (page, count) = (self.rng.below(SCATTERED_PAGES), 1 + self.rng.below(FILL_PAGES));
            let io = if self.rng.chance(0.2) { Io::Direct } else { Io::Buffered };
            self.write_pages(&target, page, count, io).await?;
            match self.rng.below(24) {
                0 => self.fdatasync(&target).await?,
                1 => self.fsync(&target).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A file takes all space that is left, and gives it back.
    pub(super) async fn fill(&mut self) -> Ended {
        let Some(target) = self.file("full").await? else { return Ok(()) };
        for index in 0..FILL_WRITES {
            self.write_pages(&target, index * FILL_PAGES, FILL_PAGES, Io::Buffered).await?;
            if self.fs.statfs(self.caller).await?.free == 0 {
                break;
            }
        }
        for _ in 0..6 {
            self.write().await?;
            self.make_directory().await?;
            self.make_link().await?;
        }
        if self.rng.chance(0.3) {
            self.fsync(&target).await?;
        }
        self.unlink_path("full").await
    }
}
