//! Calls beside checkpoints, discards and write-back in the background, on a device that takes its time.

use crate::common::files::{ME, PAGE, content, create, expected, write};
use crate::common::image::sectors;
use crate::common::volume::{after_recovery, assert_sound, loaded, made, mounted, run};
use crate::late::Late;
use nandscape_block::{AsyncDevice, Bio, BlockDevice, Flags, MemDevice, Op, Payload, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Data, FileSystem, FsError, Ino, Io, SetAttr};
use nandscape_fs::f2fs::format::Features;
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::{AllocMode, F2fs, MountOptions};
use nandscape_rt::{Handle, JoinHandle, Nanos};

const MIB: u64 = 1 << 20;

/// A mounted volume of 64 MiB on a device whose bios take as long as a rule says, or a microsecond.
pub(crate) async fn on_late(
    rt: &Handle,
    options: &MountOptions,
    seed: u64,
    rule: impl FnMut(&Bio) -> Option<Nanos> + 'static,
) -> (AsyncDevice<Late>, F2fs) {
    let medium = MemDevice::new(64 * MIB / PAGE);
    let device = AsyncDevice::new(rt, Late::new(medium, seed, 0));
    let made = MkfsOptions { fresh: true, ..MkfsOptions::new(1) };
    mkfs(&device.erased(), &made).await.expect("a file system");
    device.with(|late| late.slow = Box::new(rule));
    let (fs, _) = F2fs::mount(rt, device.erased(), options.clone()).await.expect("a mount");
    (device, fs)
}

/// How long bios of a file take: its first nodes, and its data.
pub(crate) fn slow_file(file: Ino, nodes: Nanos, data: Nanos) -> impl FnMut(&Bio) -> Option<Nanos> {
    let mut is_first = true;
    move |bio| {
        let is_write = bio.op == Op::Write && bio.owner.is_some_and(|owner| owner.file == file.0);
        match (is_write, bio.flags.has(Flags::META)) {
            (true, true) => std::mem::take(&mut is_first).then_some(nodes),
            (true, false) => Some(data),
            _ => None,
        }
    }
}

/// An fsync beside the test.
pub(crate) fn sync(rt: &Handle, fs: &F2fs, file: Ino) -> JoinHandle<Result<(), FsError>> {
    let fs = fs.clone();
    rt.spawn("sync", async move { fs.fsync(ME, file).await })
}

/// Two fsyncs beside the test that have only the inode to write, a second apart: the second one has its nodes to send when
/// those of the first have ended.
pub(crate) async fn syncs_in_turn(
    rt: &Handle,
    fs: &F2fs,
    file: Ino,
) -> Vec<JoinHandle<Result<(), FsError>>> {
    let mut syncs = Vec::new();
    for mode in [0o600, 0o700] {
        let change = SetAttr { mode: Some(mode), ..SetAttr::default() };
        fs.setattr(ME, file, change).await.expect("another mode");
        syncs.push(sync(rt, fs, file));
        rt.sleep(Nanos::from_secs(1)).await;
    }
    syncs
}

/// A file that is clean since a checkpoint has taken it is durable when its fsync ends, and not before that checkpoint is.
#[test]
fn an_fsync_beside_a_checkpoint_waits_for_it() {
    let is_last = |bio: &Bio| bio.flags.has(Flags::PREFLUSH | Flags::FUA);
    for seed in 0..8 {
        let left = run(async move |rt| {
            let options = MountOptions::default();
            let slow = move |bio: &Bio| is_last(bio).then_some(Nanos::from_secs(1));
            let (device, fs) = on_late(&rt, &options, seed, slow).await;
            let file = create(&fs, "file").await;
            write(&fs, file, 0, 1, 3).await;
            let all = fs.clone();
            let sync = rt.spawn("sync", async move { all.syncfs(ME).await });
            rt.sleep(Nanos::from_ms(500)).await;
            fs.fsync(ME, file).await.expect("a sync");
            let left = device.with(Late::cut);
            drop(sync);
            let left = loaded(&rt, left.caps().sectors, &sectors(&left)).await;
            let fs = mounted(&rt, &left, &options).await;
            let file = fs.lookup(ME, fs.root(), b"file").await.expect("the file").ino;
            assert!(content(&fs, file).await == expected(1, 3), "seed {seed}");
            fs.unmount().await.expect("an unmount");
            left
        });
        assert_sound(&left);
    }
}

/// With ordered data an fsync sends no nodes that lead to a block which is still being written, by another sync of the file
/// or past the page cache: their flush would not cover it, and the page would show what the block held before.
#[test]
fn an_fsync_beside_another_leads_to_no_data_in_flight() {
    for (io, seed) in
        [Io::Buffered, Io::Direct].into_iter().flat_map(|io| (0..8).map(move |seed| (io, seed)))
    {
        run(async move |rt| {
            let options = MountOptions { ordered_data: true, ..MountOptions::default() };
            let (device, fs) = on_late(&rt, &options, seed, |_| None).await;
            let file = create(&fs, "file").await;
            write(&fs, file, 0, 1, 1).await;
            fs.syncfs(ME).await.expect("a checkpoint");
            let slow = slow_file(file, Nanos::from_secs(10), Nanos::from_secs(100));
            device.with(|late| late.slow = Box::new(slow));
            let writer = fs.clone();
            let put = async move {
                let data = Data::Sectors(Payload::Run(Tag::new(100)), 1);
                writer.write_all(ME, file, 0, data, io).await
            };
            match io {
                Io::Buffered => {
                    let mut syncs = syncs_in_turn(&rt, &fs, file).await;
                    put.await.expect("a write");
                    syncs.push(sync(&rt, &fs, file));
                }
                Io::Direct => {
                    rt.spawn("direct write", put);
                    rt.sleep(Nanos::from_secs(1)).await;
                    sync(&rt, &fs, file);
                }
            }
            rt.sleep(Nanos::from_secs(20)).await;
            let left = device.with(Late::cut);
            let left = loaded(&rt, left.caps().sectors, &sectors(&left)).await;
            let fs = mounted(&rt, &left, &options).await;
            let shown = content(&fs, file).await;
            assert!(shown == expected(1, 1) || shown == expected(100, 1), "{io:?}, seed {seed}");
        });
    }
}

/// A node that write-back in the background has written brings nothing back after a cut: the next fdatasync of its file
/// writes one that does.
#[test]
fn an_fdatasync_after_write_back_is_rolled_forward() {
    let device = run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let options = MountOptions {
            checkpoint_interval: Nanos::from_secs(3_600),
            ..MountOptions::default()
        };
        let fs = mounted(&rt, &device, &options).await;
        let file = create(&fs, "file").await;
        write(&fs, file, 0, 1, 3).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        write(&fs, file, 0, 100, 3).await;
        // Data are old after half a minute, and nodes that lead to them half a minute later.
        rt.sleep(Nanos::from_secs(120)).await;
        fs.fdatasync(ME, file).await.expect("a sync");
        after_recovery(&rt, &device, (&options, 1), async |fs| {
            assert!(content(fs, file).await == expected(100, 3));
        })
        .await
    });
    assert_sound(&device);
}

/// A segment whose discard is in flight is not written: what was written there would be gone when the discard ends.
#[test]
fn no_log_goes_to_a_segment_that_is_being_discarded() {
    run(async |rt| {
        let options = MountOptions { alloc_mode: AllocMode::Reuse, ..MountOptions::default() };
        let slow = |bio: &Bio| (bio.op == Op::Discard).then_some(Nanos::from_secs(5));
        let (device, fs) = on_late(&rt, &options, 1, slow).await;
        let old = create(&fs, "old").await;
        write(&fs, old, 0, 1, 2_048).await;
        fs.fsync(ME, old).await.expect("a sync");
        fs.unlink(ME, fs.root(), b"old").await.expect("no file");
        fs.syncfs(ME).await.expect("a checkpoint");
        rt.sleep(Nanos::from_secs(1)).await;
        let discards = fs.counts().detail.count("discard", "requests");
        assert!(discards.is_some_and(|sent| sent > 0), "{discards:?}");
        let new = create(&fs, "new").await;
        write(&fs, new, 0, 10_000, 2_048).await;
        fs.fsync(ME, new).await.expect("a sync");
        rt.sleep(Nanos::from_secs(10)).await;
        fs.unmount().await.expect("an unmount");
        let (fs, _) = F2fs::mount(&rt, device.erased(), options).await.expect("a mount");
        assert!(content(&fs, new).await == expected(10_000, 2_048));
    });
}

/// Nothing is left in memory of a direct write that fails after cleaning has moved its first blocks: the file reads as
/// zeroes where it grows again.
#[test]
fn a_failed_write_leaves_nothing_after_the_end() {
    run(async |rt| {
        let options = MountOptions::default();
        let (device, fs) = on_late(&rt, &options, 1, |_| None).await;
        let old = create(&fs, "old").await;
        write(&fs, old, 0, 1, 400).await;
        fs.fsync(ME, old).await.expect("a sync");
        let file = create(&fs, "file").await;
        fs.syncfs(ME).await.expect("a checkpoint");
        // The rest of the segment gets the first blocks of the file.
        fs.unlink(ME, fs.root(), b"old").await.expect("no file");
        let mut sent = 0;
        device.with(|late| {
            late.refuse = Box::new(move |bio| {
                let is_of_file = bio.owner.is_some_and(|owner| owner.file == file.0);
                sent += u32::from(is_of_file && bio.op == Op::Write);
                is_of_file && bio.op == Op::Write && sent > 1
            });
        });
        let data = Data::Sectors(Payload::Run(Tag::new(1_000)), 600);
        let written = fs.write(ME, file, 0, data, Io::Direct).await;
        assert!(matches!(written, Err(FsError::Io(_))), "{written:?}");
        let moved = fs.counts().detail.count("gc", "data_blocks");
        assert!(moved.is_some_and(|moved| moved > 0), "{moved:?}");
        device.with(|late| late.refuse = Box::new(|_| false));
        let bytes = Data::Bytes(vec![7; 10]);
        fs.write_all(ME, file, 50 * PAGE, bytes, Io::Buffered).await.expect("a write");
        let mut grown = vec![0; 50 * PAGE as usize];
        grown.extend([7; 10]);
        assert!(content(&fs, file).await == grown);
    });
}
