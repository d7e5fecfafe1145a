//! F2FS on zones: devices in memory whose zones are sections.

use crate::common::slow::LATENCY;
use crate::common::volume::run;
use nandscape_block::zone::{ZoneInfo, ZoneLimits};
use nandscape_block::{AsyncDevice, DeviceCaps, FakeDevice, Lba, Payload, Region, RegionKind, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::{Caller, Data, FileSystem, FsError, Io};
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::{F2fs, MountOptions, OmittedRule, ZoneGeometry};
use nandscape_rt::Handle;
use nandscape_rt::combine::join_all;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: u64 = 4_096;

/// Sectors of a segment.
const SEGMENT: u64 = 512;

/// A device with zones of so many segments and this capacity, all of `mib` MiB, behind what is writable at random for
/// the metadata of a volume.
pub(crate) fn zoned(segments: u64, capacity: u64, mib: u64) -> DeviceCaps {
    zoned_after(12, segments, capacity, mib)
}

/// The same after so many segments, up to a whole zone.
pub(crate) fn zoned_after(random: u64, segments: u64, capacity: u64, mib: u64) -> DeviceCaps {
    let zone_sectors = segments * SEGMENT;
    let limits = ZoneLimits {
        zone_sectors,
        capacity,
        max_open: 4,
        max_active: 7,
        append: false,
        write_sectors: 1,
    };
    let random = (random * SEGMENT).next_multiple_of(zone_sectors);
    let sectors = random + (mib << 8).next_multiple_of(zone_sectors);
    let regions = [
        Region::new(0..random, RegionKind::Random),
        Region::new(random..sectors, RegionKind::Zones(limits)),
    ];
    DeviceCaps { regions: regions.into(), ..DeviceCaps::conventional(sectors) }
}

type Device = AsyncDevice<FakeDevice>;

/// Makes a volume whose sections are the zones of a device.
pub(crate) async fn make(device: &AsyncDevice, options: MkfsOptions) {
    let zones = ZoneGeometry::of(device.caps()).expect("zones that can be sections");
    mkfs(device, &MkfsOptions { zones, ..options }).await.expect("mkfs");
}

/// All zones of a device, in order.
pub(crate) async fn zones_of(device: &AsyncDevice) -> Vec<ZoneInfo> {
    let start = device.caps().random_range().end;
    device.report_zones(Lba(start), u32::MAX).await.expect("a report")
}

/// A volume on small zones of a device that answers after 20 us.
async fn made(rt: &Handle) -> Device {
    let fake = FakeDevice::new(zoned(1, 512, 128)).expect("zones").with_latency(LATENCY);
    let device = AsyncDevice::new(rt, fake);
    make(&device.erased(), MkfsOptions::new(1)).await;
    device
}

async fn mounted(rt: &Handle, device: &Device, options: &MountOptions) -> F2fs {
    F2fs::mount(rt, device.erased(), options.clone()).await.expect("a mount").0
}

fn page(tag: u64) -> Data {
    Data::Sectors(Payload::Run(Tag::new(tag)), 1)
}

/// Rewrites and syncs files whose nodes are read again before they are written, all at once; writes that waited for
/// their turn, and how the syncs ended.
async fn sync_beside_others(
    rt: &Handle,
    omit: Option<OmittedRule>,
) -> (u64, Vec<Result<(), FsError>>) {
    let cache = CacheConfig {
        pages: 96,
        dirty_percent: 90,
        background_percent: 90,
        ..CacheConfig::default()
    };
    let options = MountOptions { nat_entries: 0, cache, omit, ..MountOptions::default() };
    let device = made(rt).await;
    let fs = mounted(rt, &device, &options).await;
    let mut files = Vec::new();
    for number in 0..900 {
        let name = format!("{number}");
        let ino = fs.create(ME, fs.root(), name.as_bytes(), 0o644).await.expect("a file").ino;
        if number % 75 == 0 {
            files.push(ino);
        }
    }
    let tasks = (0..).zip(files).map(|(tag, ino)| {
        let fs = fs.clone();
        rt.spawn("writer", async move {
            for round in 0..40 {
                // Each page has another node.
                for at in [0, 1_000, 2_100, 3_200] {
                    fs.write_all(ME, ino, at * PAGE, page(tag * 1_000 + round), Io::Buffered)
                        .await?;
                }
                fs.fsync(ME, ino).await?;
            }
            Ok(())
        })
    });
    let ended = join_all(tasks.collect::<Vec<_>>()).await;
    let ended = ended.into_iter().map(|ended| ended.expect("runs to its end")).collect();
    (fs.counts().detail.count("zones", "waits").unwrap_or(0), ended)
}

/// Blocks that were allocated before others of their log and come to the device after them: they wait, or the zone
/// refuses them.
#[test]
fn writes_wait_for_their_turn() {
    run(async |rt| {
        let (waits, ended) = sync_beside_others(&rt, None).await;
        assert!(waits > 0 && ended.iter().all(Result::is_ok), "{waits} waits: {ended:?}");
        let (_, ended) = sync_beside_others(&rt, Some(OmittedRule::ZoneOrder)).await;
        assert!(ended.iter().any(Result::is_err), "the zones took every write");
    });
}
