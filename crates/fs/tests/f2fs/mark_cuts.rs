//! Power cuts between any two writes around the mark of a GC journal: when a mount sets it, when an unmount takes it off, and
//! when the recovery does after a cut.

use crate::common::image::{Content, sectors};
use crate::common::volume::{assert_sound, loaded, run};
use crate::common::watched::{Seen, Watched};
use crate::journalled::{Load, ME, SCATTERED, SECTORS, SYNCED, made, options, to_area};
use nandscape_block::{AsyncDevice, Bio, BlockDevice, Lba, MemDevice, Op, Payload, Submit, Token};
use nandscape_fs::contract::{FileSystem, Io};
use nandscape_fs::f2fs::F2fs;
use nandscape_fs::f2fs::format::GcJournalFormat::Safe;
use nandscape_fs::f2fs::format::{SUPERBLOCK_AT, SUPERBLOCK_BYTES, is_marked};
use nandscape_rt::{Handle, Nanos, Stream};

/// Bios before a change of the mark that are cut off, and after it.
const AROUND: usize = 3;

/// A device in memory with content, all of it durable.
fn medium(content: &Content) -> MemDevice {
    let mut medium = MemDevice::new(SECTORS);
    for (at, sector) in content {
        submit(&mut medium, Bio::write(Lba(*at), 1, Payload::collect(vec![sector.clone()])));
    }
    submit(&mut medium, Bio::flush());
    medium
}

fn submit(medium: &mut MemDevice, bio: Bio) {
    let Submit::Done(done) = medium.submit(Nanos::ZERO, bio, Token(0)) else {
        panic!("memory without latency answers at once")
    };
    done.result.expect("a bio");
}

/// What a cut leaves after these bios.
fn left(before: &Content, bios: &[Bio], seed: u64) -> Content {
    let mut medium = medium(before);
    for bio in bios.iter().filter(|bio| bio.op != Op::Read) {
        submit(&mut medium, bio.clone());
    }
    medium.cut_power(&mut Stream::new(seed, "cut"));
    sectors(&medium)
}

/// Whether a bio writes a copy of the superblock.
fn is_mark(bio: &Bio) -> bool {
    bio.op == Op::Write && bio.lba.0 < 2
}

/// How many bios come before each cut: those near writes to the copies of the superblock.
fn cuts(bios: &[Bio]) -> Vec<usize> {
    let marks: Vec<usize> = (0..bios.len()).filter(|at| is_mark(&bios[*at])).collect();
    assert!(!marks.is_empty(), "the mark changes");
    let is_near = |at: &usize| {
        marks.iter().any(|mark| (mark.saturating_sub(AROUND)..=mark + AROUND).contains(at))
    };
    (0..=bios.len()).filter(is_near).collect()
}

/// A volume that is watched, with content.
async fn watched(rt: &Handle, content: &Content) -> (AsyncDevice<Watched>, Seen) {
    let seen = Seen::default();
    (AsyncDevice::new(rt, Watched::new(medium(content), &seen)), seen)
}

/// The first page of a file that has neither what the file was filled with, nor what was written over it.
async fn broken_page(fs: &F2fs) -> Option<String> {
    for (name, pages, filled_by) in [("scattered", SCATTERED, 100), ("synced", SYNCED, SYNCED)] {
        let ino = fs.lookup(ME, fs.root(), name.as_bytes()).await.expect("a file").ino;
        let bytes = fs.read(ME, ino, 0, pages * 4_096, Io::Buffered).await.expect("content");
        for (page, bytes) in (0..pages).zip(bytes.to_bytes().chunks(4_096)) {
            let written = [page as u8, (page / filled_by * filled_by) as u8];
            let is_whole = bytes.iter().all(|byte| *byte == bytes[0]);
            if !is_whole || !written.contains(&bytes[0]) {
                return Some(format!("{name}, page {page}"));
            }
        }
    }
    None
}

/// Recovers what a cut left, unmounts it, and has stock tools look at it. Returns the bios of the recovery, or what is lost.
async fn recover(rt: &Handle, content: &Content) -> Result<Vec<Bio>, String> {
    let (device, seen) = watched(rt, content).await;
    let mounted = F2fs::mount(rt, device.erased(), options(Safe, None)).await;
    let (fs, _) = mounted.map_err(|error| error.to_string())?;
    let bios = seen.take();
    if let Some(broken) = broken_page(&fs).await {
        return Err(broken);
    }
    fs.unmount().await.expect("an unmount");
    let content = device.with(|watched| sectors(&watched.device));
    for copy in 0..2 {
        let block = content[&copy].expand().expect("a copy of the superblock");
        let superblock = &block[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES];
        assert!(!is_marked(superblock), "copy {copy} is marked after an unmount");
    }
    assert_sound(&loaded(rt, SECTORS, &content).await);
    Ok(bios)
}

/// The volume before a mount journals for the first time; bios from there to the end of the unmount.
async fn journalled(rt: &Handle) -> (Content, Vec<Bio>) {
    let (device, seen, area) = made(rt).await;
    let (fs, _) = F2fs::mount(rt, device.erased(), options(Safe, None)).await.expect("a mount");
    let mut load = Load::new(fs.clone()).await;
    // All of it is durable then: a checkpoint has just ended.
    let before = device.with(|watched| sectors(&watched.device));
    seen.take();
    load.run(2, || to_area(&seen.borrow(), area).count()).await;
    fs.unmount().await.expect("an unmount");
    (before, seen.take())
}

/// No cut around the mark loses anything, nor do those around what the recovery from the last marked volume writes: each time
/// a mount finds its files whole, and stock tools, which refuse a marked volume, find nothing after an unmount.
#[test]
fn cuts_around_the_mark_lose_nothing() {
    run(async |rt| {
        let (before, bios) = journalled(&rt).await;
        let mut marked = None;
        for at in cuts(&bios) {
            let content = left(&before, &bios[..at], at as u64);
            let recovery =
                recover(&rt, &content).await.unwrap_or_else(|lost| panic!("bio {at}: {lost}"));
            if recovery.iter().any(is_mark) {
                marked = Some((content, recovery));
            }
        }
        let (content, recovery) = marked.expect("a cut leaves a marked volume");
        for at in cuts(&recovery) {
            let content = left(&content, &recovery[..at], at as u64);
            let lost = recover(&rt, &content).await.err();
            assert_eq!(lost, None, "bio {at} of a recovery");
        }
    });
}
