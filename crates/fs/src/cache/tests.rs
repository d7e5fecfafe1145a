//! The cache over a file that lies on the device page by page.

use super::*;
use crate::contract::Result;
use nandscape_block::{
    AsyncDevice, Bio, BlockDevice, Completion, DeviceCaps, Lba, MemDevice, Op, Owner, Payload,
    SectorData, Submit, Tag, Token,
};
use nandscape_rt::Executor;
use nandscape_rt::combine::join_all;

/// Remembers the bios that it was sent.
pub(crate) struct Recorder {
    pub(crate) below: MemDevice,
    pub(crate) bios: Vec<(Op, u64, u32)>,
}

impl BlockDevice for Recorder {
    fn caps(&self) -> &DeviceCaps {
        self.below.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.bios.push((bio.op, bio.lba.0, bio.sectors));
        self.below.submit(now, bio, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.below.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.below.advance(now, done);
    }
}

/// A file whose page `n` is sector `n`.
#[derive(Clone)]
struct Flat {
    device: AsyncDevice,
    recorder: AsyncDevice<Recorder>,
}

/// A file of the cache under test.
struct File {
    pages: Mapping<Self>,
}

impl File {
    fn new(cache: &PageCache<Self>, number: u64) -> Rc<Self> {
        let owner = Owner { file: number, generation: 0, thread: 0, core: 0 };
        Rc::new_cyclic(|file| Self { pages: Mapping::new(cache, file.clone(), owner) })
    }
}

impl Backing for Flat {
    type File = File;

    fn device(&self) -> &AsyncDevice {
        &self.device
    }

    async fn locate(&self, _file: &Rc<File>, page: u64, pages: u64) -> Result<PageLocation> {
        Ok(PageLocation::At(Lba(page), pages))
    }
}

impl WriteBack for Flat {
    async fn write_back(&self, file: &Rc<File>, pages: u64) -> Result<()> {
        let (mut pass, mut left) = (file.pages.cyclic_pass(), pages);
        while left > 0
            && let Some(run) = pass.take_run(left)
        {
            left -= run.data().len() as u64;
            let payload = Payload::collect(run.data().to_vec());
            let sectors = run.data().len() as u32;
            let written = self.device.write(Lba(run.first()), sectors, payload).await;
            run.finish(written.err().map(Into::into));
        }
        Ok(())
    }
}

/// A cache, a file in it, and the way to its device.
struct Stand {
    cache: PageCache<File>,
    file: Rc<File>,
    flat: Flat,
    handle: Handle,
}

impl Stand {
    fn bios(&self) -> Vec<(Op, u64, u32)> {
        self.flat.recorder.with(|device| std::mem::take(&mut device.bios))
    }

    async fn read(&self, range: std::ops::Range<u64>) -> Vec<SectorData> {
        read_pages(&self.flat, &self.file.pages, 0, range).await.expect("pages")
    }

    fn write(&self, page: u64, tag: u64) {
        self.file.pages.write(page, SectorData::Tag(Tag::new(tag)), false);
    }

    /// Waits as one who has dirtied so many pages.
    async fn pay(&self, dirtied: u64) {
        let throttle = self.cache.throttle();
        throttle.note(dirtied);
        throttle.balance_dirty().await;
    }
}

/// Runs a body over a cache with these limits; every operation of the device takes 100 us.
fn run(config: CacheConfig, body: impl AsyncFnOnce(Stand) + 'static) {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ran = executor.block_on(async move {
        let below = MemDevice::new(1 << 16).with_latency(Nanos::from_us(100));
        let recorder = AsyncDevice::new(&handle, Recorder { below, bios: Vec::new() });
        let flat = Flat { device: recorder.erased(), recorder };
        let cache = PageCache::new(&handle, config);
        drop(handle.spawn_daemon("flusher", flush_in_background(cache.clone(), flat.clone())));
        let file = File::new(&cache, 1);
        file.pages.set_length(1 << 16);
        body(Stand { cache, file, flat, handle }).await;
    });
    ran.expect("no deadlock");
}

/// A page is read once, however many want it, and comes from memory after that.
#[test]
fn pages_are_read_once() {
    run(CacheConfig::default(), async |stand| {
        let reads = join_all((0..5).map(|_| stand.read(100..104))).await;
        assert!(reads.iter().all(|pages| pages.len() == 4));
        stand.read(101..103).await;
        assert_eq!(stand.bios(), [(Op::Read, 100, 4)]);
    });
}

/// Read-ahead doubles its window up to the limit for a reader that goes on, and leaves others alone.
#[test]
fn windows_double() {
    run(CacheConfig::default(), async |stand| {
        for page in 0..128 {
            stand.read(page..page + 1).await;
            stand.handle.sleep(Nanos::from_ms(1)).await;
        }
        let sizes: Vec<u32> = stand.bios().iter().map(|bio| bio.2).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 32, 32, 32]);
        for page in [9_000, 7_000, 8_000] {
            stand.read(page..page + 1).await;
        }
        assert_eq!(stand.bios().len(), 3);
    });
}

/// Memory holds no more pages than it may, and keeps those in use.
#[test]
fn memory_is_limited() {
    let config = CacheConfig { pages: 64, read_ahead_pages: 0, ..CacheConfig::default() };
    run(config, async |stand| {
        for page in 0..1_000 {
            stand.read(5_000..5_001).await;
            stand.read(page * 2..page * 2 + 1).await;
            assert!(stand.cache.resident() <= 64);
        }
        let hot = stand.bios().iter().filter(|bio| bio.1 == 5_000).count();
        assert!(hot <= 2, "{hot} reads of the page that is used all the time");
    });
}

/// A dirty page is written when it is 30 s old, neighbours in one bio.
#[test]
fn old_pages_are_written_back() {
    run(CacheConfig::default(), async |stand| {
        (0..8).rev().for_each(|page| stand.write(page, page + 1));
        stand.handle.sleep(Nanos::from_secs(29)).await;
        assert_eq!((stand.bios(), stand.cache.dirty()), (Vec::new(), 8));
        stand.handle.sleep(Nanos::from_secs(7)).await;
        assert_eq!((stand.bios(), stand.cache.dirty()), (vec![(Op::Write, 0, 8)], 0));
    });
}

/// Writers wait before too much is dirty, and in the end all of it is written.
#[test]
fn writers_are_throttled() {
    let config = CacheConfig { pages: 1_000, ..CacheConfig::default() };
    run(config, async |stand| {
        for page in 0..5_000 {
            stand.write(page * 2, page + 1);
            stand.pay(1).await;
            assert!(stand.cache.dirty() <= 201);
        }
        // One page a bio of 100 us, but for what may be dirty.
        let least = Nanos::from_us(100 * (5_000 - 200));
        assert!(stand.handle.now() >= least, "{}", stand.handle.now());
        stand.handle.sleep(Nanos::from_secs(40)).await;
        assert_eq!(stand.cache.dirty(), 0);
    });
}

/// Nor do they wait for write-back that has no reason to begin, where it were to begin later than they wait.
#[test]
fn write_back_begins_before_writers_wait() {
    let config = CacheConfig { pages: 1_000, background_percent: 50, ..CacheConfig::default() };
    run(config, async |stand| {
        for page in 0..1_000 {
            stand.write(page * 2, page + 1);
            stand.pay(1).await;
        }
        let now = stand.handle.now();
        assert!(now < Nanos::from_ms(101), "a page takes the device 100 us, but {now} for 1,000");
    });
}

/// While too much is dirty no writer goes on; then each does as soon as as much was written back as it
/// dirtied, though more is dirty than what lets writers pass without a wait.
#[test]
fn writers_wait_for_the_limit_and_then_for_their_share() {
    let config = CacheConfig { pages: 1_000, ..CacheConfig::default() };
    run(config, async |stand| {
        let passed = Rc::new([Cell::new(0), Cell::new(0)]);
        for page in 0..300 {
            stand.write(page * 2, page + 1);
            let (throttle, passed) = (stand.cache.throttle(), Rc::clone(&passed));
            let (class, dirtied) = if page % 3 == 0 { (1, 130) } else { (0, 1) };
            throttle.note(dirtied);
            drop(stand.handle.spawn("writer", async move {
                throttle.balance_dirty().await;
                bump(&passed[class], 1);
            }));
        }
        // The device writes a page in 100 us, one after the other.
        for (ms, expected) in [(5, [0, 0]), (11, [200, 0]), (14, [200, 100])] {
            stand.handle.sleep_until(Nanos::from_ms(ms)).await;
            assert_eq!([passed[0].get(), passed[1].get()], expected, "after {ms} ms");
        }
    });
}

/// A page written to while it is under way is written again, after and never beside the first time.
#[test]
fn pages_are_written_one_time_after_the_other() {
    run(CacheConfig::default(), async |stand| {
        stand.write(7, 1);
        let first = stand.file.pages.take_run(0..u64::MAX, 10).expect("a dirty page");
        stand.write(7, 2);
        assert!(stand.file.pages.take_run(0..u64::MAX, 10).is_none());
        assert_eq!(first.data(), [SectorData::Tag(Tag::new(1))]);
        first.finish(None);
        let second = stand.file.pages.take_run(0..u64::MAX, 10).expect("dirty again");
        assert_eq!(second.data(), [SectorData::Tag(Tag::new(2))]);
        drop(second);
        assert!(stand.file.pages.waiting(&(7..8)).0, "a write given up leaves the page dirty");
    });
}

/// The pages that the flusher wrote, in order.
fn written(stand: &Stand) -> Vec<u64> {
    stand.bios().iter().flat_map(|(_, first, count)| *first..first + u64::from(*count)).collect()
}

/// Write-back in the background goes on where it stopped, and then at the start of the file: low offsets that are
/// dirtied all the time do not keep high ones from being written.
#[test]
fn background_write_back_goes_round_the_file() {
    // More than one turn of the flusher may be dirty.
    let config = CacheConfig { pages: 100_000, background_percent: 2, ..CacheConfig::default() };
    run(config, async |stand| {
        (0..4_000).for_each(|page| stand.write(page * 2, page + 1));
        for _ in 0..40 {
            // Always the first pages, more than a turn writes.
            (0..1_500).for_each(|page| stand.write(page * 2, 1));
            stand.pay(1).await;
            stand.handle.sleep(Nanos::from_ms(50)).await;
        }
        let written = written(&stand);
        assert!(written.contains(&7_998), "the last page was not written within 2 s");
        let turns_back = written.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let rounds = written.len() / 4_000 + 1;
        assert!(turns_back <= rounds, "{turns_back} steps back in {} pages", written.len());
        let first = written.iter().filter(|page| **page == 0).count();
        assert!(first > 1, "it continues at the start of the file");
    });
}

/// A pass begins where the last one of the same file ended; a sync of a range neither uses nor moves that, and
/// one of the whole file moves it.
#[test]
fn each_file_has_a_cursor() {
    run(CacheConfig::default(), async |stand| {
        let other = File::new(&stand.cache, 2);
        let dirty = |file: &Rc<File>| {
            for page in [10, 20, 30] {
                file.pages.write(page, SectorData::Tag(Tag::new(1)), false);
            }
        };
        let next = |mut pass: WritebackPass<File>| {
            let run = pass.take_run(10)?;
            let first = run.first();
            run.finish(None);
            Some(first)
        };
        dirty(&stand.file);
        dirty(&other);
        let (file, other) = (&stand.file.pages, &other.pages);
        assert_eq!(next(file.cyclic_pass()), Some(10));
        dirty(&stand.file);
        assert_eq!(next(file.cyclic_pass()), Some(20));
        assert_eq!(next(other.cyclic_pass()), Some(10), "files have nothing to do with each other");
        assert_eq!(next(file.pass_over(0..15)), Some(10), "a sync begins at its range");
        assert_eq!(next(file.cyclic_pass()), Some(30), "and leaves the cursor");
        dirty(&stand.file);
        let mut round = file.cyclic_pass();
        let runs = std::iter::from_fn(|| round.take_run(10));
        assert_eq!(runs.map(|run| run.first()).collect::<Vec<_>>(), [10, 20, 30], "after the wrap");
        assert_eq!(next(file.pass_over(0..u64::MAX)), Some(10));
        assert_eq!(next(file.cyclic_pass()), Some(20), "after what a sync of the whole file wrote");
    });
}

/// Files of one-page extents, four of which a page of another file names, as node pages do.
#[derive(Clone)]
struct Scattered {
    flat: Flat,
    nodes: Rc<File>,
    located: Rc<Cell<u64>>,
}

impl Backing for Scattered {
    type File = File;

    fn device(&self) -> &AsyncDevice {
        &self.flat.device
    }

    async fn locate(&self, _file: &Rc<File>, page: u64, _pages: u64) -> Result<PageLocation> {
        self.located.set(self.located.get() + 1);
        read_pages(&self.flat, &self.nodes.pages, 0, page / 4..page / 4 + 1).await?;
        Ok(PageLocation::At(Lba(page), 1))
    }
}

/// Reads that evict each other's first pages before their last ones arrive bring each page once: none begins again.
#[test]
fn reads_that_evict_each_other_go_on() {
    let config = CacheConfig { pages: 32, read_ahead_pages: 0, ..CacheConfig::default() };
    run(config, async |stand| {
        let nodes = File::new(&stand.cache, 2);
        nodes.pages.set_length(1 << 16);
        let scattered = Scattered { flat: stand.flat.clone(), nodes, located: Rc::default() };
        let readers = (0..2).map(|reader| {
            let first = 1_000 * u64::from(reader);
            read_pages(&scattered, &stand.file.pages, reader, first..first + 200)
        });
        let read = join_all(readers).await;
        assert!(read.iter().all(|pages| pages.as_ref().is_ok_and(|pages| pages.len() == 200)));
        assert_eq!(scattered.located.get(), 400);
    });
}

/// Forgotten pages are gone, with the reads that would have filled them.
#[test]
fn forgotten_pages_stay_forgotten() {
    run(CacheConfig { read_ahead_pages: 0, ..CacheConfig::default() }, async |stand| {
        stand.file.pages.write(3, SectorData::Tag(Tag::new(9)), true);
        assert_eq!(stand.file.pages.discard(0..10), 1);
        assert_eq!((stand.cache.dirty(), stand.cache.resident()), (0, 0));
        let (file, flat) = (Rc::clone(&stand.file), stand.flat.clone());
        let read = stand.handle.spawn("reader", async move {
            read_pages(&flat, &file.pages, 0, 20..21).await.map(|pages| pages.len())
        });
        stand.handle.sleep(Nanos::from_us(50)).await;
        stand.file.pages.discard(0..100);
        assert_eq!(read.await, Ok(Ok(1)));
        let reads = stand.bios().iter().filter(|bio| bio.1 == 20).count();
        assert_eq!(reads, 2, "what was on its way was not kept");
    });
}

/// What is read all the time stays, however much is written once beside it.
#[test]
fn what_is_used_stays_beside_a_long_file() {
    let config = CacheConfig { pages: 4_096, read_ahead_pages: 0, ..CacheConfig::default() };
    run(config, async |stand| {
        let hot: Vec<_> = (2..66).map(|number| File::new(&stand.cache, number)).collect();
        for file in &hot {
            file.pages.set_length(4);
        }
        for page in 0..16_384 {
            stand.write(page, page + 1);
            stand.pay(1).await;
            // Each hot file comes round every 64 pages of the log.
            let file = &hot[page as usize % hot.len()];
            read_pages(&stand.flat, &file.pages, 0, 0..4).await.expect("pages");
        }
        let Lookups { hits, misses } = stand.cache.lookups();
        assert_eq!((hits + misses, misses), (65_536, 256), "misses but for the first ones");
    });
}
