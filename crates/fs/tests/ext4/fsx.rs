//! One file under a storm of reads, writes, truncations, holes and remounts, in the manner of fsx: after
//! each operation it is what a vector of bytes would be.

use crate::common::asked;
use crate::common::device::{OpenDevice, powered};
use nandscape_block::{MemDevice, Payload, SectorData, Tag};
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::{Allocate, Caller, Data, FileSystem, Ino, Io, SetAttr};
use nandscape_fs::ext4::check::check;
use nandscape_fs::ext4::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::ext4::{DataMode, Ext4, MountOptions};
use nandscape_rt::{Executor, Handle, Nanos, Stream};

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: u64 = 4_096;
/// Longest file, as in fsx.
const LENGTH: u64 = 256 << 10;
/// Longest operation, as in fsx.
const PIECE: u64 = 64 << 10;

/// Operations: a few thousand, or as many as `NANDSCAPE_FS_FSX` says.
fn operations() -> u64 {
    asked("NANDSCAPE_FS_FSX", 4_000)
}

struct Storm {
    handle: Handle,
    device: OpenDevice,
    options: MountOptions,
    fs: Ext4,
    file: Ino,
    known: Vec<u8>,
    rng: Stream,
}

impl Storm {
    async fn begin(handle: Handle, data: DataMode) -> Self {
        let device = powered(&handle, MemDevice::new(4_096).with_latency(Nanos::from_us(20)));
        mkfs(&device.erased(), &MkfsOptions { fresh: true, ..MkfsOptions::new(1) })
            .await
            .expect("mkfs");
        let cache = CacheConfig { pages: 128, ..CacheConfig::default() };
        let options = MountOptions { data, cache, ..MountOptions::default() };
        let mounted = Ext4::mount(&handle, device.erased(), options.clone()).await;
        let (fs, _) = mounted.expect("a mount");
        let file = fs.create(ME, fs.root(), b"file", 0o644).await.expect("a file").ino;
        let rng = Stream::new(1, "fsx");
        Self { handle, device, options, fs, file, known: Vec::new(), rng }
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
        let report = check(&self.device.erased()).await.expect("a file system");
        assert!(report.is_clean(), "{:?}", report.findings);
        let mounted = Ext4::mount(&self.handle, self.device.erased(), self.options.clone()).await;
        self.fs = mounted.expect("a mount").0;
        self.file = self.fs.lookup(ME, self.fs.root(), b"file").await.expect("the file").ino;
        let size = self.fs.getattr(ME, self.file).await.expect("attributes").size;
        assert_eq!(size, self.known.len() as u64);
    }
}

fn storm(data: DataMode) {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ended = executor.block_on(async move {
        let mut storm = Storm::begin(handle, data).await;
        for _ in 0..operations() {
            storm.step().await;
        }
        storm.remount().await;
        storm.known.len()
    });
    ended.unwrap_or_else(|deadlock| panic!("{data:?}: {deadlock}"));
}

#[test]
fn an_ordered_file_is_a_vector_of_bytes() {
    storm(DataMode::Ordered);
}

#[test]
fn a_journalled_file_is_a_vector_of_bytes() {
    storm(DataMode::Journal);
}

#[test]
fn a_written_back_file_is_a_vector_of_bytes() {
    storm(DataMode::Writeback);
}
