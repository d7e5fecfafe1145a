//! Volumes on zones that we filled, with resets and cleaning, and unmounted, for `tests/kernel-f2fs/zoned.py --ours`. The file
//! `zoned` has a line for each: its name, blocks before the zones, size and capacity of a zone in blocks. `NAME.written`
//! lists what zones hold.

use super::{folder, unmount, write_image, write_text};
use crate::churn::{Churn, Shape};
use crate::common::oracle::asked;
use crate::common::volume::run;
use crate::zoned::zoned;
use nandscape_block::zone::{ZoneInfo, ZoneState};
use nandscape_block::{AsyncDevice, FakeDevice, Lba, SectorData, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::f2fs::ZoneGeometry;
use nandscape_rt::{Handle, Nanos};
use std::fmt::Write;

/// Segments and capacity in blocks of a zone, MiB of all zones.
const ZONES: [(u64, u64, u64); 4] = [(1, 512, 80), (4, 2_048, 224), (8, 3_072, 480), (2, 800, 128)];
/// Bytes that are free when the calls begin, at most, so that cleaning runs.
const FREE: u64 = 6 << 20;

/// What the kernel's guest writes to zones before it mounts a volume.
fn written(infos: &[ZoneInfo]) -> String {
    let mut lines = String::new();
    for info in infos.iter().filter(|info| info.state != ZoneState::Empty) {
        let is_finished = info.state == ZoneState::Full && info.write_pointer != info.end();
        let full = if is_finished { " full" } else { "" };
        let _ = writeln!(lines, "{} {}{full}", info.start.0, info.written());
    }
    lines
}

/// A volume after a sequence of calls and an unmount; zones that were reset, sections that were cleaned in the foreground.
async fn fill(rt: Handle, number: u64, name: String) -> (u64, u64) {
    let (segments, capacity, mib) = ZONES[(number % 4) as usize];
    let caps = zoned(segments, capacity, mib);
    let (sectors, random) = (caps.sectors, caps.random_range().end);
    let geometry = ZoneGeometry::of(&caps).expect("zones that can be sections");
    let fake = FakeDevice::new(caps).expect("zones").with_latency(Nanos::from_us(20));
    let device = AsyncDevice::new(&rt, fake);
    let logs = [6, 4, 2][(number % 3) as usize];
    let mut shape = Shape::new(number, (number / 4 % 3) as usize, segments as u32, logs);
    shape.made.zones = geometry;
    let mut churn = Churn::begin(&rt, device.erased(), number, shape).await;
    churn.leave_free(FREE).await;
    churn.run(1_000).await;
    let resets = churn.fs.counts().detail.count("zones", "resets").unwrap_or(0);
    let cleaned = churn.cleaned().0;
    churn.compare().await;
    let manifest = unmount(&device.erased(), &churn.fs).await;
    let content = device.with(|medium| {
        let all = (0..sectors).map(|at| (at, medium.current(Lba(at))));
        all.filter(|(_, content)| *content != SectorData::Tag(Tag::ZERO)).collect()
    });
    write_image(&name, sectors, &content);
    write_text(&format!("{name}.manifest"), &manifest);
    let zones = (sectors - random) / (segments * 512);
    let infos = device.erased().report_zones(Lba(random), zones as u32).await.expect("a report");
    write_text(&format!("{name}.written"), &written(&infos));
    (resets, cleaned)
}

#[test]
#[ignore = "makes volumes for tests/kernel-f2fs/zoned.py"]
fn make() {
    let (mut list, mut all) = (String::new(), (0, 0));
    let from = asked("NANDSCAPE_F2FS_VOLUMES_FROM", 0);
    for number in from..from + asked("NANDSCAPE_F2FS_VOLUMES", 8) {
        let name = format!("zoned-{number}");
        let (segments, capacity, mib) = ZONES[(number % 4) as usize];
        let random = zoned(segments, capacity, mib).random_range().end;
        let made = name.clone();
        let (resets, cleaned) = run(async move |rt| fill(rt, number, made).await);
        let figures = format!("resets={resets} cleaned={cleaned}");
        let _ = writeln!(list, "{name} {random} {} {capacity} {figures}", segments * 512);
        all = (all.0 + resets, all.1 + cleaned);
    }
    write_text("zoned", &list);
    eprint!("{list}");
    assert!(all.0 > 0 && all.1 > 0, "resets and sections that were cleaned: {all:?}");
    assert!(folder().join("zoned").exists());
}
