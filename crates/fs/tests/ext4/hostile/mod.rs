//! Volumes whose metadata says anything at all, in use. A few words of a volume without checksums, or
//! of its log, are replaced; then it is checked, shown, mounted, read, changed and unmounted.
//!
//! - Whatever comes of it is a value or an error: nothing panics, and no call waits for ever.
//! - Content of files is never written over the format's own blocks.
//!
//! `NANDSCAPE_FS_HOSTILE` sets the rounds of each arm.

mod cases;

use crate::common::asked;
use crate::common::device::{Device, content, medium, on_device};
use crate::common::image::Image;
use nandscape_block::{Fua, Lba, MemDevice, Payload, SectorData, Tag};
use nandscape_fs::contract::{
    Allocate, Attr, Caller, Data, FileSystem, FsError, Ino, Io, Kind, RenameMode, SetAttr,
    XattrMode,
};
use nandscape_fs::ext4::check::check;
use nandscape_fs::ext4::dump::{DumpTarget, dump};
use nandscape_fs::ext4::format::*;
use nandscape_fs::ext4::mkfs::{DEFAULT_FEATURES, MkfsOptions, mkfs};
use nandscape_fs::ext4::{Commit, DataMode, Ext4, MountOptions};
use nandscape_rt::combine::timeout;
use nandscape_rt::{Handle, Nanos, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const BLOCKS: u64 = 4_096;
const PAGE: u64 = BLOCK_BYTES as u64;
/// Inodes that are looked at in one round; a damaged tree may lead anywhere.
const INODES: usize = 350;
/// Names that are read of one directory.
const NAMES: usize = 400;
/// No use of a volume of 16 MiB takes longer, in virtual time.
const DEADLINE: Nanos = Nanos::from_secs(3_600);

/// A kind of volume, and how it is mounted.
#[derive(Clone, Copy, Debug)]
struct Arm {
    without: &'static [Feature],
    commit: Commit,
    data: DataMode,
    /// Unmounted; else its log is needed, and damaged as often as all the rest.
    clean: bool,
}

const IJOURNAL: Commit = Commit::Ijournal { slots: 2, slot_blocks: 24 };
const ARMS: [Arm; 5] = [
    Arm { without: &[], commit: Commit::Jbd2, data: DataMode::Ordered, clean: true },
    Arm { without: &[], commit: Commit::Jbd2, data: DataMode::Journal, clean: true },
    Arm { without: &[], commit: Commit::Jbd2, data: DataMode::Journal, clean: false },
    Arm { without: &[], commit: IJOURNAL, data: DataMode::Ordered, clean: false },
    Arm {
        without: &[Feature::DIR_INDEX, Feature::BIT64, Feature::FLEX_BG],
        commit: Commit::Jbd2,
        data: DataMode::Writeback,
        clean: false,
    },
];

impl Arm {
    fn mount(self) -> MountOptions {
        let Self { commit, data, .. } = self;
        MountOptions { commit, data, commit_interval: Nanos::from_ms(2), ..MountOptions::default() }
    }

    /// A volume with files of all kinds.
    fn volume(self) -> MemDevice {
        let work = async move |rt: Handle, device: Device| {
            let features = DEFAULT_FEATURES
                .without(Features::of(&[Feature::METADATA_CSUM]))
                .without(Features::of(self.without));
            let journal_blocks = Some(1_024);
            let options =
                MkfsOptions { features, journal_blocks, fresh: true, ..MkfsOptions::new(1) };
            mkfs(&device, &options).await.expect("a file system");
            let (fs, _) = Ext4::mount(&rt, device, self.mount()).await.expect("a mount");
            fill(&fs).await;
            if self.clean {
                fs.unmount().await.expect("an unmount");
            }
        };
        on_device(medium(BLOCKS, Fua::Honoured), None, 0, work).1
    }
}

fn tags(file: u64, pages: u32) -> Data {
    Data::Sectors(Payload::Run(Tag::new(file << 20)), pages)
}

/// A large directory, a deep one, a file of many extents, links, attributes, and a file that is
/// synced again and again.
async fn fill<F: FileSystem>(fs: &F) {
    let root = fs.root();
    let many = fs.mkdir(ME, root, b"many", 0o755).await.expect("room").ino;
    let name = |number| format!("{number:0>120}").into_bytes();
    for number in 0..300 {
        let file = fs.create(ME, many, &name(number), 0o644).await.expect("room").ino;
        if number % 10 == 0 {
            fs.write(ME, file, 0, tags(number + 1, 2), Io::Buffered).await.expect("room");
        }
    }
    let deep = fs.mkdir(ME, root, b"deep", 0o755).await.expect("room").ino;
    let deeper = fs.mkdir(ME, deep, b"er", 0o755).await.expect("room").ino;
    let holes = fs.create(ME, deeper, b"holes", 0o644).await.expect("room").ino;
    for page in 0..400 {
        let data = tags(1_000 + page, 1);
        fs.write(ME, holes, page * 2 * PAGE, data, Io::Buffered).await.expect("room");
    }
    fs.symlink(ME, root, b"short", b"deep/er").await.expect("room");
    fs.symlink(ME, root, b"long", &[b'x'; 500]).await.expect("room");
    fs.setxattr(ME, deep, b"user.small", b"value", XattrMode::Set).await.expect("room");
    fs.setxattr(ME, many, b"user.large", &[7; 900], XattrMode::Set).await.expect("room");
    fs.syncfs(ME).await.expect("power is on");
    let synced = fs.create(ME, root, b"synced", 0o644).await.expect("room").ino;
    for page in 0..20 {
        fs.write(ME, synced, page * PAGE, tags(2_000 + page, 1), Io::Buffered).await.expect("room");
        fs.fsync(ME, synced).await.expect("power is on");
    }
    fs.unlink(ME, many, &name(10)).await.expect("a name less");
    fs.fsync(ME, synced).await.expect("power is on");
}

type Sector = [u8; BLOCK_BYTES];

/// The metadata of a volume: what holds bytes, since content of files is tags.
struct Sound {
    sectors: BTreeMap<u64, Sector>,
    /// Those of the log, and all others.
    log: Vec<u64>,
    home: Vec<u64>,
    /// The format's own blocks, but for the log.
    own: Vec<u64>,
}

impl Sound {
    fn of(volume: &MemDevice) -> Self {
        let bytes = |lba| match volume.current(Lba(lba)) {
            SectorData::Tag(_) | SectorData::Pieces(_) | SectorData::Absent => None,
            data => data.expand().map(|bytes| (lba, *bytes)),
        };
        let sectors: BTreeMap<u64, Sector> = (0..BLOCKS).filter_map(bytes).collect();
        let image = Image::of(content(volume));
        let log = image.extents(8);
        let in_log =
            |lba: &u64| log.iter().any(|extent| (extent.start..extent.end()).contains(lba));
        let (log, home) = sectors.keys().copied().partition(in_log);
        let table = u64::from(image.sb.inode_table_blocks());
        let mut own: Vec<u64> = (0..image.sb.superblock_blocks(0).into()).collect();
        for group in 0..image.sb.groups() {
            let desc = image.descriptor(group);
            own.extend(desc.inode_table..desc.inode_table + table);
            own.extend([desc.block_bitmap, desc.inode_bitmap]);
        }
        Self { sectors, log, home, own }
    }

    /// Replaces a few words, most of them words in use.
    fn damaged(&self, clean: bool, rng: &mut Stream) -> BTreeMap<u64, Sector> {
        let mut sectors = self.sectors.clone();
        for _ in 0..1 + rng.below(3) {
            let places = if clean || rng.below(2) == 0 { &self.home } else { &self.log };
            let lba = places[rng.below(places.len() as u64) as usize];
            let sector = sectors.get_mut(&lba).expect("a sector of metadata");
            let used: Vec<usize> = (0..BLOCK_BYTES).filter(|at| sector[*at] != 0).collect();
            let at = match (used.len(), rng.below(4)) {
                (0, _) | (_, 0) => rng.below(PAGE) as usize,
                (len, _) => used[rng.below(len as u64) as usize],
            };
            let width = 1 << rng.below(3);
            let at = at / width * width;
            let value = match rng.below(6) {
                0 => 0,
                1 => u32::MAX,
                2 => rng.below(1 << 32) as u32,
                3 => rng.below(8) as u32,
                4 => rng.below(BLOCKS) as u32,
                _ => u32::from(sector[at]) ^ 1 << rng.below(32),
            };
            sector[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        sectors
    }
}

/// Puts a volume on a device.
async fn load(device: &Device, sectors: impl IntoIterator<Item = (u64, Sector)>) {
    for (lba, bytes) in sectors {
        let payload = Payload::from_bytes(&bytes).expect("a sector");
        device.write(Lba(lba), 1, payload).await.expect("power is on");
    }
    device.flush().await.expect("power is on");
}

/// One round; `Err` says what of the format's own blocks holds content of files.
fn round(arm: Arm, sound: &Sound, seed: u64) -> Result<(), u64> {
    let sectors = sound.damaged(arm.clean, &mut Stream::new(seed, "damage"));
    // Elsewhere, what was the format's own may be anybody's.
    let known = (0..2).all(|lba| sectors[&lba] == sound.sectors[&lba]);
    let work = async move |rt: Handle, device: Device| {
        load(&device, sectors).await;
        drop(check(&device).await);
        let shown = [
            DumpTarget::Superblock,
            DumpTarget::Groups,
            DumpTarget::Inode(12),
            DumpTarget::Directory(2),
        ];
        for what in shown.into_iter().chain([DumpTarget::Extents(8), DumpTarget::Journal]) {
            drop(dump(&device, what).await);
        }
        let done = timeout(&rt, DEADLINE, try_everything(&rt, device, arm.mount())).await;
        done.expect("no call waits for ever");
    };
    let (_, left, _) = on_device(medium(BLOCKS, Fua::Honoured), None, 0, work);
    let is_content = |lba: &u64| match left.current(Lba(*lba)) {
        SectorData::Tag(tag) => tag != Tag::ZERO,
        data => matches!(data, SectorData::Pieces(_)),
    };
    let lost = sound.own.iter().copied().find(is_content);
    lost.filter(|_| known).map_or(Ok(()), Err)
}

/// Uses a volume in every way that the contract knows; all answers will do.
async fn try_everything(rt: &Handle, device: Device, mount: MountOptions) {
    let Ok((fs, _)) = Ext4::mount(rt, device, mount).await else { return };
    let mut seen = BTreeSet::new();
    let mut waiting = vec![fs.root()];
    while let Some(dir) = waiting.pop() {
        for (name, ino) in names(&fs, dir).await {
            if seen.len() == INODES || !seen.insert(ino) {
                continue;
            }
            let Ok(attr) = fs.lookup(ME, dir, &name).await else { continue };
            if attr.kind == Kind::Directory {
                waiting.push(ino);
            }
            drop(look(&fs, &attr).await);
            drop(change(&fs, dir, &name, &attr, seen.len()).await);
        }
        drop(grow(&fs, dir).await);
    }
    drop(fs.syncfs(ME).await);
    drop(fs.unmount().await);
}

/// Names of a directory and what they lead to.
async fn names<F: FileSystem>(fs: &F, dir: Ino) -> Vec<(Vec<u8>, Ino)> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    while names.len() < NAMES {
        let Ok(entries) = fs.readdir(ME, dir, cookie, 64).await else { break };
        let Some(last) = entries.last() else { break };
        cookie = last.cookie;
        names.extend(entries.into_iter().map(|entry| (entry.name, entry.ino)));
    }
    names.retain(|(name, _)| name != b"." && name != b"..");
    names
}

/// Reads what there is to read.
async fn look<F: FileSystem>(fs: &F, attr: &Attr) -> Result<(), FsError> {
    for name in fs.listxattr(ME, attr.ino).await? {
        fs.getxattr(ME, attr.ino, &name).await?;
    }
    if attr.kind == Kind::Symlink {
        fs.readlink(ME, attr.ino).await?;
    }
    for from in [0, attr.size / 2, attr.size.saturating_sub(2 * PAGE)] {
        fs.read(ME, attr.ino, from, 16 * PAGE, Io::Buffered).await?;
    }
    fs.read(ME, attr.ino, 0, 4 * PAGE, Io::Direct).await.map(drop)
}

/// Changes a file, each in another way.
async fn change<F: FileSystem>(
    fs: &F,
    dir: Ino,
    name: &[u8],
    attr: &Attr,
    way: usize,
) -> Result<(), FsError> {
    let (ino, end) = (attr.ino, attr.size / PAGE * PAGE);
    let resized = |size| SetAttr { size: Some(size), ..SetAttr::default() };
    match way % 10 {
        0 => fs.write(ME, ino, end, tags(3_000, 3), Io::Buffered).await.map(drop)?,
        1 => fs.write(ME, ino, 5 * PAGE, tags(3_001, 3), Io::Direct).await.map(drop)?,
        2 => fs.setattr(ME, ino, resized(3)).await.map(drop)?,
        3 => fs.unlink(ME, dir, name).await?,
        4 => fs.rename(ME, (dir, name), (fs.root(), b"moved"), RenameMode::Replace).await?,
        5 => fs.fallocate(ME, ino, Allocate::PunchHole, PAGE, end).await?,
        6 => fs.setxattr(ME, ino, b"user.new", &[3; 300], XattrMode::Set).await?,
        7 => fs.link(ME, ino, dir, b"linked").await.map(drop)?,
        8 => fs.setattr(ME, ino, resized(attr.size.saturating_add(40 * PAGE))).await.map(drop)?,
        _ => fs.rmdir(ME, dir, name).await?,
    }
    fs.fsync(ME, ino).await
}

/// Makes new names.
async fn grow<F: FileSystem>(fs: &F, dir: Ino) -> Result<(), FsError> {
    let name = |number| format!("new-{number:0>200}").into_bytes();
    for number in 0..4 {
        let file = fs.create(ME, dir, &name(number), 0o644).await?.ino;
        fs.write(ME, file, 0, tags(4_000, 2), Io::Buffered).await?;
        fs.fsync(ME, file).await?;
    }
    fs.unlink(ME, dir, &name(1)).await?;
    fs.mkdir(ME, dir, b"below", 0o755).await.map(drop)
}

/// Whatever a volume says, using it ends with values or errors, and what is the format's stays so.
#[test]
fn damaged_volumes_in_use() {
    let rounds = asked("NANDSCAPE_FS_HOSTILE", 200);
    let mut failed = Vec::new();
    for arm in ARMS {
        let sound = Sound::of(&arm.volume());
        for seed in 0..rounds {
            match catch_unwind(AssertUnwindSafe(|| round(arm, &sound, seed))) {
                Ok(Ok(())) => {}
                Ok(Err(block)) => failed.push((arm, seed, format!("content in block {block}"))),
                Err(_) => failed.push((arm, seed, "panic".to_owned())),
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
