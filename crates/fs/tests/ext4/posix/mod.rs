//! The promises of docs/semantics/posix.md, each kept by ext4 in every data mode and, but for those about
//! power cuts, by the file system in memory. The number of a promise stands at its test.

mod attributes;
mod content;
mod durability;
mod names;
mod rules;

use crate::common::device::{OpenDevice, powered};
use nandscape_block::{Lba, MemDevice, Payload, SectorData, Tag};
use nandscape_fs::contract::{
    Allocate, Attr, Caller, Data, Fh, FsError, Ino, Io, Kind, OpenFlags, RenameMode, SetAttr,
    Timestamp, Whence, WriteHint, XattrMode,
};
use nandscape_fs::ext4::mkfs::MkfsOptions;
use nandscape_fs::ext4::{Config, DataMode, MountOptions};
use nandscape_fs::memfs::{self, MemFs};
use nandscape_fs::{FsConfig, MountEnv, MountReport, MountedFs};
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::collections::BTreeMap;
use std::rc::Rc;

type Fs = Rc<dyn MountedFs>;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const MIB: u64 = 1 << 20;
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
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ran = executor.block_on(async move {
        let device = device(&handle, mib * MIB / 4096);
        let config = ext4(data);
        config.format(&device.erased()).await.expect("mkfs");
        let (fs, _) = mount(&config, &handle, &device).await;
        body(&fs, &handle).await;
        device
    });
    ran.unwrap_or_else(|deadlock| panic!("{data:?}: {deadlock}"))
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

/// Runs a body on a new volume of each mode, and in memory.
fn on_each(mib: u64, body: impl AsyncFn(&Fs, &Handle) + Copy + 'static) {
    for data in MODES {
        on_one(mib, data, body);
    }
    in_memory(mib, body);
}

/// Runs a body, cuts the power, and runs another on what is left, over some seeds.
fn over_cuts(
    before: impl AsyncFn(&Fs, &Handle) + Copy + 'static,
    after: impl AsyncFn(&Fs) + Copy + 'static,
) {
    for (seed, data) in (0..4).flat_map(|seed| MODES.map(|data| (seed, data))) {
        let cut = on_one(32, data, before);
        let mut rng = Stream::new(seed, "cut");
        let left: Vec<SectorData> = cut.with(|device| {
            device.medium.cut_power(&mut rng);
            (0..32 * MIB / 4096).map(|lba| device.medium.current(Lba(lba))).collect()
        });
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let ran = executor.block_on(async move {
            let device = device(&handle, left.len() as u64);
            for (lba, data) in left.into_iter().enumerate() {
                if data != SectorData::Tag(Tag::ZERO) {
                    let payload = Payload::collect(vec![data]);
                    device.write(Lba(lba as u64), 1, payload).await.expect("a write");
                }
            }
            let (fs, _) = mount(&ext4(data), &handle, &device).await;
            after(&fs).await;
            fs.unmount().await.expect("an unmount");
        });
        ran.unwrap_or_else(|deadlock| panic!("{data:?}, seed {seed}: {deadlock}"));
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
