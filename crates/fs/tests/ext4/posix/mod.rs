//! The promises of docs/semantics/posix.md, each kept by ext4 in every data mode, by F2FS and, but for those
//! about power cuts, by the file system in memory. The number of a promise stands at its test.

mod attributes;
mod content;
mod durability;
mod names;
mod rules;

use crate::common::device::{OpenDevice, powered};
use crate::common::f2fs::assert_sound;
use nandscape_block::{Lba, MemDevice, Payload, SectorData, Tag};
use nandscape_fs::contract::{
    Allocate, Attr, Caller, Data, Fh, FsError, Ino, Io, Kind, OpenFlags, RenameMode, SetAttr,
    Timestamp, Whence, WriteHint, XattrMode,
};
use nandscape_fs::ext4::mkfs::MkfsOptions;
use nandscape_fs::ext4::{Config, DataMode, MountOptions};
use nandscape_fs::f2fs::format::{Feature, Features};
use nandscape_fs::f2fs::{self, F2fs};
use nandscape_fs::memfs::{self, MemFs};
use nandscape_fs::{FsConfig, FsDetail, MountEnv, MountReport, MountedFs};
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::collections::BTreeMap;
use std::rc::Rc;

type Fs = Rc<dyn MountedFs>;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const MIB: u64 = 1 << 20;
/// A volume that is no smaller has room for six logs.
const SMALLEST_F2FS_MIB: u64 = 64;
/// Features that give inodes of F2FS another layout.
const INODE_FEATURES: [Feature; 3] =
    [Feature::EXTRA_ATTR, Feature::FLEXIBLE_INLINE_XATTR, Feature::INODE_CHECKSUM];

const MODES: [DataMode; 3] = [DataMode::Journal, DataMode::Ordered, DataMode::Writeback];

fn device(handle: &Handle, sectors: u64) -> OpenDevice {
    powered(handle, MemDevice::new(sectors).with_latency(Nanos::from_us(20)))
}

fn ext4(data: DataMode) -> FsConfig {
    let format = MkfsOptions { fresh: true, ..MkfsOptions::new(1) };
    let mount = MountOptions { data, ..MountOptions::default() };
    FsConfig::Ext4(Config { format: Some(format), mount })
}

async fn mount(config: &FsConfig, rt: &Handle, device: &OpenDevice) -> (Fs, MountReport) {
    let env = MountEnv { rt: rt.clone(), device: device.erased() };
    config.mount(env).await.expect("a mount")
}

/// Runs a body on a new volume in one mode, and gives the device back.
fn on_one<B>(mib: u64, data: DataMode, body: B) -> OpenDevice
where
    B: AsyncFn(&Fs, &Handle) + 'static,
{
    on_new(mib, ext4(data), body)
}

/// The same with a volume and a mount as `config` says.
fn on_new<B>(mib: u64, config: FsConfig, body: B) -> OpenDevice
where
    B: AsyncFn(&Fs, &Handle) + 'static,
{
    let what = format!("{config:?}");
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ran = executor.block_on(async move {
        let device = device(&handle, mib * MIB / 4096);
        config.format(&device.erased()).await.expect("mkfs");
        let (fs, _) = mount(&config, &handle, &device).await;
        body(&fs, &handle).await;
        device
    });
    ran.unwrap_or_else(|deadlock| panic!("{what}: {deadlock}"))
}

/// Runs a body on a new file system in memory.
fn in_memory(mib: u64, body: impl AsyncFn(&Fs, &Handle) + 'static) {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let config = memfs::Config { blocks: mib * MIB / 4096, inodes: 4_096, epoch_s: 1_700_000_000 };
    let fs: Fs = Rc::new(MemFs::new(&handle, config));
    let ran = executor.block_on(async move { body(&fs, &handle).await });
    ran.unwrap_or_else(|deadlock| panic!("in memory: {deadlock}"));
}

async fn mount_f2fs(rt: &Handle, device: &OpenDevice) -> Fs {
    let options = f2fs::MountOptions::default();
    Rc::new(F2fs::mount(rt, device.erased(), options).await.expect("a mount").0)
}

/// Runs a body on a new F2FS, and gives the device back.
fn on_new_f2fs<B>(mib: u64, features: &[Feature], body: B) -> OpenDevice
where
    B: AsyncFn(&Fs, &Handle) + 'static,
{
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let features = Features::of(features);
    let ran = executor.block_on(async move {
        let device = device(&handle, mib.max(SMALLEST_F2FS_MIB) * MIB / 4096);
        let format = f2fs::mkfs::MkfsOptions { fresh: true, ..f2fs::mkfs::MkfsOptions::new(1) };
        let format = f2fs::mkfs::MkfsOptions { features, ..format };
        f2fs::mkfs::mkfs(&device.erased(), &format).await.expect("mkfs");
        let fs = mount_f2fs(&handle, &device).await;
        body(&fs, &handle).await;
        device
    });
    ran.unwrap_or_else(|deadlock| panic!("F2FS: {deadlock}"))
}

/// The same, with an unmount, after which the volume must be sound.
fn on_f2fs(mib: u64, features: &[Feature], body: impl AsyncFn(&Fs, &Handle) + 'static) {
    let device = on_new_f2fs(mib, features, async move |fs, handle| {
        body(fs, handle).await;
        fs.unmount().await.expect("an unmount");
    });
    device.with(|device| assert_sound(&device.medium));
}

/// Runs a body on a new volume of each mode and of F2FS, and in memory.
fn on_each(mib: u64, body: impl AsyncFn(&Fs, &Handle) + Copy + 'static) {
    for data in MODES {
        on_one(mib, data, body);
    }
    in_memory(mib, body);
    on_f2fs(mib, &[], body);
    on_f2fs(mib, &INODE_FEATURES, body);
}

/// What a power cut leaves, on a new device.
async fn survivor(rt: &Handle, left: &[SectorData]) -> OpenDevice {
    let device = device(rt, left.len() as u64);
    for (lba, data) in left.iter().enumerate() {
        if *data != SectorData::Tag(Tag::ZERO) {
            let payload = Payload::collect(vec![data.clone()]);
            device.write(Lba(lba as u64), 1, payload).await.expect("a write");
        }
    }
    device
}

/// The content of a device after a power cut.
fn cut(device: &OpenDevice, mib: u64, seed: u64) -> Vec<SectorData> {
    let mut rng = Stream::new(seed, "cut");
    device.with(|device| {
        device.medium.cut_power(&mut rng);
        (0..mib * MIB / 4096).map(|lba| device.medium.current(Lba(lba))).collect()
    })
}

/// Runs a body, cuts the power, and runs another on what is left, over some seeds.
fn over_cuts(
    before: impl AsyncFn(&Fs, &Handle) + Copy + 'static,
    after: impl AsyncFn(&Fs) + Copy + 'static,
) {
    for (seed, data) in (0..4).flat_map(|seed| MODES.map(|data| (seed, data))) {
        let left = cut(&on_one(32, data, before), 32, seed);
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let ran = executor.block_on(async move {
            let device = survivor(&handle, &left).await;
            let (fs, _) = mount(&ext4(data), &handle, &device).await;
            after(&fs).await;
            fs.unmount().await.expect("an unmount");
        });
        ran.unwrap_or_else(|deadlock| panic!("{data:?}, seed {seed}: {deadlock}"));
    }
    for (seed, features) in (0..4).flat_map(|seed| [(seed, &[][..]), (seed, &INODE_FEATURES[..])]) {
        let left = cut(&on_new_f2fs(32, features, before), SMALLEST_F2FS_MIB, seed);
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let ran = executor.block_on(async move {
            let device = survivor(&handle, &left).await;
            let fs = mount_f2fs(&handle, &device).await;
            after(&fs).await;
            fs.unmount().await.expect("an unmount");
            device
        });
        let device = ran.unwrap_or_else(|deadlock| panic!("F2FS, seed {seed}: {deadlock}"));
        device.with(|device| assert_sound(&device.medium));
    }
}

async fn create(fs: &Fs, dir: Ino, name: &str) -> Ino {
    fs.create(ME, dir, name.as_bytes(), 0o644).await.expect("a file").ino
}

async fn mkdir(fs: &Fs, dir: Ino, name: &str) -> Ino {
    fs.mkdir(ME, dir, name.as_bytes(), 0o755).await.expect("a directory").ino
}

async fn lookup(fs: &Fs, dir: Ino, name: &str) -> Result<Attr, FsError> {
    fs.lookup(ME, dir, name.as_bytes()).await
}

async fn write(fs: &Fs, ino: Ino, offset: u64, bytes: &[u8]) {
    let written = fs.write(ME, ino, offset, Data::Bytes(bytes.to_vec()), Io::Buffered).await;
    assert_eq!(written, Ok(bytes.len() as u64));
}

async fn read(fs: &Fs, ino: Ino) -> Vec<u8> {
    fs.read(ME, ino, 0, 1 << 40, Io::Buffered).await.expect("data").to_bytes()
}

async fn resize(fs: &Fs, ino: Ino, size: u64) {
    let change = SetAttr { size: Some(size), ..SetAttr::default() };
    assert_eq!(fs.setattr(ME, ino, change).await.expect("a new length").size, size);
}

async fn free(fs: &Fs) -> u64 {
    fs.statfs(ME).await.expect("space").free
}

async fn names(fs: &Fs, dir: Ino) -> BTreeMap<Vec<u8>, Ino> {
    let (mut all, mut cookie) = (BTreeMap::new(), 0);
    loop {
        let some = fs.readdir(ME, dir, cookie, 10).await.expect("names");
        let Some(last) = some.last() else { return all };
        cookie = last.cookie;
        for entry in some {
            assert_eq!(all.insert(entry.name, entry.ino), None, "listed once");
        }
    }
}
