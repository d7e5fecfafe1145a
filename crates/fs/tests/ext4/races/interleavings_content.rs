//! Interleavings in words: what reads must not show. Content that was cut off, that another file had
//! before, or that is not the link's own.

use super::*;
use nandscape_fs::bdev::CachedDevice;
use nandscape_fs::contract::{Allocate, FsError};
use nandscape_fs::ext4::OmittedRule;
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;

type Call = Pin<Box<dyn Future<Output = Result<(), FsError>>>>;

/// What reading ahead brings while a file is cut does not show when the file grows again, and what it brings of a hole
/// while that is made does not show there.
///
/// The steps: a read ahead of pages 8 to 24 is under way; a call holds the running transaction open; the
/// cut waits for a new one, because a sync ends that one; meanwhile the read ahead comes.
#[test]
fn reading_ahead_brings_nothing_back() {
    [Gone::Cut, Gone::Punched].into_iter().for_each(read_ahead_beside);
}

fn read_ahead_beside(gone: Gone) {
    on_quick(formatted(ROOMY), async move |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let root = fs.root();
        let file = create(&fs, root, "f").await;
        for number in 0..4 {
            // The next inode is in another block of the table.
            create(&fs, root, &format!("n{number}")).await;
        }
        put(&fs, file, 0, 5, 200, Io::Buffered).await;
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&MountOptions::default()).await;
        lookup(&fs, "f").await;
        for page in [12, 19] {
            let other = Caller { thread: 9, ..ME };
            fs.read(other, file, page * PAGE, PAGE, Io::Buffered).await.expect("data");
        }
        let metadata_ns = Rc::new(Cell::new(400_000));
        let read_ns = Rc::clone(&metadata_ns);
        stand.slow(move |bio| match (bio.op, bio.flags.has(Flags::META)) {
            (Op::Read, true) => Some(Nanos(read_ns.get())),
            (Op::Read, false) if bio.sectors == 6 => Some(Nanos(300_000)),
            _ => Some(Nanos(10_000)),
        });
        fs.read(ME, file, 0, 8 * PAGE, Io::Buffered).await.expect("data");
        let (a, b, c) = (fs.clone(), fs.clone(), fs.clone());
        let create = async move { a.create(ME, root, b"slow", 0o644).await.map(drop) };
        let cut = async move {
            match gone {
                Gone::Punched => {
                    let (from, len) = (21 * PAGE, 179 * PAGE);
                    b.fallocate(ME, file, Allocate::PunchHole, from, len).await
                }
                _ => b.setattr(ME, file, resized(21 * PAGE)).await.map(drop),
            }
        };
        let sync = async move { c.syncfs(ME).await };
        // A cut asks for its transaction some time after it began, a hole at once.
        let calls: [Call; 2] = match gone {
            Gone::Punched => [Box::pin(sync), Box::pin(cut)],
            _ => [Box::pin(cut), Box::pin(sync)],
        };
        let mut tasks = vec![stand.rt.spawn("create", create)];
        stand.rt.sleep(Nanos(5_000)).await;
        metadata_ns.set(100_000);
        for call in calls {
            tasks.push(stand.rt.spawn("call", call));
            stand.rt.sleep(Nanos(5_000)).await;
        }
        for task in tasks {
            task.await.expect("a task").expect("a call");
        }
        fs.setattr(ME, file, resized(200 * PAGE)).await.expect("a length");
        let read = get(&fs, file, Io::Buffered).await;
        assert_eq!(others(&read[21 * PAGE as usize..], 0), 0, "{gone:?}: bytes that went");
    });
}

/// A read beside a direct write may show the old content; a read after it may not, of a file or of a device.
#[test]
fn a_direct_write_leaves_nothing_older_in_the_cache() {
    on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let file = create(&fs, fs.root(), "f").await;
        put(&fs, file, 0, 1, 1, Io::Buffered).await;
        fs.fsync(ME, file).await.expect("a sync");
        stand.slow(|bio| (bio.op == Op::Write).then_some(Nanos::from_ms(1)));
        let writer = fs.clone();
        let writes =
            stand.rt.spawn("writer", async move { put(&writer, file, 0, 2, 1, Io::Direct).await });
        stand.rt.sleep(Nanos::from_us(100)).await;
        assert_eq!(get(&fs, file, Io::Buffered).await, [1; PAGE as usize], "beside the write");
        writes.await.expect("a task");
        assert_eq!(get(&fs, file, Io::Buffered).await, [2; PAGE as usize]);
    });
    on_quick(blank(16, Fua::Honoured), async |stand| {
        let cached = CachedDevice::new(&stand.rt, stand.device.erased(), CacheConfig::default());
        stand.slow(|bio| (bio.op == Op::Write).then_some(Nanos::from_ms(1)));
        let (writer, payload) = (cached.clone(), Payload::from_bytes(&[2; PAGE as usize]));
        let payload = payload.expect("a sector");
        let writes = stand.rt.spawn("writer", async move {
            writer.direct(Bio::write(Lba(3), 1, payload)).await.map(drop)
        });
        stand.rt.sleep(Nanos::from_us(100)).await;
        let read = async || cached.read(ME, 3 * PAGE, PAGE).await.expect("data").to_bytes();
        assert_eq!(read().await, [0; PAGE as usize], "beside the write");
        writes.await.expect("a task").expect("a write");
        assert_eq!(read().await, [2; PAGE as usize]);
    });
}

/// The zeroes after a new end within a page are on the device before the end is, whichever sync commits it: what was
/// cut off does not come back when the file grows after a power cut.
#[test]
fn a_new_end_comes_after_its_zeroes() {
    for seed in 0..8 {
        let left = on(formatted(ROOMY), seed, 0, async |stand| {
            let fs = stand.mount(&MountOptions::default()).await;
            let file = create(&fs, fs.root(), "f").await;
            put(&fs, file, 0, SECRET, 1, Io::Buffered).await;
            fs.fsync(ME, file).await.expect("a sync");
            stand.slow(|bio| is_data(bio).then_some(Nanos::from_ms(1)));
            fs.setattr(ME, file, resized(100)).await.expect("a length");
            let other = create(&fs, fs.root(), "g").await;
            fs.fsync(ME, other).await.expect("a sync");
            stand.cut()
        });
        on_quick(left, async move |stand| {
            let fs = stand.mount(&MountOptions::default()).await;
            let file = lookup(&fs, "f").await;
            assert_eq!(get(&fs, file, Io::Buffered).await, [SECRET; 100]);
            fs.setattr(ME, file, resized(PAGE)).await.expect("a length");
            let read = get(&fs, file, Io::Buffered).await;
            assert_eq!(others(&read[100..], 0), 0, "seed {seed}: bytes that were cut off");
        });
    }
}

/// What a direct append wrote does not show when the file grows after a power cut that its new length did not survive,
/// also where a commit separates the length from what says that the new blocks hold data: the file is an orphan until then.
#[test]
fn an_append_without_its_length_does_not_show() {
    assert_eq!(shown_of_append(None), 0);
    let shown = shown_of_append(Some(OmittedRule::AppendOrphan));
    assert!(shown > 0, "append-orphan changes nothing");
}

/// How many bytes of such an append show.
///
/// The steps: the data of the append arrive while a read, which waits for a block of the file's tree, keeps the tree from
/// being changed; the append has its transaction already, and a sync of another file ends that; the length comes in the next.
fn shown_of_append(omit: Option<OmittedRule>) -> usize {
    /// Extents of one page, too many for one leaf of the tree.
    const EXTENTS: u64 = 400;
    const END: u64 = 2 * EXTENTS;
    const APPENDED: u64 = 4;
    let left = on_quick(formatted(ROOMY), async move |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let (file, other) = (create(&fs, fs.root(), "f").await, create(&fs, fs.root(), "g").await);
        for extent in 0..EXTENTS {
            put(&fs, file, 2 * extent + 1, 1, 1, Io::Buffered).await;
        }
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&MountOptions { omit, ..MountOptions::default() }).await;
        put(&fs, other, 0, 1, 1, Io::Buffered).await;
        stand.slow(move |bio| (is_data(bio) && is_of(bio, file)).then_some(Nanos::from_ms(10)));
        let (writer, reader) = (fs.clone(), fs.clone());
        let append = async move { put(&writer, file, END, SECRET, APPENDED, Io::Direct).await };
        let append = stand.rt.spawn("append", append);
        stand.rt.sleep(Nanos::from_ms(5)).await;
        // The append has read the last leaf; the read needs the first one.
        stand.slow(|bio| (bio.op == Op::Read).then_some(Nanos::from_ms(10)));
        let read = async move { reader.read(ME, file, PAGE, PAGE, Io::Buffered).await };
        let read = stand.rt.spawn("read", read);
        stand.rt.sleep(Nanos::from_ms(7)).await;
        assert!(!append.is_finished() && !read.is_finished());
        fs.fsync(ME, other).await.expect("a sync");
        stand.cut()
    });
    on_quick(left, async move |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let file = lookup(&fs, "f").await;
        assert_eq!(fs.getattr(ME, file).await.map(|attr| attr.size), Ok(END * PAGE));
        fs.setattr(ME, file, resized((END + APPENDED) * PAGE)).await.expect("a length");
        let read = get(&fs, file, Io::Buffered).await;
        fs.unmount().await.expect("an unmount");
        stand.assert_sound().await;
        others(&read[(END * PAGE) as usize..], 0)
    })
}

/// What makes a file's content go away.
#[derive(Clone, Copy, Debug)]
enum Gone {
    Cut,
    Punched,
    Unlinked,
}

/// A read shows a file as it was before its content went, or as it is then: no part of either, and no content of
/// another file.
#[test]
fn a_read_shows_no_half_of_a_cut() {
    for gone in [Gone::Cut, Gone::Punched, Gone::Unlinked] {
        on_quick(formatted(ROOMY), async move |stand| {
            let fs = stand.mount(&MountOptions::default()).await;
            let root = fs.root();
            let file = create(&fs, root, "f").await;
            create(&fs, root, "secret").await;
            put(&fs, file, 0, 1, 32, Io::Buffered).await;
            fs.unmount().await.expect("an unmount");
            let fs = stand.mount(&MountOptions::default()).await;
            lookup(&fs, "f").await;
            let secret = lookup(&fs, "secret").await;
            stand.slow(|bio| (bio.op == Op::Read).then_some(Nanos::from_ms(1)));
            let reader = fs.clone();
            let reads = stand.rt.spawn("reader", async move {
                reader.read(ME, file, 0, 32 * PAGE, Io::Buffered).await
            });
            stand.rt.sleep(Nanos::from_us(10)).await;
            stand.slow(|_| None);
            match gone {
                Gone::Cut => fs.setattr(ME, file, resized(0)).await.map(drop),
                Gone::Punched => fs.fallocate(ME, file, Allocate::PunchHole, 0, 32 * PAGE).await,
                Gone::Unlinked => fs.unlink(ME, root, b"f").await,
            }
            .expect("content goes");
            fs.syncfs(ME).await.expect("power is on");
            put(&fs, secret, 0, SECRET, 64, Io::Buffered).await;
            fs.syncfs(ME).await.expect("power is on");
            let read = reads.await.expect("a task").map(|data| data.to_bytes());
            let before = Ok(vec![1; 32 * PAGE as usize]);
            let then = match gone {
                Gone::Cut => Ok(Vec::new()),
                Gone::Punched => Ok(vec![0; 32 * PAGE as usize]),
                Gone::Unlinked => Err(FsError::NoEntry),
            };
            assert!(read == before || read == then, "{gone:?}");
        });
    }
}

/// A new page that the device refuses does not show what was in its block before.
#[test]
fn a_refused_page_shows_nobody_elses_content() {
    on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let root = fs.root();
        let secret = create(&fs, root, "secret").await;
        put(&fs, secret, 0, SECRET, 20, Io::Buffered).await;
        fs.fsync(ME, secret).await.expect("a sync");
        fs.unlink(ME, root, b"secret").await.expect("no file");
        fs.syncfs(ME).await.expect("power is on");
        let file = create(&fs, root, "f").await;
        fs.syncfs(ME).await.expect("power is on");
        put(&fs, file, 0, 1, 4, Io::Buffered).await;
        stand.refuse(is_data);
        assert!(fs.fsync(ME, file).await.is_err(), "a sync tells of a refused page");
        stand.refuse(|_| false);
        let past_cache = get(&fs, file, Io::Direct).await;
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&MountOptions::default()).await;
        let after = get(&fs, file, Io::Buffered).await;
        let foreign = |read: &[u8]| read.iter().filter(|byte| **byte == SECRET).count();
        assert_eq!((foreign(&past_cache), foreign(&after)), (0, 0), "another file's content");
        fs.unmount().await.expect("an unmount");
        stand.assert_sound().await;
    });
}

/// What goes wrong with one part of a file is reported by the next sync, once, and all else is written.
#[test]
fn an_error_is_reported_once() {
    on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let file = create(&fs, fs.root(), "f").await;
        // Extents enough for a block of their own.
        for n in 0..40 {
            put(&fs, file, n * 3, 1, 1, Io::Buffered).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&MountOptions::default()).await;
        let file = lookup(&fs, "f").await;
        fs.open(ME, file, OpenFlags::default()).await.expect("open");
        put(&fs, file, 200, 2, 1, Io::Buffered).await;
        put(&fs, file, 300, 3, 1, Io::Buffered).await;
        let mut reads = 0;
        stand.refuse(move |bio| {
            reads += u32::from(bio.op == Op::Read);
            bio.op == Op::Read && reads == 1
        });
        assert!(fs.fsync(ME, file).await.is_err(), "a sync tells what was refused");
        assert_eq!(fs.fsync(ME, file).await, Ok(()), "it was reported");
        let read = get(&fs, file, Io::Direct).await;
        assert_eq!(others(&read[300 * PAGE as usize..], 3), 0, "nothing was refused of this page");
    });
}

/// When something goes wrong with a part of what is written back in the background, all else is written,
/// and no promise of a block outlives it.
#[test]
fn what_was_not_refused_is_written_back() {
    on_quick(formatted(ROOMY), async |stand| {
        let cache = CacheConfig { pages: 20_000, ..CacheConfig::default() };
        let options = MountOptions { cache, ..MountOptions::default() };
        let fs = stand.mount(&options).await;
        let file = create(&fs, fs.root(), "f").await;
        put(&fs, file, 0, 1, 1, Io::Buffered).await;
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&options).await;
        let file = lookup(&fs, "f").await;
        let free = async || fs.statfs(ME).await.expect("space").free;
        let before = free().await;
        let mut reads = 0;
        stand.refuse(move |bio| {
            reads += u32::from(bio.op == Op::Read);
            bio.op == Op::Read && reads == 1
        });
        put(&fs, file, 1, 3, 3_000, Io::Buffered).await;
        stand.rt.sleep(Nanos::from_secs(1)).await;
        assert!(fs.fsync(ME, file).await.is_err(), "a bitmap was refused");
        assert_eq!(fs.fsync(ME, file).await, Ok(()), "it was reported");
        let blocks = fs.getattr(ME, file).await.expect("a file").blocks / 8;
        assert!((1_500..3_000).contains(&blocks), "{blocks} of 3,001 have blocks");
        assert_eq!(free().await, before + 1 - blocks);
        let read = get(&fs, file, Io::Direct).await;
        assert_eq!(others(&read[1_500 * PAGE as usize..], 3), 0, "nothing was refused of these");
    });
}

/// An error stays with its file until it is reported, however many other files there are.
#[test]
fn an_error_waits_for_who_asks() {
    on_quick(formatted(ROOMY), async |stand| {
        let options = MountOptions { inodes: 1, ..MountOptions::default() };
        let fs = stand.mount(&options).await;
        let file = create(&fs, fs.root(), "f").await;
        put(&fs, file, 0, 1, 4, Io::Buffered).await;
        stand.refuse(is_data);
        stand.rt.sleep(Nanos::from_secs(60)).await;
        stand.refuse(|_| false);
        for n in 0..8 {
            create(&fs, fs.root(), &format!("other{n}")).await;
        }
        assert!(fs.fsync(ME, file).await.is_err(), "pages were lost");
        assert_eq!(fs.fsync(ME, file).await, Ok(()), "it was reported");
    });
}

/// A link that is removed while it is read leads where it led, or nowhere.
#[test]
fn a_link_that_goes_leads_nowhere_else() {
    on_quick(formatted(ROOMY), async |stand| {
        let (own, foreign) = ([b'l'; 400], [SECRET; 400]);
        let fs = stand.mount(&MountOptions::default()).await;
        let root = fs.root();
        let link = fs.symlink(ME, root, b"l", &own).await.expect("room").ino;
        fs.unmount().await.expect("an unmount");
        let fs = stand.mount(&MountOptions::default()).await;
        lookup(&fs, "l").await;
        stand.slow(|bio| (bio.op == Op::Read).then_some(Nanos::from_ms(1)));
        let reader = fs.clone();
        let reads = stand.rt.spawn("readlink", async move { reader.readlink(ME, link).await });
        stand.rt.sleep(Nanos(1)).await;
        stand.slow(|_| None);
        fs.unlink(ME, root, b"l").await.expect("no link");
        fs.syncfs(ME).await.expect("power is on");
        for name in [b"m0", b"m1", b"m2"] {
            fs.symlink(ME, root, name, &foreign).await.expect("room");
        }
        let target = reads.await.expect("a task");
        assert!(target == Ok(own.into()) || target == Err(FsError::NoEntry), "{target:?}");
    });
}
