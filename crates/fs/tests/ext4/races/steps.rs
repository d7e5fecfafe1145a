//! A task that calls anything, again and again, with few names and few pages, so that tasks meet. What
//! it writes into a file says whose it is, by inode and generation; what it reads must be zeroes or the
//! file's own.

use super::{PAGE, resized};
use nandscape_fs::contract::*;
use nandscape_fs::ext4::Ext4;
use nandscape_rt::combine::timeout;
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What went wrong, a line each.
pub(super) type Reports = Rc<RefCell<Vec<String>>>;

const NAMES: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];
/// Pages of a file that are used, and at most in one call.
const FILE_PAGES: u64 = 48;
const CALL_PAGES: u64 = 10;
/// Bytes that say whose they are, and which write brought them.
const STAMP: u64 = 16;

/// What a task does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Create,
    Mkdir,
    Symlink,
    Link,
    Unlink,
    Rmdir,
    Rename,
    ReadLink,
    SetXattr,
    RemoveXattr,
    List,
    Syncfs,
    /// Up to three [`FileStep`]s in one file, which is open meanwhile.
    Open,
}

/// What it does with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileStep {
    Fsync,
    Fdatasync,
    Resize,
    Allocate,
    Read,
    Write,
}

/// How often each comes, in a hundred.
const STEPS: [(Step, u64); 13] = [
    (Step::Create, 14),
    (Step::Mkdir, 6),
    (Step::Symlink, 6),
    (Step::Link, 7),
    (Step::Unlink, 8),
    (Step::Rmdir, 6),
    (Step::Rename, 12),
    (Step::ReadLink, 3),
    (Step::SetXattr, 3),
    (Step::RemoveXattr, 3),
    (Step::List, 5),
    (Step::Syncfs, 1),
    (Step::Open, 26),
];
const FILE_STEPS: [(FileStep, u64); 6] = [
    (FileStep::Fsync, 10),
    (FileStep::Fdatasync, 10),
    (FileStep::Resize, 15),
    (FileStep::Allocate, 15),
    (FileStep::Read, 20),
    (FileStep::Write, 30),
];

fn draw<T: Copy>(table: &[(T, u64)], rng: &mut Stream) -> T {
    let mut left = rng.below(table.iter().map(|(_, weight)| weight).sum());
    for (step, weight) in table {
        match left.checked_sub(*weight) {
            Some(less) => left = less,
            None => return *step,
        }
    }
    unreachable!("less than the sum of the weights")
}

/// How a task goes about it.
#[derive(Clone, Copy)]
pub(super) struct Habits {
    pub(super) steps: u64,
    /// One call in ten is dropped, within so many nanoseconds; none if that is 0.
    pub(super) drop_ns: u64,
    /// Errors that need no telling.
    pub(super) expected: fn(&FsError) -> bool,
}

/// Errors that names, numbers and lengths drawn at random bring about.
pub(super) fn is_ordinary(error: &FsError) -> bool {
    use FsError::*;
    matches!(
        error,
        NoEntry
            | Exists
            | NotEmpty
            | IsDirectory
            | NotDirectory
            | NoSpace
            | NoData
            | Invalid(_)
            | NotPermitted
            | TooManyLinks
    )
}

/// A task.
pub(super) struct Worker {
    pub(super) rt: Handle,
    pub(super) fs: Ext4,
    pub(super) me: Caller,
    pub(super) dirs: Vec<Ino>,
    pub(super) rng: Stream,
    pub(super) habits: Habits,
    pub(super) reports: Reports,
    /// Steps of all tasks.
    pub(super) made: Rc<Cell<u64>>,
}

impl Worker {
    pub(super) async fn work(mut self) {
        for _ in 0..self.habits.steps {
            self.made.set(self.made.get() + 1);
            let step = draw(&STEPS, &mut self.rng);
            let dropped = self.habits.drop_ns > 0 && self.rng.chance(0.1);
            let after = if dropped { self.rng.below(self.habits.drop_ns) } else { 0 };
            let limit = if dropped { Nanos(after) } else { super::DEADLINE };
            let rt = self.rt.clone();
            match timeout(&rt, limit, self.step(step)).await {
                Ok(Err(error)) if !(self.habits.expected)(&error) => {
                    self.tell(format!("{step:?}: {error:?}"));
                }
                Err(_) if !dropped => return self.tell(format!("{step:?} waits for ever")),
                _ => {}
            }
        }
    }

    fn tell(&self, what: String) {
        self.reports.borrow_mut().push(what);
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.rng.below(all.len() as u64) as usize]
    }

    /// A directory and a name, whatever it leads to.
    fn place(&mut self) -> (Ino, &'static [u8]) {
        let dir = self.rng.below(self.dirs.len() as u64) as usize;
        (self.dirs[dir], self.one_of(&NAMES))
    }

    async fn step(&mut self, step: Step) -> Result<()> {
        let (me, fs) = (self.me, self.fs.clone());
        let (dir, name) = self.place();
        match step {
            Step::Create => fs.create(me, dir, name, 0o644).await.map(drop),
            Step::Mkdir => fs.mkdir(me, dir, name, 0o755).await.map(drop),
            Step::Symlink => {
                let target = vec![b'l'; self.one_of(&[10, 400])];
                fs.symlink(me, dir, name, &target).await.map(drop)
            }
            Step::Link => {
                let (to, new) = self.place();
                let found = fs.lookup(me, dir, name).await?;
                fs.link(me, found.ino, to, new).await.map(drop)
            }
            Step::Unlink => fs.unlink(me, dir, name).await,
            Step::Rmdir => fs.rmdir(me, dir, name).await,
            Step::Rename => {
                use RenameMode::*;
                let (to, mode) =
                    (self.place(), self.one_of(&[Replace, Replace, NoReplace, Exchange]));
                fs.rename(me, (dir, name), to, mode).await
            }
            Step::ReadLink => self.read_link(dir, name).await,
            Step::SetXattr => {
                let found = fs.lookup(me, dir, name).await?;
                let value = vec![b'v'; self.one_of(&[5, 2_000])];
                fs.setxattr(me, found.ino, b"user.x", &value, XattrMode::Set).await
            }
            Step::RemoveXattr => {
                let found = fs.lookup(me, dir, name).await?;
                fs.removexattr(me, found.ino, b"user.x").await
            }
            Step::List => self.list(dir).await,
            Step::Syncfs => fs.syncfs(me).await,
            Step::Open => {
                let attr = self.open(dir, name).await?;
                let done = self.steps_in(&attr).await;
                done.and(fs.close(me, attr.ino).await)
            }
        }
    }

    async fn read_link(&mut self, dir: Ino, name: &[u8]) -> Result<()> {
        let found = self.fs.lookup(self.me, dir, name).await?;
        if found.kind == Kind::Symlink {
            let target = self.fs.readlink(self.me, found.ino).await?;
            if target.iter().any(|byte| *byte != b'l') {
                self.tell(format!("a link leads elsewhere: {target:x?}"));
            }
        }
        Ok(())
    }

    async fn list(&mut self, dir: Ino) -> Result<()> {
        let entries = self.fs.readdir(self.me, dir, 0, 100).await?;
        let mut names: Vec<_> = entries.iter().map(|entry| &entry.name).collect();
        names.sort();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            self.tell(format!("listed twice: {names:?}"));
        }
        Ok(())
    }

    /// Opens a regular file; one that was created again under its number meanwhile belongs to no task.
    async fn open(&mut self, dir: Ino, name: &[u8]) -> Result<Attr> {
        let found = self.fs.lookup(self.me, dir, name).await?;
        self.fs.open(self.me, found.ino, OpenFlags::default()).await?;
        let attr = self.fs.getattr(self.me, found.ino).await?;
        if attr.generation == found.generation && attr.kind == Kind::File {
            return Ok(attr);
        }
        self.fs.close(self.me, found.ino).await?;
        Err(FsError::NoEntry)
    }

    async fn steps_in(&mut self, attr: &Attr) -> Result<()> {
        for _ in 0..1 + self.rng.below(3) {
            let step = draw(&FILE_STEPS, &mut self.rng);
            self.step_in(step, attr).await?;
        }
        Ok(())
    }

    async fn step_in(&mut self, step: FileStep, attr: &Attr) -> Result<()> {
        let (me, fs, ino) = (self.me, self.fs.clone(), attr.ino);
        match step {
            FileStep::Fsync => fs.fsync(me, ino).await,
            FileStep::Fdatasync => fs.fdatasync(me, ino).await,
            FileStep::Resize => {
                let size = self.bytes_below(FILE_PAGES);
                fs.setattr(me, ino, resized(size)).await.map(drop)
            }
            FileStep::Allocate => {
                let keep_size = self.rng.chance(0.5);
                let reserve = Allocate::Reserve { keep_size };
                let zero = Allocate::ZeroRange { keep_size };
                let what = self.one_of(&[Allocate::PunchHole, zero, reserve, reserve]);
                let (offset, len) = (self.bytes_below(FILE_PAGES), self.bytes_below(CALL_PAGES));
                fs.fallocate(me, ino, what, offset, len + STAMP).await
            }
            FileStep::Read => self.read(attr).await,
            FileStep::Write => self.write(attr).await,
        }
    }

    /// A number of whole stamps, shorter than so many pages.
    fn bytes_below(&mut self, pages: u64) -> u64 {
        self.rng.below(pages * PAGE / STAMP) * STAMP
    }

    /// Whole pages, and how to reach them.
    fn pages(&mut self) -> (u64, u64, Io) {
        let io = if self.rng.chance(0.3) { Io::Direct } else { Io::Buffered };
        let first = self.rng.below(FILE_PAGES - CALL_PAGES + 2);
        (first * PAGE, (1 + self.rng.below(CALL_PAGES)) * PAGE, io)
    }

    async fn read(&mut self, attr: &Attr) -> Result<()> {
        let (offset, len, io) = self.pages();
        let read = self.fs.read(self.me, attr.ino, offset, 3 * len, io).await?.to_bytes();
        if let Some(foreign) = foreign(attr, &read) {
            self.tell(format!("{io:?} read at {offset}: {foreign}"));
        }
        Ok(())
    }

    async fn write(&mut self, attr: &Attr) -> Result<()> {
        let (mut offset, mut len, io) = self.pages();
        if io == Io::Buffered && self.rng.chance(0.3) {
            offset = self.bytes_below(FILE_PAGES - CALL_PAGES);
            len = STAMP + self.bytes_below(2);
        }
        let data = Data::Bytes(stamped(attr, self.rng.bits(), len));
        self.fs.write(self.me, attr.ino, offset, data, io).await.map(drop)
    }
}

/// The first half of a file's stamps.
fn owner(attr: &Attr) -> [u8; 8] {
    let (number, generation) = (attr.ino.0 as u32, attr.generation);
    ((u64::from(generation) << 32) | u64::from(number)).to_le_bytes()
}

fn stamped(attr: &Attr, version: u64, len: u64) -> Vec<u8> {
    let stamp = [owner(attr), version.to_le_bytes()].concat();
    stamp.iter().copied().cycle().take(len as usize).collect()
}

/// The first stamp that is neither zeroes nor the file's own.
pub(super) fn foreign(attr: &Attr, read: &[u8]) -> Option<String> {
    let own = owner(attr);
    let mut stamps = read.chunks(STAMP as usize).enumerate();
    let is_foreign = |stamp: &[u8]| stamp.iter().any(|byte| *byte != 0) && !stamp.starts_with(&own);
    let (at, stamp) = stamps.find(|(_, stamp)| is_foreign(stamp))?;
    Some(format!("inode {}, {own:x?}: {stamp:x?} at stamp {at}", attr.ino.0))
}
