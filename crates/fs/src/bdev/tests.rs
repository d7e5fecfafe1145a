//! Buffered and direct I/O, trims and syncs on one device, beside a model of its bytes; with power cuts.

use super::CachedDevice;
use crate::cache::CacheConfig;
use crate::cache::tests::Recorder;
use crate::contract::{Caller, Data, FsError};
use nandscape_block::{AsyncDevice, Bio, Lba, MemDevice, Op, Payload, Reply, SECTOR_BYTES, Tag};
use nandscape_rt::combine::join2;
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const SECTORS: u64 = 96;
const PAGE: usize = SECTOR_BYTES as usize;
/// Operations of a seed, the least.
const OPERATIONS: u64 = 150;

/// What each page may hold after a power cut: what was durable last, and everything that was written since, the
/// newest last.
type Model = Vec<Vec<Vec<u8>>>;

struct Storm {
    handle: Handle,
    device: AsyncDevice<MemDevice>,
    cached: CachedDevice,
    model: Rc<RefCell<Model>>,
    rng: Stream,
}

impl Storm {
    fn new(handle: &Handle, seed: u64) -> Self {
        let below = MemDevice::new(SECTORS).with_latency(Nanos::from_us(50));
        let device = AsyncDevice::new(handle, below);
        // So few pages that some are evicted, and so few dirty ones that the flusher has work.
        let cache = CacheConfig { pages: 48, read_ahead_pages: 8, ..CacheConfig::default() };
        let cached = CachedDevice::new(handle, device.erased(), cache);
        let model = Rc::new(RefCell::new(vec![vec![vec![0; PAGE]]; SECTORS as usize]));
        Self { handle: handle.clone(), device, cached, model, rng: Stream::new(seed, "bdev") }
    }

    /// Some sectors.
    fn sectors(&mut self) -> Range<u64> {
        let first = self.rng.below(SECTORS);
        first..(first + 1 + self.rng.below(12)).min(SECTORS)
    }

    fn bytes(&mut self, len: u64) -> Vec<u8> {
        let seed = self.rng.bits();
        (0..len).map(|at| (seed.rotate_left((at % 61) as u32) as u8) | 1).collect()
    }

    fn newest(&self, at: u64, len: u64) -> Vec<u8> {
        let model = self.model.borrow();
        let page = |page: usize| model[page].last().expect("a version").clone();
        let first = at as usize / PAGE;
        let pages: Vec<u8> = (first..((at + len) as usize).div_ceil(PAGE)).flat_map(page).collect();
        let from = at as usize - first * PAGE;
        pages[from..from + len as usize].to_vec()
    }

    fn note(&self, at: u64, bytes: &[u8]) {
        let end = at + bytes.len() as u64;
        let pages = at / SECTOR_BYTES * SECTOR_BYTES..end.next_multiple_of(SECTOR_BYTES);
        let mut all = self.newest(pages.start, pages.end - pages.start);
        let from = (at - pages.start) as usize;
        all[from..from + bytes.len()].copy_from_slice(bytes);
        let mut model = self.model.borrow_mut();
        for (index, page) in all.chunks(PAGE).enumerate() {
            model[pages.start as usize / PAGE + index].push(page.to_vec());
        }
    }

    /// What was written to these sectors is durable.
    fn note_synced(&self, sectors: Range<u64>) {
        for page in &mut self.model.borrow_mut()[sectors.start as usize..sectors.end as usize] {
            page.drain(..page.len() - 1);
        }
    }

    async fn step(&mut self) {
        match self.rng.below(100) {
            0..30 => self.write().await,
            30..50 => self.read().await,
            50..62 => self.write_directly().await,
            62..70 => self.read_directly().await,
            70..80 => self.trim().await,
            80..88 => {
                self.cached.sync().await.expect("a sync");
                self.note_synced(0..SECTORS);
            }
            88..92 => {
                let sectors = self.sectors();
                self.cached.sync_range(sectors.clone()).await.expect("a sync");
                self.note_synced(sectors);
            }
            _ => self.handle.sleep(Nanos::from_ms(self.rng.below(9_000))).await,
        }
    }

    async fn write(&mut self) {
        let sectors = self.sectors();
        let at = sectors.start * SECTOR_BYTES + self.rng.below(2) * self.rng.below(SECTOR_BYTES);
        let len = (1 + self.rng.below((sectors.end - sectors.start) * SECTOR_BYTES))
            .min(SECTORS * SECTOR_BYTES - at);
        let bytes = self.bytes(len);
        self.note(at, &bytes);
        self.cached.write(ME, at, Data::Bytes(bytes)).await.expect("a write");
    }

    async fn read(&mut self) {
        let sectors = self.sectors();
        let (at, len) =
            (sectors.start * SECTOR_BYTES, (sectors.end - sectors.start) * SECTOR_BYTES);
        let read = self.cached.read(ME, at, len).await.expect("data").to_bytes();
        assert!(read == self.newest(at, len), "buffered read of {sectors:?}");
    }

    /// Beside a reader of the same pages and a few more, which must not leave old content in the cache.
    async fn write_directly(&mut self) {
        let sectors = self.sectors();
        let (at, count) = (sectors.start * SECTOR_BYTES, sectors.end - sectors.start);
        let bytes = self.bytes(count * SECTOR_BYTES);
        self.note(at, &bytes);
        let payload = Payload::from_bytes(&bytes).expect("whole sectors");
        let write = self.cached.direct(Bio::write(Lba(sectors.start), count as u32, payload));
        let pause = Nanos::from_us(self.rng.below(120));
        let read = async {
            self.handle.sleep(pause).await;
            self.cached.read(ME, at, count * SECTOR_BYTES).await
        };
        let (written, read) = join2(write, read).await;
        written.expect("a write");
        read.expect("data");
        let read = self.cached.read(ME, at, count * SECTOR_BYTES).await.expect("data");
        assert!(read.to_bytes() == bytes, "buffered read of {sectors:?} after a direct write");
    }

    async fn read_directly(&mut self) {
        let sectors = self.sectors();
        let (at, count) = (sectors.start * SECTOR_BYTES, sectors.end - sectors.start);
        let reply = self.cached.direct(Bio::read(Lba(sectors.start), count as u32)).await;
        let Ok(Reply::Data(payload)) = reply else { panic!("no data") };
        let read = Data::Sectors(payload, count as u32).to_bytes();
        assert!(read == self.newest(at, count * SECTOR_BYTES), "direct read of {sectors:?}");
    }

    async fn trim(&mut self) {
        let sectors = self.sectors();
        let count = sectors.end - sectors.start;
        self.note(sectors.start * SECTOR_BYTES, &vec![0; (count * SECTOR_BYTES) as usize]);
        self.cached.discard(Bio::discard(Lba(sectors.start), count as u32)).await.expect("a trim");
    }

    /// Power fails now, in the midst of whatever is in flight.
    fn cut(&mut self) {
        self.device.with(|device| device.cut_power(&mut self.rng));
        for (page, versions) in self.model.borrow().iter().enumerate() {
            let content = self.device.with(|device| device.current(Lba(page as u64)));
            let content = content.expand().map_or_else(|| vec![0; PAGE], |bytes| bytes.to_vec());
            assert!(
                versions.contains(&content),
                "page {page} holds what was lost or never written"
            );
        }
    }
}

/// Reads see what was written last, whichever way each went; what a sync covered survives a power cut at any
/// instant, and what it did not cover is there or not, page by page.
#[test]
fn a_cached_device_is_its_bytes() {
    for seed in 0..60 {
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let ran = executor.block_on(async move {
            let mut storm = Storm::new(&handle, seed);
            let mut other = Storm {
                handle: handle.clone(),
                device: storm.device.clone(),
                cached: storm.cached.clone(),
                model: Rc::clone(&storm.model),
                rng: Stream::new(seed, "operations"),
            };
            let sure = OPERATIONS - storm.rng.below(OPERATIONS / 2);
            for _ in 0..sure {
                other.step().await;
            }
            drop(handle.spawn("storm", async move {
                for _ in 0..OPERATIONS {
                    other.step().await;
                }
            }));
            handle.sleep(Nanos::from_us(storm.rng.below(400))).await;
            storm.cut();
        });
        ran.unwrap_or_else(|stuck| panic!("seed {seed}: {stuck}"));
    }
}

/// Write-back takes pages in the order of their sectors, whatever the order of the writes, and in large bios.
#[test]
fn write_back_is_sorted() {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ran = executor.block_on(async move {
        let recorder = Recorder { below: MemDevice::new(1 << 12), bios: Vec::new() };
        let device = AsyncDevice::new(&handle, recorder);
        let cached = CachedDevice::new(&handle, device.erased(), CacheConfig::default());
        for page in (0..512_u64).map(|n| n * 77 % 512) {
            let data = Data::Sectors(Payload::Run(Tag::new(page + 1)), 1);
            cached.write(ME, page * SECTOR_BYTES, data).await.expect("a write");
        }
        assert!(device.with(|device| device.bios.is_empty()), "nothing is 30 s old yet");
        handle.sleep(Nanos::from_secs(40)).await;
        let bios = device.with(|device| std::mem::take(&mut device.bios));
        assert_eq!(bios, [(Op::Write, 0, 256), (Op::Write, 256, 256)]);
        let beyond = cached.write(ME, (1 << 12) * SECTOR_BYTES, Data::Bytes(vec![1])).await;
        assert_eq!(beyond, Err(FsError::NoSpace));
        cached.close().await.expect("a sync");
        let late = cached.write(ME, 0, Data::Bytes(vec![1])).await;
        assert_eq!(late, Err(FsError::ReadOnly));
    });
    ran.expect("no deadlock");
}
