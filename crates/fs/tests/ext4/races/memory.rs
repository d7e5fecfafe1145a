//! What memory holds, while several write at once, and who goes on meanwhile.

use super::*;
use nandscape_fs::MountedFs;
use nandscape_fs::contract::Allocate;
use std::cell::Cell;
use std::rc::Rc;

/// Writers at once.
const WRITERS: u64 = 16;
/// Pages that memory has room for: the fewest that a stack may ask for.
const ROOM: u64 = 256;
/// Pages that each of them writes.
const EACH: u64 = 400;

/// The device takes content one page after the other, 0.1 ms each.
fn one_after_the_other(stand: &Stand) {
    let (rt, busy) = (stand.rt.clone(), Cell::new(0));
    stand.slow(move |bio| {
        let now = rt.now().0;
        let until = now.max(busy.get()) + 100_000 * u64::from(bio.sectors);
        is_data(bio).then(|| busy.set(until)).map(|()| Nanos(until - now))
    });
}

/// Pages `at` and `count` behind it, as tags.
fn tagged(at: u64, count: u64) -> Data {
    Data::Sectors(Payload::Run(Tag::new(at + 1)), count as u32)
}

/// The most pages in memory while so many writers write a file each, in calls of so many pages.
async fn most_in_memory(stand: &Stand, call: u64) -> u64 {
    let fs = stand.mount(&cached(ROOM)).await;
    one_after_the_other(stand);
    let mut writers = Vec::new();
    for name in 0..WRITERS {
        let file = create(&fs, fs.root(), &format!("f{name}")).await;
        let (fs, rt) = (fs.clone(), stand.rt.clone());
        writers.push(stand.rt.spawn("writer", async move {
            // What the ones before have dirtied is on its way by then.
            rt.sleep(Nanos::from_us(10 * name)).await;
            for at in (0..EACH).step_by(call as usize) {
                let data = tagged(at, call);
                fs.write_all(ME, file, at * PAGE, data, Io::Buffered).await.expect("room");
            }
        }));
    }
    let (rt, most, watched) = (stand.rt.clone(), Rc::new(Cell::new(0)), fs.clone());
    let seen = Rc::clone(&most);
    let watcher = stand.rt.spawn("watcher", async move {
        loop {
            seen.set(seen.get().max(watched.memory().cached_pages));
            rt.sleep(Nanos::from_us(10)).await;
        }
    });
    for writer in writers {
        stand.ends(writer).await.expect("a writer waits for ever").expect("a task");
    }
    watcher.abort();
    most.get()
}

/// However many write at once, in calls of whatever size, memory holds no more than it has room for, and
/// a page more for each of them.
#[test]
fn memory_is_bounded_beside_many_writers() {
    let calls = [EACH, 20, 1];
    let most = calls.map(|call| {
        on_quick(formatted(2 * ROOMY), async move |stand| most_in_memory(&stand, call).await)
    });
    assert!(most.iter().all(|most| *most <= ROOM + WRITERS), "{most:?} with calls of {calls:?}");
}

/// A large call that has written its last page waits for no more than it has not waited for before, though
/// others keep as much dirty as may be.
#[test]
fn a_large_write_pays_once() {
    on_quick(formatted(2 * ROOMY), async |stand| {
        let fs = stand.mount(&cached(ROOM)).await;
        one_after_the_other(&stand);
        let stop = Rc::new(Cell::new(false));
        let mut others = Vec::new();
        for name in 0..WRITERS {
            let file = create(&fs, fs.root(), &format!("f{name}")).await;
            let (fs, stop) = (fs.clone(), Rc::clone(&stop));
            others.push(stand.rt.spawn("writer", async move {
                for at in (0..).take_while(|_| !stop.get()) {
                    let data = tagged(at, 1);
                    fs.write_all(ME, file, at * PAGE, data, Io::Buffered).await.expect("room");
                }
            }));
        }
        let file = create(&fs, fs.root(), "large").await;
        let writer = fs.clone();
        let writes = stand.rt.spawn("large writer", async move {
            writer.write(ME, file, 0, tagged(0, EACH), Io::Buffered).await
        });
        let size = async || fs.getattr(ME, file).await.expect("a file").size;
        while size().await < EACH * PAGE {
            stand.rt.sleep(Nanos::from_us(100)).await;
        }
        let written = stand.rt.now();
        assert_eq!(writes.await, Ok(Ok(EACH * PAGE)));
        let waited = stand.rt.now() - written;
        stop.set(true);
        for other in others {
            other.await.expect("a task");
        }
        // A fifth of memory may be dirty, and a page takes the device 0.1 ms.
        let most = Nanos::from_us(100 * (ROOM / 5 + WRITERS));
        assert!(waited <= most, "it waits for {waited} at its end");
    });
}

/// Pages of which holes take parts are dirty as others are.
#[test]
fn memory_is_bounded_beside_holes() {
    on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&cached(ROOM)).await;
        let file = create(&fs, fs.root(), "f").await;
        put(&fs, file, 0, 1, 2 * ROOM, Io::Direct).await;
        one_after_the_other(&stand);
        for page in 0..2 * ROOM {
            let punched = fs.fallocate(ME, file, Allocate::PunchHole, page * PAGE + 100, 100);
            assert_eq!(punched.await, Ok(()));
            let pages = fs.memory().cached_pages;
            assert!(pages <= ROOM + 1, "{pages} pages after {page} holes");
        }
    });
}

/// Who reads a file does not wait for one who writes to it and waits for write-back; what he finds is
/// what was written so far.
#[test]
fn readers_go_on_beside_a_writer_that_waits() {
    on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&cached(ROOM)).await;
        let file = create(&fs, fs.root(), "f").await;
        one_after_the_other(&stand);
        let writer = fs.clone();
        let writes = stand.rt.spawn("writer", async move {
            writer.write(ME, file, 0, tagged(0, EACH), Io::Buffered).await
        });
        for _ in 0..10 {
            let began = stand.rt.now();
            let so_far = fs.getattr(ME, file).await.expect("a file").size / PAGE;
            let read = fs.read(ME, file, 0, so_far * PAGE, Io::Buffered).await;
            assert_eq!(read, Ok(tagged(0, so_far)));
            let took = stand.rt.now() - began;
            assert!(took < Nanos::from_ms(1), "a read takes {took}");
            stand.rt.sleep(Nanos::from_ms(2)).await;
        }
        assert!(!writes.is_finished(), "the writer did not wait");
        assert_eq!(writes.await, Ok(Ok(EACH * PAGE)));
    });
}

/// Inodes that no task uses leave memory, with their pages, when there are more than are to be kept; those
/// that are open stay.
#[test]
fn unused_inodes_leave_memory() {
    on_quick(formatted(ROOMY), async |stand| {
        let options = MountOptions { inodes: 8, ..MountOptions::default() };
        let fs = stand.mount(&options).await;
        let open = create(&fs, fs.root(), "open").await;
        fs.open(ME, open, OpenFlags::default()).await.expect("open");
        put(&fs, open, 0, 1, 1, Io::Buffered).await;
        for name in 0..100 {
            let file = create(&fs, fs.root(), &format!("f{name}")).await;
            put(&fs, file, 0, 1, 1, Io::Buffered).await;
            fs.fsync(ME, file).await.expect("power is on");
            let pages = fs.memory().cached_pages;
            assert!(pages <= 8, "{pages} files of a page each are in memory");
        }
        let hits = fs.counts().lookups.hits;
        assert_eq!(get(&fs, open, Io::Buffered).await, [1; PAGE as usize]);
        assert_eq!(fs.counts().lookups.hits, hits + 1, "what is open has left memory");
    });
}
