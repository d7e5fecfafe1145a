//! `commit = "ijournal"` on a whole file system: fsyncs by records come back after power cuts wherever
//! they fall, e2fsck finds the result sound, and an fsync writes little.

use crate::common::device::{Device, medium, on_device, store};
use crate::common::{Scratch, assert_clean, e2fsprogs, run, text};
use nandscape_block::{Fua, MemDevice};
use nandscape_fs::contract::{Caller, Data, FileSystem, FsError, Ino, Io, RenameMode, SetAttr};
use nandscape_fs::ext4::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::ext4::{Commit, Counts, Ext4, MountOptions};
use nandscape_fs::{FsDetail, MountedFs};
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Blocks of the volume.
const BLOCKS: u64 = 8_192;
/// Names that the load uses.
const NAMES: u64 = 12;
const PAGE: usize = 4_096;
const IJOURNAL: Commit = Commit::Ijournal { slots: 2, slot_blocks: 24 };

const fn caller(core: u16) -> Caller {
    Caller { thread: core, core, uid: 0, gid: 0 }
}

fn options(commit: Commit) -> MountOptions {
    MountOptions { commit, commit_interval: Nanos::from_ms(2), ..MountOptions::default() }
}

/// What the journal and its records counted.
fn counts(fs: &Ext4) -> Counts {
    let FsDetail::Ext4(counts) = fs.counts().detail else { panic!("{:?}", fs.counts()) };
    counts
}

fn formatted() -> MemDevice {
    let work = |_, device: Device| async move {
        let options =
            MkfsOptions { journal_blocks: Some(1_024), fresh: true, ..MkfsOptions::new(1) };
        mkfs(&device, &options).await.expect("a file system");
        device.flush().await.expect("power is on");
    };
    on_device(medium(BLOCKS, Fua::Honoured), None, 0, work).1
}

fn content(id: u64, page: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![version as u8; PAGE];
    for (at, word) in [id, page, version].iter().enumerate() {
        bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// A file as the load knows it.
#[derive(Clone, Default, Debug)]
struct File {
    /// Tells it from others that had its name.
    id: u64,
    /// The newest version of each page.
    pages: BTreeMap<u64, u64>,
    /// The versions that an fsync has promised; none if none has since its name or length changed.
    promised: Option<BTreeMap<u64, u64>>,
}

/// What each name leads to; nothing is promised of names that are not here.
type Files = BTreeMap<u64, File>;

struct Load<F> {
    rt: Handle,
    fs: F,
    dirs: [Ino; 2],
    files: Rc<RefCell<Files>>,
    versions: u64,
    core: u16,
    rng: Stream,
}

fn name(number: u64) -> Vec<u8> {
    format!("file{number}").into_bytes()
}

impl<F: FileSystem> Load<F> {
    async fn work(mut self, steps: u64) -> Result<(), FsError> {
        for _ in 0..steps {
            // A name belongs to one task.
            let number = self.rng.below(NAMES / 2) * 2 + u64::from(self.core);
            match self.rng.below(20) {
                0 => self.remove(number).await?,
                1 => self.cut(number).await?,
                2 => self.rename(number).await?,
                3 => self.rt.sleep(Nanos(self.rng.below(1_000_000))).await,
                4..=9 => self.sync(number).await?,
                _ => self.write(number).await?,
            }
        }
        Ok(())
    }

    /// A name lies in the one directory or in the other.
    fn dir(&self, number: u64) -> Ino {
        self.dirs[(number / 2 % 2) as usize]
    }

    async fn ino(&self, number: u64) -> Result<Ino, FsError> {
        let found = self.fs.lookup(caller(self.core), self.dir(number), &name(number)).await?;
        Ok(found.ino)
    }

    async fn write(&mut self, number: u64) -> Result<(), FsError> {
        self.versions += 1;
        let (version, page) = (self.versions, self.rng.below(30));
        if !self.files.borrow().contains_key(&number) {
            self.fs.create(caller(self.core), self.dir(number), &name(number), 0o644).await?;
            let id = version * 2 + u64::from(self.core);
            self.files.borrow_mut().insert(number, File { id, ..File::default() });
        }
        let ino = self.ino(number).await?;
        let id = {
            let mut files = self.files.borrow_mut();
            let file = files.get_mut(&number).expect("made above");
            file.pages.insert(page, version);
            file.id
        };
        let data = Data::Bytes(content(id, page, version));
        self.fs.write(caller(self.core), ino, page * PAGE as u64, data, Io::default()).await?;
        Ok(())
    }

    async fn sync(&mut self, number: u64) -> Result<(), FsError> {
        let Some(file) = self.files.borrow().get(&number).cloned() else { return Ok(()) };
        let ino = self.ino(number).await?;
        if self.rng.chance(0.3) {
            self.fs.fdatasync(caller(self.core), ino).await?;
        } else {
            self.fs.fsync(caller(self.core), ino).await?;
        }
        let mut files = self.files.borrow_mut();
        files.get_mut(&number).expect("only this task removes it").promised = Some(file.pages);
        Ok(())
    }

    async fn remove(&mut self, number: u64) -> Result<(), FsError> {
        if self.files.borrow_mut().remove(&number).is_some() {
            self.fs.unlink(caller(self.core), self.dir(number), &name(number)).await?;
        }
        Ok(())
    }

    async fn cut(&mut self, number: u64) -> Result<(), FsError> {
        if !self.files.borrow().contains_key(&number) {
            return Ok(());
        }
        let pages = self.rng.below(20);
        if let Some(file) = self.files.borrow_mut().get_mut(&number) {
            file.pages.retain(|page, _| *page < pages);
            file.promised = None;
        }
        let ino = self.ino(number).await?;
        let change = SetAttr { size: Some(pages * PAGE as u64), ..SetAttr::default() };
        self.fs.setattr(caller(self.core), ino, change).await.map(drop)
    }

    /// Moves a file to another name of this task's, over what had it.
    async fn rename(&mut self, number: u64) -> Result<(), FsError> {
        let to = self.rng.below(NAMES / 2) * 2 + u64::from(self.core);
        let Some(mut file) = self.files.borrow_mut().remove(&number) else { return Ok(()) };
        file.promised = None;
        self.files.borrow_mut().remove(&to);
        let ends = ((self.dir(number), &name(number)[..]), (self.dir(to), &name(to)[..]));
        self.fs.rename(caller(self.core), ends.0, ends.1, RenameMode::Replace).await?;
        self.files.borrow_mut().insert(to, file);
        Ok(())
    }
}

/// Mounts, runs the load, and perhaps unmounts.
async fn live(
    rt: Handle,
    device: Device,
    seed: u64,
    files: Rc<RefCell<Files>>,
    commit: Commit,
) -> Result<(u64, u64), FsError> {
    let (fs, _) = Ext4::mount(&rt, device, options(commit)).await?;
    let dir = match fs.lookup(caller(0), fs.root(), b"dir").await {
        Err(FsError::NoEntry) => fs.mkdir(caller(0), fs.root(), b"dir", 0o755).await?,
        found => found?,
    };
    let task = |core: u16| {
        let load = Load {
            rt: rt.clone(),
            fs: fs.clone(),
            dirs: [fs.root(), dir.ino],
            files: Rc::clone(&files),
            versions: seed << 20,
            core,
            rng: Stream::new(seed, &format!("task {core}")),
        };
        rt.spawn("load", load.work(120))
    };
    for task in [task(0), task(1)] {
        // An error is the power cut.
        let ended = task.await.expect("tasks end");
        if let Err(error) = ended
            && !matches!(error, FsError::Io(_) | FsError::ReadOnly)
        {
            panic!("seed {seed}: {error}");
        }
    }
    let counts = counts(&fs);
    Ok((counts.records, counts.journal.commits))
}

/// Mounts after a cut; the promised files are there. Then unmounts.
async fn verify(rt: Handle, device: Device, files: Files, context: String) -> Result<u32, FsError> {
    let (fs, report) = Ext4::mount(&rt, device, options(IJOURNAL)).await?;
    let dir = fs.lookup(caller(0), fs.root(), b"dir").await.map(|dir| dir.ino);
    for (number, file) in files {
        let Some(promised) = file.promised else { continue };
        let dir = if number / 2 % 2 == 0 { Ok(fs.root()) } else { dir.clone() };
        let found = match dir {
            Ok(dir) => fs.lookup(caller(0), dir, &name(number)).await,
            Err(error) => Err(error),
        };
        let found = match found {
            Err(FsError::NoEntry) => panic!("{context}: file {number} is gone"),
            // The power went again.
            found => found?,
        };
        for (page, version) in promised {
            let at = page * PAGE as u64;
            let data = fs.read(caller(0), found.ino, at, PAGE as u64, Io::default()).await?;
            let bytes = data.to_bytes();
            let word = |at: usize| {
                bytes
                    .get(at * 8..at * 8 + 8)
                    .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            };
            let newest = file.pages.get(&page).copied().unwrap_or(version);
            let right = word(0) == Some(file.id)
                && word(1) == Some(page)
                && word(2).is_some_and(|found| (version..=newest).contains(&found));
            assert!(
                right,
                "{context}: file {number}, page {page}: {:?}, not {version} of {}, {} bytes, {}",
                word(2),
                file.id,
                bytes.len(),
                found.size
            );
        }
    }
    fs.unmount().await?;
    Ok(report.files)
}

/// What an fsync promised is there after a cut anywhere, also during recovery, and the volume is
/// sound.
#[test]
fn fsyncs_by_records_survive_power_cuts() {
    let scratch = Scratch::new();
    let judge = e2fsprogs();
    let (mut applied, mut cuts) = (0, 0);
    for seed in 0..10 {
        let files = Rc::new(RefCell::new(Files::new()));
        let run = |rt, device| live(rt, device, seed, Rc::clone(&files), IJOURNAL);
        let (counts, _, bios) = on_device(formatted(), None, seed, run);
        let (records, commits) = counts.expect("no cut");
        assert!(records > 20 && commits > 2, "{records} records, {commits} commits");
        let mut rng = Stream::new(seed, "cuts");
        for round in 0..15 {
            let cut = rng.below(bios);
            let context = format!("seed {seed}, cut {cut}");
            let files = Rc::new(RefCell::new(Files::new()));
            let run = |rt, device| live(rt, device, seed, Rc::clone(&files), IJOURNAL);
            let (_, mut medium, _) = on_device(formatted(), Some(cut), seed ^ cut, run);
            let files = files.borrow().clone();
            for _ in 0..rng.below(3) {
                let again = rng.below(120);
                let check = |rt, device| verify(rt, device, files.clone(), context.clone());
                let (ended, left, _) = on_device(medium, Some(again), again, check);
                assert!(!matches!(ended, Err(FsError::Corrupt { .. })), "{context}: {ended:?}");
                medium = left;
            }
            let check = |rt, device| verify(rt, device, files.clone(), context.clone());
            let (ended, medium, _) = on_device(medium, None, 0, check);
            applied += ended.unwrap_or_else(|error| panic!("{context}: {error}"));
            cuts += 1;
            if judge && round % 5 == 0 {
                let image = scratch.path("image");
                store(&medium, &image);
                assert_clean(&image);
            }
        }
    }
    assert!(applied > 60, "{cuts} cuts needed only {applied} records");
}

/// One file among many that have changed: its record is a block, where a commit writes what all of
/// them changed.
#[test]
fn a_record_is_smaller_than_a_commit() {
    let blocks = |commit| {
        let work = move |rt: Handle, device| async move {
            let options = MountOptions { commit, ..MountOptions::default() };
            let (fs, _) = Ext4::mount(&rt, device, options).await.expect("a mount");
            let me = caller(0);
            let mut inos = Vec::new();
            for number in 0..100 {
                let made = fs.create(me, fs.root(), &name(number), 0o644).await.expect("a file");
                inos.push(made.ino);
            }
            fs.syncfs(me).await.expect("durable");
            // In another tick, so that each write moves its file's times.
            rt.sleep(Nanos::from_ms(4)).await;
            for (ino, number) in inos.iter().zip(0..) {
                let data = Data::Bytes(content(number, 0, 1));
                fs.write(me, *ino, 0, data, Io::default()).await.expect("written");
            }
            let written = || counts(&fs).journal.log_blocks + counts(&fs).record_blocks;
            let before = written();
            fs.fsync(me, inos[50]).await.expect("durable");
            written() - before
        };
        on_device(formatted(), None, 0, work).0
    };
    let (jbd2, ijournal) = (blocks(Commit::Jbd2), blocks(IJOURNAL));
    assert_eq!(ijournal, 1);
    assert!(jbd2 >= 8, "{jbd2} blocks by JBD2");
}

/// A file that is as its last record tells needs no other: its data alone is made durable.
#[test]
fn an_unchanged_file_needs_no_other_record() {
    let work = |rt: Handle, device| async move {
        let (fs, _) = Ext4::mount(&rt, device, options(IJOURNAL)).await.expect("a mount");
        let me = caller(0);
        let ino = fs.create(me, fs.root(), b"f", 0o644).await.expect("a file").ino;
        let mut records = Vec::new();
        for version in 0..4 {
            let data = Data::Bytes(content(1, 0, version));
            fs.write(me, ino, 0, data, Io::default()).await.expect("written");
            fs.fsync(me, ino).await.expect("durable");
            records.push(counts(&fs).records);
            if version == 2 {
                let longer = Data::Bytes(content(1, 1, version));
                fs.write(me, ino, PAGE as u64, longer, Io::default()).await.expect("written");
            }
        }
        (records, counts(&fs).journal.commits)
    };
    let (records, commits) = on_device(formatted(), None, 0, work).0;
    assert_eq!((&records[..], commits), (&[1, 1, 1, 2][..], 0));
}

/// While records may count, e2fsck and debugfs's replay refuse the journal; after an unmount they
/// find it as they know it.
#[test]
fn stock_tools_refuse_the_mark() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let files = Rc::new(RefCell::new(Files::new()));
    let work = |rt, device| live(rt, device, 3, files, IJOURNAL);
    let (_, medium, _) = on_device(formatted(), None, 3, work);
    let image = scratch.path("image");
    for arguments in ["-fn", "-p", "-fy"] {
        store(&medium, &image);
        let said = run("e2fsck", &[arguments, text(&image)]);
        let out = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(out.contains("unknown incompatible feature flag"), "{arguments}: {out}");
        assert!(said.status.code().is_some_and(|code| code >= 4), "{arguments}: {out}");
    }
    let unmount = |rt: Handle, device| async move {
        let (fs, _) = Ext4::mount(&rt, device, options(Commit::Jbd2)).await.expect("a mount");
        fs.unmount().await.expect("an unmount");
    };
    store(&on_device(medium, None, 0, unmount).1, &image);
    assert_clean(&image);
}
