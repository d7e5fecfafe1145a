//! Where the chain of fsyncs begins after a mount on zones.

use crate::common::files::{ME, content, create, expected, write};
use crate::common::slow::{LATENCY, Slow, with};
use crate::zoned::{make, zoned, zones_of};
use nandscape_block::zone::{ZoneAction, ZoneId, ZoneState};
use nandscape_block::{AsyncDevice, FakeDevice, Lba};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::FileSystem;
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::format::SegmentType;
use nandscape_fs::f2fs::mkfs::MkfsOptions;
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_fs::f2fs::{F2fs, MountOptions, MountReport};
use nandscape_rt::{Handle, Stream};

/// Files with an inode each, more than a zone has room for.
const FILES: u32 = 600;

async fn mounted(rt: &Handle, device: AsyncDevice) -> (F2fs, MountReport) {
    F2fs::mount(rt, device, MountOptions::default()).await.expect("a mount")
}

/// The zone of the warm node log of the last checkpoint, and its state.
async fn zone_of_chain(device: &AsyncDevice) -> (ZoneId, ZoneState) {
    let image = F2fsImage::open(device).await.expect("a volume");
    let log = image.checkpoint.log(SegmentType::WarmNode);
    let start = Lba(image.layout.block(log.segno, 0).expect("a block").0.into());
    let zones = zones_of(device).await;
    let zone = zones.iter().position(|zone| zone.start == start).expect("a zone");
    (ZoneId(zone as u32), zones[zone].state)
}

/// A device may finish a zone by itself. If it was that of the warm node log, an fsync after the next mount is rolled
/// forward all the same: the mount moved the log, and its checkpoint says where to.
#[test]
fn an_fsync_after_a_mount_that_finds_the_zone_of_the_chain_full_is_rolled_forward() {
    let fake = FakeDevice::new(zoned(1, 512, 128)).expect("zones").with_latency(LATENCY);
    let (mut device, ()) = with(Slow::new(fake), async |rt, device| {
        make(&device, MkfsOptions::new(1)).await;
        let (fs, _) = mounted(&rt, device).await;
        write(&fs, create(&fs, "old").await, 0, 1, 3).await;
        // The log began in a section before the first zone.
        for number in 0..FILES {
            create(&fs, &format!("{number}")).await;
        }
        fs.syncfs(ME).await.expect("a checkpoint");
    });
    device.fake.cut_power(&mut Stream::new(1, "cut"));
    let (mut device, ()) = with(device, async |rt, device| {
        let (zone, state) = zone_of_chain(&device).await;
        assert_eq!(state, ZoneState::Closed, "the log would go on there");
        device.manage_zone(zone, ZoneAction::Finish).await.expect("a full zone");
        let (fs, report) = mounted(&rt, device).await;
        assert_eq!(report, MountReport::default());
        let checkpoints = || fs.counts().detail.count("checkpoint", "count");
        let before = checkpoints();
        let new = create(&fs, "new").await;
        write(&fs, new, 0, 100, 3).await;
        fs.fsync(ME, new).await.expect("a sync");
        assert_eq!(checkpoints(), before, "the chain alone has the file");
    });
    device.fake.cut_power(&mut Stream::new(2, "cut"));
    with(device, async |rt, device| {
        let (fs, report) = mounted(&rt, device.clone()).await;
        for (name, tag) in [("old", 1), ("new", 100)] {
            let file = fs.lookup(ME, fs.root(), name.as_bytes()).await.expect("the file").ino;
            assert!(content(&fs, file).await == expected(tag, 3), "{name}");
        }
        assert_eq!(report.files, 1, "files that were rolled forward");
        fs.unmount().await.expect("an unmount");
        let report = check(&device).await.expect("a volume that can be checked");
        assert!(report.is_clean(), "{:?}", report.findings);
    });
}
