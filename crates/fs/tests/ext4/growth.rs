//! Files that grow and shrink while power fails, found by the crash campaign: blocks written behind the
//! end that a file has on disk are not the file's, and must not show when the file grows again.

use crate::common::device::{Device, medium, on_device};
use nandscape_block::{Fua, MemDevice, Payload, Tag};
use nandscape_fs::contract::{Caller, Data, FileSystem, Io, SetAttr};
use nandscape_fs::ext4::check::check;
use nandscape_fs::ext4::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_rt::combine::join2;
use nandscape_rt::{Handle, Nanos};
use std::future::Future;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const BLOCKS: u64 = 4_096;
const PAGE: u64 = 4_096;
const PAGES: u32 = 5;

/// Commits fall between any two steps.
fn options() -> MountOptions {
    MountOptions { commit_interval: Nanos(500), ..MountOptions::default() }
}

fn formatted() -> MemDevice {
    let work = |_, device: Device| async move {
        mkfs(&device, &MkfsOptions { fresh: true, ..MkfsOptions::new(1) }).await.expect("mkfs");
        device.flush().await.expect("power is on");
    };
    on_device(medium(BLOCKS, Fua::Honoured), None, 0, work).1
}

/// Appends to an empty file as long as there is power.
async fn append(rt: Handle, device: Device) {
    let Ok((fs, _)) = Ext4::mount(&rt, device, options()).await else { return };
    let Ok(file) = fs.create(ME, fs.root(), b"file", 0o644).await else { return };
    if fs.fsync(ME, file.ino).await.is_ok() {
        let tags = Data::Sectors(Payload::Run(Tag::new(1)), PAGES);
        // Power may fail on the way.
        let _ = fs.write(ME, file.ino, 0, tags, Io::Direct).await;
        rt.sleep(Nanos::from_ms(1)).await;
    }
}

/// Wherever power fails during a direct append, what the file's length does not cover reads as zeroes
/// when the length comes to cover it.
#[test]
fn direct_appends_leave_nothing_behind_the_end() {
    let mut grown = [0; 2];
    let bios = on_device(formatted(), None, 0, append).2;
    for cut in 0..bios {
        let (_, left, _) = on_device(formatted(), Some(cut), cut, append);
        let look = |rt, device| async move {
            let (fs, _) = Ext4::mount(&rt, device, options()).await.expect("a mount");
            let Ok(file) = fs.lookup(ME, fs.root(), b"file").await else { return None };
            let larger = SetAttr { size: Some(u64::from(PAGES) * PAGE), ..SetAttr::default() };
            fs.setattr(ME, file.ino, larger).await.expect("a length");
            let read = fs.read(ME, file.ino, file.size, u64::MAX, Io::Buffered).await;
            let zero = read.expect("data").to_bytes().iter().all(|byte| *byte == 0);
            assert!(zero, "cut {cut}: what was behind {} shows", file.size);
            Some(file.size)
        };
        if let Some(size) = on_device(left, None, 0, look).0 {
            grown[usize::from(size > 0)] += 1;
        }
    }
    assert!(grown[0] > 3, "cuts fell into the append: {grown:?}");
}

/// A volume with an empty file.
fn with_a_file() -> MemDevice {
    let work = |rt, device| async move {
        let (fs, _) = Ext4::mount(&rt, device, options()).await.expect("a mount");
        fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file");
        fs.unmount().await.expect("clean");
    };
    on_device(formatted(), None, 0, work).1
}

/// Cuts power at every bio of some work on an empty file, and after the last; returns how many bios
/// there were. What mount leaves must be sound for our check, which knows written blocks behind the end.
fn every_cut_is_sound<F: Future<Output = ()> + 'static>(work: fn(Handle, Device) -> F) -> u64 {
    let bios = on_device(with_a_file(), None, 0, work).2;
    for cut in 0..=bios {
        let left = on_device(with_a_file(), Some(cut), cut, work).1;
        let look = |rt: Handle, device: Device| async move {
            let (fs, _) = Ext4::mount(&rt, device.clone(), options()).await.expect("a mount");
            fs.unmount().await.expect("clean");
            let report = check(&device).await.expect("a file system");
            assert!(report.is_clean(), "cut {cut}: {:?}", report.findings);
        };
        on_device(left, None, 0, look);
    }
    bios
}

/// Grows a file in memory only, by a page that waits for write-back; then writes before that page.
async fn write_before_a_delayed_end(rt: Handle, device: Device) {
    let Ok((fs, _)) = Ext4::mount(&rt, device, options()).await else { return };
    let Ok(file) = fs.lookup(ME, fs.root(), b"file").await else { return };
    let tags = |pages| Data::Sectors(Payload::Run(Tag::new(1)), pages);
    // Power may fail on the way.
    let _ = fs.write(ME, file.ino, 20 * PAGE, tags(1), Io::Buffered).await;
    let _ = fs.write(ME, file.ino, 2 * PAGE, tags(PAGES), Io::Direct).await;
    rt.sleep(Nanos::from_ms(1)).await;
}

/// A direct write into a hole before the end grows the file too, if the end is not on disk yet.
#[test]
fn direct_writes_before_a_delayed_end_leave_nothing_behind_the_end() {
    assert!(every_cut_is_sound(write_before_a_delayed_end) > 20, "cuts fell into the write");
}

/// Empties a file while its pages wait for their first blocks: the bitmap must be read for them.
async fn shrink_under_write_back(rt: Handle, device: Device) {
    let Ok((fs, _)) = Ext4::mount(&rt, device, options()).await else { return };
    let Ok(file) = fs.lookup(ME, fs.root(), b"file").await else { return };
    let tags = Data::Sectors(Payload::Run(Tag::new(1)), PAGES);
    let _ = fs.write(ME, file.ino, 0, tags, Io::Buffered).await;
    let shrink = async {
        rt.sleep(Nanos(100)).await;
        let empty = SetAttr { size: Some(0), ..SetAttr::default() };
        fs.setattr(ME, file.ino, empty).await
    };
    let _ = join2(fs.fsync(ME, file.ino), shrink).await;
}

/// Pages that get their blocks while the file shrinks leave none behind the new end.
#[test]
fn shrinking_under_write_back_leaves_nothing_behind_the_end() {
    assert!(every_cut_is_sound(shrink_under_write_back) > 10, "cuts fell into the truncation");
}

/// A block that is put in front of a full leaf of the extent tree splits it; the index names the first block below it still.
#[test]
fn a_full_leaf_takes_a_block_before_its_first() {
    /// As many extents as a leaf has entries, and one more.
    const EXTENTS: u64 = 341;
    let write = |rt: Handle, device: Device| async move {
        let (fs, _) = Ext4::mount(&rt, device.clone(), options()).await.expect("a mount");
        let file = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file");
        for page in (0..EXTENTS).rev() {
            let tag = Data::Sectors(Payload::Run(Tag::new(1 + page)), 1);
            fs.write(ME, file.ino, 2 * page * PAGE, tag, Io::Buffered).await.expect("space");
            fs.fsync(ME, file.ino).await.expect("power is on");
        }
        fs.unmount().await.expect("clean");
        let report = check(&device).await.expect("a file system");
        assert!(report.is_clean(), "{:?}", report.findings);
    };
    on_device(formatted(), None, 0, write);
}
