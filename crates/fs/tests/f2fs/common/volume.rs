//! Volumes on a device in memory, made, mounted, cut off, and shown to fsck.f2fs.

use super::{Scratch, assert_clean, f2fs_tools};
use nandscape_block::{AsyncDevice, BlockDevice, Lba, MemDevice, Payload, SectorData, Tag};
use nandscape_fs::f2fs::format::Features;
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;

const MIB: u64 = 1 << 20;

pub(crate) type Device = AsyncDevice<MemDevice>;

/// Runs a body on an executor of its own.
pub(crate) fn run<T: 'static>(body: impl AsyncFnOnce(Handle) -> T + 'static) -> T {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    executor.block_on(async move { body(handle).await }).expect("no deadlock")
}

/// A new volume.
pub(crate) async fn made(rt: &Handle, mib: u64, features: Features) -> Device {
    let medium = MemDevice::new(mib * MIB / 4096).with_latency(Nanos::from_us(20));
    let device = AsyncDevice::new(rt, medium);
    let options = MkfsOptions { features, fresh: true, ..MkfsOptions::new(1) };
    mkfs(&device.erased(), &options).await.expect("mkfs");
    device
}

pub(crate) async fn mounted(rt: &Handle, device: &Device, options: &MountOptions) -> F2fs {
    F2fs::mount(rt, device.erased(), options.clone()).await.expect("a mount").0
}

/// What a device holds, as far as it is not zeroes.
pub(crate) fn content(device: &Device) -> BTreeMap<u64, SectorData> {
    device.with(|medium| {
        let sectors = 0..medium.caps().sectors;
        let all = sectors.map(|at| (at, medium.current(Lba(at))));
        all.filter(|(_, content)| *content != SectorData::Tag(Tag::ZERO)).collect()
    })
}

/// fsck.f2fs finds nothing on a volume that was unmounted.
pub(crate) fn assert_sound(device: &Device) {
    if !f2fs_tools() {
        return;
    }
    let scratch = Scratch::new();
    let bytes = device.with(|medium| medium.caps().sectors) * 4096;
    let path = scratch.image("volume", bytes);
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("an image");
    for (at, content) in content(device) {
        let block = content.expand().expect("content is kept");
        file.write_all_at(&*block, at * 4096).expect("a block");
    }
    assert_clean(&path);
}

/// What a power cut leaves of a device, on another one.
pub(crate) async fn after_cut(rt: &Handle, device: &Device, seed: u64) -> Device {
    device.with(|medium| medium.cut_power(&mut Stream::new(seed, "cut")));
    let sectors = device.with(|medium| medium.caps().sectors);
    let left = AsyncDevice::new(rt, MemDevice::new(sectors).with_latency(Nanos::from_us(20)));
    for (at, content) in content(device) {
        left.write(Lba(at), 1, Payload::collect(vec![content])).await.expect("a write");
    }
    left
}
