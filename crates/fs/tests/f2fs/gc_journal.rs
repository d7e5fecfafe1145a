//! Volumes with the area of a GC journal, and their mark, before fsck.f2fs and our own readers: the area lies
//! where docs/formats/f2fs.md says, f2fs-tools find nothing, a marked volume is refused by them and read by us.

use crate::common::examine::{assert_sound, check_image, on_image, shown, try_dump};
use crate::common::image::content_of;
use crate::common::volume::{loaded, mounted, run as run_on};
use crate::common::{Scratch, assert_clean, f2fs_tools, run, text};
use nandscape_block::{AsyncDevice, ImageDevice, Payload, SectorData, Tag};
use nandscape_fs::contract::{Caller, Data, FileSystem, FsError, Ino, Io};
use nandscape_fs::f2fs::dump::DumpTarget;
use nandscape_fs::f2fs::format::GcJournalFormat::{Paper, Safe};
use nandscape_fs::f2fs::format::*;
use nandscape_fs::f2fs::mkfs::{MkfsOptions, least_sectors, mkfs, plan};
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::Executor;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
/// Bytes of a write.
const PART: u64 = 256 << 10;
const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };

fn options() -> MkfsOptions {
    MkfsOptions { gc_journal: true, fresh: true, ..MkfsOptions::new(1) }
}

fn writable(path: &Path) -> File {
    File::options().read(true).write(true).open(path).expect("an image")
}

/// Makes a volume of a file that is there.
fn make(path: &Path, options: &MkfsOptions) -> Superblock {
    let sectors = path.metadata().expect("a size").len() / BLOCK_BYTES as u64;
    let mut executor = Executor::on_virtual_clock();
    let device = AsyncDevice::new(&executor.handle(), ImageDevice::new(writable(path), sectors));
    let options = options.clone();
    let made = executor.block_on(async move { mkfs(&device.erased(), &options).await });
    made.expect("mkfs ends").expect("a file system")
}

/// A volume of 100 MiB with the area.
fn volume(scratch: &Scratch, features: Features) -> (PathBuf, GcJournalArea) {
    let image = scratch.image("volume", 100 * MIB);
    let sb = make(&image, &MkfsOptions { features, ..options() });
    (image, sb.gc_journal().expect("an area"))
}

fn block_at(image: &Path, at: u32) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let from = u64::from(at) * BLOCK_BYTES as u64;
    File::open(image).expect("an image").read_exact_at(&mut block, from).expect("a block");
    block
}

fn put_block(image: &Path, at: u32, block: &[u8; BLOCK_BYTES]) {
    writable(image).write_all_at(block, u64::from(at) * BLOCK_BYTES as u64).expect("a write");
}

/// Changes copies of the superblock.
fn change(image: &Path, copies: &[u32], how: impl Fn(&mut [u8], u32)) {
    for copy in copies.iter().copied() {
        let mut block = block_at(image, copy);
        how(&mut block[SUPERBLOCK_AT..], copy);
        put_block(image, copy, &block);
    }
}

fn mark_copies(image: &Path, copies: &[u32], format: GcJournalFormat) {
    change(image, copies, |bytes, copy| mark(bytes, copy, format).expect("a mark"));
}

fn unmark_copies(image: &Path, copies: &[u32]) {
    change(image, copies, |bytes, copy| unmark(bytes, copy).expect("no mark"));
}

/// The version of the checkpoint in use.
fn version(image: &Path) -> u64 {
    on_image(image, async |device| {
        F2fsImage::open(&device).await.expect("a volume").checkpoint.checkpoint_ver
    })
}

/// What a mount says of an image.
fn try_mount(image: &Path) -> Result<(), FsError> {
    let (content, sectors) = (content_of(image), image.metadata().expect("a size").len() / 4096);
    run_on(async move |rt| {
        let device = loaded(&rt, sectors, &content).await;
        F2fs::mount(&rt, device.erased(), MountOptions::default()).await.map(drop)
    })
}

/// A journal block of one entry.
fn journal_block(format: GcJournalFormat, index: u32, checkpoint_ver: u64) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let (old, new) = (BlockAddr(70_000 + index), BlockAddr(80_000));
    match format {
        Paper => {
            let entries = vec![PaperEntry { old, new }];
            PaperBlock { checkpoint_ver, entries }.encode(&mut block);
        }
        Safe => {
            let entries = vec![SafeEntry { old, new, moved: MovedBlock::Node(Nid(3)) }];
            SafeBlock { checkpoint_ver, index, chain: BlockAddr(9), entries }.encode(&mut block);
        }
    }
    block
}

/// Fills a volume with a file, and writes over every third part of it.
async fn fill(fs: &F2fs) {
    let part = async |ino: Ino, at: u64| {
        let tags = (0..PART / 4096).map(|page| SectorData::Tag(Tag::new(at).plus(page)));
        let data = Data::Sectors(Payload::collect(tags.collect()), (PART / 4096) as u32);
        fs.write_all(ME, ino, at, data, Io::Direct).await
    };
    let ino = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file").ino;
    let mut end = 0;
    while part(ino, end).await.is_ok() {
        end += PART;
    }
    assert!(end > 30 * MIB, "{end} bytes");
    for at in (0..end).step_by(3 * PART as usize) {
        part(ino, at).await.expect("a write over what is there");
    }
}

/// With the area, the file system is that of a volume smaller by one segment, but for what no zone is left
/// for; the area is the segment after it, on the volume; fsck.f2fs and our check find nothing.
#[test]
fn the_area_follows_the_main_area() {
    for (bytes, features) in [
        (301 * MIB, Features::default()),
        (1025 * MIB + 3 * 4096, SUPPORTED),
        (2048 * MIB, Features::default()),
    ] {
        for segments_per_section in [1, 4] {
            let options = MkfsOptions { features, segments_per_section, ..options() };
            let scratch = Scratch::new();
            let image = scratch.image("volume", bytes);
            let sb = make(&image, &options);
            let what = format!("{bytes} bytes, -s {segments_per_section}");
            let smaller = MkfsOptions { gc_journal: false, ..options };
            let smaller = plan(&smaller, bytes / 4096 - 512).expect("a plan").superblock;
            let expected =
                Superblock { block_count: bytes / 4096, gc_journal: sb.gc_journal, ..smaller };
            assert!(sb == expected, "{what}");
            let area = sb.gc_journal().expect("an area").blocks();
            let main = Layout::of(&sb).expect("a layout").area(Area::Main);
            assert_eq!(area, main.end..BlockAddr(main.end.0 + 512), "{what}");
            let left = bytes / 4096 - u64::from(area.end.0);
            assert!(left < u64::from(512 * segments_per_section), "{what}: {left} blocks are left");
            for copy in 0..2 {
                let read = Superblock::parse(&block_at(&image, copy)[SUPERBLOCK_AT..], copy);
                let read = read.expect("a superblock").gc_journal().expect("an area");
                assert_eq!((read.blocks(), read.live()), (area.clone(), None), "{what}");
            }
            assert_sound(&image);
            if f2fs_tools() {
                assert_clean(&image);
            }
        }
    }
}

/// The least volume with the area has it, and is sound; without it, the least one is smaller, and has none.
#[test]
fn small_volumes_have_room_for_the_area() {
    for segments_per_section in [1, 4] {
        let options = MkfsOptions { segments_per_section, ..options() };
        let without = MkfsOptions { gc_journal: false, ..options.clone() };
        let sectors = least_sectors(&options).expect("a size");
        let zone = u64::from(512 * segments_per_section);
        assert_eq!(least_sectors(&without).expect("a size") + zone, sectors);
        assert!(plan(&options, sectors - zone).is_err());
        assert_eq!(plan(&without, sectors).expect("a plan").superblock.gc_journal(), None);
        let scratch = Scratch::new();
        let image = scratch.image("volume", sectors * 4096);
        assert!(make(&image, &options).gc_journal().is_some());
        assert_sound(&image);
        if f2fs_tools() {
            assert_clean(&image);
        }
    }
}

/// On a device that held something else the area is zeroes, and what follows it stays as it was.
#[test]
fn the_area_is_zeroes_at_first() {
    let scratch = Scratch::new();
    let image = scratch.path("volume");
    std::fs::write(&image, vec![0xa5; 100 * MIB as usize + 4096]).expect("an image");
    let sb = make(&image, &MkfsOptions { fresh: false, discard: false, ..options() });
    let area = sb.gc_journal().expect("an area").blocks();
    for (at, byte) in [(area.start.0 - 1, 0xa5), (area.end.0, 0xa5), (area.start.0, 0)] {
        assert_eq!(block_at(&image, at), [byte; BLOCK_BYTES], "block {at}");
    }
    assert!((area.start.0..area.end.0).all(|at| block_at(&image, at) == [0; BLOCK_BYTES]));
}

/// A mount that fills the volume and writes over what it filled leaves the area alone, and the record in both
/// copies.
#[test]
fn a_mount_leaves_the_area_alone() {
    let scratch = Scratch::new();
    let (image, area) = volume(&scratch, SUPPORTED);
    for (index, at) in (0..).zip(area.blocks().start.0..area.blocks().end.0) {
        put_block(&image, at, &journal_block(Safe, index, 1));
    }
    let before = content_of(&image);
    let (first, sectors) = (u64::from(area.blocks().start.0), 100 * MIB / 4096);
    let kept = before.clone();
    let after = run_on(async move |rt| {
        let device = loaded(&rt, sectors, &kept).await;
        let fs = mounted(&rt, &device, &MountOptions::default()).await;
        fill(&fs).await;
        fs.unmount().await.expect("an unmount");
        crate::common::image::content(&device)
    });
    let of = |content: &crate::common::image::Content, from, to| -> Vec<_> {
        content.range(from..to).map(|(at, data)| (*at, data.expand())).collect()
    };
    assert_eq!(of(&before, first, sectors).len(), 512);
    assert!(of(&before, first, sectors) == of(&after, first, sectors));
    assert!(of(&before, 0, 2) == of(&after, 0, 2));
}

/// fsck.f2fs refuses a volume of which both copies are marked, however it is asked, and leaves it alone;
/// without the mark the volume is what it was. We read it all the time.
#[test]
fn marked_volumes_are_refused_by_fsck_f2fs() {
    if !f2fs_tools() {
        return;
    }
    for (features, format) in [(Features::default(), Paper), (SUPPORTED, Safe)] {
        let scratch = Scratch::new();
        let (image, _) = volume(&scratch, features);
        let before = std::fs::read(&image).expect("a volume");
        mark_copies(&image, &[1, 0], format);
        let marked = std::fs::read(&image).expect("a volume");
        for arguments in [&["--dry-run"][..], &["-a"], &["-p"], &["-f", "-y"]] {
            let checked = run("fsck.f2fs", &[arguments, &[text(&image)]].concat());
            let said = String::from_utf8_lossy(&checked.stdout);
            assert_ne!(checked.status.code(), Some(0), "{arguments:?}: {said}");
            for copy in ["superblock at 0x0", "superblock at 0x1"] {
                assert!(said.contains(copy) && !said.contains("[FSCK]"), "{arguments:?}: {said}");
            }
            assert!(std::fs::read(&image).expect("a volume") == marked, "{arguments:?}");
        }
        let made = run("mkfs.f2fs", &[text(&image)]);
        let unchanged = std::fs::read(&image).expect("a volume") == marked;
        assert!(!made.status.success() && unchanged, "mkfs.f2fs without -f");
        let shown = try_dump(&image, DumpTarget::Superblock).expect("text");
        let live = format!("marked: blocks in the {} format may count", format.name());
        assert!(shown.contains(&live) && !shown.contains("unsound"), "{shown}");
        assert!(try_dump(&image, DumpTarget::Tree).expect("a tree").contains("/ "));
        assert_sound(&image);
        unmark_copies(&image, &[0, 1]);
        assert!(std::fs::read(&image).expect("a volume") == before);
        assert_clean(&image);
    }
}

/// With one copy marked, as a cut between the two writes leaves it, fsck.f2fs finds a sound volume, and so
/// do our check and our mount, whichever copy it is.
#[test]
fn volumes_with_one_mark_are_sound() {
    for (marked, features) in [(0, Features::default()), (1, Features::default()), (0, SUPPORTED)] {
        let scratch = Scratch::new();
        let (image, area) = volume(&scratch, features);
        // By its version it would count.
        let block = journal_block(Safe, 0, version(&image));
        put_block(&image, area.blocks().start.0, &block);
        mark_copies(&image, &[marked], Safe);
        assert_sound(&image);
        assert_eq!(try_mount(&image), Ok(()), "copy {marked}");
        let shown = try_dump(&image, DumpTarget::Superblock).expect("text");
        assert!(shown.contains("no block counts"), "{shown}");
        if f2fs_tools() {
            let checked = run("fsck.f2fs", &["--dry-run", text(&image)]);
            let said = String::from_utf8_lossy(&checked.stdout);
            assert_eq!(checked.status.code(), Some(0), "copy {marked}: {said}");
            assert_eq!(said.contains("superblock at 0x0"), marked == 0, "{said}");
            assert!(said.contains("[Ok..]") && !said.contains("[ASSERT]"), "{said}");
        }
    }
}

/// If one copy is torn and the other one marked, the volume is marked.
#[test]
fn a_mark_beside_a_torn_copy_counts() {
    for marked in [0, 1] {
        let scratch = Scratch::new();
        let (image, area) = volume(&scratch, Features::default());
        let block = journal_block(Paper, 0, version(&image));
        put_block(&image, area.blocks().start.0, &block);
        mark_copies(&image, &[marked], Paper);
        // The size of blocks is written, the record is not.
        change(&image, &[1 - marked], |bytes, _| bytes[0x10] = MARKED_LOG_BLOCKSIZE as u8);
        assert_eq!(try_mount(&image), Ok(()), "copy {marked}");
        let report = check_image(&image).expect("a report");
        assert!(shown(&report).contains("1 blocks of the GC journal"), "{}", shown(&report));
    }
}

/// Of a marked volume the blocks count that were written after the checkpoint in use, up to the first that
/// is of another one or, in the safe format, unsound. They are what our check finds. A mount leaves alone what no
/// entry fits.
#[test]
fn blocks_of_the_last_checkpoint_count() {
    for format in [Paper, Safe] {
        let scratch = Scratch::new();
        let (image, area) = volume(&scratch, SUPPORTED);
        let ver = version(&image);
        let put = |index: u32, checkpoint_ver: u64| {
            let at = area.block(index).expect("a block").0;
            put_block(&image, at, &journal_block(format, index, checkpoint_ver));
        };
        let expect = |count: usize| {
            let found = on_image(&image, async |device| {
                let image = F2fsImage::open(&device).await.expect("a volume");
                image.gc_journal_blocks().await.expect("blocks").len()
            });
            assert_eq!(found, count);
            let shown = try_dump(&image, DumpTarget::GcJournal).expect("text");
            assert_eq!(shown.matches(", counts\n").count(), count, "{shown}");
            shown
        };
        mark_copies(&image, &[1, 0], format);
        expect(0);
        put(0, ver - 1);
        put(1, ver);
        expect(0);
        assert_sound(&image);
        put(0, ver);
        put(2, ver - 1);
        put(3, ver);
        let shown_blocks = expect(2);
        assert!(shown_blocks.contains("70001 -> 80000"), "{shown_blocks}");
        assert_eq!(shown_blocks.matches("does not count").count(), 2, "{shown_blocks}");
        let report = check_image(&image).expect("a report");
        let found = shown(&report);
        assert!(report.findings.len() == 1 && found.contains("is marked: 2 blocks"), "{found}");
        assert_eq!(try_mount(&image), Ok(()));
        let mut torn = block_at(&image, area.blocks().start.0 + 1);
        torn[100] ^= 1;
        put_block(&image, area.blocks().start.0 + 1, &torn);
        let shown_blocks = expect(if format == Safe { 1 } else { 2 });
        assert_eq!(shown_blocks.contains("unsound"), format == Safe, "{shown_blocks}");
        unmark_copies(&image, &[0, 1]);
        expect(0);
        assert_eq!(try_mount(&image), Ok(()));
    }
}

/// A record that no longer fits the volume is a finding, and no area.
#[test]
fn a_record_that_does_not_fit_is_a_finding() {
    let scratch = Scratch::new();
    let (image, _) = volume(&scratch, Features::default());
    change(&image, &[0, 1], |bytes, copy| {
        let mut sb = Superblock::parse(bytes, copy).expect("a superblock");
        sb.gc_journal =
            GcJournalRecord::new(BlockAddr(sb.gc_journal.start.0 - 512), GC_JOURNAL_BLOCKS);
        sb.encode(bytes);
    });
    let report = check_image(&image).expect("a report");
    assert!(shown(&report).contains("GC journal lies over the main area"), "{}", shown(&report));
    assert_eq!(report.findings.len(), 1);
    let text = try_dump(&image, DumpTarget::Superblock).expect("text");
    assert!(text.contains("unsound: superblock 0, byte 3052"), "{text}");
    assert_eq!(try_mount(&image), Ok(()));
}
