//! Each part of the stack is driven to its end and back: the blocks for content, inodes, directories, attributes, the journal
//! or what waits for a checkpoint, and the device below.
//!
//! At the end calls of every kind come, which are refused or not. Then space is given back, in every way in which that
//! is done. Where one writer works alone, the account of the volume has to be what it was when the volume was new.

use super::names::LONG_TARGET;
use super::{Ended, Target, Writer};
use crate::calls::{Call, Repeated};
use crate::device::drive::CheckFailure;
use crate::draw::sample::pick;
use crate::fs::tree::{PAGE, Xattrs};
use nandscape_fs::contract::{Allocate, FsError, Io, XattrMode};
use nandscape_rt::Stream;

/// What is driven to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layer {
    /// Blocks, by content.
    Data,
    /// Inodes, or nodes where these take blocks.
    Inodes,
    /// Directories: long names, so that each few need a block or another level.
    Names,
    /// The room for attributes of an inode and of its block.
    Attributes,
    /// The journal: more is changed than a transaction holds. Of a file system with checkpoints: more is dirty, and more was
    /// freed, than free sections hold.
    Log,
    /// The device: what fills it is written over and over.
    Device,
}

/// Rows of the coverage of a layer.
const ROWS: [&str; 6] = [
    "seeds that lean to it",
    "driven to the end",
    "refused",
    "cuts meanwhile",
    "given back",
    "accounts taken",
];

impl Layer {
    pub(crate) const ALL: [Self; 6] =
        [Self::Data, Self::Inodes, Self::Names, Self::Attributes, Self::Log, Self::Device];

    /// Its name, for the scenario.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Inodes => "inodes",
            Self::Names => "names",
            Self::Attributes => "attributes",
            Self::Log => "log",
            Self::Device => "device",
        }
    }

    /// Its group in the coverage.
    const fn group(self) -> &'static str {
        match self {
            Self::Data => "full: data",
            Self::Inodes => "full: inodes",
            Self::Names => "full: names",
            Self::Attributes => "full: attributes",
            Self::Log => "full: journal or checkpoint",
            Self::Device => "full: device",
        }
    }
}

/// Something that happened to a layer, by its row in the coverage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Happened {
    Seed,
    Driven,
    Refused,
    Cut,
    GivenBack,
    Account,
}

impl Happened {
    const ALL: [Self; 6] =
        [Self::Seed, Self::Driven, Self::Refused, Self::Cut, Self::GivenBack, Self::Account];

    /// Counts it; where nothing happened, so that the row shows.
    pub(crate) fn count(self, layer: Layer, times: u64, coverage: &mut crate::coverage::Coverage) {
        coverage.count(layer.group(), ROWS[self as usize], times);
    }

    /// All rows of all layers, none reached.
    pub(crate) fn list(coverage: &mut crate::coverage::Coverage) {
        for layer in Layer::ALL {
            Self::ALL.into_iter().for_each(|row| row.count(layer, 0, coverage));
        }
    }
}

/// What a seed chooses about driving layers to their ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full {
    /// What it leans to.
    pub(crate) layer: Layer,
    /// Of a hundred operations so many drive a layer to its end.
    pub(crate) percent: u64,
}

impl Full {
    pub(crate) fn draw(rng: &mut Stream) -> Self {
        let layer = Layer::ALL[rng.below(Layer::ALL.len() as u64) as usize];
        Self { layer, percent: [15, 30, 60][rng.below(3) as usize] }
    }

    /// What an operation drives to its end.
    fn layer(self, rng: &mut Stream) -> Layer {
        match rng.chance(0.6) {
            true => self.layer,
            false => Layer::ALL[rng.below(Layer::ALL.len() as u64) as usize],
        }
    }
}

/// The directory of what takes the space.
const DIR: &str = "end";
/// Files, pages of a write, and writes of each file at most.
const FILES: u64 = 12;
const PAGES: u64 = 24;
const WRITES: u64 = 40;
/// Inodes and names that are made at most.
const INODES_MAX: u64 = 700;
const NAMES_MAX: u64 = 260;
/// Bytes of a long name.
const LONG_NAME: usize = 250;
/// Syncs of small changes, one after the other.
const SYNCS: u64 = 240;
/// Writes over what fills the device.
const REWRITES: u64 = 60;
/// Files whose attributes are filled, and attributes of each.
const FILES_WITH_XATTRS: u64 = 6;
const XATTRS: u64 = 8;
/// Bytes of attributes, names included, for which every file has room.
const XATTR_ROOM: u64 = 3_500;

impl Writer {
    /// Drives a layer to its end and, mostly, back.
    pub(super) async fn drive_to_the_end(&mut self, full: Full) -> Ended {
        let layer = full.layer(&mut self.rng);
        self.happened(layer, Happened::Driven);
        self.progress.drive(layer, 1);
        let before = self.refusals;
        let exists = self.model.borrow().names().contains_key(DIR);
        if exists || self.mkdir(DIR).await? {
            match layer {
                Layer::Data => self.fill_data(FILES).await?,
                Layer::Inodes => self.fill_inodes().await?,
                Layer::Names => self.fill_names().await?,
                Layer::Attributes => self.fill_attributes().await?,
                Layer::Log => self.fill_log().await?,
                Layer::Device => self.fill_device().await?,
            }
        }
        for _ in 0..self.rng.below(8) {
            self.at_the_end().await?;
        }
        if self.refusals > before {
            self.happened(layer, Happened::Refused);
        }
        if self.rng.chance(0.8) {
            self.give_back(layer).await?;
        }
        self.progress.drive(layer, -1);
        Ok(())
    }

    fn happened(&self, layer: Layer, what: Happened) {
        what.count(layer, 1, &mut self.coverage.borrow_mut());
    }

    /// A file among those that take the space.
    async fn filler(&mut self, number: u64) -> Ended<Option<Target>> {
        self.file(&format!("{DIR}/{number}")).await
    }

    /// Files take all blocks: buffered or directly, reserved, in parts of pages, or with holes that are filled later.
    async fn fill_data(&mut self, files: u64) -> Ended {
        let before = self.refusals;
        for number in 0..files {
            let Some(target) = self.filler(number).await? else { return Ok(()) };
            let how = self.rng.below(5);
            for index in 0..WRITES / 4 {
                let first = index * PAGES;
                match how {
                    0 => self.write_pages(&target, first, PAGES, Io::Buffered).await?,
                    1 => self.write_pages(&target, first, PAGES, Io::Direct).await?,
                    2 => {
                        let what = Allocate::Reserve { keep_size: self.rng.chance(0.5) };
                        self.allocate_range(&target, what, first * PAGE, PAGES * PAGE).await?;
                    }
                    3 => {
                        // Each second page: extents, and nodes, as many as there can be.
                        for page in 0..PAGES / 2 {
                            self.write_pages(&target, first + 2 * page, 1, Io::Buffered).await?;
                        }
                    }
                    _ => self.write_bytes(&target, first * PAGE + 100, PAGES * PAGE / 2).await?,
                }
                if self.refusals > before {
                    return Ok(());
                }
            }
            if self.rng.chance(0.2) {
                self.fsync(&target).await?;
            }
        }
        Ok(())
    }

    /// Files, directories and symbolic links take all inodes.
    async fn fill_inodes(&mut self) -> Ended {
        let before = self.refusals;
        for number in 0..INODES_MAX {
            let path = format!("{DIR}/i{number}");
            let exists = self.model.borrow().names().contains_key(&path);
            match number % 16 {
                _ if exists => {}
                0 => drop(self.mkdir(&path).await?),
                1 => self.symlink(&path, LONG_TARGET).await?,
                _ => drop(self.file(&path).await?),
            }
            if self.refusals > before {
                break;
            }
        }
        Ok(())
    }

    /// A directory gets long names until there is no block for another one.
    async fn fill_names(&mut self) -> Ended {
        let Some(target) = self.filler(0).await? else { return Ok(()) };
        if self.rng.chance(0.5) {
            self.fill_data(2).await?;
        }
        let before = self.refusals;
        for number in 0..NAMES_MAX {
            let path = format!("{DIR}/{number:l>LONG_NAME$}");
            self.link_to(&target, &path).await?;
            if self.refusals > before + 2 {
                break;
            }
        }
        // A name that replaces another one, and one that needs a place of its own.
        for number in 0..4 {
            let from = format!("{DIR}/{number:l>LONG_NAME$}");
            let to = format!("{DIR}/{number:m>LONG_NAME$}");
            if self.model.borrow().names().contains_key(&from) {
                self.move_name(&from, &to).await?;
            }
        }
        Ok(())
    }

    /// Attributes of a few files take the room in their inodes and blocks.
    async fn fill_attributes(&mut self) -> Ended {
        for number in 0..FILES_WITH_XATTRS {
            let Some(target) = self.filler(number).await? else { return Ok(()) };
            for name in 0..XATTRS {
                let len = [40, 400, 1_500, 3_500][self.rng.below(4) as usize];
                self.set_attribute(&target, &format!("user.full{name}"), Some(len)).await?;
            }
            if self.rng.chance(0.3) {
                self.fsync(&target).await?;
            }
            for name in 0..XATTRS {
                if self.rng.chance(0.5) {
                    self.set_attribute(&target, &format!("user.full{name}"), None).await?;
                }
            }
        }
        Ok(())
    }

    /// Sets an attribute, or removes it. The room of an inode ends before that of the volume does.
    async fn set_attribute(&mut self, target: &Target, name: &str, len: Option<u64>) -> Ended {
        let (word, name) = (name.to_owned(), name.as_bytes());
        let known = self.model.borrow().xattrs(target.node);
        let repeated = len.map(|len| self.any_value(len));
        if repeated.is_none() && !known.contains_key(name) {
            return Ok(());
        }
        let value = repeated.as_ref().map(Repeated::bytes);
        self.model.borrow_mut().set_xattr(target.node, name, value.as_deref());
        let (Some(value), Some(repeated)) = (value, repeated) else {
            self.log(Call::Removexattr(target.name.clone(), word));
            self.called("removexattr");
            return Ok(self.fs.removexattr(self.caller, target.ino, name).await?);
        };
        self.log(Call::Setxattr(target.name.clone(), word, repeated));
        self.called("setxattr in a block");
        let set = self.fs.setxattr(self.caller, target.ino, name, &value, XattrMode::Set).await;
        match set {
            Err(FsError::NoSpace) => {
                self.attribute_refused(target, &known, value.len() as u64).await
            }
            other => Ok(other?),
        }
    }

    /// Looks at a file that was refused an attribute of so many bytes beside those that it has: the volume has no room, or
    /// the file has none for so much.
    pub(super) async fn attribute_refused(
        &mut self,
        target: &Target,
        known: &Xattrs,
        len: u64,
    ) -> Ended {
        let held: usize = known.iter().map(|(name, value)| name.len() + value.len()).sum();
        match held as u64 + len > XATTR_ROOM {
            true => self.note_refusal(),
            false => self.check_refusal().await?,
        }
        self.look_again(target, "setxattr: no space").await
    }

    /// More is changed than a transaction, or the sections that are free, can hold, and nothing is synced meanwhile. Or many
    /// small transactions follow each other, until nothing of the log is free but what they hold.
    async fn fill_log(&mut self) -> Ended {
        if self.rng.chance(0.4) {
            return self.sync_often().await;
        }
        for number in 0..FILES {
            let Some(target) = self.filler(number).await? else { return Ok(()) };
            let io = if self.rng.chance(0.2) { Io::Direct } else { Io::Buffered };
            self.write_pages(&target, 0, PAGES, io).await?;
            for page in 0..6 {
                // Each in a node, or an extent, of its own.
                self.write_pages(&target, 1_000 + 1_100 * page, 1, Io::Buffered).await?;
            }
        }
        for number in 0..FILES {
            let Some(target) = self.filler(number).await? else { return Ok(()) };
            match self.rng.below(4) {
                0 => self.truncate_to(&target, 0).await?,
                1 => {
                    let (what, len) = (Allocate::PunchHole, 8_000 * PAGE);
                    self.allocate_range(&target, what, PAGE / 2, len).await?;
                }
                2 => self.unlink_path(&format!("{DIR}/{number}")).await?,
                _ => self.write_pages(&target, 0, PAGES, Io::Buffered).await?,
            }
        }
        Ok(())
    }

    async fn sync_often(&mut self) -> Ended {
        for index in 0..SYNCS / 4 + self.rng.below(SYNCS) {
            let Some(target) = self.filler(index % FILES).await? else { return Ok(()) };
            match index % 3 {
                0 => {
                    let end = self.model.borrow().size(target.node) / PAGE;
                    self.write_pages(&target, end, 1, Io::Buffered).await?;
                }
                1 => self.truncate_to(&target, 0).await?,
                _ => {
                    self.move_name(
                        &target.name.to_string(),
                        &format!("{DIR}/{}", (index + 1) % FILES),
                    )
                    .await?
                }
            }
            match self.rng.chance(0.7) {
                true => self.sync_directory(DIR).await?,
                false => self.sync_all().await?,
            }
        }
        Ok(())
    }

    /// A file takes all blocks, and its pages are written over in any order: the device has nothing to spare.
    async fn fill_device(&mut self) -> Ended {
        self.fill_data(FILES).await?;
        let Some(target) = self.filler(0).await? else { return Ok(()) };
        let pages = self.model.borrow().size(target.node) / PAGE;
        for _ in 0..if pages > 0 { REWRITES } else { 0 } {
            let first = self.rng.below(pages);
            let count = (1 + self.rng.below(4)).min(pages - first);
            let io = if self.rng.chance(0.7) { Io::Direct } else { Io::Buffered };
            self.write_pages(&target, first, count, io).await?;
            if self.rng.chance(0.05) {
                self.fdatasync(&target).await?;
            }
        }
        Ok(())
    }

    /// A call where hardly any space is left.
    async fn at_the_end(&mut self) -> Ended {
        match pick(&mut self.rng, &[3, 2, 1, 1, 2, 2, 1, 2, 2, 1, 2, 1, 1]) {
            0 => self.write().await,
            1 => self.write_part().await,
            2 => self.append().await,
            3 => self.truncate().await,
            4 => self.allocate().await,
            5 => self.rename().await,
            6 => self.exchange().await,
            7 => self.make_link().await,
            8 => self.make_symlink().await,
            9 => self.make_directory().await,
            10 => self.change_xattr().await,
            11 => self.replace().await,
            _ => self.sync().await,
        }
    }

    /// Space is given back: in the midst of calls that need some, or all that was taken.
    async fn give_back(&mut self, layer: Layer) -> Ended {
        for number in 0..FILES {
            let path = format!("{DIR}/{number}");
            let node = self.model.borrow().names().get(&path).copied();
            let Some(node) = node.filter(|node| self.model.borrow().is_file(*node)) else {
                continue;
            };
            let target = self.target(&path, node).await?;
            match self.rng.below(6) {
                0 => self.truncate_to(&target, 0).await?,
                1 => {
                    let len = self.model.borrow().size(node).max(1) + PAGES * PAGE;
                    self.allocate_range(&target, Allocate::PunchHole, 0, len).await?;
                }
                2 => {
                    let small = format!("{DIR}/small");
                    if self.file(&small).await?.is_some() {
                        self.move_name(&small, &path).await?;
                    }
                }
                3 => self.at_the_end().await?,
                _ => self.unlink_path(&path).await?,
            }
        }
        if self.rng.chance(0.7) && self.model.borrow().names().contains_key(DIR) {
            self.remove_whole(DIR).await?;
        }
        self.happened(layer, Happened::GivenBack);
        match self.style.writers {
            1 => self.take_account(layer).await,
            _ => Ok(()),
        }
    }

    /// Everything is written, and then nothing is lost. A file that lost its name while it is open is in no account: all are
    /// closed.
    async fn take_account(&mut self, layer: Layer) -> Ended {
        self.end_syncs(0).await?;
        while let Some(opened) = self.open.pop() {
            self.close(opened).await?;
        }
        self.sync_all().await?;
        let Some(new) = self.account else { return Ok(()) };
        let now = new.again(&self.fs).await?;
        self.happened(layer, Happened::Account);
        now.check(&new).map_err(|failure| CheckFailure {
            what: format!("after {} were driven to the end: {}", layer.name(), failure.what),
            ..failure
        })
    }
}
