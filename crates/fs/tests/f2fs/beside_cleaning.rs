//! Direct I/O and fsyncs beside cleaning in the background, on a device that takes its time.

use crate::beside::{on_late, slow_file, sync, syncs_in_turn};
use crate::common::files::{ME, PAGE, content, create, expected, write};
use crate::common::image::sectors;
use crate::common::volume::{loaded, mounted, run};
use crate::late::Late;
use nandscape_block::{Bio, BlockDevice, Flags, Op, Payload, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Data, FileSystem, Ino, Io};
use nandscape_fs::f2fs::{AllocMode, F2fs, MountOptions, OmittedRule};
use nandscape_rt::Nanos;

/// What the pages of the file hold first.
const OLD: u64 = 1;

/// Cleaning that begins after ten seconds, and freed segments that are the first to be written again.
fn options() -> MountOptions {
    MountOptions {
        alloc_mode: AllocMode::Reuse,
        gc_min_sleep: Nanos::from_secs(10),
        ..MountOptions::default()
    }
}

/// A file with pages 0 and 2, which lie in the only section that is worth cleaning.
async fn left_over(fs: &F2fs) -> Ino {
    let (file, gone) = (create(fs, "file").await, create(fs, "gone").await);
    write(fs, file, 0, OLD, 1).await;
    write(fs, file, 2, OLD + 2, 1).await;
    fs.fsync(ME, file).await.expect("a sync");
    write(fs, gone, 0, 1_000, 600).await;
    fs.fsync(ME, gone).await.expect("a sync");
    fs.unlink(ME, fs.root(), b"gone").await.expect("no file");
    file
}

/// Sections that cleaning was at, and blocks that it moved.
fn cleaned(fs: &F2fs) -> [Option<u64>; 2] {
    ["background_sections", "data_blocks"].map(|count| fs.counts().detail.count("gc", count))
}

fn is_of(bio: &Bio, file: Ino) -> bool {
    bio.owner.is_some_and(|owner| owner.file == file.0)
}

/// A direct write discards pages that cleaning has made dirty while it waited for a checkpoint: they are older than what it
/// writes, and a sync would write them back after it has its blocks, and before it ends.
#[test]
fn a_direct_write_drops_what_cleaning_made_dirty() {
    run(async |rt| {
        let (device, fs) = on_late(&rt, &options(), 1, |_| None).await;
        let file = left_over(&fs).await;
        let slow_checkpoint = |bio: &Bio| bio.flags.has(Flags::PREFLUSH | Flags::FUA);
        device.with(|late| {
            late.slow = Box::new(move |bio| slow_checkpoint(bio).then_some(Nanos::from_secs(20)));
        });
        let all = fs.clone();
        let checkpoint = rt.spawn("checkpoint", async move { all.syncfs(ME).await });
        rt.sleep(Nanos::from_secs(1)).await;
        // Page 1 has no block yet.
        let (writer, data) = (fs.clone(), Data::Sectors(Payload::Run(Tag::new(10_000)), 3));
        let written =
            rt.spawn(
                "direct write",
                async move { writer.write(ME, file, 0, data, Io::Direct).await },
            );
        rt.sleep(Nanos::from_secs(15)).await;
        assert_eq!(cleaned(&fs), [Some(1), Some(2)]);
        assert!(!checkpoint.is_finished());
        device.with(|late| {
            late.slow = Box::new(move |bio| {
                let is_direct = is_of(bio, file) && bio.op == Op::Write && bio.sectors == 3;
                is_direct.then_some(Nanos::from_secs(20))
            });
        });
        checkpoint.await.expect("runs to its end").expect("a checkpoint");
        fs.syncfs(ME).await.expect("a sync beside the write");
        assert!(!written.is_finished());
        assert_eq!(written.await.expect("runs to its end"), Ok(3 * PAGE));
        assert!(content(&fs, file).await == expected(10_000, 3));
    });
}

/// Cleaning does not move the pages of a file that a direct read is about to get from the device: their section would be free
/// after the next checkpoint, and the read would show what another file has there.
#[test]
fn cleaning_leaves_what_a_direct_read_is_reading() {
    run(async |rt| {
        let (device, fs) = on_late(&rt, &options(), 1, |_| None).await;
        let file = left_over(&fs).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        let mut reads = 0;
        device.with(|late| {
            late.slow = Box::new(move |bio| {
                let is_read = is_of(bio, file) && bio.op == Op::Read;
                reads += u32::from(is_read);
                (is_read && reads == 1).then_some(Nanos::from_secs(60))
            });
        });
        let reader = fs.clone();
        let read = rt
            .spawn("direct read", async move { reader.read(ME, file, 0, PAGE, Io::Direct).await });
        rt.sleep(Nanos::from_secs(15)).await;
        let [sections, moved] = cleaned(&fs);
        assert_eq!(sections, Some(1));
        fs.syncfs(ME).await.expect("a checkpoint");
        let other = create(&fs, "other").await;
        write(&fs, other, 0, 10_000, 2_048).await;
        fs.fsync(ME, other).await.expect("a sync");
        assert!(!read.is_finished());
        let read = read.await.expect("runs to its end").expect("content");
        assert!(read.to_bytes() == expected(OLD, 1));
        assert_eq!(moved, Some(0));
    });
}

/// How far pages are that cleaning moves when an fsync sends nodes which lead to them.
#[derive(Clone, Copy)]
enum Moved {
    OnTheirWay,
    /// No flush has covered them yet.
    Arrived,
}

/// An fsync sends no nodes that lead to where cleaning is moving a page of the file: their flush would not cover the new
/// block, and the page, which a checkpoint has, would show what that held before.
#[test]
fn an_fsync_leads_to_no_page_that_is_being_moved() {
    assert_kept_by_moved_flush(Moved::OnTheirWay);
}

/// Nor do its nodes lead to a page that has arrived, unless a flush covers the page before them.
#[test]
fn an_fsync_leads_to_no_page_that_may_be_lost() {
    assert_kept_by_moved_flush(Moved::Arrived);
}

/// With all rules no page is lost with any seed, without `moved-flush` one is.
fn assert_kept_by_moved_flush(moved: Moved) {
    let lost = |omit| (0..16).find(|seed| !is_kept_over_cut(moved, omit, *seed));
    assert_eq!(lost(None), None, "the seed that loses a page");
    assert!(lost(Some(OmittedRule::MovedFlush)).is_some(), "moved-flush changes nothing");
}

/// Whether a power cut beside fsyncs leaves the pages that cleaning has moved.
fn is_kept_over_cut(moved: Moved, omit: Option<OmittedRule>, seed: u64) -> bool {
    run(async move |rt| {
        let checkpoint_interval = Nanos::from_secs(3_600);
        let options = MountOptions { checkpoint_interval, omit, ..options() };
        let (device, fs) = on_late(&rt, &options, seed, |_| None).await;
        let file = left_over(&fs).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        let (nodes, cleaning) = (Nanos::from_secs(20), Nanos::from_secs(12));
        let slow = |data| Box::new(slow_file(file, nodes, data));
        let syncs = match moved {
            // The third fsync sends the pages. The second one has waited for the file's data before cleaning begins, and
            // sends its nodes after that.
            Moved::OnTheirWay => {
                device.with(|late| late.slow = slow(Nanos::from_secs(100)));
                let mut syncs = syncs_in_turn(&rt, &fs, file).await;
                rt.sleep(cleaning).await;
                syncs.push(sync(&rt, &fs, file));
                syncs
            }
            Moved::Arrived => {
                device.with(|late| late.slow = slow(Nanos::from_ms(1)));
                rt.sleep(cleaning).await;
                syncs_in_turn(&rt, &fs, file).await
            }
        };
        assert_eq!(cleaned(&fs), [Some(1), Some(2)]);
        rt.sleep(Nanos::from_secs(10)).await;
        let left = device.with(Late::cut);
        drop(syncs);
        let left = loaded(&rt, left.caps().sectors, &sectors(&left)).await;
        let fs = mounted(&rt, &left, &options).await;
        let pages = [expected(OLD, 1), vec![0; PAGE as usize], expected(OLD + 2, 1)];
        content(&fs, file).await == pages.concat()
    })
}
