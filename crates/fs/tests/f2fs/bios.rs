//! What bios say beside what they do: whose data it is, whether it is metadata, and how long it will live.

use crate::common::volume::run;
use crate::common::watched::{Seen, Watched};
use nandscape_block::{
    AsyncDevice, Bio, BlockDevice, DeviceCaps, Flags, MemDevice, Op, Owner, Placement,
};
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io, WriteHint};
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs, plan};
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::{Handle, Nanos};

const SECTORS: u64 = 32_768;
const PAGE: u64 = 4_096;
const WRITER: Caller = Caller { thread: 3, core: 2, uid: 0, gid: 0 };

/// A mounted volume on a device with placement handles that notes its bios.
struct Stand {
    fs: F2fs,
    device: AsyncDevice,
    seen: Seen,
    /// The first block of the main area.
    main: u64,
}

/// What a bio of the main area carries.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Marks {
    flags: Flags,
    owner: Option<Owner>,
    placement: Placement,
}

impl Stand {
    async fn new(rt: &Handle) -> Self {
        let seen = Seen::default();
        let device = MemDevice::new(SECTORS).with_latency(Nanos::from_us(20));
        let caps = DeviceCaps { placement_handles: 4, ..device.caps().clone() };
        let device = Watched { caps, ..Watched::new(device, &seen) };
        let device = AsyncDevice::new(rt, device).erased();
        let made = MkfsOptions { fresh: true, ..MkfsOptions::new(1) };
        mkfs(&device, &made).await.expect("a file system");
        let main = plan(&made, SECTORS).expect("a plan").superblock.main_blkaddr.0.into();
        let options = MountOptions {
            inline_dentry: false,
            gc_min_sleep: Nanos::from_secs(1),
            gc_max_sleep: Nanos::from_secs(1),
            idle_interval: Nanos::from_ms(10),
            ..MountOptions::default()
        };
        let (fs, _) = F2fs::mount(rt, device.clone(), options).await.expect("a mount");
        Self { fs, device, seen, main }
    }

    async fn create(&self, name: &str) -> Ino {
        let root = self.fs.root();
        self.fs.create(WRITER, root, name.as_bytes(), 0o644).await.expect("a file").ino
    }

    async fn write(&self, ino: Ino, offset: u64, len: u64, io: Io) {
        let data = Data::Bytes(vec![7; len as usize]);
        self.fs.write_all(WRITER, ino, offset, data, io).await.expect("a write");
    }

    /// Bios of an operation since the last time.
    fn take(&self, op: Op) -> Vec<Bio> {
        self.seen.take().into_iter().filter(|bio| bio.op == op).collect()
    }

    /// What writes to the main area carried since the last time: data of files, then the rest.
    fn take_writes(&self) -> (Vec<Marks>, Vec<Marks>) {
        let all = self.take(Op::Write);
        let of_main = all.into_iter().filter(|bio| bio.lba.0 >= self.main);
        let marks =
            |bio: Bio| Marks { flags: bio.flags, owner: bio.owner, placement: bio.placement };
        of_main.map(marks).partition(|marks| !marks.flags.has(Flags::META))
    }
}

/// Of one kind at least one, all alike.
fn alike(marks: &[Marks]) -> Marks {
    assert!(!marks.is_empty() && marks.iter().all(|one| *one == marks[0]), "{marks:?}");
    marks[0]
}

/// Data carry their file and who wrote them, and the hint of their log; the nodes of an fsync carry the same file, META
/// and SYNC. Content of an inode goes with the node alone.
#[test]
fn an_fsync_names_its_file() {
    run(async |rt| {
        let stand = Stand::new(&rt).await;
        let (long, short) = (stand.create("long").await, stand.create("short").await);
        stand.write(long, 0, 8 * PAGE, Io::Buffered).await;
        stand.write(short, 0, 100, Io::Buffered).await;
        stand.fs.syncfs(WRITER).await.expect("a sync");
        let mut owners = Vec::new();
        for (hint, placement) in
            [(WriteHint::None, 3), (WriteHint::Short, 1), (WriteHint::Extreme, 4)]
        {
            stand.fs.set_write_hint(WRITER, long, hint).await.expect("a hint");
            stand.seen.take();
            stand.write(long, PAGE, 2 * PAGE, Io::Buffered).await;
            stand.fs.fsync(WRITER, long).await.expect("an fsync");
            let (data, nodes) = stand.take_writes();
            let data = alike(&data);
            assert_eq!((data.flags, data.placement), (Flags::SYNC, Placement(placement)));
            let Owner { file, generation: _, thread, core } = data.owner.expect("an owner");
            assert_eq!((Ino(file), thread, core), (long, WRITER.thread, WRITER.core));
            let nodes = alike(&nodes);
            assert_eq!((nodes.flags, nodes.placement), (Flags::META | Flags::SYNC, Placement(0)));
            assert_eq!(nodes.owner, data.owner);
            owners.push(data.owner);
        }
        stand.write(short, 0, 50, Io::Buffered).await;
        stand.fs.fsync(WRITER, short).await.expect("an fsync");
        let (data, nodes) = stand.take_writes();
        let nodes = alike(&nodes);
        assert_eq!((data.len(), nodes.flags), (0, Flags::META | Flags::SYNC));
        let owner = nodes.owner.expect("an owner");
        assert_eq!(
            (Ino(owner.file), owner.thread, owner.core),
            (short, WRITER.thread, WRITER.core)
        );
        let generation = |owner: Option<Owner>| owner.map(|owner| owner.generation);
        assert!(owners.iter().all(|other| generation(*other) != Some(owner.generation)));
        stand.write(long, 0, PAGE, Io::Direct).await;
        let (data, nodes) = stand.take_writes();
        assert_eq!((alike(&data).owner, nodes.len()), (owners[0], 0));
    });
}

/// Directory blocks, nodes and blocks of the metadata areas that a checkpoint writes are metadata and no file's, with
/// the hints of their logs; its last block comes after all others.
#[test]
fn a_checkpoint_writes_metadata() {
    run(async |rt| {
        let stand = Stand::new(&rt).await;
        stand.create("file").await;
        stand.seen.take();
        stand.fs.syncfs(WRITER).await.expect("a sync");
        let all = stand.take(Op::Write);
        let (of_main, of_areas): (Vec<_>, Vec<_>) =
            all.iter().partition(|bio| bio.lba.0 >= stand.main);
        assert!(all.iter().all(|bio| bio.flags.has(Flags::META) && bio.owner.is_none()));
        let mut placements: Vec<_> = of_main.iter().map(|bio| bio.placement.0).collect();
        placements.sort_unstable();
        placements.dedup();
        assert_eq!(placements, [0, 1], "nodes, and hot data");
        assert!(of_areas.iter().all(|bio| bio.placement == Placement(2)), "{of_areas:?}");
        let last = all.last().expect("a checkpoint");
        assert_eq!(last.flags, Flags::META | Flags::SYNC | Flags::PREFLUSH | Flags::FUA);
        let strong = all.iter().filter(|bio| bio.flags.has(Flags::PREFLUSH)).count();
        assert_eq!(strong, 1);
    });
}

/// What cleaning moves goes to the cold log in the name of its file.
#[test]
fn moved_data_keep_their_owner() {
    run(async |rt| {
        let stand = Stand::new(&rt).await;
        let ino = stand.create("file").await;
        stand.write(ino, 0, 600 * PAGE, Io::Direct).await;
        stand.write(ino, 0, 300 * PAGE, Io::Direct).await;
        stand.fs.syncfs(WRITER).await.expect("a sync");
        stand.seen.take();
        rt.sleep(Nanos::from_secs(5)).await;
        stand.fs.syncfs(WRITER).await.expect("a sync");
        let (data, nodes) = stand.take_writes();
        assert!(data.iter().all(|marks| marks.placement == Placement(4)), "{data:?}");
        let owner = alike(&data).owner.expect("an owner");
        assert_eq!((Ino(owner.file), owner.thread, owner.core), (ino, 3, 2));
        assert!(nodes.iter().all(|marks| marks.owner.is_none()));
    });
}

/// Reads of data name their file, those of nodes and directories are metadata.
#[test]
fn reads_say_what_they_read() {
    run(async |rt| {
        let stand = Stand::new(&rt).await;
        let ino = stand.create("file").await;
        stand.write(ino, 0, 8 * PAGE, Io::Buffered).await;
        let (root, fs) = (stand.fs.root(), stand.fs.clone());
        fs.unmount().await.expect("an unmount");
        let device = stand.device.clone();
        let (fs, _) = F2fs::mount(&rt, device, MountOptions::default()).await.expect("a mount");
        stand.seen.take();
        fs.lookup(WRITER, root, b"file").await.expect("a name");
        let meta = stand.take(Op::Read);
        assert!(!meta.is_empty());
        assert!(
            meta.iter().all(|bio| bio.flags.has(Flags::META) && bio.owner.is_none()),
            "{meta:?}"
        );
        fs.read(WRITER, ino, 0, 8 * PAGE, Io::Buffered).await.expect("content");
        let data = stand.take(Op::Read);
        let of_file = |bio: &&Bio| bio.owner.is_some_and(|owner| Ino(owner.file) == ino);
        assert_eq!(data.iter().filter(of_file).map(|bio| bio.sectors).sum::<u32>(), 8, "{data:?}");
        assert!(data.iter().all(|bio| bio.owner.is_none() == bio.flags.has(Flags::META)));
    });
}
