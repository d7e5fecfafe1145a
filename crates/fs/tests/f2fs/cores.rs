//! What writing takes of the host's cores: the walks that are paid for, and that no task waits for the work of another one.

use crate::common::files::{ME, PAGE, count, create, write};
use crate::common::volume::{made, mounted, run};
use nandscape_block::{Payload, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io};
use nandscape_fs::f2fs::format::Features;
use nandscape_fs::f2fs::{Allocation, CpuCosts, F2fs, MountOptions};
use nandscape_rt::{Handle, Host, Nanos};

const NODE_NS: u64 = 1_000;
const ALLOCATION_NS: u64 = 10;

/// A page that an inode leads to through three nodes, one that it leads to through one, and the pages of those ways.
const DEEP: (u64, u64) = (3_000_000, 4);
const SHALLOW: (u64, u64) = (1_000, 2);

fn options() -> MountOptions {
    let free = CpuCosts::default();
    MountOptions {
        cpu: CpuCosts { node_page_ns: NODE_NS, allocation_ns: ALLOCATION_NS, ..free },
        checkpoint_interval: Nanos::from_secs(3_600),
        inline_data: false,
        ..MountOptions::default()
    }
}

/// A volume with a file of so many pages from `page` on, a hole, and a last page, mounted anew, so that nothing is known of
/// its extents, with a host.
async fn with_file(rt: &Handle, page: u64, pages: u32, options: MountOptions) -> (F2fs, Ino, Host) {
    let device = made(rt, 64, Features::default()).await;
    let fs = mounted(rt, &device, &options).await;
    let file = create(&fs, "file").await;
    write(&fs, file, page, 1, pages).await;
    write(&fs, file, page + u64::from(pages) + 200, 1, 1).await;
    fs.unmount().await.expect("an unmount");
    let fs = mounted(rt, &device, &options).await;
    fs.getattr(ME, file).await.expect("the inode in memory");
    let host = Host::with_cores(2);
    fs.attach_host(&host);
    (fs, file, host)
}

/// Node pages and allocations that were paid for since the mount.
fn paid(fs: &F2fs) -> (u64, u64) {
    let (nodes, allocations) =
        (count(fs, "cpu", "node_page_ns"), count(fs, "cpu", "allocation_ns"));
    (nodes / NODE_NS, allocations / ALLOCATION_NS)
}

/// A write of a whole page walks to its place once, whether the page has a block or is a hole; a write of a part of a page
/// that has to be read walks once more.
#[test]
fn a_whole_page_is_walked_to_once() {
    let whole = || Data::Sectors(Payload::Run(Tag::new(7)), 1);
    let bytes = |len: usize| Data::Bytes(vec![3; len]);
    for (page, depth) in [DEEP, SHALLOW] {
        let cases = [
            (page, whole(), 1),
            (page, bytes(4_096), 1),
            (page + 1, whole(), 1),
            (page + 1, bytes(4_096), 1),
            (page, bytes(100), 2),
        ];
        for (at, data, walks) in cases {
            run(async move |rt| {
                let (fs, file, _) = with_file(&rt, page, 1, options()).await;
                let (len, offset) = (data.len(), at * PAGE);
                fs.write_all(ME, file, offset, data, Io::Buffered).await.expect("a write");
                assert_eq!(paid(&fs), (walks * depth, 0), "page {at}, {len} bytes");
            });
        }
    }
}

/// Write-back walks to each page of a run, however the pages lie, and allocates a block for each but those that it writes
/// over in place.
#[test]
fn write_back_walks_to_each_page() {
    const PAGES: u64 = 8;
    for (page, depth) in [DEEP, SHALLOW] {
        for (allocation, allocated) in [(Allocation::Lfs, PAGES), (Allocation::Adaptive, PAGES / 2)]
        {
            run(async move |rt| {
                let options = MountOptions { allocation, ..options() };
                let (fs, file, _) = with_file(&rt, page, PAGES as u32, options).await;
                // The first sync after a mount writes a checkpoint.
                fs.fsync(ME, file).await.expect("a sync");
                // Half of them have blocks.
                write(&fs, file, page + PAGES / 2, 70, PAGES as u32).await;
                let before = paid(&fs);
                fs.fsync(ME, file).await.expect("a sync");
                let (nodes, allocations) = paid(&fs);
                // The inode is brought to its page, which is written, and so is the node with the addresses.
                let expected = (PAGES * depth + 1 + 2, allocated + 2);
                let paid = (nodes - before.0, allocations - before.1);
                assert_eq!(paid, expected, "page {page}, {allocation:?}");
            });
        }
    }
}

/// The writer of a file and its write-back have a core each: neither waits while the other walks.
#[test]
fn a_writer_does_not_wait_for_write_back() {
    const PAGES: u64 = 64;
    run(async |rt| {
        let (first, depth) = SHALLOW;
        let (fs, file, host) = with_file(&rt, first, 1, options()).await;
        for page in 0..PAGES {
            write(&fs, file, first + 2 * page, 100, 1).await;
        }
        host.reset_busy(rt.now());
        let began = rt.now();
        let sync = fs.clone();
        let sync = rt.spawn("sync", async move {
            sync.fsync(Caller { core: 1, ..ME }, file).await.expect("a sync");
        });
        for page in 0..PAGES {
            write(&fs, file, first + 2 * page + 1, 200, 1).await;
        }
        let took = rt.now() - began;
        assert_eq!(took, Nanos(PAGES * depth * NODE_NS), "the writer waited for nothing");
        let busy = host.busy(rt.now()).iter().map(|core| core.threads).collect::<Vec<_>>();
        assert_eq!(busy, [took, took], "neither core was idle");
        sync.await.expect("an end");
    });
}
