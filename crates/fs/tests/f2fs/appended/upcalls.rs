//! Single migrations, made at chosen moments.

use super::devices::{assert_exact, coupled, device, made};
use super::life::ME;
use crate::common::slow::{LATE, Slow, with, with_slow};
use nandscape_block::{AsyncDevice, Attention, BlockDevice, Lba, Payload, SectorData, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Data, FileSystem, Ino, Io};
use nandscape_fs::f2fs::format::NodeFooter;
use nandscape_fs::f2fs::{F2fs, MountOptions, OmittedRule};
use nandscape_rt::{Handle, Nanos, Stream};

const PAGE: u64 = 4_096;

/// A mounted volume with one page of a file that is durable, and the device below.
struct Stage {
    rt: Handle,
    device: AsyncDevice<Slow>,
    fs: F2fs,
    file: Ino,
}

impl Stage {
    async fn set(rt: Handle, device: AsyncDevice<Slow>, omit: Option<OmittedRule>) -> Self {
        let options = MountOptions { omit, ..MountOptions::default() };
        let fs = F2fs::mount(&rt, device.erased(), options).await.expect("a mount").0;
        let file = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file").ino;
        let stage = Self { rt, device, fs, file };
        // Two nodes, one of them not the inode.
        stage.write(0, 7).await;
        stage.write(2_000, 8).await;
        stage.fs.syncfs(ME).await.expect("a sync");
        stage
    }

    /// The same after an unmount.
    async fn remounted(self, omit: Option<OmittedRule>) -> Self {
        self.fs.unmount().await.expect("an unmount");
        let options = MountOptions { omit, ..MountOptions::default() };
        let mounted = F2fs::mount(&self.rt, self.device.erased(), options).await;
        Self { fs: mounted.expect("a mount").0, ..self }
    }

    async fn write(&self, page: u64, tag: u64) {
        let data = Data::Sectors(Payload::Run(Tag::new(tag)), 1);
        self.fs.write_all(ME, self.file, page * PAGE, data, Io::Buffered).await.expect("a write");
    }

    async fn read(&self, page: u64, io: Io) -> Vec<u8> {
        self.fs.read(ME, self.file, page * PAGE, PAGE, io).await.expect("a page").to_bytes()
    }

    /// Where the page with a tag lies.
    fn place(&self, tag: u64) -> u64 {
        self.find(|content| *content == SectorData::Tag(Tag::new(tag)))
    }

    /// Where the inode of the file lies, or its other node.
    fn place_of_node(&self, is_inode: bool) -> u64 {
        let file = self.file.0 as u32;
        self.find(|content| {
            let footer = content.bytes().map(|bytes| NodeFooter::parse(&bytes));
            footer.is_some_and(|footer| footer.ino == file && footer.is_inode() == is_inode)
        })
    }

    fn find(&self, is_it: impl Fn(&SectorData) -> bool) -> u64 {
        let regions: Vec<_> = self.device.caps().regions().map(|region| region.range).collect();
        let mut places = regions.into_iter().skip(1).flatten();
        let found = places.find(|at| is_it(&self.device.with(|slow| slow.fake.current(Lba(*at)))));
        found.expect("the block lies somewhere")
    }

    fn migrate(&self, old: u64, new: u64) {
        self.device.with(|slow| slow.fake.migrate(&[(Lba(old), Lba(new))])).expect("a migration");
    }

    /// The `index`-th address of the region that data are moved to.
    fn moved(&self, index: u64) -> u64 {
        self.device.caps().regions[2].range.start + index
    }

    /// The same of the region that nodes are moved to.
    fn moved_node(&self, index: u64) -> u64 {
        self.device.caps().regions[4].range.start + index
    }

    fn count(&self, name: &str) -> u64 {
        self.fs.counts().detail.count("append", name).expect("a count")
    }
}

fn shows(bytes: &[u8], tag: u64) -> bool {
    bytes == Data::Sectors(Payload::Run(Tag::new(tag)), 1).to_bytes()
}

/// Runs a body on a volume; the device that it leaves.
fn on_stage<T: 'static>(
    omit: Option<OmittedRule>,
    body: impl AsyncFnOnce(Stage) -> T + 'static,
) -> (Slow, T) {
    let fresh = made(device(coupled(), 0), 1);
    with_slow(fresh, async move |rt, device| body(Stage::set(rt, device, omit).await).await)
}

/// A read that is on its way to an old address delays the completion that makes the device forget it; without that rule it
/// finds nothing there.
#[test]
fn reads_on_their_way_delay_completions() {
    for omit in [None, Some(OmittedRule::UpcallReads)] {
        on_stage(omit, async move |stage| {
            let old = stage.place(8);
            stage.migrate(old, stage.moved(0));
            stage.device.with(|slow| slow.late = 1.0);
            let fs = stage.fs.clone();
            let file = stage.file;
            let read = stage.rt.spawn("reader", async move {
                fs.read(ME, file, 2_000 * PAGE, PAGE, Io::Direct).await.expect("a page").to_bytes()
            });
            stage.rt.sleep(Nanos::from_us(1)).await;
            stage.device.with(|slow| slow.late = 0.0);
            stage.fs.syncfs(ME).await.expect("a sync");
            let bytes = read.await.expect("an end");
            assert_eq!(shows(&bytes, 8), omit.is_none());
            assert_eq!(
                (stage.count("upcalls_completed"), stage.count("moved_data_blocks")),
                (1, 1)
            );
            assert!(shows(&stage.read(2_000, Io::Direct).await, 8), "the new address");
        });
    }
}

/// A block that is written elsewhere while a record of it waits for what it needs to read stays where it was written;
/// without that rule the volume contradicts itself.
#[test]
fn records_are_asked_again() {
    for omit in [None, Some(OmittedRule::UpcallRecheck)] {
        on_stage(omit, async move |stage| {
            stage.migrate(stage.place(8), stage.moved(0));
            stage.fs.syncfs(ME).await.expect("a sync");
            let stage = stage.remounted(omit).await;
            for page in [0, 2_000] {
                stage.read(page, Io::Direct).await;
            }
            stage.migrate(stage.place(7), stage.moved(600));
            stage.migrate(stage.moved(600), stage.moved(1));
            stage.device.with(|slow| slow.late = 1.0);
            stage.device.flush().await.expect("a completion that says so");
            // The first move is in memory, and the summaries of the last place are being read.
            stage.rt.sleep(Nanos::from_ms(75)).await;
            assert_eq!(stage.count("moved_data_blocks"), 1);
            stage.device.with(|slow| slow.late = 0.0);
            stage.write(0, 9).await;
            let synced = stage.fs.fsync(ME, stage.file).await;
            stage.rt.sleep(Nanos::from_ms(200)).await;
            let synced = synced.and(stage.fs.syncfs(ME).await);
            assert_eq!(synced.is_ok(), omit.is_none(), "{synced:?}");
            if synced.is_ok() {
                assert_eq!(stage.count("stale_records"), 1);
                assert!(shows(&stage.read(0, Io::Direct).await, 9));
            }
        });
    }
}

/// A node that is written elsewhere while a record of it waits for what it needs to read stays where it was written.
#[test]
fn nodes_stay_where_they_were_written_meanwhile() {
    on_stage(None, async |stage| {
        stage.migrate(stage.place_of_node(false), stage.moved_node(0));
        stage.fs.syncfs(ME).await.expect("a sync");
        let stage = stage.remounted(None).await;
        // With the checkpoint of an unmount as the last one, an fsync of the file would write another.
        stage.fs.create(ME, stage.fs.root(), b"other", 0o644).await.expect("a file");
        stage.fs.syncfs(ME).await.expect("a sync");
        for page in [0, 2_000] {
            stage.read(page, Io::Direct).await;
        }
        stage.migrate(stage.place_of_node(true), stage.moved_node(600));
        stage.migrate(stage.moved_node(600), stage.moved_node(1));
        stage.device.with(|slow| slow.late = 1.0);
        stage.device.flush().await.expect("a completion that says so");
        // The first move is in memory, and the summaries of the last place are being read.
        stage.rt.sleep(Nanos::from_ms(75)).await;
        assert_eq!(stage.count("moved_node_blocks"), 1);
        stage.device.with(|slow| slow.late = 0.0);
        stage.write(0, 9).await;
        stage.fs.fsync(ME, stage.file).await.expect("a sync of the file");
        stage.rt.sleep(LATE).await;
        stage.fs.syncfs(ME).await.expect("a sync");
        assert_eq!(stage.count("stale_records"), 1);
        let stage = stage.remounted(None).await;
        assert!(shows(&stage.read(0, Io::Direct).await, 9));
    });
}

/// A block that is moved again before its first move is completed is found at its last place; so is a node.
#[test]
fn moves_of_moved_blocks_are_followed() {
    on_stage(None, async |stage| {
        let old = stage.place(8);
        stage.migrate(old, stage.moved(0));
        stage.migrate(stage.moved(0), stage.moved(600));
        stage.fs.syncfs(ME).await.expect("a sync");
        // The second of these has the lower old address, and is in the same batch.
        stage.migrate(stage.moved(600), stage.moved(5));
        stage.migrate(stage.moved(5), stage.moved(1));
        stage.fs.syncfs(ME).await.expect("a sync");
        assert_eq!((stage.count("moved_data_blocks"), stage.count("stale_records")), (4, 0));
        assert_eq!(stage.count("upcalls_completed"), stage.count("upcalls_fetched"));
        assert!(shows(&stage.read(2_000, Io::Direct).await, 8));
    });
}

/// A device that asks for it gets batches completed, by a checkpoint that nothing else needs.
#[test]
fn a_device_that_asks_gets_completions() {
    for asks in [false, true] {
        on_stage(None, async move |stage| {
            stage.device.with(|slow| slow.asks = asks);
            stage.migrate(stage.place(8), stage.moved(0));
            stage.device.flush().await.expect("a completion that says so");
            stage.rt.sleep(Nanos::from_ms(500)).await;
            let counts = ["upcalls_fetched", "upcalls_completed", "forced_by_upcalls"];
            let asked = u64::from(asks);
            assert_eq!(counts.map(|name| stage.count(name)), [1, asked, asked]);
        });
    }
}

/// A record of a block that was written again, or whose file is gone, is skipped, and nothing of it stays on the device.
#[test]
fn stale_records_are_skipped() {
    on_stage(None, async |stage| {
        let (first, second) = (stage.place(7), stage.place(8));
        stage.write(0, 9).await;
        stage.fs.fsync(ME, stage.file).await.expect("a sync");
        stage.migrate(first, stage.moved(0));
        stage.fs.unlink(ME, stage.fs.root(), b"file").await.expect("no name");
        stage.migrate(second, stage.moved(1));
        stage.fs.syncfs(ME).await.expect("a sync");
        assert_eq!((stage.count("moved_data_blocks"), stage.count("stale_records")), (0, 2));
        let left = stage.device.with(|slow| {
            let data = slow.caps().regions[1].range.start..slow.caps().regions[2].range.end;
            (slow.fake.live_sectors(data), slow.attention())
        });
        // Blocks of the root directory, and of lost+found without one.
        assert_eq!(left, (1, Attention::NONE));
    });
}

/// A page that is dirty when its old block is moved keeps what was written, and the copy dies.
#[test]
fn dirty_pages_stay_as_they_are() {
    on_stage(None, async |stage| {
        let old = stage.place(8);
        stage.write(2_000, 10).await;
        stage.migrate(old, stage.moved(0));
        stage.fs.syncfs(ME).await.expect("a sync");
        assert!(shows(&stage.read(2_000, Io::Direct).await, 10));
        let copy = stage
            .device
            .with(|slow| slow.fake.current(Lba(slow.fake.caps().regions[2].range.start)));
        assert_eq!(copy, SectorData::Tag(Tag::ZERO));
    });
}

/// While a fetch is answered that finds nothing, a section is discarded, and the device moves a block of it. The section is
/// not free before the device was asked again and that record is completed.
#[test]
fn sections_wait_for_a_fetch_after_their_discards() {
    on_stage(None, async |stage| {
        // Logs go to other sections.
        let stage = stage.remounted(None).await;
        stage.fs.syncfs(ME).await.expect("a sync");
        stage.rt.sleep(Nanos::from_ms(200)).await;
        let old = stage.place(8);
        let used = stage.count("sections_used_region_1");
        stage.write(0, 9).await;
        stage.write(2_000, 10).await;
        let sync = || {
            let fs = stage.fs.clone();
            stage.rt.spawn("sync", async move { fs.syncfs(ME).await.expect("a sync") })
        };
        stage.device.with(|slow| slow.discard_latency = LATE);
        let first = sync();
        stage.rt.sleep(Nanos::from_ms(50)).await;
        stage.device.with(|slow| slow.fetch_latency = Nanos::from_ms(300));
        let second = sync();
        stage.rt.sleep(Nanos::from_us(1)).await;
        stage.migrate(old, stage.moved(0));
        stage.device.with(|slow| slow.fetch_latency = Nanos::from_us(20));
        first.await.expect("an end");
        second.await.expect("an end");
        stage.rt.sleep(LATE).await;
        assert_eq!((stage.count("stale_records"), stage.count("upcalls_completed")), (1, 0));
        assert_eq!(stage.count("sections_used_region_1"), used, "named, so not free");
        stage.fs.syncfs(ME).await.expect("a sync");
        assert_eq!(stage.count("upcalls_completed"), 1);
        assert_eq!(stage.count("sections_used_region_1"), used - 1);
    });
}

/// A section that is void, and that a record names, is not where logs go on at mount: the checkpoint of the mount writes
/// nodes before the record is completed.
#[test]
fn logs_of_a_mount_leave_named_sections_alone() {
    let (mut left, moves) = on_stage(None, async |stage| {
        // Logs go to other sections, and both nodes after them.
        let stage = stage.remounted(None).await;
        let node = stage.place_of_node(true);
        stage.write(0, 9).await;
        stage.write(2_000, 10).await;
        stage.device.with(|slow| slow.discard_latency = LATE);
        let fs = stage.fs.clone();
        drop(stage.rt.spawn("sync", async move { fs.syncfs(ME).await }));
        // The checkpoint is durable, and discards are on their way, when power goes.
        stage.rt.sleep(Nanos::from_ms(50)).await;
        // What else is moved has the mount write a node of the file, and one of the root directory.
        let of_root = stage.find(|content| !matches!(content, SectorData::Tag(_)));
        let moved = stage.moved(0);
        [(node, stage.moved_node(0)), (of_root, moved), (stage.place(10), moved + 1)]
    });
    left.fake.migrate(&moves.map(|(old, new)| (Lba(old), Lba(new)))).expect("migrations");
    left.fake.cut_power(&mut Stream::new(1, "cut"));
    left.discard_latency = Nanos::from_us(20);
    let (left, ()) = with(left, async |rt, device| {
        let mounted = F2fs::mount(&rt, device, MountOptions::default()).await;
        let fs = mounted.expect("a mount").0;
        let count = |name| fs.counts().detail.count("append", name);
        assert_eq!([count("stale_records"), count("moved_data_blocks")], [Some(1), Some(2)]);
        fs.unmount().await.expect("an unmount");
    });
    drop(assert_exact(left));
}
