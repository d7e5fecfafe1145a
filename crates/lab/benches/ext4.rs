//! How much faster than its own time ext4 runs: files are created, written, synced and deleted by
//! several threads, on pblk over the open-channel SSD of the JS-Pblk paper, and on a device that answers
//! after a fixed time. Prints virtual seconds over wall seconds, and the memory that a volume takes,
//! of which the device's map of sectors is a part. The first mix runs twice: the first time, cold, takes
//! the process's memory from the operating system.
//!
//! `cargo bench -p nandscape-lab --bench ext4 [FILES] [MIX [DEVICE]]`; of the mixes and devices, those
//! whose names begin so.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures wall time")]

use nandscape_block::{AsyncDevice, BlockDevice, MemDevice, Payload, Tag};
use nandscape_fs::contract::{Caller, Data, FileSystem, Io};
use nandscape_fs::ext4::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::ext4::{DataMode, Ext4, MountOptions};
use nandscape_ftl::{AnyFtl, FtlRun};
use nandscape_lab::stack::Stack;
use nandscape_media::Media;
use nandscape_rt::{Executor, Handle, Nanos};
use std::time::Instant;

/// Files a measurement, unless the first number among the arguments says otherwise.
const FILES: u64 = 100_000;
/// A flash drive behind NVMe: between a read from NAND and a write into a buffer.
const LATENCY: Nanos = Nanos::from_us(100);
const VOLUME_GIB: u64 = 64;
/// Files that a thread leaves before it deletes the oldest.
const LIVE: u64 = 256;
const PAGES: u32 = 4;

struct Mix {
    name: &'static str,
    data: DataMode,
    threads: u16,
    /// Files from one fsync to the next.
    fsync_every: u64,
}

const MIXES: [Mix; 5] = [
    Mix { name: "ordered, 1 thread", data: DataMode::Ordered, threads: 1, fsync_every: 1 },
    Mix { name: "ordered, 8 threads", data: DataMode::Ordered, threads: 8, fsync_every: 1 },
    Mix { name: "journal, 1 thread", data: DataMode::Journal, threads: 1, fsync_every: 1 },
    Mix { name: "writeback, 1 thread", data: DataMode::Writeback, threads: 1, fsync_every: 1 },
    Mix { name: "ordered, fsync of 1 in 8", data: DataMode::Ordered, threads: 1, fsync_every: 8 },
];

/// Bytes that the process has in RAM.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .map_or(0, |pages: u64| pages * 4096)
}

fn fixed() -> MemDevice {
    MemDevice::new(VOLUME_GIB << 18).with_latency(LATENCY)
}

fn pblk() -> AnyFtl<Media> {
    let stack = Stack::load("pblk", &[] as &[&str]).expect("a shipped stack");
    let mut media = Media::new(stack.media.config(1)).expect("sound");
    media.set_timing(stack.media.timing.nand);
    stack.ftl.format(media, FtlRun::default(), stack.link).expect("fits")
}

async fn mounted<D: BlockDevice + 'static>(rt: &Handle, device: D, data: DataMode) -> Ext4 {
    let device = AsyncDevice::new(rt, device).erased();
    let options = MkfsOptions { fresh: true, ..MkfsOptions::new(1) };
    mkfs(&device, &options).await.expect("a file system");
    let options = MountOptions { data, ..MountOptions::default() };
    Ext4::mount(rt, device, options).await.expect("a mount").0
}

/// One thread's part of the mix, in a separate directory.
async fn work(fs: Ext4, thread: u16, files: u64, fsync_every: u64) {
    let caller = Caller { thread, core: thread, uid: 0, gid: 0 };
    let name = |file: u64| format!("file{file}").into_bytes();
    let dir = format!("thread{thread}").into_bytes();
    let dir = fs.mkdir(caller, fs.root(), &dir, 0o755).await.expect("mkdir").ino;
    for file in 0..files {
        let ino = fs.create(caller, dir, &name(file), 0o644).await.expect("create").ino;
        let tags = Payload::Run(Tag::new(1 + (u64::from(thread) << 40) + file * u64::from(PAGES)));
        let data = Data::Sectors(tags, PAGES);
        fs.write(caller, ino, 0, data, Io::Buffered).await.expect("write");
        if file % fsync_every == 0 {
            fs.fsync(caller, ino).await.expect("fsync");
        }
        if let Some(old) = file.checked_sub(LIVE) {
            fs.unlink(caller, dir, &name(old)).await.expect("unlink");
        }
    }
}

async fn run<D: BlockDevice + 'static>(
    rt: Handle,
    device: D,
    mix: &'static Mix,
    files: u64,
    cold: bool,
) {
    let gib = (device.caps().sectors >> 18).max(1);
    let before = resident();
    let fs = mounted(&rt, device, mix.data).await;
    let empty = resident().saturating_sub(before);
    let (wall, from) = (Instant::now(), rt.now());
    let each = files / u64::from(mix.threads);
    let threads = (0..mix.threads)
        .map(|thread| rt.spawn("thread", work(fs.clone(), thread, each, mix.fsync_every)));
    for thread in threads.collect::<Vec<_>>() {
        thread.await.expect("a thread ends");
    }
    let virtual_s = (rt.now() - from).0 as f64 / 1e9;
    let wall_s = wall.elapsed().as_secs_f64();
    let used = resident().saturating_sub(before);
    println!(
        "{:<26} {virtual_s:>8.2} s virtual {wall_s:>7.3} s wall {:>7.1} x {:>7.2} us a file   \
         {} bytes a GiB empty, {} after{}",
        mix.name,
        virtual_s / wall_s,
        wall_s * 1e6 / files as f64,
        empty / gib,
        used / gib,
        if cold { ", cold" } else { "" },
    );
}

/// One run of a mix, on a separate device.
fn measure<D: BlockDevice + 'static>(device: D, mix: &'static Mix, files: u64, cold: bool) {
    let mut executor = Executor::on_virtual_clock();
    let work = run(executor.handle(), device, mix, files, cold);
    executor.block_on(work).expect("no task waits for ever");
}

fn on<D: BlockDevice + 'static>(name: &str, device: impl Fn() -> D, asked: &Asked) {
    if !name.starts_with(&asked.devices) {
        return;
    }
    println!("{name}");
    let mut mixes = MIXES.iter().filter(|mix| mix.name.starts_with(&asked.mixes)).peekable();
    if let Some(first) = mixes.peek() {
        measure(device(), first, asked.files, true);
    }
    mixes.for_each(|mix| measure(device(), mix, asked.files, false));
}

/// What the command line asks for.
struct Asked {
    files: u64,
    mixes: String,
    devices: String,
}

fn asked() -> Asked {
    let arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (numbers, names): (Vec<_>, Vec<_>) =
        arguments.partition(|argument| argument.parse::<u64>().is_ok());
    let mut names = names.into_iter();
    Asked {
        files: numbers.first().and_then(|number| number.parse().ok()).unwrap_or(FILES),
        mixes: names.next().unwrap_or_default(),
        devices: names.next().unwrap_or_default(),
    }
}

fn main() {
    nandscape_heap::retain_freed_memory();
    let asked = asked();
    on("pblk, JS-Pblk's device", pblk, &asked);
    on("100 us a bio", fixed, &asked);
}
