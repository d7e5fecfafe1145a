//! Calls that overlap, on a device that answers late and in any order ([`late`]).
//!
//! - Whatever overlaps, no call waits for ever, no file shows what is another's, and the volume is
//!   sound: after an unmount, after a power cut, and when calls were dropped before their end.
//! - [`interleavings`], [`interleavings_content`] and [`interleavings_orphans`] have a test per interleaving; [`dropped`]
//!   drops each call at instants drawn from seeds; [`stress`] lets several tasks call anything.
//!
//! `NANDSCAPE_FS_RACES` sets the seeds of each arm.

mod dropped;
mod interleavings;
mod interleavings_content;
mod interleavings_orphans;
mod late;
mod memory;
mod steps;
mod stress;

use crate::common::asked;
use late::Late;
use nandscape_block::{
    AsyncDevice, Bio, BlockDevice, DeviceCaps, Flags, Fua, Lba, MemDevice, Op, Payload, SectorData,
    Tag, Token,
};
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io, OpenFlags, SetAttr};
use nandscape_fs::ext4::check::check;
use nandscape_fs::ext4::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::ext4::{Commit, Ext4, MountOptions};
use nandscape_rt::combine::{Elapsed, timeout};
use nandscape_rt::{Executor, Handle, Nanos};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: u64 = 4_096;
/// Blocks of a volume with plenty of room.
const ROOMY: u64 = 8_192;
/// No call takes longer, in virtual time.
const DEADLINE: Nanos = Nanos::from_secs(3_600);
const IJOURNAL: Commit = Commit::Ijournal { slots: 2, slot_blocks: 24 };
/// What blocks hold that were another file's before.
const SECRET: u8 = 0x55;

/// A device, and what runs on it.
#[derive(Clone)]
struct Stand {
    rt: Handle,
    device: AsyncDevice<Late>,
}

impl Stand {
    async fn mount(&self, options: &MountOptions) -> Ext4 {
        let mounted = Ext4::mount(&self.rt, self.device.erased(), options.clone()).await;
        mounted.expect("a mount").0
    }

    /// Bios take as long as the rule says, from now on.
    fn slow(&self, rule: impl FnMut(&Bio) -> Option<Nanos> + 'static) {
        self.device.with(|late| late.slow = Box::new(rule));
    }

    /// Bios are refused if the rule says so, from now on.
    fn refuse(&self, rule: impl FnMut(&Bio) -> bool + 'static) {
        self.device.with(|late| late.refuse = Box::new(rule));
    }

    fn take(&self) -> MemDevice {
        self.device.with(Late::take)
    }

    /// What a power cut leaves.
    fn cut(&self) -> MemDevice {
        self.device.with(Late::cut)
    }

    /// Awaits a call that might wait for ever.
    async fn ends<F: Future>(&self, call: F) -> Result<F::Output, Elapsed> {
        timeout(&self.rt, DEADLINE, call).await
    }

    /// What our check finds on the device, a line each.
    async fn findings(&self) -> Vec<String> {
        let report = check(&self.device.erased()).await.expect("a file system");
        report.findings.iter().map(ToString::to_string).collect()
    }

    async fn assert_sound(&self) {
        assert_eq!(self.findings().await, Vec::<String>::new());
    }
}

/// Runs `work` with a device whose bios take up to so much more than a microsecond.
fn on<T: 'static>(
    medium: MemDevice,
    seed: u64,
    delay_ns: u64,
    work: impl AsyncFnOnce(Stand) -> T + 'static,
) -> T {
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let ended = executor.block_on(async move {
        let device = AsyncDevice::new(&rt, Late::new(medium, seed, delay_ns));
        work(Stand { rt, device }).await
    });
    ended.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"))
}

/// The same with a device that is quick, and always the same.
fn on_quick<T: 'static>(medium: MemDevice, work: impl AsyncFnOnce(Stand) -> T + 'static) -> T {
    on(medium, 1, 0, work)
}

fn blank(sectors: u64, fua: Fua) -> MemDevice {
    let caps = MemDevice::new(sectors).caps().clone();
    MemDevice::with_caps(DeviceCaps { fua, max_sectors: 16, ..caps })
}

/// An empty volume.
fn formatted(sectors: u64) -> MemDevice {
    on_quick(blank(sectors, Fua::Honoured), async |stand| {
        let options =
            MkfsOptions { journal_blocks: Some(1_024), fresh: true, ..MkfsOptions::new(1) };
        mkfs(&stand.device.erased(), &options).await.expect("a file system");
        stand.device.flush().await.expect("power is on");
        stand.take()
    })
}

/// What a medium holds, to begin with again and again.
struct Stored {
    sectors: u64,
    content: Vec<(Lba, SectorData)>,
}

impl Stored {
    fn of(medium: &MemDevice) -> Self {
        let sectors = medium.caps().sectors;
        let all = (0..sectors).map(|lba| (Lba(lba), medium.current(Lba(lba))));
        let content = all.filter(|(_, data)| *data != SectorData::Tag(Tag::ZERO)).collect();
        Self { sectors, content }
    }

    fn medium(&self, fua: Fua) -> MemDevice {
        let mut medium = blank(self.sectors, fua);
        let writes = self.content.iter();
        let writes =
            writes.map(|(lba, data)| Bio::write(*lba, 1, Payload::collect(vec![data.clone()])));
        for bio in writes.chain([Bio::flush()]) {
            drop(medium.submit(Nanos::ZERO, bio, Token(0)));
        }
        medium
    }
}

/// Tries as many seeds as `NANDSCAPE_FS_RACES` says, or `few`; gives those with which it went wrong.
fn over_seeds(few: u64, round: impl Fn(u64) -> Result<(), String>) -> Vec<(u64, String)> {
    let tried = (0..asked("NANDSCAPE_FS_RACES", few)).map(|seed| {
        let ended = catch_unwind(AssertUnwindSafe(|| round(seed)));
        (seed, ended.unwrap_or_else(|_| Err("panic".to_owned())))
    });
    tried.filter_map(|(seed, ended)| Some((seed, ended.err()?))).collect()
}

/// Whether the volume says itself that something is wrong with it.
fn is_marked(findings: &[String]) -> bool {
    findings.iter().any(|finding| finding.contains("the error flag is set"))
}

/// Content of a file on its way to the device, past the journal.
fn is_data(bio: &Bio) -> bool {
    bio.op == Op::Write && !bio.flags.has(Flags::META) && !bio.flags.has(Flags::JOURNAL)
}

fn is_of(bio: &Bio, file: Ino) -> bool {
    bio.owner.is_some_and(|owner| owner.file == file.0)
}

async fn create(fs: &Ext4, dir: Ino, name: &str) -> Ino {
    fs.create(ME, dir, name.as_bytes(), 0o644).await.expect("a file").ino
}

async fn lookup(fs: &Ext4, name: &str) -> Ino {
    fs.lookup(ME, fs.root(), name.as_bytes()).await.expect("the file").ino
}

fn bytes(byte: u8, pages: u64) -> Data {
    Data::Bytes(vec![byte; (pages * PAGE) as usize])
}

/// Writes so many pages of a byte.
async fn put(fs: &Ext4, ino: Ino, page: u64, byte: u8, pages: u64, io: Io) {
    let written = fs.write(ME, ino, page * PAGE, bytes(byte, pages), io).await;
    assert_eq!(written, Ok(pages * PAGE));
}

async fn get(fs: &Ext4, ino: Ino, io: Io) -> Vec<u8> {
    fs.read(ME, ino, 0, 1 << 40, io).await.expect("data").to_bytes()
}

/// How many bytes are not this one.
fn others(read: &[u8], byte: u8) -> usize {
    read.iter().filter(|read| **read != byte).count()
}

fn resized(size: u64) -> SetAttr {
    SetAttr { size: Some(size), ..SetAttr::default() }
}

/// A cache that has room for so many pages.
fn cached(pages: u64) -> MountOptions {
    let cache = CacheConfig { pages, ..CacheConfig::default() };
    MountOptions { cache, ..MountOptions::default() }
}
