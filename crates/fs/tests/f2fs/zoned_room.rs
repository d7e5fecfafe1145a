//! Sections that cleaning on zones leaves free: a mount after a power cut may need one for each log.

use crate::common::files::{ME, PAGE, content, create, expected, write};
use crate::common::slow::{LATENCY, Slow, with, with_slow};
use crate::journalled::options;
use crate::zoned::{make, zoned_after};
use nandscape_block::{AsyncDevice, FakeDevice, Lba};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::FileSystem;
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::format::GcJournalFormat::Safe;
use nandscape_fs::f2fs::format::{SegNo, SegmentType};
use nandscape_fs::f2fs::mkfs::MkfsOptions;
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::{Handle, Nanos, Stream};

/// Pages of the file that is cleaned: whole sections.
const PAGES: u64 = 13 * 512;
/// Pages of the file of cold data at the checkpoint, so that its log is in the midst of a section.
const COLD: u64 = 100;
/// A page that an indirect node leads to.
const FAR: u64 = 5_000;

/// A GC journal makes what cleaning moves durable without a checkpoint, and none is written for its age.
fn mount_options() -> MountOptions {
    MountOptions {
        background_gc: false,
        checkpoint_interval: Nanos::from_secs(3_600),
        ..options(Safe, None)
    }
}

async fn open(device: &AsyncDevice) -> F2fsImage {
    F2fsImage::open(device).await.expect("a volume")
}

/// Segments of the logs in the last checkpoint.
fn logs(image: &F2fsImage) -> [SegNo; 6] {
    SegmentType::ALL.map(|log| image.checkpoint.log(log).segno)
}

/// Blocks written to each log since mount.
fn written(fs: &F2fs) -> [Option<u64>; 6] {
    let counts = fs.counts().detail;
    ["hot_data", "warm_data", "cold_data", "hot_node", "warm_node", "cold_node"]
        .map(|log| counts.count("log_blocks", log))
}

/// A file of full sections, and others; then a checkpoint.
async fn fill(fs: &F2fs) {
    for (name, tag, pages) in
        [("data", 0, PAGES), ("hot.db", 100_000, 16), ("cold.mp4", 200_000, COLD)]
    {
        write(fs, create(fs, name).await, 0, tag, pages as u32).await;
    }
    fs.syncfs(ME).await.expect("a checkpoint");
}

/// Writes to all logs, without a checkpoint. A page of each section is written over, so that no section is free before the next
/// checkpoint.
async fn write_everywhere(rt: &Handle, fs: &F2fs) {
    // An inode, a node, an indirect node and a name.
    let far = create(fs, "far").await;
    write(fs, far, FAR, 300_000, 1).await;
    fs.fsync(ME, far).await.expect("a sync");
    // Write-back in the background writes nodes of directories.
    rt.sleep(Nanos::from_secs(120)).await;
    let hot = fs.lookup(ME, fs.root(), b"hot.db").await.expect("the file").ino;
    write(fs, hot, 0, 400_000, 16).await;
    fs.fsync(ME, hot).await.expect("a sync");
    let data = fs.lookup(ME, fs.root(), b"data").await.expect("the file").ino;
    for page in (0..PAGES).step_by(512) {
        write(fs, data, page, 500_000 + page, 1).await;
    }
    fs.fsync(ME, data).await.expect("a sync");
}

/// Waits until a checkpoint is being written: a pack is begun, and its last block not written.
async fn checkpoint_begins(rt: &Handle, device: &AsyncDevice<Slow>, image: &F2fsImage) {
    let first = |pack| Lba(image.layout.pack(pack).0.into());
    let packs = || device.with(|slow| [0, 1].map(|pack| slow.fake.current(first(pack))));
    let before = packs();
    for _ in 0..200_000 {
        if packs() != before {
            return;
        }
        rt.sleep(Nanos::from_us(5)).await;
    }
    panic!("no checkpoint");
}

/// Adds cold data until cleaning writes a checkpoint, and returns in the midst of that.
async fn clean(rt: &Handle, fs: &F2fs, device: &AsyncDevice<Slow>, image: &F2fsImage) {
    let volume = fs.clone();
    let writer = async move {
        let cold = volume.lookup(ME, volume.root(), b"cold.mp4").await.expect("the file").ino;
        for page in (COLD..).step_by(512) {
            write(&volume, cold, page, 200_000 + page, 512).await;
            volume.fsync(ME, cold).await.expect("a sync");
        }
    };
    drop(rt.spawn("writer", writer));
    checkpoint_begins(rt, device, image).await;
}

/// What "data" holds.
fn overwritten() -> Vec<u8> {
    let mut bytes = expected(0, PAGES as u32);
    for page in (0..PAGES).step_by(512) {
        let at = (page * PAGE) as usize;
        bytes[at..at + PAGE as usize].copy_from_slice(&expected(500_000 + page, 1));
    }
    bytes
}

/// What was synced is there after a cut.
async fn assert_synced(fs: &F2fs) {
    let file = async |name: &str| {
        let ino = fs.lookup(ME, fs.root(), name.as_bytes()).await.expect("the file").ino;
        content(fs, ino).await
    };
    assert!(file("data").await == overwritten());
    assert!(file("hot.db").await == expected(400_000, 16));
    assert!(file("far").await.ends_with(&expected(300_000, 1)));
    let cold = file("cold.mp4").await;
    let pages = cold.len() as u64 / PAGE;
    assert!(pages > COLD + 512 && cold == expected(200_000, pages as u32), "{pages} pages");
}

/// Power fails when cleaning in the foreground has used up what it may before a checkpoint. All six logs of the last one have
/// written further since, so the mount goes on in six fresh sections, and needs them before any other section is free.
#[test]
fn a_mount_after_a_cut_has_a_section_for_each_log() {
    // All sections are zones.
    let caps = zoned_after(8, 1, 512, 88);
    let fake = FakeDevice::new(caps).expect("zones").with_latency(LATENCY);
    let (mut device, before) = with_slow(Slow::new(fake), async |rt, device| {
        // Few sections more than a checkpoint is written at.
        let made = MkfsOptions {
            gc_journal: true,
            overprovision: Some(10.0),
            reserved_segments: Some(12),
            ..MkfsOptions::new(1)
        };
        make(&device.erased(), made).await;
        let (fs, _) = F2fs::mount(&rt, device.erased(), mount_options()).await.expect("a mount");
        fill(&fs).await;
        let (image, at_checkpoint) = (open(&device.erased()).await, written(&fs));
        write_everywhere(&rt, &fs).await;
        clean(&rt, &fs, &device, &image).await;
        let grew = written(&fs).into_iter().zip(at_checkpoint).all(|(now, then)| now > then);
        assert!(grew, "blocks of logs: {:?}, {at_checkpoint:?} before", written(&fs));
        let count = |group, what| fs.counts().detail.count(group, what);
        assert_eq!(count("checkpoint", "count"), Some(1), "checkpoints that have ended");
        assert!(count("gc", "foreground_sections") > Some(1), "sections that were cleaned");
        logs(&image)
    });
    device.fake.cut_power(&mut Stream::new(1, "cut"));
    with(device, async move |rt, device| {
        let mounted = F2fs::mount(&rt, device.clone(), mount_options()).await;
        let (fs, report) = mounted.expect("a mount");
        assert!(report.moves > 0 && report.files == 4, "{report:?}");
        let after = logs(&open(&device).await);
        let stays = after.iter().any(|segment| before.contains(segment));
        assert!(!stays, "logs were in {before:?}, and are in {after:?}");
        assert_synced(&fs).await;
        fs.unmount().await.expect("an unmount");
        let report = check(&device).await.expect("a volume that can be checked");
        assert!(report.is_clean(), "{:?}", report.findings);
    });
}
