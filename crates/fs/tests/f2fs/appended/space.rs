//! Room on the media, in the tables of slots and in sections, and the discards that give it back.

use super::devices::{assert_exact, coupled, device, interval, live, made};
use super::life::ME;
use crate::common::slow::{LATE, Slow, with, with_slow};
use nandscape_block::{Payload, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Data, FileSystem, FsError, Ino, Io, SetAttr};
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::Nanos;

const PAGE: u64 = 4_096;

/// So many pages.
fn pages(tag: u64, count: u64) -> Data {
    Data::Sectors(Payload::Run(Tag::new(tag)), count as u32)
}

async fn write(fs: &F2fs, file: Ino, from: u64, data: Data) -> Result<(), FsError> {
    fs.write_all(ME, file, from * PAGE, data, Io::Buffered).await
}

fn count(fs: &F2fs, name: &str) -> u64 {
    fs.counts().detail.count("append", name).expect("a count")
}

/// A device of each mode with a new volume. It moves no blocks.
fn devices() -> impl Iterator<Item = Slow> {
    [interval(), coupled()].into_iter().map(|caps| made(device(caps, 0), 1))
}

/// When a sync returns, the device holds nothing of a file that was removed before, however long discards take.
#[test]
fn syncs_wait_for_discards() {
    for fresh in devices() {
        with_slow(fresh, async |rt, device| {
            let options = MountOptions::default();
            let fs = F2fs::mount(&rt, device.erased(), options).await.expect("a mount").0;
            fs.syncfs(ME).await.expect("a sync");
            let before = device.with(|slow| live(slow));
            let file = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file").ino;
            write(&fs, file, 0, pages(1, 2_000)).await.expect("a write");
            fs.syncfs(ME).await.expect("a sync");
            assert!(device.with(|slow| live(slow)) >= before + 2_000);
            fs.unlink(ME, fs.root(), b"file").await.expect("no name");
            device.with(|slow| slow.discard_latency = LATE);
            fs.syncfs(ME).await.expect("a sync");
            assert_eq!(device.with(|slow| live(slow)), before);
        });
    }
}

/// Blocks that wait for their discard, or are being discarded, occupy the media: a writer that would need more waits.
#[test]
fn writers_wait_for_discards() {
    for mut fresh in devices() {
        fresh.discard_latency = LATE;
        let (left, ()) = with(fresh, async |rt, device| {
            // The timer's checkpoints make blocks void; nothing else than room makes anyone wait for their discards.
            let checkpoint_interval = Nanos::from_ms(1);
            let options = MountOptions { checkpoint_interval, ..MountOptions::default() };
            let fs = F2fs::mount(&rt, device, options).await.expect("a mount").0;
            let file = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file").ino;
            // A third of the media each time.
            for round in 0..10 {
                write(&fs, file, 0, pages(round * 10_000 + 1, 7_000)).await.expect("a write");
                fs.fsync(ME, file).await.expect("a sync of the file");
                rt.sleep(Nanos::from_ms(5)).await;
            }
            assert!(count(&fs, "forced_by_media") > 0);
            fs.unmount().await.expect("an unmount");
        });
        drop(assert_exact(left));
    }
}

/// Where each section holds a valid block, slots run out. Writers are refused while as many are left as a checkpoint may
/// need, so the volume goes on, and files can be removed.
#[test]
fn writers_leave_slots_to_checkpoints() {
    let fresh = made(device(interval(), 0), 1);
    let (left, ()) = with(fresh, async |rt, device| {
        let fs = F2fs::mount(&rt, device, MountOptions::default()).await.expect("a mount").0;
        let make = async |name: &str| {
            fs.create(ME, fs.root(), name.as_bytes(), 0o644).await.expect("a file").ino
        };
        let (kept, other) = (make("kept").await, make("other").await);
        let mut files = Vec::new();
        for number in 0..900 {
            files.push(make(&format!("{number}")).await);
        }
        let mut ended = Ok(());
        for round in 0.. {
            // A page that stays, and pages that the next round writes elsewhere: a section.
            ended = write(&fs, kept, round, pages(1, 1)).await;
            ended = ended.and(fs.fsync(ME, kept).await);
            ended = ended.and(write(&fs, other, 0, pages(10, 511)).await);
            ended = ended.and(fs.fsync(ME, other).await);
            let is_scarce = count(&fs, "slots") - count(&fs, "slots_used") < 16;
            // Nodes for nearly two sections, which the next checkpoint writes.
            for file in files.iter().filter(|_| is_scarce) {
                let change = SetAttr { mode: Some(round as u16 % 8), ..SetAttr::default() };
                let changed = fs.setattr(ME, *file, change).await;
                ended = ended.and(changed.map(drop));
            }
            if ended.is_err() {
                break;
            }
        }
        assert_eq!(ended, Err(FsError::NoSpace));
        fs.syncfs(ME).await.expect("a checkpoint");
        fs.unlink(ME, fs.root(), b"kept").await.expect("no name");
        fs.syncfs(ME).await.expect("a checkpoint");
        write(&fs, other, 0, pages(1_000, 511)).await.expect("a write");
        fs.unmount().await.expect("an unmount");
    });
    drop(assert_exact(left));
}
