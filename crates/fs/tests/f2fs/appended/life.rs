//! Lives of a volume between power cuts: a load of overwrites, syncs, new and removed files, and what must be there after
//! the cut. Data are ordered, so each page shows what its last sync covered, or something written since.

use crate::common::slow::{Slow, with};
use nandscape_block::{AsyncDevice, Payload, Tag};
use nandscape_fs::contract::{Caller, Data, FileSystem, FsError, Ino, Io};
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::combine::select2;
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub(super) const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: u64 = 4_096;
/// Pages of a file at most.
const PAGES: u64 = 600;
/// Files.
const FILES: u64 = 10;

/// What a page may show.
#[derive(Clone, Debug, Default)]
struct Page {
    /// What the last sync covered; 0 is a hole.
    synced: u64,
    /// What was written since.
    since: Vec<u64>,
}

/// What is known of a file.
#[derive(Clone, Debug, Default)]
struct Known {
    pages: BTreeMap<u64, Page>,
    /// Whether a sync covers its name.
    is_there: bool,
    /// Whether it was removed since.
    may_be_gone: bool,
}

/// What must be there after a cut.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    files: BTreeMap<u64, Known>,
    tags: u64,
}

impl Model {
    fn sync(&mut self, file: u64, before: &BTreeSet<u64>) {
        let Some(known) = self.files.get_mut(&file) else { return };
        known.is_there = true;
        for page in known.pages.values_mut() {
            // What was written while the sync ran may or may not be covered.
            if let Some(last) = page.since.iter().rposition(|tag| before.contains(tag)) {
                page.synced = page.since[last];
                page.since.drain(..=last);
            }
        }
    }
}

fn name(file: u64) -> Vec<u8> {
    format!("file{file}").into_bytes()
}

/// One life: mounts, checks what the last one left, makes random calls until `cut`, if there is one.
pub(super) fn live_on(
    device: Slow,
    model: Model,
    options: MountOptions,
    (seed, calls, cut): (u64, u64, Option<Nanos>),
) -> (Slow, Model, Vec<String>) {
    let shared = Rc::new(RefCell::new(model));
    let known = Rc::clone(&shared);
    let (device, problems) = with(device, async move |rt, device| {
        let life = begin(rt.clone(), device, Rc::clone(&known), options, (seed, calls));
        match cut {
            None => life.await,
            Some(at) => {
                let life = rt.spawn("life", life);
                match select2(life, rt.sleep(at)).await {
                    nandscape_rt::combine::Either::First(ended) => ended.expect("runs to its end"),
                    nandscape_rt::combine::Either::Second(()) => Vec::new(),
                }
            }
        }
    });
    let model = shared.borrow().clone();
    (device, model, problems)
}

async fn begin(
    rt: Handle,
    device: AsyncDevice,
    model: Rc<RefCell<Model>>,
    options: MountOptions,
    (seed, calls): (u64, u64),
) -> Vec<String> {
    let mounted = F2fs::mount(&rt, device, options).await;
    let fs = match mounted {
        Ok((fs, _)) => fs,
        Err(error) => return vec![format!("mount: {error}")],
    };
    let problems = compare(&fs, &model).await;
    if !problems.is_empty() {
        return problems;
    }
    let mut rng = Stream::new(seed, "life");
    for _ in 0..calls {
        match step(&rt, &fs, &model, &mut rng).await {
            Ok(true) | Err(FsError::NoSpace) => {}
            Ok(false) => {
                return vec!["a page shows something else than was written last".to_owned()];
            }
            Err(error) => return vec![format!("a call: {error}")],
        }
    }
    let unmounted = sync_all(&fs, &model).await;
    let unmounted = unmounted.and(fs.unmount().await);
    unmounted.err().map(|error| vec![format!("unmount: {error}")]).unwrap_or_default()
}

/// Compares what the volume shows with what must be there, and takes it as what is there.
async fn compare(fs: &F2fs, model: &Rc<RefCell<Model>>) -> Vec<String> {
    let mut problems = Vec::new();
    let files: Vec<_> = model.borrow().files.clone().into_iter().collect();
    for (file, mut known) in files {
        let found = match fs.lookup(ME, fs.root(), &name(file)).await {
            Ok(found) => found,
            Err(FsError::NoEntry) => {
                if known.is_there && !known.may_be_gone {
                    problems.push(format!("file {file} is gone"));
                }
                model.borrow_mut().files.remove(&file);
                continue;
            }
            Err(error) => {
                problems.push(format!("file {file}: {error}"));
                continue;
            }
        };
        for page in 0..PAGES {
            let of_page = known.pages.entry(page).or_default();
            let read = fs.read(ME, found.ino, page * PAGE, PAGE, Io::Buffered).await;
            let bytes = match read {
                Ok(data) => data.to_bytes(),
                Err(error) => {
                    problems.push(format!("file {file} page {page}: {error}"));
                    continue;
                }
            };
            let shows = |tag: u64| match (tag, bytes.len()) {
                (0, _) => bytes.iter().all(|byte| *byte == 0),
                (_, 4_096) => bytes == Data::Sectors(Payload::Run(Tag::new(tag)), 1).to_bytes(),
                _ => false,
            };
            let all = std::iter::once(of_page.synced).chain(of_page.since.iter().copied());
            match all.clone().find(|tag| shows(*tag)) {
                Some(tag) => *of_page = Page { synced: tag, since: Vec::new() },
                // A file that was not synced may have any length.
                None if !known.is_there => *of_page = Page::default(),
                None => {
                    let tags = 0..=model.borrow().tags;
                    let what = tags.into_iter().find(|tag| shows(*tag));
                    problems
                        .push(format!("file {file} page {page}: {what:?}, none of {of_page:?}"));
                }
            }
        }
        known.pages.retain(|_, page| page.synced != 0);
        (known.is_there, known.may_be_gone) = (true, false);
        model.borrow_mut().files.insert(file, known);
    }
    problems
}

async fn open(fs: &F2fs, model: &Rc<RefCell<Model>>, file: u64) -> Result<Ino, FsError> {
    match fs.lookup(ME, fs.root(), &name(file)).await {
        Err(FsError::NoEntry) => {
            model.borrow_mut().files.entry(file).or_default();
            Ok(fs.create(ME, fs.root(), &name(file), 0o644).await?.ino)
        }
        found => Ok(found?.ino),
    }
}

async fn step(
    rt: &Handle,
    fs: &F2fs,
    model: &Rc<RefCell<Model>>,
    rng: &mut Stream,
) -> Result<bool, FsError> {
    let file = rng.below(FILES);
    match rng.below(100) {
        0..12 => return read(fs, model, file, rng.below(PAGES)).await,
        12..80 => {
            let ino = open(fs, model, file).await?;
            let count = 1 + rng.below(16);
            let from = rng.below(PAGES - count);
            let tag = {
                let mut model = model.borrow_mut();
                let tag = model.tags + 1;
                model.tags += count;
                let known = model.files.entry(file).or_default();
                for step in 0..count {
                    known.pages.entry(from + step).or_default().since.push(tag + step);
                }
                tag
            };
            let data = Data::Sectors(Payload::Run(Tag::new(tag)), count as u32);
            fs.write_all(ME, ino, from * PAGE, data, Io::Buffered).await?;
        }
        80..90 => {
            let ino = open(fs, model, file).await?;
            let before = written(model, Some(file));
            fs.fsync(ME, ino).await?;
            model.borrow_mut().sync(file, &before);
        }
        90..92 => sync_all(fs, model).await?,
        92..94 => {
            // Only what a sync covers is removed, and the removal is synced at once.
            sync_all(fs, model).await?;
            if let Some(known) = model.borrow_mut().files.get_mut(&file) {
                known.may_be_gone = true;
            }
            match fs.unlink(ME, fs.root(), &name(file)).await {
                Ok(()) | Err(FsError::NoEntry) => {}
                Err(error) => return Err(error),
            }
            sync_all(fs, model).await?;
            model.borrow_mut().files.remove(&file);
        }
        _ => rt.sleep(Nanos::from_us(rng.below(40_000))).await,
    }
    Ok(true)
}

/// Whether a page shows what was written last.
async fn read(
    fs: &F2fs,
    model: &Rc<RefCell<Model>>,
    file: u64,
    page: u64,
) -> Result<bool, FsError> {
    let ino = match fs.lookup(ME, fs.root(), &name(file)).await {
        Err(FsError::NoEntry) => return Ok(true),
        found => found?.ino,
    };
    let known = model.borrow().files.get(&file).and_then(|known| known.pages.get(&page).cloned());
    let known = known.unwrap_or_default();
    let tag = known.since.last().copied().unwrap_or(known.synced);
    let bytes = fs.read(ME, ino, page * PAGE, PAGE, Io::Buffered).await?.to_bytes();
    Ok(match tag {
        0 => bytes.iter().all(|byte| *byte == 0),
        _ => bytes == Data::Sectors(Payload::Run(Tag::new(tag)), 1).to_bytes(),
    })
}

/// Tags that were written and are not covered.
fn written(model: &Rc<RefCell<Model>>, file: Option<u64>) -> BTreeSet<u64> {
    let model = model.borrow();
    let files = model.files.iter().filter(|(number, _)| file.is_none_or(|file| **number == file));
    files.flat_map(|(_, known)| known.pages.values()).flat_map(|page| page.since.clone()).collect()
}

async fn sync_all(fs: &F2fs, model: &Rc<RefCell<Model>>) -> Result<(), FsError> {
    let before = written(model, None);
    fs.syncfs(ME).await?;
    let files: Vec<u64> = model.borrow().files.keys().copied().collect();
    files.iter().for_each(|file| model.borrow_mut().sync(*file, &before));
    Ok(())
}
