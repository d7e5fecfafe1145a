//! Single migrations, made at chosen moments.

use super::devices::{Slow, coupled, device, made};
use super::life::ME;
use nandscape_block::{AsyncDevice, Attention, BlockDevice, Lba, Payload, SectorData, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Data, FileSystem, Ino, Io};
use nandscape_fs::f2fs::{F2fs, MountOptions, OmittedRule};
use nandscape_rt::{Executor, Handle, Nanos};

const PAGE: u64 = 4_096;

/// A mounted volume with one page of a file that is durable, and the device below.
struct Stage {
    rt: Handle,
    device: AsyncDevice<Slow>,
    fs: F2fs,
    file: Ino,
}

impl Stage {
    async fn set(rt: Handle, fresh: Slow, omit: Option<OmittedRule>) -> Self {
        let device = AsyncDevice::new(&rt, fresh);
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
        let regions: Vec<_> = self.device.caps().regions().map(|region| region.range).collect();
        let found = regions.into_iter().skip(1).flatten().find(|at| {
            self.device.with(|slow| slow.fake.current(Lba(*at))) == SectorData::Tag(Tag::new(tag))
        });
        found.expect("the page lies somewhere")
    }

    fn migrate(&self, old: u64, new: u64) {
        self.device.with(|slow| slow.fake.migrate(&[(Lba(old), Lba(new))])).expect("a migration");
    }

    /// The `index`-th address of the region that data are moved to.
    fn moved(&self, index: u64) -> u64 {
        self.device.caps().regions[2].range.start + index
    }

    fn count(&self, name: &str) -> u64 {
        self.fs.counts().detail.count("append", name).expect("a count")
    }
}

fn shows(bytes: &[u8], tag: u64) -> bool {
    bytes == Data::Sectors(Payload::Run(Tag::new(tag)), 1).to_bytes()
}

/// Runs a body on a volume.
fn on_stage(omit: Option<OmittedRule>, body: impl AsyncFnOnce(Stage) + 'static) {
    let fresh = made(device(coupled(), 0), 1);
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let done = executor.block_on(async move { body(Stage::set(rt, fresh, omit).await).await });
    done.expect("no deadlock");
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

/// A block that is moved again before its first move is completed is found at its last place; so is a node.
#[test]
fn moves_of_moved_blocks_are_followed() {
    on_stage(None, async |stage| {
        let old = stage.place(8);
        stage.migrate(old, stage.moved(0));
        stage.migrate(stage.moved(0), stage.moved(600));
        stage.fs.syncfs(ME).await.expect("a sync");
        stage.migrate(stage.moved(600), stage.moved(5));
        stage.fs.syncfs(ME).await.expect("a sync");
        assert_eq!((stage.count("moved_data_blocks"), stage.count("stale_records")), (3, 0));
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
