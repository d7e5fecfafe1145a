//! Devices in memory with append-only regions, and what they say of a volume.

use crate::common::slow::{LATENCY, Slow, with};
use nandscape_block::{BlockDevice, DeviceCaps, FakeDevice, Region, RegionKind, Superblocks};
use nandscape_fs::CheckReport;
use nandscape_fs::f2fs::AppendGeometry;
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::format::SegNo;
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::raw::F2fsImage;

/// Sectors of a segment.
pub(super) const SEGMENT: u64 = 512;
/// Segments that are writable at random.
pub(super) const METADATA: u64 = 16;
/// Segments that the media hold beside these.
const MEDIA: u64 = 40;

/// The interval device: six regions, with gaps between.
pub(super) fn interval() -> DeviceCaps {
    let region = |index: u64| {
        let start = (METADATA + index * 1_024) * SEGMENT;
        Region::new(start..start + 1_000 * SEGMENT, RegionKind::Append)
    };
    let front = Region::new(0..METADATA * SEGMENT, RegionKind::Random);
    let regions: Vec<_> = std::iter::once(front).chain((0..6).map(region)).collect();
    let sectors = regions[6].range.end;
    DeviceCaps {
        regions: regions.into(),
        live_sectors_max: (METADATA + MEDIA) * SEGMENT,
        ..DeviceCaps::conventional(sectors)
    }
}

/// The coupled device: superblocks of a segment, of which three may be partly written; each region as large as 1.6 times
/// the media.
pub(super) fn coupled() -> DeviceCaps {
    coupled_with(MEDIA * 16 / 10)
}

/// The same with regions of so many superblocks.
pub(super) fn coupled_with(regions: u64) -> DeviceCaps {
    let region = |index: u64, kind| {
        let start = (METADATA + index * 128) * SEGMENT;
        Region::new(start..start + regions * SEGMENT, kind)
    };
    let regions = [
        Region::new(0..METADATA * SEGMENT, RegionKind::Random),
        region(0, RegionKind::Append),
        region(2, RegionKind::DeviceOwned { of: 1 }),
        region(3, RegionKind::Append),
        region(6, RegionKind::DeviceOwned { of: 3 }),
    ];
    let sectors = regions[4].range.end;
    DeviceCaps {
        regions: regions.into(),
        live_sectors_max: (METADATA + MEDIA) * SEGMENT,
        superblocks: Some(Superblocks { sectors: SEGMENT as u32, open_max: 3 }),
        raises_attention: true,
        ..DeviceCaps::conventional(sectors)
    }
}

/// A device that answers after 20 us, and moves `moves` sectors of each region after each 48 that were written.
pub(super) fn device(caps: DeviceCaps, moves: u32) -> Slow {
    let fake = FakeDevice::new(caps).expect("regions of a device");
    let mut device = Slow::new(fake.with_latency(LATENCY).with_collector(48, moves));
    device.late = 0.02;
    device
}

/// How a volume is made on a device.
pub(super) fn options(caps: &DeviceCaps, seed: u64) -> MkfsOptions {
    let append = AppendGeometry::of(caps).expect("regions for F2FS");
    MkfsOptions { append: append.map(Box::new), fresh: true, ..MkfsOptions::new(seed) }
}

/// The device with a new volume.
pub(super) fn made(device: Slow, seed: u64) -> Slow {
    with(device, async move |_, device| {
        let options = options(device.caps(), seed);
        mkfs(&device, &options).await.expect("a volume");
    })
    .0
}

/// Live sectors of the regions of logs.
pub(super) fn live(device: &Slow) -> u64 {
    device.fake.live_sectors(METADATA * SEGMENT..device.caps().sectors)
}

/// What our check says of an unmounted volume, and its valid blocks by the SIT: what is reserved and was never written is
/// not among them.
pub(super) fn checked(device: Slow) -> (Slow, CheckReport, u64) {
    let (device, (report, valid)) = with(device, async |_, device| {
        let image = F2fsImage::open(&device).await.expect("a volume");
        let mut valid = 0;
        for segment in 0..image.layout.main_segments() {
            let entry = image.sit_entry(SegNo(segment)).await.expect("an entry");
            valid += u64::from(entry.valid_blocks);
        }
        (check(&device).await.expect("a volume that can be checked"), valid)
    });
    (device, report, valid)
}

/// Nothing is wrong with an unmounted volume, and the device holds its blocks and no others.
#[track_caller]
pub(super) fn assert_exact(device: Slow) -> Slow {
    let (device, report, valid) = checked(device);
    let shown: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    assert!(report.is_clean(), "{shown:#?}");
    assert_eq!(live(&device), valid, "live sectors of the device, valid blocks of the volume");
    device
}

/// Whether that is so.
pub(super) fn is_exact(device: Slow) -> bool {
    let (device, report, valid) = checked(device);
    report.is_clean() && live(&device) == valid
}
