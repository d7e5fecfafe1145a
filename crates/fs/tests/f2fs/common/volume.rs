//! Volumes on a device in memory, made, mounted, cut off, and shown to fsck.f2fs.

use super::image::{Content, content, put, save_content};
use super::{Scratch, assert_clean, f2fs_tools};
use nandscape_block::{AsyncDevice, BlockDevice, MemDevice};
use nandscape_fs::contract::FileSystem;
use nandscape_fs::f2fs::format::Features;
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::{Executor, Handle, Nanos, Stream};

const MIB: u64 = 1 << 20;

pub(crate) type Device = AsyncDevice<MemDevice>;

/// Runs a body on an executor of its own.
pub(crate) fn run<T: 'static>(body: impl AsyncFnOnce(Handle) -> T + 'static) -> T {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    executor.block_on(async move { body(handle).await }).expect("no deadlock")
}

/// A device in memory that answers after 20 us.
pub(crate) fn memory(rt: &Handle, sectors: u64) -> Device {
    AsyncDevice::new(rt, MemDevice::new(sectors).with_latency(Nanos::from_us(20)))
}

/// The same with content, all of it durable.
pub(crate) async fn loaded(rt: &Handle, sectors: u64, content: &Content) -> Device {
    let device = memory(rt, sectors);
    put(&device.erased(), content).await;
    device
}

/// A new volume.
pub(crate) async fn made(rt: &Handle, mib: u64, features: Features) -> Device {
    let device = memory(rt, mib * MIB / 4096);
    let options = MkfsOptions { features, fresh: true, ..MkfsOptions::new(1) };
    mkfs(&device.erased(), &options).await.expect("mkfs");
    device
}

pub(crate) async fn mounted(rt: &Handle, device: &Device, options: &MountOptions) -> F2fs {
    F2fs::mount(rt, device.erased(), options.clone()).await.expect("a mount").0
}

/// fsck.f2fs finds nothing on a volume that was unmounted.
pub(crate) fn assert_sound(device: &Device) {
    if !f2fs_tools() {
        return;
    }
    let scratch = Scratch::new();
    let bytes = device.with(|medium| medium.caps().sectors) * 4096;
    let path = scratch.image("volume", bytes);
    save_content(&content(device), &path);
    assert_clean(&path);
}

/// What a power cut leaves of a device, on another one.
pub(crate) async fn after_cut(rt: &Handle, device: &Device, seed: u64) -> Device {
    device.with(|medium| medium.cut_power(&mut Stream::new(seed, "cut")));
    let sectors = device.with(|medium| medium.caps().sectors);
    loaded(rt, sectors, &content(device)).await
}

/// Cuts the power of a mounted volume, runs `after` on what that leaves, and unmounts it.
pub(crate) async fn after_recovery(
    rt: &Handle,
    device: &Device,
    (options, seed): (&MountOptions, u64),
    after: impl AsyncFnOnce(&F2fs),
) -> Device {
    let device = after_cut(rt, device, seed).await;
    let fs = mounted(rt, &device, options).await;
    after(&fs).await;
    fs.unmount().await.expect("an unmount");
    device
}
