//! Logs that go on while zones are being reset.

use crate::common::files::{ME, content, create, expected, write};
use crate::common::slow::{LATENCY, Slow, with_slow};
use crate::journalled::options;
use crate::zoned::{make, zoned, zones_of};
use nandscape_block::zone::{ZoneId, ZoneState};
use nandscape_block::{AsyncDevice, FakeDevice};
use nandscape_fs::contract::FileSystem;
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::format::GcJournalFormat::Safe;
use nandscape_fs::f2fs::mkfs::MkfsOptions;
use nandscape_fs::f2fs::{AllocMode, F2fs, MountOptions};
use nandscape_rt::{Handle, Nanos};

/// Pages of the first file: some sections.
const PAGES: u64 = 3_000;
/// New files with an inode each, more than a zone has room for.
const FILES: u64 = 600;
/// How long a reset takes; write-back in the background writes old nodes meanwhile.
const RESET: Nanos = Nanos::from_secs(200);

/// Zones that hold something.
async fn written(device: &AsyncDevice) -> Vec<ZoneId> {
    let zones = (0..).map(ZoneId).zip(zones_of(device).await);
    zones.filter(|(_, info)| info.state != ZoneState::Empty).map(|(zone, _)| zone).collect()
}

/// Zones that are being reset, once some are.
async fn resetting(rt: &Handle, device: &AsyncDevice<Slow>) -> Vec<ZoneId> {
    for _ in 0..10_000 {
        let zones = device.with(|slow| slow.resetting());
        if !zones.is_empty() {
            return zones;
        }
        rt.sleep(Nanos::from_us(100)).await;
    }
    panic!("no reset");
}

/// A section that the GC journal made free is not written before its reset has ended, although it is the first one and a log
/// goes to the first free section meanwhile.
#[test]
fn no_log_goes_to_a_zone_that_is_being_reset() {
    let fake = FakeDevice::new(zoned(1, 512, 80)).expect("zones").with_latency(LATENCY);
    with_slow(Slow::new(fake), async |rt, device| {
        // Cleaning begins early, so that it needs no checkpoint.
        let made = MkfsOptions {
            gc_journal: true,
            overprovision: Some(10.0),
            reserved_segments: Some(20),
            ..MkfsOptions::new(1)
        };
        make(&device.erased(), made).await;
        let options = MountOptions {
            alloc_mode: AllocMode::Reuse,
            background_gc: false,
            checkpoint_interval: Nanos::from_secs(3_600),
            ..options(Safe, None)
        };
        let (fs, _) = F2fs::mount(&rt, device.erased(), options).await.expect("a mount");
        let (old, new) = (create(&fs, "old").await, create(&fs, "new").await);
        write(&fs, old, 0, 1, PAGES as u32).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        // Most of the first section where no log began.
        write(&fs, old, 520, 521, 496).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        for number in 0..FILES {
            create(&fs, &format!("{number}")).await;
        }
        device.with(|slow| slow.reset_latency = RESET);
        let volume = fs.clone();
        let writer = rt.spawn("writer", async move {
            for page in (0..5_120).step_by(512) {
                write(&volume, new, page, 10_000 + page, 512).await;
                volume.fdatasync(ME, new).await.expect("a sync");
            }
        });
        let reset = resetting(&rt, &device).await;
        let before = written(&device.erased()).await;
        rt.sleep(Nanos::from_secs(120)).await;
        let beside = device.with(|slow| slow.resetting());
        let mut opened = written(&device.erased()).await;
        opened.retain(|zone| !before.contains(zone));
        device.with(|slow| slow.reset_latency = LATENCY);
        writer.await.expect("writes and syncs that succeed");
        assert!(content(&fs, old).await == expected(1, PAGES as u32), "the old file");
        assert!(content(&fs, new).await == expected(10_000, 5_120), "the new file");
        assert_eq!(beside, reset, "the reset took all the time");
        assert!(opened.first() > reset.last(), "opened: {opened:?}; in reset: {reset:?}");
        fs.unmount().await.expect("an unmount");
        let report = check(&device.erased()).await.expect("a volume that can be checked");
        assert!(report.is_clean(), "{:?}", report.findings);
    });
}
