//! Interleavings in words: whom syncs, unmounts and throttled writers wait for, and what calls that are
//! dropped or come too late leave behind.

use super::*;
use nandscape_fs::contract::{Allocate, FsError};
use nandscape_rt::combine::{join2, timeout};
use std::cell::Cell;
use std::rc::Rc;

/// Write-back starts early.
fn eager() -> MountOptions {
    let cache = CacheConfig { pages: 4_000, background_percent: 1, ..CacheConfig::default() };
    MountOptions { cache, ..MountOptions::default() }
}

/// A file `f` of 64 pages that have their blocks, written again; the device has got the new content
/// and takes 5 ms for it.
async fn written_back(stand: &Stand) -> Ext4 {
    let fs = stand.mount(&eager()).await;
    let file = create(&fs, fs.root(), "f").await;
    put(&fs, file, 0, 1, 64, Io::Buffered).await;
    fs.syncfs(ME).await.expect("power is on");
    stand.slow(|bio| is_data(bio).then_some(Nanos::from_ms(5)));
    put(&fs, file, 0, 9, 64, Io::Buffered).await;
    stand.rt.sleep(Nanos::from_us(100)).await;
    fs
}

/// How much of `f` is not as it was written last.
fn lost(medium: MemDevice) -> usize {
    on_quick(medium, async |stand| {
        let fs = stand.mount(&eager()).await;
        let file = lookup(&fs, "f").await;
        let read = get(&fs, file, Io::Buffered).await;
        fs.unmount().await.expect("an unmount");
        stand.assert_sound().await;
        assert_eq!(read.len() as u64, 64 * PAGE);
        others(&read, 9)
    })
}

/// A sync of everything waits for what is on its way to the device already.
#[test]
fn syncfs_waits_for_write_back_under_way() {
    let left = on_quick(formatted(ROOMY), async |stand| {
        let fs = written_back(&stand).await;
        fs.syncfs(ME).await.expect("power is on");
        stand.cut()
    });
    assert_eq!(lost(left), 0, "bytes are lost");
}

/// So does an unmount.
#[test]
fn unmount_waits_for_write_back_under_way() {
    let left = on_quick(formatted(ROOMY), async |stand| {
        let fs = written_back(&stand).await;
        fs.unmount().await.expect("an unmount");
        stand.cut()
    });
    assert_eq!(lost(left), 0, "bytes are lost");
}

/// Also when blocks that came ahead of their content become the file's with it.
#[test]
fn unmount_waits_for_write_back_to_blocks_ahead() {
    let left = on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&eager()).await;
        let file = create(&fs, fs.root(), "f").await;
        let ahead = Allocate::Reserve { keep_size: false };
        fs.fallocate(ME, file, ahead, 0, 64 * PAGE).await.expect("room");
        fs.syncfs(ME).await.expect("power is on");
        stand.slow(|bio| is_data(bio).then_some(Nanos::from_ms(5)));
        put(&fs, file, 0, 9, 64, Io::Buffered).await;
        stand.rt.sleep(Nanos::from_us(100)).await;
        fs.unmount().await.expect("an unmount");
        // Whatever it left behind has the time to do harm.
        stand.rt.sleep(Nanos::from_secs(1)).await;
        stand.cut()
    });
    assert_eq!(lost(left), 0, "bytes are lost");
}

/// A sync beside a hole makes the length durable although the pages that would have brought it to the device are gone.
#[test]
fn a_sync_beside_a_hole_keeps_the_length() {
    let left = on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let file = create(&fs, fs.root(), "f").await;
        put(&fs, file, 0, 1, 4, Io::Buffered).await;
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&MountOptions::default()).await;
        put(&fs, file, 4, 2, 4, Io::Buffered).await;
        // The bitmap of the blocks that are freed is read.
        stand.slow(|bio| (bio.op == Op::Read).then_some(Nanos::from_ms(1)));
        let hole = fs.fallocate(ME, file, Allocate::PunchHole, 0, 8 * PAGE);
        assert!(timeout(&stand.rt, Nanos::from_us(100), hole).await.is_err(), "it is made already");
        fs.fsync(ME, file).await.expect("a sync");
        stand.cut()
    });
    on_quick(left, async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let file = lookup(&fs, "f").await;
        let read = get(&fs, file, Io::Buffered).await;
        assert_eq!((read.len() as u64, others(&read, 0)), (8 * PAGE, 0));
    });
}

/// Two calls that read an inode at the same time change the same one.
#[test]
fn an_inode_is_once_in_memory() {
    on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        // The last one is not in the block of the root, which every mount reads.
        for number in 0..32 {
            create(&fs, fs.root(), &format!("f{number}")).await;
        }
        let file = lookup(&fs, "f31").await;
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&MountOptions::default()).await;
        let mode = fs.setattr(ME, file, SetAttr { mode: Some(0o600), ..SetAttr::default() });
        let owner = fs.setattr(ME, file, SetAttr { uid: Some(7), ..SetAttr::default() });
        let (mode, owner) = join2(mode, owner).await;
        mode.and(owner).expect("attributes");
        let attr = fs.getattr(ME, file).await.expect("attributes");
        assert_eq!((attr.mode, attr.uid), (0o600, 7));
    });
}

/// A call that is under way when an unmount begins has happened when the unmount ends, or was refused
/// and has not.
#[test]
fn unmount_waits_for_calls_under_way() {
    let len = 10 * PAGE - 100;
    for after_us in (0..1_500).step_by(50) {
        let (punched, left) = on_quick(formatted(ROOMY), async move |stand| {
            let fs = stand.mount(&MountOptions::default()).await;
            let file = create(&fs, fs.root(), "f").await;
            put(&fs, file, 0, 9, 64, Io::Buffered).await;
            fs.unmount().await.expect("an unmount");
            let fs = stand.mount(&MountOptions::default()).await;
            stand.slow(|bio| (bio.op == Op::Read).then_some(Nanos::from_us(100)));
            let caller = fs.clone();
            let punch =
                async move { caller.fallocate(ME, file, Allocate::PunchHole, 0, len).await };
            let punches = stand.rt.spawn("punch", punch);
            stand.rt.sleep(Nanos::from_us(after_us)).await;
            fs.unmount().await.expect("an unmount");
            stand.assert_sound().await;
            let punched = stand.ends(punches).await.expect("the call ends").expect("a task");
            (punched, stand.cut())
        });
        let expected = if punched.is_ok() { len } else { 0 };
        assert_eq!(lost(left), expected as usize, "after {after_us} us: {punched:?}");
    }
}

/// A page that the device refuses costs no other file its content.
#[test]
fn unmount_writes_what_it_can() {
    let left = on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let (a, b) = (create(&fs, fs.root(), "a").await, create(&fs, fs.root(), "b").await);
        fs.syncfs(ME).await.expect("power is on");
        put(&fs, a, 0, 1, 1, Io::Buffered).await;
        stand.rt.sleep(Nanos::from_ms(1)).await;
        put(&fs, b, 0, 2, 4, Io::Buffered).await;
        stand.refuse(move |bio| is_data(bio) && is_of(bio, a));
        let first = stand.ends(fs.unmount()).await.expect("unmount ends");
        assert!(matches!(first, Err(FsError::Io(_))), "{first:?}");
        // A caller that asks again must not be left without an answer.
        stand.ends(fs.unmount()).await.expect("unmount ends").ok();
        stand.cut()
    });
    on_quick(left, async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let b = lookup(&fs, "b").await;
        assert!(get(&fs, b, Io::Buffered).await == [2; 4 * PAGE as usize]);
        fs.unmount().await.expect("an unmount");
        stand.assert_sound().await;
    });
}

/// A call with the number of a file that is gone does no harm.
#[test]
fn numbers_of_files_that_are_gone_do_no_harm() {
    on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let file = create(&fs, fs.root(), "f").await;
        fs.unlink(ME, fs.root(), b"f").await.expect("no file");
        assert_eq!(fs.getattr(ME, file).await, Err(FsError::NoEntry));
        assert_eq!(fs.unmount().await, Ok(()));
        stand.assert_sound().await;
    });
}

/// What makes dirty pages go away without a write.
#[derive(Clone, Copy)]
enum Away {
    Unlink,
    Cut,
}

/// A writer waits until fewer pages are dirty, and those that are go away without being written.
fn writer_goes_on(away: Away) {
    on_quick(formatted(ROOMY), async move |stand| {
        let fs = stand.mount(&cached(1_000)).await;
        let file = create(&fs, fs.root(), "f").await;
        // What an unlink needs is in memory, so that it is over before any page is on its way.
        create(&fs, fs.root(), "g").await;
        fs.unlink(ME, fs.root(), b"g").await.expect("no file");
        fs.syncfs(ME).await.expect("power is on");
        let writer = stand.ends(fs.write(ME, file, 0, bytes(1, 400), Io::Buffered));
        let other = async {
            match away {
                Away::Unlink => fs.unlink(ME, fs.root(), b"f").await,
                Away::Cut => fs.setattr(ME, file, resized(0)).await.map(drop),
            }
        };
        let (written, gone) = join2(writer, other).await;
        assert_eq!((written, gone), (Ok(Ok(400 * PAGE)), Ok(())));
    });
}

#[test]
fn a_throttled_writer_goes_on_when_its_file_is_unlinked() {
    writer_goes_on(Away::Unlink);
}

#[test]
fn a_throttled_writer_goes_on_when_its_file_is_cut() {
    writer_goes_on(Away::Cut);
}

/// What was promised to data in memory is not given to two calls that ask at once.
#[test]
fn promised_blocks_are_not_given_away() {
    on_quick(formatted(ROOMY), async |stand| {
        let (pages, background_percent, dirty_percent) = (1 << 16, 90, 95);
        let cache =
            CacheConfig { pages, background_percent, dirty_percent, ..CacheConfig::default() };
        let options = MountOptions { cache, buffers: 64, ..MountOptions::default() };
        let fs = stand.mount(&options).await;
        let root = fs.root();
        let mut files = Vec::new();
        for name in ["a", "b", "c"] {
            files.push(create(&fs, root, name).await);
        }
        // Bitmaps are not in memory, so that calls wait between asking for space and taking it.
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&options).await;
        let half = (fs.statfs(ME).await.expect("space").available - 200) / 2;
        put(&fs, files[0], 0, 1, half, Io::Buffered).await;
        let ahead = Allocate::Reserve { keep_size: false };
        let reserve = |file| fs.fallocate(ME, file, ahead, 0, half * PAGE);
        let (one, other) = join2(reserve(files[1]), reserve(files[2])).await;
        assert!(one.is_ok() != other.is_ok(), "{one:?}, {other:?}");
        assert_eq!(fs.fsync(ME, files[0]).await, Ok(()), "what was written has no block");
    });
}

/// An fsync that is dropped while it looks for blocks keeps no other call waiting.
#[test]
fn a_dropped_fsync_keeps_no_commit_waiting() {
    on_quick(formatted(ROOMY), async |stand| {
        let options = MountOptions::default();
        let fs = stand.mount(&options).await;
        let file = create(&fs, fs.root(), "f").await;
        put(&fs, file, 0, 1, 4, Io::Buffered).await;
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&options).await;
        let file = lookup(&fs, "f").await;
        // Four pages that have blocks, and four that have none: two stretches of one run.
        put(&fs, file, 0, 2, 8, Io::Buffered).await;
        // Bitmaps are not in memory, and come slowly.
        stand.slow(|bio| (bio.op == Op::Read).then_some(Nanos::from_ms(1)));
        let first = timeout(&stand.rt, Nanos::from_us(100), fs.fsync(ME, file)).await;
        assert!(first.is_err(), "it was under way");
        assert_eq!(stand.ends(fs.fsync(ME, file)).await, Ok(Ok(())));
        assert_eq!(stand.ends(fs.unmount()).await, Ok(Ok(())));
        stand.assert_sound().await;
    });
}

/// A volume on which the next inode is the first in its block of the table, mounted anew, so that a
/// new file needs blocks that are not in memory.
async fn about_to_create(stand: &Stand) -> Ext4 {
    let fs = stand.mount(&MountOptions::default()).await;
    for number in 12..=16 {
        assert_eq!(create(&fs, fs.root(), &format!("f{number}")).await, Ino(number));
    }
    fs.unmount().await.expect("an unmount");
    let fs = stand.mount(&MountOptions::default()).await;
    lookup(&fs, "f12").await;
    fs
}

/// A call that is dropped at any of the blocks that it waits for is not committed by halves.
#[test]
fn a_dropped_create_is_whole_or_has_not_happened() {
    for after_us in (50..1_000).step_by(100) {
        on_quick(formatted(ROOMY), async move |stand| {
            let fs = about_to_create(&stand).await;
            stand.slow(|bio| (bio.op == Op::Read).then_some(Nanos::from_us(100)));
            let call = fs.create(ME, fs.root(), b"new", 0o644);
            drop(timeout(&stand.rt, Nanos::from_us(after_us), call).await);
            assert_eq!(stand.ends(fs.unmount()).await, Ok(Ok(())));
            stand.assert_sound().await;
        });
    }
}

/// One that ends because the device refuses a read has not happened; if something of it is left all the
/// same, the volume says so.
#[test]
fn a_refused_create_has_not_happened_or_is_marked() {
    for refused in 0..4 {
        on_quick(formatted(ROOMY), async move |stand| {
            let fs = about_to_create(&stand).await;
            let mut reads = 0..;
            stand.refuse(move |bio| bio.op == Op::Read && reads.next() == Some(refused));
            let called = fs.create(ME, fs.root(), b"new", 0o644).await.map(drop);
            stand.refuse(|_| false);
            let there = fs.lookup(ME, fs.root(), b"new").await.map(drop);
            assert_eq!(called.is_ok(), there.is_ok(), "{called:?}, {there:?}");
            assert_eq!(stand.ends(fs.unmount()).await, Ok(Ok(())));
            let findings = stand.findings().await;
            assert!(findings.is_empty() || called.is_err() && is_marked(&findings), "{findings:?}");
        });
    }
}

/// Writers share what write-back cleans, however large their calls are; no writer waits for ever, nor do those
/// that read what it writes.
#[test]
fn throttled_writers_all_go_on() {
    for (small, large, pages) in [(8, 8, 1_000), (8, 900, 300), (100, 900, 300)] {
        on_quick(formatted(ROOMY), async move |stand| {
            let cache = CacheConfig { pages, ..CacheConfig::default() };
            let fs = stand.mount(&MountOptions { cache, ..MountOptions::default() }).await;
            let (rt, busy) = (stand.rt.clone(), Rc::new(Cell::new(0)));
            // One page after the other, 0.1 ms each.
            stand.slow(move |bio| {
                let now = rt.now().0;
                let until = now.max(busy.get()) + 100_000 * u64::from(bio.sectors);
                is_data(bio).then(|| busy.set(until)).map(|()| Nanos(until - now))
            });
            let stop = Rc::new(Cell::new(false));
            let mut writers = Vec::new();
            for (name, pages) in [("small", small), ("large", large)] {
                let file = create(&fs, fs.root(), name).await;
                let written = Rc::new(Cell::new(0_u64));
                let (fs, stop, count) = (fs.clone(), Rc::clone(&stop), Rc::clone(&written));
                let task = stand.rt.spawn("writer", async move {
                    while !stop.get() {
                        let data = Data::Sectors(Payload::Run(Tag::new(1)), pages as u32);
                        // Other pages each time: only those that become dirty are waited for.
                        let at = if pages > 500 { 0 } else { count.get() % 1_000 };
                        fs.write_all(ME, file, at * PAGE, data, Io::Buffered).await.expect("room");
                        count.set(count.get() + pages);
                    }
                });
                writers.push((file, written, task));
                stand.rt.sleep(Nanos::from_ms(100)).await;
            }
            stand.rt.sleep(Nanos::from_secs(2)).await;
            for (file, written, _) in &writers {
                assert!(written.get() > large, "{small} and {large}: {} pages", written.get());
                let read = stand.ends(fs.read(ME, *file, 0, PAGE, Io::Buffered)).await;
                assert!(read.is_ok(), "{small} and {large}: a read does not end");
            }
            stop.set(true);
            for (_, _, task) in writers {
                task.await.expect("a task");
            }
        });
    }
}
