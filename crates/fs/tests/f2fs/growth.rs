//! Files that grow read as zeroes where they were not written, whatever a power cut left after their end.

use crate::common::volume::{Device, after_cut, after_recovery, assert_sound, made, mounted, run};
use nandscape_block::{Payload, SectorData, Tag};
use nandscape_fs::contract::{Allocate, Caller, Data, FileSystem, FsError, Ino, Io, SetAttr};
use nandscape_fs::f2fs::format::Features;
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::Handle;
use nandscape_rt::combine::join_all;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: u64 = 4_096;

fn pages(tag: u64, count: u32) -> Data {
    let tags = (0..count).map(|index| SectorData::Tag(Tag::new(tag).plus(index.into())));
    Data::Sectors(Payload::collect(tags.collect()), count)
}

/// A file of two pages, after a cut in which a checkpoint had two more that it was growing by, and not its length.
async fn with_tail(rt: &Handle) -> (Device, F2fs, Ino) {
    let device = made(rt, 64, Features::default()).await;
    let options = MountOptions::default();
    let fs = mounted(rt, &device, &options).await;
    let ino = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file").ino;
    fs.write_all(ME, ino, 0, pages(100, 2), Io::Direct).await.expect("a write");
    fs.syncfs(ME).await.expect("a checkpoint");
    let append = {
        let fs = fs.clone();
        rt.spawn("append", async move {
            fs.write_all(ME, ino, 2 * PAGE, pages(200, 2), Io::Direct).await.expect("an append");
        })
    };
    let sync = {
        let fs = fs.clone();
        rt.spawn("checkpoint", async move { fs.syncfs(ME).await.expect("a checkpoint") })
    };
    join_all([append, sync]).await;
    let left = after_cut(rt, &device, 1).await;
    let fs = mounted(rt, &left, &options).await;
    let attr = fs.getattr(ME, ino).await.expect("the file");
    assert_eq!((attr.size, attr.blocks), (2 * PAGE, 4 * 8), "the cut came between");
    (left, fs, ino)
}

/// Whatever makes the file grow, its new pages are zeroes but for what is written.
#[test]
fn growth_over_what_a_cut_left() {
    run(async |rt| {
        for way in 0..4 {
            let (device, fs, ino) = with_tail(&rt).await;
            let size = |size| SetAttr { size: Some(size), ..SetAttr::default() };
            match way {
                0 => drop(fs.setattr(ME, ino, size(4 * PAGE)).await.expect("longer")),
                1 => {
                    let what = Allocate::Reserve { keep_size: false };
                    fs.fallocate(ME, ino, what, 0, 4 * PAGE).await.expect("longer");
                }
                2 => fs.write_all(ME, ino, 3 * PAGE, pages(0, 1), Io::Direct).await.expect("data"),
                _ => {
                    let end = Data::Bytes(vec![0; 10]);
                    fs.write_all(ME, ino, 4 * PAGE, end, Io::Buffered).await.expect("data");
                }
            }
            let read = fs.read(ME, ino, 2 * PAGE, 2 * PAGE, Io::Buffered).await.expect("data");
            let shown = read.to_bytes();
            assert_eq!(shown.len() as u64, 2 * PAGE, "way {way}");
            let end = if way == 2 { PAGE as usize } else { shown.len() };
            assert!(shown[..end].iter().all(|byte| *byte == 0), "way {way}");
            fs.unmount().await.expect("an unmount");
            assert_sound(&device);
        }
    });
}

/// A file is so long after a cut, and the volume is sound.
async fn assert_length_after_cut(rt: &Handle, device: &Device, ino: Ino, size: u64) {
    let options = MountOptions::default();
    let is_so_long = async move |fs: &F2fs| {
        assert_eq!(fs.getattr(ME, ino).await.expect("the file").size, size);
    };
    assert_sound(&after_recovery(rt, device, (&options, 2), is_so_long).await);
}

/// The length that a sync made durable is the file's after the next cut, too: roll-forward takes no page for written that
/// an earlier cut left after the end.
#[test]
fn a_synced_length_stays_over_what_a_cut_left() {
    run(async |rt| {
        let (device, fs, ino) = with_tail(&rt).await;
        let size = 2 * PAGE + 100;
        let longer = SetAttr { size: Some(size), ..SetAttr::default() };
        fs.setattr(ME, ino, longer).await.expect("longer");
        fs.fsync(ME, ino).await.expect("a sync");
        assert_length_after_cut(&rt, &device, ino, size).await;
    });
}

/// A file that gets only a part of the pages that were to be reserved is as long as that part, before a sync and a cut
/// and after.
#[test]
fn too_little_space_reserves_a_part() {
    run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let options = MountOptions::default();
        let fs = mounted(&rt, &device, &options).await;
        let ino = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file").ino;
        fs.write_all(ME, ino, 0, pages(100, 2), Io::Direct).await.expect("a write");
        fs.syncfs(ME).await.expect("a checkpoint");
        let what = Allocate::Reserve { keep_size: false };
        let refused = fs.fallocate(ME, ino, what, 0, 64 << 20).await;
        assert_eq!(refused, Err(FsError::NoSpace));
        let size = fs.getattr(ME, ino).await.expect("the file").size;
        assert!(size > 2 * PAGE && size < 64 << 20 && size.is_multiple_of(PAGE), "{size}");
        fs.fsync(ME, ino).await.expect("a sync");
        assert_length_after_cut(&rt, &device, ino, size).await;
    });
}
