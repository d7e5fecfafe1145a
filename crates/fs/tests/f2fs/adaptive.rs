//! Adaptive logging: cleaning of files that are updated in place, and logs that go on in the holes of segments.

use crate::beside::on_late;
use crate::common::examine::shown;
use crate::common::files::{ME, content, count, create, expected, write};
use crate::common::volume::{Device, after_cut, assert_sound, made, mounted, run};
use nandscape_block::{Bio, Lba, Op};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::FileSystem;
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::format::{
    BLOCKS_PER_SEGMENT, BlockAddr, Features, Nid, NodeFooter, SegNo, SegmentType,
};
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_fs::f2fs::{Allocation, F2fs, MountOptions, SmallVolume};
use nandscape_rt::{Handle, Nanos};
use std::ops::Range;

fn options(small_volume: SmallVolume) -> MountOptions {
    MountOptions { allocation: Allocation::Adaptive, small_volume, ..MountOptions::default() }
}

/// Cleaning moves the pages of a file away that is updated in place otherwise: their segment is empty and becomes free.
#[test]
fn cleaning_empties_segments_of_files_that_are_updated_in_place() {
    let device = run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let fs = mounted(&rt, &device, &options(SmallVolume::Kernel)).await;
        let (file, gone) = (create(&fs, "file").await, create(&fs, "gone").await);
        for (of, tag, pages) in [(file, 1, 100), (gone, 1_000, 600), (file, 10_000, 100)] {
            write(&fs, of, 0, tag, pages).await;
            fs.fsync(ME, of).await.expect("a sync");
        }
        assert_eq!(count(&fs, "adaptive", "in_place_blocks"), 100);
        fs.unlink(ME, fs.root(), b"gone").await.expect("no file");
        fs.syncfs(ME).await.expect("a checkpoint");
        let free = |fs: &F2fs| fs.space().expect("space").free_segments;
        let before = free(&fs);
        rt.sleep(Nanos::from_secs(400)).await;
        let moved = ["background_sections", "data_blocks"].map(|name| count(&fs, "gc", name));
        assert_eq!(moved, [1, 100]);
        // Both what was moved and the nodes that lead to it are written.
        fs.syncfs(ME).await.expect("a checkpoint");
        rt.sleep(Nanos::from_secs(1)).await;
        assert_eq!(free(&fs), before + 1);
        assert!(content(&fs, file).await == expected(10_000, 100));
        fs.unmount().await.expect("an unmount");
        device
    });
    assert_sound(&device);
}

async fn make(fs: &F2fs, numbers: Range<u32>) {
    for number in numbers {
        create(fs, &format!("{number}")).await;
    }
    fs.syncfs(ME).await.expect("a checkpoint");
}

async fn unlink(fs: &F2fs, numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        let name = format!("{number}");
        fs.unlink(ME, fs.root(), name.as_bytes()).await.expect("no file");
    }
    fs.syncfs(ME).await.expect("a checkpoint");
}

/// What a power cut leaves of a volume on which the log of inodes is in the holes of a segment; the inodes after its
/// position, with their places.
async fn cut_in_holes(rt: &Handle) -> (Device, Vec<(Nid, BlockAddr)>) {
    let device = made(rt, 128, Features::default()).await;
    let options = MountOptions { background_gc: false, ..options(SmallVolume::Off) };
    let fs = mounted(rt, &device, &options).await;
    // A segment of inodes, and most of the next one.
    make(&fs, 0..1_000).await;
    // So few segments are free then that logs go on in holes.
    let large = create(&fs, "large").await;
    write(&fs, large, 0, 1, 9_000).await;
    unlink(&fs, (0..1_000).step_by(2)).await;
    make(&fs, 1_000..1_050).await;
    let image = F2fsImage::open(&device.erased()).await.expect("a volume");
    let log = image.checkpoint.log(SegmentType::WarmNode);
    let entry = image.sit_entry(log.segno).await.expect("an entry");
    let mut after = Vec::new();
    for offset in (log.blkoff.into()..BLOCKS_PER_SEGMENT).filter(|at| entry.map.get(*at)) {
        let at = image.layout.block(log.segno, offset).expect("a block");
        let bytes = image.reader().block(at.0.into()).await.expect("a node");
        after.push((Nid(NodeFooter::parse(&bytes).nid), at));
    }
    assert!(log.ssr && !after.is_empty(), "{log:?}");
    (after_cut(rt, &device, 1).await, after)
}

/// A mount after a power cut knows which nodes lie after the position of a log that is in the holes of a segment: its unmount
/// writes their summaries.
#[test]
fn a_log_in_holes_knows_the_nodes_after_its_position() {
    let device = run(async |rt| {
        let (device, _) = cut_in_holes(&rt).await;
        let fs = mounted(&rt, &device, &options(SmallVolume::Off)).await;
        fs.unmount().await.expect("an unmount");
        let report = check(&device.erased()).await.expect("a volume");
        assert!(report.is_clean(), "{}", shown(&report));
        device
    });
    assert_sound(&device);
}

/// Cleaning moves these nodes, once the log has left their segment and some of them are gone.
#[test]
fn cleaning_moves_nodes_that_lay_after_the_position_of_a_log() {
    run(async |rt| {
        let (device, after) = cut_in_holes(&rt).await;
        let fs = mounted(&rt, &device, &options(SmallVolume::Off)).await;
        make(&fs, 1_050..1_400).await;
        unlink(&fs, (1..1_000).step_by(4)).await;
        rt.sleep(Nanos::from_secs(3_600)).await;
        fs.unmount().await.expect("an unmount");
        let image = F2fsImage::open(&device.erased()).await.expect("a volume");
        let mut left = 0;
        for (nid, before) in after {
            let now = image.nat_entry(nid).await.expect("an entry").block_addr;
            assert_ne!(now, before, "node {}", nid.0);
            left += usize::from(now.is_block());
        }
        assert!(left > 0, "some of the files are left");
    });
}

/// A segment that loses its last block while its summaries are read for a log that is to go on in its holes becomes free with
/// the next checkpoint: the log goes on in another one.
#[test]
fn a_log_does_not_go_on_in_a_segment_that_was_emptied() {
    run(async |rt| {
        let options = MountOptions { background_gc: false, ..options(SmallVolume::Off) };
        let (device, fs) = on_late(&rt, &options, 1, |_| None).await;
        // The first segment of the log, and more than half of the next one.
        for (name, pages) in [("holder", 100), ("gone", 412), ("filler", 300)] {
            let file = create(&fs, name).await;
            write(&fs, file, 0, 1, pages).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
        let file = create(&fs, "file").await;
        fs.unlink(ME, fs.root(), b"gone").await.expect("no file");
        fs.unmount().await.expect("an unmount");
        let image = F2fsImage::open(&device.erased()).await.expect("a volume");
        let mut summaries = None;
        for number in (0..image.layout.main_segments()).map(SegNo) {
            let entry = image.sit_entry(number).await.expect("an entry");
            if entry.valid_blocks == 100 {
                summaries = image.layout.summary_block(number);
            }
        }
        let summaries = Lba(summaries.expect("the segment of the holder").0.into());
        let is_slow = move |bio: &Bio| bio.op == Op::Read && bio.lba == summaries;
        device.with(|late| {
            late.slow = Box::new(move |bio| is_slow(bio).then_some(Nanos::from_secs(10)));
        });
        let mount = async || F2fs::mount(&rt, device.erased(), options.clone()).await;
        let (fs, _) = mount().await.expect("a mount");
        write(&fs, file, 0, 10_000, 400).await;
        let syncer = fs.clone();
        let sync = rt.spawn("sync", async move { syncer.fsync(ME, file).await });
        rt.sleep(Nanos::from_secs(5)).await;
        fs.unlink(ME, fs.root(), b"holder").await.expect("no file");
        assert_eq!(fs.space().map(|space| space.prefree_segments), Some(1));
        assert!(!sync.is_finished(), "the summaries are being read");
        sync.await.expect("runs to its end").expect("a sync");
        fs.syncfs(ME).await.expect("a checkpoint");
        // What became free is discarded.
        rt.sleep(Nanos::from_secs(1)).await;
        fs.unmount().await.expect("an unmount");
        let report = check(&device.erased()).await.expect("a volume");
        assert!(report.is_clean(), "{}", shown(&report));
        let (fs, _) = mount().await.expect("a mount");
        assert!(content(&fs, file).await == expected(10_000, 400));
    });
}
