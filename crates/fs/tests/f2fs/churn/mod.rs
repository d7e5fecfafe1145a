//! Seeded sequences of calls on a volume with little free space, each made on F2FS and on the contract in memory
//! (`memfs`): both answer the same, show the same tree after a remount, and fsck.f2fs finds the volume sound.

mod calls;
mod compare;
mod model;
mod syncs;

use crate::common::image::{content, save_content};
use crate::common::oracle::asked;
use crate::common::volume::{memory, run};
use crate::common::{Scratch, assert_clean, f2fs_tools};
use nandscape_block::{AsyncDevice, Payload, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io, Kind, OpenFlags, Result};
use nandscape_fs::f2fs::format::{Feature, Features, GcJournalFormat};
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::{
    Allocation, CpuCosts, F2fs, FsyncMode, MountOptions, Reclaim, SmallVolume, VictimPolicy,
};
use nandscape_fs::memfs::{Config, MemFs};
use nandscape_rt::{Handle, Host, Nanos, Stream};
use std::collections::BTreeMap;

pub(crate) const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: u64 = 4_096;
/// Longest file that is made.
const LENGTH: u64 = 6 << 20;
/// Features of volumes: none, all that mkfs.f2fs is asked for, and those that give inodes extra attributes.
const FEATURES: [&[Feature]; 3] = [
    &[],
    &[
        Feature::EXTRA_ATTR,
        Feature::INODE_CHECKSUM,
        Feature::FLEXIBLE_INLINE_XATTR,
        Feature::INODE_CRTIME,
        Feature::SB_CHECKSUM,
        Feature::LOST_FOUND,
    ],
    &[Feature::EXTRA_ATTR, Feature::INODE_CRTIME],
];

/// Sequences, and calls of each: a few, or as many as `NANDSCAPE_F2FS_CHURN` and `NANDSCAPE_F2FS_CALLS` say.
fn sizes() -> (u64, u64, u64) {
    (
        asked("NANDSCAPE_F2FS_CHURN_FROM", 1),
        asked("NANDSCAPE_F2FS_CHURN", 4),
        asked("NANDSCAPE_F2FS_CALLS", 1_500),
    )
}

/// What a volume is like, and how it is mounted.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) sectors: u64,
    pub(crate) made: MkfsOptions,
    pub(crate) mount: MountOptions,
}

impl Shape {
    /// The features of [`FEATURES`], segments per section, and logs.
    pub(crate) fn new(seed: u64, features: usize, section: u32, logs: u8) -> Self {
        let made = MkfsOptions {
            features: Features::of(FEATURES[features]),
            segments_per_section: section,
            fresh: true,
            ..MkfsOptions::new(seed)
        };
        // Least sizes, in MiB, that mkfs.f2fs makes.
        let mebibytes = if section == 1 { 64 } else { 128 };
        let sectors = (mebibytes << 20) / PAGE;
        Self { sectors, made, mount: MountOptions { active_logs: logs, ..mount_options(seed) } }
    }

    pub(crate) fn drawn(seed: u64) -> Self {
        let mut rng = Stream::new(seed, "layout");
        let section = if rng.chance(0.25) { 4 } else { 1 };
        let logs = [2, 4, 6, 6][rng.below(4) as usize];
        Self::new(seed, rng.below(3) as usize, section, logs)
    }

    /// The same with normal logging; with adaptive logging, by the kernel's rules for small volumes or without them;
    /// with a GC journal in one of its formats: one of them after the other.
    pub(crate) fn placed(mut self, seed: u64) -> Self {
        let (allocation, reclaim) = match seed % 4 {
            0 => (Allocation::Lfs, Reclaim::Checkpoint),
            1 | 2 => (Allocation::Adaptive, Reclaim::Checkpoint),
            _ => (Allocation::ALL[(seed / 4 % 2) as usize], Reclaim::GcJournal),
        };
        let mount = &mut self.mount;
        (mount.allocation, mount.reclaim) = (allocation, reclaim);
        mount.small_volume = SmallVolume::ALL[(seed % 2) as usize];
        mount.gc_journal = GcJournalFormat::ALL[(seed / 8 % 2) as usize];
        if reclaim == Reclaim::GcJournal {
            self.made.gc_journal = true;
            self.sectors += u64::from(512 * self.made.segments_per_section);
        }
        self
    }
}

fn mount_options(seed: u64) -> MountOptions {
    let mut rng = Stream::new(seed, "options");
    MountOptions {
        fsync_mode: [FsyncMode::Posix, FsyncMode::Strict][rng.below(2) as usize],
        inline_data: rng.chance(0.8),
        inline_dentry: rng.chance(0.8),
        inline_xattr: rng.chance(0.8),
        cache: CacheConfig { pages: 64 + rng.below(4_096), ..CacheConfig::default() },
        nat_entries: rng.below(2_000) as usize,
        inodes: 1 + rng.below(300) as usize,
        checkpoint_interval: Nanos::from_ms(1 + rng.below(60_000)),
        gc_min_sleep: Nanos::from_ms(10 + rng.below(1_000)),
        gc_max_sleep: Nanos::from_ms(2_000),
        idle_interval: Nanos::from_ms(rng.below(50)),
        victim: VictimPolicy::ALL[(seed % 2) as usize],
        cpu: CpuCosts::preset(if seed.is_multiple_of(3) { "estimate" } else { "none" })
            .expect("a preset"),
        seed,
        ..MountOptions::default()
    }
}

/// The two file systems, and what their names lead to.
pub(crate) struct Churn {
    rt: Handle,
    device: AsyncDevice,
    options: MountOptions,
    pub(crate) fs: F2fs,
    model: MemFs,
    /// Inode numbers of the model by those of F2FS.
    inos: BTreeMap<u64, Ino>,
    rng: Stream,
    tags: u64,
    seed: u64,
    calls: u64,
    /// Sections that cleaning moved before the last mount, in the foreground and in the background.
    cleaned: (u64, u64),
}

/// A name, and what it leads to.
#[derive(Clone, Debug)]
struct Named {
    dir: Ino,
    name: Vec<u8>,
    ino: Ino,
    kind: Kind,
}

impl Churn {
    /// Begins on a new volume.
    pub(crate) async fn begin(rt: &Handle, device: AsyncDevice, seed: u64, shape: Shape) -> Self {
        mkfs(&device, &shape.made).await.expect("a file system");
        Self::go_on(rt, device, seed, shape.mount).await
    }

    /// Begins on a volume that there is.
    pub(crate) async fn go_on(
        rt: &Handle,
        device: AsyncDevice,
        seed: u64,
        options: MountOptions,
    ) -> Self {
        let (fs, _) = F2fs::mount(rt, device.clone(), options.clone()).await.expect("a mount");
        fs.attach_host(&Host::with_cores(2));
        let config = Config { blocks: 1 << 20, inodes: 1 << 20, epoch_s: 1_700_000_000 };
        let model = MemFs::new(rt, config);
        let inos = model::fill(&model, &fs).await;
        let mut rng = Stream::new(seed, "churn");
        let tags = rng.bits() >> 8;
        let (rt, calls, cleaned) = (rt.clone(), 0, (0, 0));
        Self { rt, device, options, fs, model, inos, rng, tags, seed, calls, cleaned }
    }

    fn of_model(&self, ino: Ino) -> Ino {
        *self.inos.get(&ino.0).unwrap_or_else(|| panic!("inode {} is not known", ino.0))
    }

    /// All names but those of devices and pipes, directories before what is in them.
    async fn names(&self) -> Vec<Named> {
        let mut names = Vec::new();
        let mut dirs = vec![self.fs.root()];
        while let Some(dir) = dirs.pop() {
            for (name, ino, kind) in list(&self.fs, dir).await {
                if kind == Kind::Directory {
                    dirs.push(ino);
                }
                names.push(Named { dir, name, ino, kind });
            }
        }
        names
    }

    fn agree<T: PartialEq + std::fmt::Debug>(
        &self,
        call: &str,
        ours: &Result<T>,
        model: &Result<T>,
    ) {
        let same = match (ours, model) {
            (Ok(ours), Ok(model)) => ours == model,
            (Err(ours), Err(model)) => ours.errno() == model.errno(),
            _ => false,
        };
        assert!(
            same,
            "seed {} call {}: {call}: {ours:?}, expected {model:?}",
            self.seed, self.calls
        );
    }

    /// Makes so many calls.
    pub(crate) async fn run(&mut self, calls: u64) {
        let mut names = Vec::new();
        for call in 0..calls {
            if call.is_multiple_of(5) {
                names = self.names().await;
            }
            self.step(&names).await;
            if std::env::var_os("NANDSCAPE_F2FS_EACH").is_some() {
                self.compare().await;
            }
            if self.rng.chance(0.002) {
                self.compare().await;
                self.remount().await;
            }
            // Names that changed meanwhile are gone from the list.
            names = if call % 5 == 4 { names } else { self.names().await };
        }
    }

    async fn remount(&mut self) {
        self.cleaned = self.cleaned();
        self.fs.unmount().await.expect("an unmount");
        let mounted = F2fs::mount(&self.rt, self.device.clone(), self.options.clone()).await;
        self.fs = mounted.expect("a mount").0;
        self.fs.attach_host(&Host::with_cores(2));
    }

    /// Makes everything durable.
    pub(crate) async fn sync_all(&self) {
        self.fs.syncfs(ME).await.expect("a checkpoint");
    }

    /// Fills the volume with a file so far that this much is free.
    pub(crate) async fn leave_free(&mut self, bytes: u64) {
        let space = self.fs.statfs(ME).await.expect("space");
        let blocks = space.free.saturating_sub(bytes / PAGE);
        let (ours, model) = (self.fs.root(), self.model.root());
        let ours = self.fs.create(ME, ours, b"filler", 0o600).await.expect("a file").ino;
        let model = self.model.create(ME, model, b"filler", 0o600).await.expect("a file").ino;
        self.inos.insert(ours.0, model);
        let data = Data::Sectors(Payload::Run(Tag::new(self.tags)), blocks as u32);
        self.tags += blocks + 1;
        let written = self.fs.write(ME, ours, 0, data.clone(), Io::Buffered).await;
        self.agree("write", &written, &Ok(blocks * PAGE));
        self.model.write_all(ME, model, 0, data, Io::Buffered).await.expect("a write");
    }

    /// Leaves an open file without a name, of which the model knows nothing.
    pub(crate) async fn leave_orphan(&mut self) {
        let root = self.fs.root();
        let Ok(made) = self.fs.create(ME, root, b"orphan", 0o600).await else { return };
        self.fs.open(ME, made.ino, OpenFlags::default()).await.expect("open");
        let _ = self.fs.write(ME, made.ino, 0, Data::Bytes(vec![1; 50_000]), Io::Buffered).await;
        self.fs.unlink(ME, root, b"orphan").await.expect("no name");
    }

    /// Checkpoints since the last mount.
    pub(crate) fn checkpoints(&self) -> u64 {
        self.fs.counts().detail.count("checkpoint", "count").expect("a count")
    }

    /// Sections that cleaning moved, in the foreground and in the background.
    pub(crate) fn cleaned(&self) -> (u64, u64) {
        let counts = self.fs.counts();
        let count = |what| counts.detail.count("gc", what).unwrap_or(0);
        let (foreground, background) = self.cleaned;
        (foreground + count("foreground_sections"), background + count("background_sections"))
    }

    /// Blocks that adaptive logging wrote in holes and in place since the last mount.
    pub(crate) fn adaptive_blocks(&self) -> u64 {
        let counts = self.fs.counts();
        let count = |what| counts.detail.count("adaptive", what).unwrap_or(0);
        count("ssr_blocks") + count("in_place_blocks")
    }
}

/// Names of a directory but its own and its parent's, and those of devices and pipes.
async fn list(fs: &impl FileSystem, dir: Ino) -> Vec<(Vec<u8>, Ino, Kind)> {
    let (mut all, mut cookie) = (Vec::new(), 0);
    loop {
        let some = fs.readdir(ME, dir, cookie, 37).await.expect("names");
        let Some(last) = some.last() else { return all };
        cookie = last.cookie;
        let names = some.into_iter().map(|entry| (entry.name, entry.ino, entry.kind));
        let is_usual = |(name, _, kind): &(Vec<u8>, Ino, Kind)| {
            !matches!(&name[..], b"." | b"..") && *kind != Kind::Special
        };
        all.extend(names.filter(is_usual));
    }
}

/// Calls answer as the contract in memory does, and leave a sound volume.
#[test]
fn calls_leave_what_the_model_has() {
    if !f2fs_tools() {
        return;
    }
    let (from, sequences, calls) = sizes();
    let scratch = Scratch::new();
    for seed in from..from + sequences {
        let shape = Shape::drawn(seed).placed(seed);
        let image = scratch.image("churn.img", shape.sectors * PAGE);
        let path = image.clone();
        let cleaned = run(async move |rt| {
            let device = memory(&rt, shape.sectors);
            let mut churn = Churn::begin(&rt, device.erased(), seed, shape).await;
            churn.run(calls).await;
            churn.compare().await;
            let cleaned = churn.cleaned();
            churn.fs.unmount().await.expect("an unmount");
            save_content(&content(&device), &path);
            cleaned
        });
        eprintln!("seed {seed}: {cleaned:?}");
        if let Ok(kept) = std::env::var("NANDSCAPE_F2FS_KEEP") {
            let _ = std::fs::copy(&image, kept);
        }
        assert_clean(&image);
    }
}
