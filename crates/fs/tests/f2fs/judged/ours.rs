//! Volumes that we filled: unmounted, and cut off after fsyncs. The file `ours` has a line for each: its name,
//! the mount options with which it was written, in the kernel's words, and figures.

use super::{folder, recover, unmount, write_image, write_text};
use crate::churn::{Churn, Shape};
use crate::common::examine::assert_sound;
use crate::common::image::{Content, content};
use crate::common::oracle::asked;
use crate::common::volume::{loaded, memory, run};
use crate::common::{assert_clean, f2fs_tools};
use nandscape_fs::f2fs::{Allocation, FsyncMode, MountOptions, MountReport};
use nandscape_rt::{Handle, Nanos, Stream};
use std::fmt::Write;

/// Volumes of each kind: as many as `NANDSCAPE_F2FS_VOLUMES` says, from the seed `NANDSCAPE_F2FS_VOLUMES_FROM` on.
fn volumes() -> u64 {
    asked("NANDSCAPE_F2FS_VOLUMES", 24)
}

/// Logs of volumes that are unmounted, three of each in turn.
const FILLED_LOGS: [u8; 8] = [6, 4, 2, 6, 4, 2, 6, 4];
/// The same of those that are cut off. With two logs every fsync writes a checkpoint.
const CUT_LOGS: [u8; 8] = [6, 4, 6, 6, 4, 6, 6, 2];
/// [`Shape::placed`] of them, two of each in turn: normal logging, and adaptive logging without and with the kernel's rules
/// for small volumes.
const PLACED: [u64; 4] = [0, 1, 0, 2];
/// Bytes that are free when the calls begin, at most, so that cleaning runs.
const FREE: u64 = 24 << 20;

/// The layout of a volume: features, sections, logs, modes of fsync and of placing in turn.
fn shape(number: u64, logs: [u8; 8]) -> Shape {
    let section = if number % 4 == 3 { 4 } else { 1 };
    let logs = logs[(number / 3 % 8) as usize];
    let shape = Shape::new(number, (number % 3) as usize, section, logs);
    let mut shape = shape.placed(PLACED[(number / 2 % 4) as usize]);
    let modes = [FsyncMode::Posix, FsyncMode::Strict];
    shape.mount.fsync_mode = modes[(number % 2) as usize];
    shape
}

/// The same options in the kernel's words.
fn in_kernel(options: &MountOptions) -> String {
    let mode = match options.fsync_mode {
        FsyncMode::Posix => "posix",
        FsyncMode::Strict => "strict",
    };
    format!("active_logs={},fsync_mode={mode}", options.active_logs)
}

/// What placing blocks did in a volume.
struct Placed {
    /// Sections that were cleaned, in the foreground and in the background.
    cleaned: (u64, u64),
    /// Blocks in holes, and in place.
    adaptive: u64,
}

/// A volume after a sequence of calls in which cleaning ran, and an unmount.
async fn fill(rt: Handle, number: u64, name: String) -> Placed {
    let shape = shape(number, FILLED_LOGS);
    let device = memory(&rt, shape.sectors);
    let mut churn = Churn::begin(&rt, device.erased(), number, shape.clone()).await;
    churn.leave_free(FREE).await;
    churn.run(600).await;
    let is_cleaned = shape.mount.allocation == Allocation::Lfs;
    for _ in 0..8 {
        if is_cleaned && churn.cleaned().0 == 0 {
            churn.run(400).await;
        }
    }
    churn.compare().await;
    let placed = Placed { cleaned: churn.cleaned(), adaptive: churn.adaptive_blocks() };
    let manifest = unmount(&device.erased(), &churn.fs).await;
    let image = write_image(&name, shape.sectors, &content(&device));
    write_text(&format!("{name}.manifest"), &manifest);
    assert_clean(&image);
    assert_sound(&image);
    placed
}

/// What a power cut leaves: some calls, a checkpoint, and fsyncs after it. The cut takes what no flush covered, in part,
/// or nothing; in every third volume it comes in the midst of a call.
async fn cut(rt: Handle, number: u64, shape: Shape) -> Content {
    let mut rng = Stream::new(number, "cut");
    let device = memory(&rt, shape.sectors);
    let mut churn = Churn::begin(&rt, device.erased(), number, shape).await;
    churn.run([20, 150, 500][(rng.below(3)) as usize]).await;
    if number.is_multiple_of(2) {
        churn.leave_orphan().await;
    }
    churn.sync_all().await;
    churn.run_synced(rng.below(40)).await;
    for _ in 0..20 {
        // Until there is a chain.
        let before = churn.checkpoints();
        churn.run_synced(4 + rng.below(10)).await;
        if churn.checkpoints() == before {
            break;
        }
    }
    if number.is_multiple_of(3) {
        drop(rt.spawn_daemon("load", async move { churn.run_synced(1_000).await }));
        rt.sleep(Nanos::from_us(rng.below(400))).await;
    }
    if rng.chance(0.5) {
        device.with(|medium| medium.cut_power(&mut rng));
    }
    content(&device)
}

/// Cuts a volume off and recovers a copy: what there was to do.
fn cut_and_recover(number: u64, name: &str) -> MountReport {
    let mut shape = shape(number, CUT_LOGS);
    // So that a chain of fsyncs is there at the cut.
    shape.mount.checkpoint_interval = Nanos::from_secs(3_600);
    let (sectors, options) = (shape.sectors, shape.mount.clone());
    let left = run(async move |rt| cut(rt, number, shape).await);
    write_image(name, sectors, &left);
    let (report, manifest) = run(async move |rt| {
        let device = loaded(&rt, sectors, &left).await.erased();
        recover(&device, &rt, &options).await
    });
    write_text(&format!("{name}.manifest"), &manifest);
    report
}

#[test]
#[ignore = "makes volumes for tests/kernel-f2fs/check.py"]
fn make() {
    assert!(f2fs_tools(), "f2fs-tools are needed");
    let (mut list, mut uncleaned, mut unthreaded, mut rolled) = (String::new(), 0, 0, 0);
    let from = asked("NANDSCAPE_F2FS_VOLUMES_FROM", 0);
    for number in from..from + volumes() {
        let (filled, cut) = (format!("filled-{number}"), format!("cut-{number}"));
        let options = in_kernel(&shape(number, FILLED_LOGS).mount);
        let name = filled.clone();
        let Placed { cleaned, adaptive } = run(async move |rt| fill(rt, number, name).await);
        let figures = format!("cleaned={},{} adaptive={adaptive}", cleaned.0, cleaned.1);
        let _ = writeln!(list, "{filled} {options} {figures}");
        match shape(number, FILLED_LOGS).mount.allocation {
            Allocation::Lfs => uncleaned += u64::from(cleaned.0 == 0),
            Allocation::Adaptive => unthreaded += u64::from(adaptive == 0),
        }
        let options = in_kernel(&shape(number, CUT_LOGS).mount);
        let MountReport { files, nodes, blocks, orphans, .. } = cut_and_recover(number, &cut);
        let figures = format!("files={files} nodes={nodes} blocks={blocks} orphans={orphans}");
        let _ = writeln!(list, "{cut} {options} {figures}");
        rolled += files;
    }
    write_text("ours", &list);
    eprint!("{list}");
    assert!(uncleaned <= volumes() / 8, "cleaning did not run in {uncleaned} volumes");
    assert!(unthreaded <= volumes() / 8, "no block in a hole or in place in {unthreaded} volumes");
    assert!(rolled > 2 * volumes(), "there was something to roll forward: {rolled} files");
    assert!(folder().join("ours").exists());
}
