//! Power cuts under a load that syncs a lot, at instants drawn from the seed, during recovery too.
//!
//! What must hold after each: every page that a completed sync covers holds what it held then, or
//! something written later; a file that was synced has its name; a file replaced by rename is one whole
//! version; and but for `data=writeback` no file shows what was not written to it. e2fsck's recovery
//! of a copy gives the same tree as ours. Journals with a broken rule are each caught.

use crate::common::device::{CutDevice, Device, powered};
use crate::common::{Scratch, assert_clean, e2fsprogs, run, text};
use nandscape_block::{Lba, MemDevice, Payload, SectorData, Tag};
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io, RenameMode};
use nandscape_fs::ext4::journal::Defect;
use nandscape_fs::ext4::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::ext4::{DataMode, Ext4, MountOptions};
use nandscape_rt::combine::select2;
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

type Fs = Ext4<CutDevice>;
type Sectors = Vec<SectorData>;

const SECTORS: u64 = 6_144;
const WRITERS: u16 = 3;
const FILES: u64 = 4;
const PAGES: u64 = 24;
const REPLACED_PAGES: u32 = 5;

/// What is known of one page of a file.
#[derive(Clone, Default)]
struct Page {
    /// What a sync covered.
    covered: Option<u64>,
    /// What was written since, or may have been.
    later: Vec<u64>,
}

/// What is known of a file.
#[derive(Clone, Default)]
struct Known {
    /// Its name is covered.
    named: bool,
    pages: BTreeMap<u64, Page>,
}

/// What the load did, by name; and the versions that the replaced files went through.
#[derive(Clone, Default)]
struct History {
    files: BTreeMap<String, Known>,
    /// First tags of the versions, in order; how many of them a sync has covered.
    versions: BTreeMap<String, (Vec<u64>, usize)>,
}

/// One writer's part.
struct Writer {
    fs: Fs,
    caller: Caller,
    rng: Stream,
    history: Rc<RefCell<History>>,
    next_tag: u64,
}

impl Writer {
    fn tags(&mut self, count: u64) -> u64 {
        let first = self.next_tag;
        self.next_tag += count;
        first
    }

    async fn run(mut self) {
        let root = self.fs.root();
        let name = format!("w{}", self.caller.thread);
        let dir =
            self.fs.mkdir(self.caller, root, name.as_bytes(), 0o755).await.expect("mkdir").ino;
        loop {
            if self.rng.chance(0.2) {
                self.replace(dir, &name).await;
            } else {
                self.write(dir, &name).await;
            }
        }
    }

    async fn open(&self, dir: Ino, name: &str) -> Ino {
        match self.fs.lookup(self.caller, dir, name.as_bytes()).await {
            Ok(found) => found.ino,
            Err(_) => {
                self.fs.create(self.caller, dir, name.as_bytes(), 0o644).await.expect("create").ino
            }
        }
    }

    /// Writes some pages of a file, and perhaps syncs it.
    async fn write(&mut self, dir: Ino, of: &str) {
        let name = format!("f{}", self.rng.below(FILES));
        let key = format!("{of}/{name}");
        let ino = self.open(dir, &name).await;
        let (page, count) = (self.rng.below(PAGES), 1 + self.rng.below(4));
        let first = self.tags(count);
        for index in 0..count {
            let mut history = self.history.borrow_mut();
            let known = history.files.entry(key.clone()).or_default();
            known.pages.entry(page + index).or_default().later.push(first + index);
        }
        let data = Data::Sectors(Payload::Run(Tag::new(first)), count as u32);
        let io = if self.rng.chance(0.2) { Io::Direct } else { Io::Buffered };
        self.fs.write(self.caller, ino, page * 4096, data, io).await.expect("a write");
        if self.rng.chance(0.5) {
            let before = self.history.borrow().files[&key].clone();
            match self.rng.chance(0.5) {
                true => self.fs.fsync(self.caller, ino).await.expect("a sync"),
                false => self.fs.fdatasync(self.caller, ino).await.expect("a sync"),
            }
            self.cover(&key, &before);
        }
    }

    /// A sync that began at `before` has ended.
    fn cover(&self, key: &str, before: &Known) {
        let mut history = self.history.borrow_mut();
        let known = history.files.entry(key.to_owned()).or_default();
        known.named = true;
        for (index, page) in &before.pages {
            let now = known.pages.entry(*index).or_default();
            if let Some(last) = page.later.last() {
                now.covered = Some(*last);
                now.later.retain(|tag| tag > last);
            }
        }
    }

    /// Replaces a file by a new version, by a rename, and perhaps syncs that.
    async fn replace(&mut self, dir: Ino, of: &str) {
        let key = format!("{of}/current");
        let first = self.tags(REPLACED_PAGES.into());
        let new = self.open(dir, "new").await;
        let data = Data::Sectors(Payload::Run(Tag::new(first)), REPLACED_PAGES);
        self.fs.write(self.caller, new, 0, data, Io::Buffered).await.expect("a write");
        self.fs.fsync(self.caller, new).await.expect("a sync");
        let index = {
            let mut history = self.history.borrow_mut();
            let (versions, _) = history.versions.entry(key.clone()).or_default();
            versions.push(first);
            versions.len()
        };
        let (from, to) = ((dir, &b"new"[..]), (dir, &b"current"[..]));
        self.fs.rename(self.caller, from, to, RenameMode::Replace).await.expect("a rename");
        if self.rng.chance(0.5) {
            self.fs.fsync(self.caller, dir).await.expect("a sync of the directory");
            let mut history = self.history.borrow_mut();
            let (_, covered) = history.versions.entry(key).or_default();
            *covered = index.max(*covered);
        }
    }
}

/// A device with this content.
async fn loaded(handle: &Handle, sectors: &Sectors) -> Device {
    let device = MemDevice::new(SECTORS).with_latency(Nanos::from_us(40));
    let device = powered(handle, device);
    for (lba, data) in sectors.iter().enumerate() {
        if *data != SectorData::Tag(Tag::ZERO) {
            let payload = Payload::collect(vec![data.clone()]);
            device.write(Lba(lba as u64), 1, payload).await.expect("a write");
        }
    }
    device.flush().await.expect("a flush");
    device
}

/// What a power cut leaves of a device.
fn cut(device: &Device, rng: &mut Stream) -> Sectors {
    device.with(|device| {
        device.medium.cut_power(rng);
        (0..SECTORS).map(|lba| device.medium.current(Lba(lba))).collect()
    })
}

fn options(data: DataMode, defect: Option<Defect>) -> MountOptions {
    MountOptions { data, defect, ..MountOptions::default() }
}

/// Runs the load on a new volume until the power goes.
fn load(seed: u64, data: DataMode, defect: Option<Defect>) -> (Sectors, History) {
    let mut rng = Stream::new(seed, "cuts");
    let at = Nanos::from_ms(rng.within(5..400));
    let history = Rc::new(RefCell::new(History::default()));
    let shared = Rc::clone(&history);
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let device = executor.block_on(async move {
        let device = loaded(&handle, &Sectors::new()).await;
        let made = mkfs(&device, &MkfsOptions { fresh: true, ..MkfsOptions::new(seed) }).await;
        made.expect("mkfs");
        let mounted = Ext4::mount(&handle, device.clone(), options(data, defect)).await;
        let (fs, _) = mounted.expect("a mount");
        for thread in 0..WRITERS {
            let writer = Writer {
                fs: fs.clone(),
                caller: Caller { thread, ..Caller::default() },
                rng: Stream::new(seed, &format!("writer {thread}")),
                history: Rc::clone(&shared),
                next_tag: u64::from(thread + 1) << 40,
            };
            drop(handle.spawn_daemon("writer", writer.run()));
        }
        handle.sleep(at).await;
        device
    });
    let left = cut(&device.expect("no deadlock"), &mut rng);
    (left, history.borrow().clone())
}

/// Mounts what is left until the power goes once more, and gives what that leaves.
fn recover_and_cut(left: &Sectors, seed: u64, data: DataMode) -> Sectors {
    let mut rng = Stream::new(seed, "second cut");
    let within = Nanos::from_us(rng.below(20_000));
    let left = left.clone();
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let device = executor.block_on(async move {
        let device = loaded(&handle, &left).await;
        let mount = Ext4::mount(&handle, device.clone(), options(data, None));
        drop(select2(mount, handle.sleep(within)).await);
        device
    });
    cut(&device.expect("no deadlock"), &mut rng)
}

/// Every file's pages, by path.
type Tree = BTreeMap<String, Vec<SectorData>>;

/// Mounts, reads the tree, unmounts. Gives what the device then holds, too.
fn read_back(left: &Sectors, data: DataMode) -> Result<(Tree, Sectors), String> {
    let left = left.clone();
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let read = executor.block_on(async move {
        let device = loaded(&handle, &left).await;
        let mounted = Ext4::mount(&handle, device.clone(), options(data, None)).await;
        let (fs, _) = mounted.map_err(|error| format!("mount: {error}"))?;
        let tree = read_tree(&fs).await.map_err(|error| format!("tree: {error}"))?;
        fs.unmount().await.map_err(|error| format!("unmount: {error}"))?;
        let sectors =
            device.with(|device| (0..SECTORS).map(|lba| device.medium.current(Lba(lba))).collect());
        Ok((tree, sectors))
    });
    read.map_err(|deadlock| deadlock.to_string())?
}

async fn read_tree(fs: &Fs) -> Result<Tree, nandscape_fs::contract::FsError> {
    let me = Caller::default();
    let mut tree = Tree::new();
    for dir in fs.readdir(me, fs.root(), 0, 1_000).await? {
        let (path, shown) = (String::from_utf8_lossy(&dir.name).into_owned(), dir.ino);
        if !path.starts_with('w') {
            continue;
        }
        for entry in fs.readdir(me, shown, 0, 1_000).await? {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            if name.starts_with('.') {
                continue;
            }
            let size = fs.getattr(me, entry.ino).await?.size;
            let mut pages = Vec::new();
            for page in 0..size.div_ceil(4096) {
                let data = fs.read(me, entry.ino, page * 4096, 4096, Io::Buffered).await?;
                pages.push(match data {
                    Data::Sectors(payload, _) => payload.sector(0),
                    Data::Bytes(_) => SectorData::Absent,
                });
            }
            tree.insert(format!("{path}/{name}"), pages);
        }
    }
    Ok(tree)
}

/// Whether the tree is one that the history allows.
fn judge(tree: &Tree, history: &History, data: DataMode) -> Result<(), String> {
    for (name, known) in &history.files {
        let Some(pages) = tree.get(name) else {
            if known.named {
                return Err(format!("{name} is gone"));
            }
            continue;
        };
        for (index, page) in &known.pages {
            let seen = pages.get(*index as usize).unwrap_or(&SectorData::Tag(Tag::ZERO));
            let mut allowed: BTreeSet<u64> = page.later.iter().copied().collect();
            allowed.insert(page.covered.unwrap_or(0));
            let fits = allowed.iter().any(|tag| *seen == SectorData::Tag(Tag::new(*tag)));
            let foreign_allowed = data == DataMode::Writeback && page.covered.is_none();
            if !fits && !foreign_allowed {
                return Err(format!("{name}, page {index}: {seen:?}, not one of {allowed:x?}"));
            }
        }
    }
    for (name, (versions, covered)) in &history.versions {
        let Some(pages) = tree.get(name) else {
            if *covered > 0 {
                return Err(format!("{name} is gone"));
            }
            continue;
        };
        let whole = |first: &u64| {
            pages.len() == REPLACED_PAGES as usize
                && (*first..).zip(pages).all(|(tag, page)| *page == SectorData::Tag(Tag::new(tag)))
        };
        if !versions[covered.saturating_sub(1)..].iter().any(whole) {
            return Err(format!("{name} is no version: {pages:?}"));
        }
    }
    Ok(())
}

fn save(sectors: &Sectors, path: &Path) {
    let file = File::create(path).expect("a file");
    file.set_len(SECTORS * 4096).expect("a sparse file");
    for (lba, data) in sectors.iter().enumerate() {
        if *data != SectorData::Tag(Tag::ZERO) {
            let bytes = data.expand().expect("content is kept");
            file.write_all_at(&bytes[..], lba as u64 * 4096).expect("a write");
        }
    }
}

fn reload(path: &Path) -> Sectors {
    let bytes = std::fs::read(path).expect("an image");
    let sector = |bytes: &[u8]| match bytes.iter().all(|byte| *byte == 0) {
        true => SectorData::Tag(Tag::ZERO),
        false => Payload::from_bytes(bytes).expect("a sector").sector(0),
    };
    bytes.chunks_exact(4096).map(sector).collect()
}

/// One cut, or two: what is left must be what the history allows, and sound for e2fsck, whose own
/// recovery gives the same tree.
fn campaign(seed: u64, data: DataMode, oracle: bool) {
    let (mut left, history) = load(seed, data, None);
    if seed.is_multiple_of(3) {
        left = recover_and_cut(&left, seed, data);
    }
    let (tree, after) = read_back(&left, data).unwrap_or_else(|e| panic!("{data:?} {seed}: {e}"));
    judge(&tree, &history, data).unwrap_or_else(|error| panic!("{data:?} {seed}: {error}"));
    if !oracle {
        return;
    }
    let scratch = Scratch::new();
    let (ours, theirs) = (scratch.path("ours"), scratch.path("theirs"));
    save(&after, &ours);
    assert_clean(&ours);
    save(&left, &theirs);
    let repaired = run("e2fsck", &["-p", text(&theirs)]);
    assert!(repaired.status.code().is_some_and(|code| code < 4), "{data:?} {seed}: {repaired:?}");
    assert_clean(&theirs);
    let (other, _) = read_back(&reload(&theirs), data).expect("a sound volume");
    assert!(tree == other, "{data:?} {seed}: e2fsck recovers another tree");
}

/// Seeds: a few, or as many as `NANDSCAPE_FS_CUTS` says.
fn seeds(few: u64) -> u64 {
    let asked = std::env::var("NANDSCAPE_FS_CUTS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(few)
}

fn cuts(data: DataMode) {
    let oracle = e2fsprogs();
    (0..seeds(12)).for_each(|seed| campaign(seed, data, oracle && seed.is_multiple_of(8)));
}

#[test]
fn ordered_data_survives_cuts() {
    cuts(DataMode::Ordered);
}

#[test]
fn journalled_data_survives_cuts() {
    cuts(DataMode::Journal);
}

#[test]
fn synced_data_survives_cuts_with_writeback() {
    cuts(DataMode::Writeback);
}

/// A journal without barriers, or whose commit block overtakes what it commits, is caught.
#[test]
fn broken_journals_are_caught() {
    for defect in [Defect::MissingBarrier, Defect::CommitBeforeData] {
        let caught = (0..20).any(|seed| {
            let (left, history) = load(seed, DataMode::Ordered, Some(defect));
            let read = read_back(&left, DataMode::Ordered);
            read.and_then(|(tree, _)| judge(&tree, &history, DataMode::Ordered)).is_err()
        });
        assert!(caught, "{defect:?} went unnoticed");
    }
}
