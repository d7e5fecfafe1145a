//! Cleaning, and the recovery after a power cut in the midst of it, where hardly any section is free.

use crate::common::files::{ME, PAGE, count, create};
use crate::common::tree::names;
use crate::common::volume::{Device, after_cut, assert_sound, memory, mounted, run};
use nandscape_block::{Lba, Payload, SectorData, Tag};
use nandscape_fs::contract::{Data, FileSystem, Ino, Io, WriteHint};
use nandscape_fs::f2fs::format::{BlockAddr, Nid, SegNo};
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_fs::f2fs::{F2fs, MountOptions, Reclaim};
use nandscape_rt::Handle;
use std::collections::BTreeSet;

/// Pages for which a node has addresses.
const PER_NODE: u64 = 1_018;
/// Sections that are kept for cleaning.
const RESERVED: u32 = 6;
/// Sections of which only a few blocks go: how many there are, and how many of their blocks stay and go.
const SECTIONS: u64 = 7;
const KEPT: u64 = 486;
const DROPPED: u64 = 26;
/// New files that are fsynced one after the other.
const FSYNCED: u32 = 3_000;
/// Names of a directory of several blocks.
const NAMES: u32 = 60;

/// A new volume of a few sections, most of which users may fill.
async fn made(rt: &Handle, mib: u64, gc_journal: bool) -> Device {
    let device = memory(rt, mib << 8);
    let options = MkfsOptions {
        overprovision: Some(10.0),
        reserved_segments: Some(RESERVED),
        gc_journal,
        fresh: true,
        ..MkfsOptions::new(1)
    };
    mkfs(&device.erased(), &options).await.expect("mkfs");
    device
}

fn options(reclaim: Reclaim) -> MountOptions {
    let checkpoint_cost = u32::MAX;
    MountOptions { reclaim, checkpoint_cost, background_gc: false, ..MountOptions::default() }
}

/// Writes pages whose tags are their numbers, each to the next block of the log.
async fn write(fs: &F2fs, ino: Ino, page: u64, pages: u32) {
    let data = Data::Sectors(Payload::Run(Tag::new(1 + page)), pages);
    fs.write_all(ME, ino, page * PAGE, data, Io::Direct).await.expect("a write");
}

/// Whether a file holds such pages.
async fn holds(fs: &F2fs, name: &str, page: u64, pages: u32) -> bool {
    let ino = fs.lookup(ME, fs.root(), name.as_bytes()).await.expect("the file").ino;
    let read = fs.read(ME, ino, page * PAGE, u64::from(pages) * PAGE, Io::Buffered).await;
    let expected = Data::Sectors(Payload::Run(Tag::new(1 + page)), pages);
    read.expect("content").to_bytes() == expected.to_bytes()
}

/// Segments that the last checkpoint has free, none of which was ever written, and its version.
async fn free_at_checkpoint(device: &Device) -> (Vec<BlockAddr>, u64) {
    let image = F2fsImage::open(&device.erased()).await.expect("a volume");
    let starts = (0..image.layout.main_segments()).map(SegNo);
    let free = starts.filter(|segment| image.log_of(*segment).is_none());
    let free = free.filter_map(|segment| image.segment_start(segment));
    let free: Vec<_> = free.filter(|start| !is_written(device, *start)).collect();
    assert_eq!(free.len() as u32, image.checkpoint.free_segment_count);
    (free, image.checkpoint.checkpoint_ver)
}

fn is_written(device: &Device, at: BlockAddr) -> bool {
    device.with(|medium| medium.current(Lba(at.0.into()))) != SectorData::Tag(Tag::ZERO)
}

/// Writes more and more pages of a file, and makes each part durable, until a condition holds. Returns how many there are.
async fn write_until(fs: &F2fs, ino: Ino, is_done: impl Fn() -> bool) -> u32 {
    let mut written = 0;
    while !is_done() {
        write(fs, ino, written.into(), 64).await;
        fs.fdatasync(ME, ino).await.expect("a sync");
        written += 64;
    }
    written
}

/// Cuts the power of a volume whose last checkpoint has a version, and mounts what that leaves. Its journal has moves.
async fn recovered(rt: &Handle, device: &Device, version: u64) -> (Device, F2fs) {
    let left = after_cut(rt, device, 1).await;
    let image = F2fsImage::open(&left.erased()).await.expect("a volume");
    assert_eq!(image.checkpoint.checkpoint_ver, version, "no checkpoint came between");
    let mounted = F2fs::mount(rt, left.erased(), options(Reclaim::GcJournal)).await;
    let (fs, report) = mounted.expect("a mount after a cut");
    assert!(report.moves > 0, "cleaning moved something: {report:?}");
    (left, fs)
}

/// A power cut after cleaning with a GC journal has used all sections that the last checkpoint has free: the recovery
/// writes to those that cleaning emptied.
#[test]
fn recovery_writes_to_sections_that_cleaning_emptied() {
    let device = run(async |rt| {
        let device = made(&rt, 64, true).await;
        let fs = mounted(&rt, &device, &options(Reclaim::GcJournal)).await;
        let (kept, dropped, new) =
            (create(&fs, "kept").await, create(&fs, "dropped").await, create(&fs, "new").await);
        for part in 0..10 {
            write(&fs, kept, part * 256, 256).await;
            write(&fs, dropped, part * 256, 256).await;
        }
        fs.unlink(ME, fs.root(), b"dropped").await.expect("no file");
        fs.syncfs(ME).await.expect("a checkpoint");
        let (free, version) = free_at_checkpoint(&device).await;
        let all_used = || free.iter().all(|start| is_written(&device, *start));
        let written = write_until(&fs, new, all_used).await;
        let (left, fs) = recovered(&rt, &device, version).await;
        assert!(holds(&fs, "kept", 0, 2_560).await && holds(&fs, "new", 0, written).await);
        fs.unmount().await.expect("an unmount");
        left
    });
    assert_sound(&device);
}

/// A name is brought back to its directory where cleaning has moved it after the fsync that made the name durable, and
/// something else was written to where the last checkpoint has the directory.
#[test]
fn a_name_is_brought_back_to_where_its_directory_is() {
    let name = |number: u32| format!("{number:0>200}").into_bytes();
    let device = run(async move |rt| {
        let device = made(&rt, 64, true).await;
        let fs = mounted(&rt, &device, &options(Reclaim::GcJournal)).await;
        let (hot, new) = (create(&fs, "hot").await, create(&fs, "new").await);
        let dir = fs.mkdir(ME, fs.root(), b"dir", 0o755).await.expect("a directory").ino;
        for number in 0..NAMES {
            fs.create(ME, dir, &name(number), 0o644).await.expect("a file");
        }
        fs.syncfs(ME).await.expect("a checkpoint");
        // What follows the blocks of the directory in their log, and goes.
        fs.set_write_hint(ME, hot, WriteHint::Short).await.expect("a hint");
        write(&fs, hot, 0, 600).await;
        fs.unlink(ME, fs.root(), b"hot").await.expect("no file");
        fs.syncfs(ME).await.expect("a checkpoint");
        let image = F2fsImage::open(&device.erased()).await.expect("a volume");
        let inode = image.inode(Nid(dir.0 as u32)).await.expect("the directory");
        let place = Lba(inode.layout.addrs().get(&inode.node.bytes, 0).0.into());
        let content = || device.with(|medium| medium.current(place));
        let before = content();
        let last = fs.create(ME, dir, &name(NAMES), 0o644).await.expect("a file").ino;
        fs.fsync(ME, last).await.expect("a sync");
        let written = write_until(&fs, new, || content() != before).await;
        let (left, fs) = recovered(&rt, &device, image.checkpoint.checkpoint_ver).await;
        let found: BTreeSet<_> = names(&fs, dir).await.into_iter().map(|(name, _)| name).collect();
        assert!(found == (0..=NAMES).map(name).collect(), "{} names", found.len());
        assert!(holds(&fs, "new", 0, written).await);
        fs.unmount().await.expect("an unmount");
        left
    });
    assert_sound(&device);
}

/// Cleaning that makes more nodes dirty than it frees sections writes checkpoints while enough sections are free for them.
#[test]
fn cleaning_leaves_room_for_its_checkpoint() {
    let device = run(async |rt| {
        let device = made(&rt, 84, false).await;
        let options = options(Reclaim::Checkpoint);
        let fs = mounted(&rt, &device, &options).await;
        let (kept, dropped) = (create(&fs, "kept").await, create(&fs, "dropped").await);
        for section in 0..SECTIONS {
            for page in section * KEPT..(section + 1) * KEPT {
                write(&fs, kept, page * PER_NODE, 1).await;
            }
            write(&fs, dropped, section * DROPPED, DROPPED as u32).await;
            fs.syncfs(ME).await.expect("a checkpoint");
        }
        fs.unlink(ME, fs.root(), b"dropped").await.expect("no file");
        fs.syncfs(ME).await.expect("a checkpoint");
        let new = create(&fs, "new").await;
        for page in 0..200 {
            write(&fs, new, page * PER_NODE, 1).await;
        }
        let gc = |name| count(&fs, "gc", name);
        assert_eq!(gc("sections"), 0, "nothing was cleaned");
        let mut page = 1;
        while gc("sections") == 0 {
            write(&fs, new, page, 64).await;
            page += 64;
        }
        // One checkpoint, before all was cleaned that is alike, of a node for each block that was moved.
        let (cleaned, moved) = (gc("sections"), gc("data_blocks"));
        assert_eq!((gc("checkpoints"), moved), (1, cleaned * KEPT));
        assert!(cleaned > 1 && cleaned < SECTIONS && gc("checkpoint_blocks") > moved);
        fs.unmount().await.expect("an unmount");
        let fs = mounted(&rt, &device, &options).await;
        for page in 0..SECTIONS * KEPT {
            assert!(holds(&fs, "kept", page * PER_NODE, 1).await, "page {page}");
        }
        fs.unmount().await.expect("an unmount");
        device
    });
    assert_sound(&device);
}

/// Fsyncs of new files write a checkpoint now and then where a mount after a power cut would find too few free sections for
/// all of their nodes: it brings back each file.
#[test]
fn fsyncs_leave_room_for_their_roll_forward() {
    let device = run(async |rt| {
        let device = made(&rt, 64, false).await;
        let fs = mounted(&rt, &device, &options(Reclaim::Checkpoint)).await;
        let data = create(&fs, "data").await;
        let free = fs.statfs(ME).await.expect("counts").free;
        write(&fs, data, 0, free as u32 - FSYNCED - 100).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        let before = count(&fs, "checkpoint", "count");
        for number in 0..FSYNCED {
            let file = create(&fs, &format!("{number}")).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
        let checkpoints = count(&fs, "checkpoint", "count") - before;
        let left = after_cut(&rt, &device, 1).await;
        let fs = mounted(&rt, &left, &options(Reclaim::Checkpoint)).await;
        assert_eq!(names(&fs, fs.root()).await.len() as u32, FSYNCED + 1);
        assert!((1..=u64::from(FSYNCED) / 512).contains(&checkpoints), "{checkpoints}");
        fs.unmount().await.expect("an unmount");
        left
    });
    assert_sound(&device);
}
