//! One file under a storm of reads, writes, truncations, holes and remounts, in the manner of fsx: after
//! each operation it is what a vector of bytes would be. For file systems of any kind.

use nandscape_block::{AsyncDevice, DeviceCaps, FakeDevice, MemDevice, Payload, SectorData, Tag};
use nandscape_fs::contract::{Allocate, Caller, Data, Ino, Io, SetAttr};
use nandscape_fs::{FsConfig, FsCounts, MountEnv, MountedFs};
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::rc::Rc;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: u64 = 4_096;
/// Longest file, as in fsx.
const LENGTH: u64 = 256 << 10;
/// Longest operation, as in fsx.
const PIECE: u64 = 64 << 10;

/// On what a storm goes over.
pub(crate) struct Scene {
    pub(crate) config: FsConfig,
    /// The device, in memory.
    pub(crate) caps: DeviceCaps,
    /// Sectors that are left free beside a second file, pages of which are written over all the time.
    pub(crate) left_free: Option<u64>,
}

/// The second file.
struct Ballast {
    file: Ino,
    /// The pattern of each of its pages.
    known: Vec<Tag>,
}

struct Storm {
    handle: Handle,
    device: AsyncDevice,
    config: FsConfig,
    fs: Rc<dyn MountedFs>,
    file: Ino,
    known: Vec<u8>,
    ballast: Option<Ballast>,
    /// What the file system counted until the last unmount.
    counts: FsCounts,
    rng: Stream,
}

impl Storm {
    async fn begin(handle: Handle, scene: Scene) -> Self {
        let latency = Nanos::from_us(20);
        let device = if scene.caps.has_zones() {
            let medium = FakeDevice::new(scene.caps).expect("regions of a device");
            AsyncDevice::new(&handle, medium.with_latency(latency)).erased()
        } else {
            let medium = MemDevice::new(scene.caps.sectors).with_latency(latency);
            AsyncDevice::new(&handle, medium).erased()
        };
        scene.config.format(&device).await.expect("a file system");
        let config = scene.config.without_format();
        let env = MountEnv { rt: handle.clone(), device: device.clone() };
        let (fs, _) = config.mount(env).await.expect("a mount");
        let file = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file").ino;
        let rng = Stream::new(1, "fsx");
        let (known, counts) = (Vec::new(), FsCounts::default());
        let mut storm =
            Self { handle, device, config, fs, file, known, ballast: None, counts, rng };
        if let Some(left_free) = scene.left_free {
            storm.fill(left_free).await;
        }
        storm
    }

    /// Makes the second file.
    async fn fill(&mut self, left_free: u64) {
        let free = self.fs.statfs(ME).await.expect("counts").free;
        let pages = free.checked_sub(left_free).expect("room for a second file");
        let file = self.fs.create(ME, self.fs.root(), b"ballast", 0o644).await.expect("a file").ino;
        self.ballast = Some(Ballast { file, known: vec![Tag::ZERO; pages as usize] });
        for page in 0..pages {
            self.write_ballast(page).await;
        }
    }

    /// Writes over a page of the second file.
    async fn write_ballast(&mut self, page: u64) {
        let tag = Tag::new(self.rng.bits());
        let Some(ballast) = &mut self.ballast else { return };
        ballast.known[page as usize] = tag;
        let data = Data::Sectors(Payload::Run(tag), 1);
        let io = if self.rng.chance(0.5) { Io::Direct } else { Io::Buffered };
        let written = self.fs.write(ME, ballast.file, page * PAGE, data, io).await;
        assert_eq!(written, Ok(PAGE), "page {page} of the second file");
    }

    /// The second file is what was written.
    async fn read_ballast(&self) {
        let Some(ballast) = &self.ballast else { return };
        for (page, tag) in (0..).zip(&ballast.known) {
            let read = self.fs.read(ME, ballast.file, page * PAGE, PAGE, Io::Buffered).await;
            let expected = Data::Sectors(Payload::Run(*tag), 1).to_bytes();
            assert!(read.expect("data").to_bytes() == expected, "page {page} of the second file");
        }
    }

    /// A range, and how to reach it.
    fn piece(&mut self) -> (u64, u64, Io) {
        let (at, len) = (self.rng.below(LENGTH), 1 + self.rng.below(PIECE));
        let len = len.min(LENGTH - at);
        if self.rng.chance(0.2) {
            return (at / PAGE * PAGE, len.next_multiple_of(PAGE), Io::Direct);
        }
        if self.rng.chance(0.3) {
            return (at, len.min(PAGE - at % PAGE), Io::Buffered);
        }
        (at, len, Io::Buffered)
    }

    async fn step(&mut self) {
        if let Some(ballast) = &self.ballast
            && self.rng.chance(0.5)
        {
            let page = self.rng.below(ballast.known.len() as u64);
            self.write_ballast(page).await;
        }
        match self.rng.below(1_000) {
            0..350 => self.read().await,
            350..700 => self.write().await,
            700..800 => self.truncate().await,
            800..920 => self.allocate().await,
            920..960 => self.fs.fsync(ME, self.file).await.expect("a sync"),
            960..998 => self.handle.sleep(Nanos::from_ms(self.rng.below(4_000))).await,
            _ => self.remount().await,
        }
    }

    async fn read(&mut self) {
        let (at, len, io) = self.piece();
        let read = self.fs.read(ME, self.file, at, len, io).await.expect("data").to_bytes();
        let end = self.known.len().min((at + len) as usize);
        assert!(read == self.known[end.min(at as usize)..end], "read of {len} at {at}, {io:?}");
    }

    async fn write(&mut self) {
        let (at, len, io) = self.piece();
        let data = self.data(at, len);
        let (start, end) = (at as usize, (at + len) as usize);
        self.known.resize(self.known.len().max(end), 0);
        self.known[start..end].copy_from_slice(&data.to_bytes());
        let written = self.fs.write(ME, self.file, at, data, io).await;
        assert_eq!(written, Ok(len));
    }

    /// New data: bytes, or patterns where those can be, half of the time.
    fn data(&mut self, at: u64, len: u64) -> Data {
        let (bits, from) = (self.rng.bits(), (at % 4096) as usize);
        let tag = Tag::new(bits);
        let part = from..from + len as usize;
        if self.rng.chance(0.5) && part.end <= 4096 {
            Data::Part(SectorData::Tag(tag), part)
        } else if self.rng.chance(0.5) && at.is_multiple_of(4096) && len.is_multiple_of(4096) {
            Data::Sectors(Payload::Run(tag), (len / 4096) as u32)
        } else {
            Data::Bytes((0..len).map(|n| (bits as u8).wrapping_add((n % 251) as u8)).collect())
        }
    }

    async fn truncate(&mut self) {
        let size = self.rng.below(LENGTH);
        self.known.resize(size as usize, 0);
        let change = SetAttr { size: Some(size), ..SetAttr::default() };
        self.fs.setattr(ME, self.file, change).await.expect("a length");
    }

    async fn allocate(&mut self) {
        let (at, len, _) = self.piece();
        let keep_size = self.rng.chance(0.5);
        let what = match self.rng.below(3) {
            0 => Allocate::PunchHole,
            1 => Allocate::ZeroRange { keep_size },
            _ => Allocate::Reserve { keep_size },
        };
        let (start, end) = (at as usize, (at + len) as usize);
        if what != Allocate::PunchHole && !keep_size {
            self.known.resize(self.known.len().max(end), 0);
        }
        if !matches!(what, Allocate::Reserve { .. }) {
            let length = self.known.len();
            self.known[start.min(length)..end.min(length)].fill(0);
        }
        self.fs.fallocate(ME, self.file, what, at, len).await.expect("room");
    }

    async fn remount(&mut self) {
        self.fs.unmount().await.expect("an unmount");
        self.counts.extend(&self.fs.counts());
        let report = self.config.kind().check(&self.device).await.expect("a file system");
        assert!(report.is_clean(), "{:?}", report.findings);
        let env = MountEnv { rt: self.handle.clone(), device: self.device.clone() };
        self.fs = self.config.mount(env).await.expect("a mount").0;
        self.file = self.fs.lookup(ME, self.fs.root(), b"file").await.expect("the file").ino;
        let size = self.fs.getattr(ME, self.file).await.expect("attributes").size;
        assert_eq!(size, self.known.len() as u64);
        self.read_ballast().await;
    }
}

/// So many operations on a file; returns what the file system counted.
pub(crate) fn storm(scene: Scene, operations: u64) -> FsCounts {
    let name = format!("{:?}", scene.config.choices());
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ended = executor.block_on(async move {
        let mut storm = Storm::begin(handle, scene).await;
        for _ in 0..operations {
            storm.step().await;
        }
        storm.remount().await;
        storm.counts
    });
    ended.unwrap_or_else(|deadlock| panic!("{name}: {deadlock}"))
}
