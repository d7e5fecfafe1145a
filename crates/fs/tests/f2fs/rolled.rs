//! What roll-forward makes of chains that hold nodes in an unusual order, and of segments that were written since the last
//! checkpoint.

use crate::common::image::{content as on_device, put, sectors};
use crate::common::volume::{after_cut, after_recovery, assert_sound, loaded, made, mounted, run};
use crate::late::Late;
use nandscape_block::{AsyncDevice, BlockDevice, Flags, Lba, MemDevice, Payload, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::{Allocate, Caller, Data, FileSystem, FsError, Ino, Io, XattrMode};
use nandscape_fs::f2fs::format::{Features, NodeFooter, node_flag};
use nandscape_fs::f2fs::{Allocation, F2fs, MountOptions, OmittedRule, SmallVolume};
use nandscape_rt::Nanos;
use std::collections::BTreeSet;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
/// Pages for which an inode and one node have addresses.
const PAGES: u32 = 1_500;
const PAGE: u64 = 4_096;
/// Where an inode counts its names.
const LINKS_AT: usize = 0xc;

async fn create(fs: &F2fs, name: &str) -> Ino {
    fs.create(ME, fs.root(), name.as_bytes(), 0o644).await.expect("a file").ino
}

async fn write(fs: &F2fs, ino: Ino, tag: u64, pages: u32) {
    let data = Data::Sectors(Payload::Run(Tag::new(tag)), pages);
    fs.write_all(ME, ino, 0, data, Io::Buffered).await.expect("a write");
}

async fn content(fs: &F2fs, name: &str) -> Vec<u8> {
    let file = fs.lookup(ME, fs.root(), name.as_bytes()).await.expect("the file").ino;
    fs.read(ME, file, 0, 1 << 30, Io::Buffered).await.expect("content").to_bytes()
}

fn expected(tag: u64, pages: u32) -> Vec<u8> {
    Data::Sectors(Payload::Run(Tag::new(tag)), pages).to_bytes()
}

/// Runs `before` on a new volume, cuts the power, and runs `after` on what that leaves.
fn over_a_cut(before: impl AsyncFn(&F2fs) + 'static, after: impl AsyncFn(&F2fs) + 'static) {
    let device = run(async move |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let options = MountOptions::default();
        let fs = mounted(&rt, &device, &options).await;
        // The first sync of a mount would be one.
        create(&fs, "first").await;
        fs.syncfs(ME).await.expect("a checkpoint");
        before(&fs).await;
        after_recovery(&rt, &device, (&options, 1), after).await
    });
    assert_sound(&device);
}

/// A node that roll-forward makes for one file never gets the number of another file, which comes later in the chain.
#[test]
fn files_that_are_brought_back_keep_their_numbers() {
    let before = async |fs: &F2fs| {
        let (large, small) = (create(fs, "large").await, create(fs, "small").await);
        write(fs, large, 1, PAGES).await;
        fs.fsync(ME, large).await.expect("a sync");
        write(fs, small, 10_000, 3).await;
        fs.fsync(ME, small).await.expect("a sync");
    };
    over_a_cut(before, async |fs| {
        assert!(content(fs, "large").await == expected(1, PAGES));
        assert!(content(fs, "small").await == expected(10_000, 3));
    });
}

/// A file whose content leaves its inode is brought back whole also where the chain has a node of it, of a lower number,
/// before the inode.
#[test]
fn nodes_before_their_inode_are_brought_back() {
    let before = async |fs: &F2fs| {
        let (early, file) = (create(fs, "early").await, create(fs, "file").await);
        assert!(early < file);
        let bytes = Data::Bytes(vec![7; 100]);
        fs.write_all(ME, file, 0, bytes, Io::Buffered).await.expect("a write");
        fs.unlink(ME, fs.root(), b"early").await.expect("no file");
        fs.syncfs(ME).await.expect("a checkpoint");
        write(fs, file, 1, PAGES).await;
        fs.fsync(ME, file).await.expect("a sync");
    };
    over_a_cut(before, async |fs| {
        assert!(content(fs, "file").await == expected(1, PAGES));
    });
}

/// An inode that write-back sends after content left it says so: roll-forward takes no node from the file that lies before
/// it in the chain, and that the fsync found clean.
#[test]
fn content_that_leaves_its_inode_takes_no_node_of_the_chain() {
    let device = run(async move |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let soon = Nanos::from_ms(1);
        let cache = CacheConfig { period: soon, age: soon, ..CacheConfig::default() };
        let options = MountOptions { cache, ..MountOptions::default() };
        let fs = mounted(&rt, &device, &options).await;
        create(&fs, "first").await;
        fs.syncfs(ME).await.expect("a checkpoint");
        let file = create(&fs, "file").await;
        for (page, tag) in [(1_000, 1), (0, 2)] {
            let data = Data::Sectors(Payload::Run(Tag::new(tag)), 1);
            fs.write_all(ME, file, page * PAGE, data, Io::Buffered).await.expect("a write");
            // Data, then nodes.
            rt.sleep(Nanos::from_ms(100)).await;
        }
        fs.fsync(ME, file).await.expect("a sync");
        after_recovery(&rt, &device, (&options, 1), async |fs| {
            let content = content(fs, "file").await;
            assert_eq!(content.len() as u64, 1_001 * PAGE);
            assert!(content[..PAGE as usize] == expected(2, 1));
            assert!(content[1_000 * PAGE as usize..] == expected(1, 1));
        })
        .await
    });
    assert_sound(&device);
}

/// Attributes that fill the inode's room to its last byte end there, also where roll-forward keeps the node that the
/// checkpoint has of larger ones.
#[test]
fn attributes_that_just_fit_end_with_the_inode() {
    let before = async |fs: &F2fs| {
        let file = create(fs, "file").await;
        let set = async |name: &[u8], bytes| {
            let value = vec![b'v'; bytes];
            fs.setxattr(ME, file, name, &value, XattrMode::Set).await.expect("an attribute");
        };
        set(b"user.large", 3_000).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        fs.removexattr(ME, file, b"user.large").await.expect("no attribute");
        // 200 bytes: 24 of the header, 5 before the value.
        set(b"user.x", 171).await;
        fs.fsync(ME, file).await.expect("a sync");
    };
    over_a_cut(before, async |fs| {
        let file = fs.lookup(ME, fs.root(), b"file").await.expect("the file").ino;
        assert_eq!(fs.listxattr(ME, file).await, Ok(vec![b"user.x".to_vec()]));
        assert_eq!(fs.getxattr(ME, file, b"user.x").await, Ok(vec![b'v'; 171]));
    });
}

/// Whatever nodes of an fsync a cut takes, attributes that begin in the inode and end in a node are those of one moment.
#[test]
fn attributes_come_back_whole_or_not_at_all() {
    let mut sizes = BTreeSet::new();
    for seed in 0..40 {
        let (device, size) = run(async move |rt| {
            let device = made(&rt, 64, Features::default()).await;
            let omit = Some(OmittedRule::FsyncFlush);
            let options = MountOptions { omit, ..MountOptions::default() };
            let fs = mounted(&rt, &device, &options).await;
            let file = create(&fs, "file").await;
            let set = async |byte: u8| {
                let value = vec![byte; 500 + 300 * usize::from(byte)];
                fs.setxattr(ME, file, b"user.x", &value, XattrMode::Set).await.expect("a value");
            };
            set(0).await;
            fs.syncfs(ME).await.expect("a checkpoint");
            for byte in 1..3 {
                set(byte).await;
                fs.fsync(ME, file).await.expect("a sync without a flush");
            }
            let left = after_cut(&rt, &device, seed).await;
            let fs = mounted(&rt, &left, &MountOptions::default()).await;
            let value = fs.getxattr(ME, file, b"user.x").await.expect("a value");
            assert_eq!(value, vec![value[0]; 500 + 300 * usize::from(value[0])], "seed {seed}");
            fs.unmount().await.expect("an unmount");
            (left, value[0])
        });
        assert_sound(&device);
        sizes.insert(size);
    }
    assert_eq!(sizes, BTreeSet::from([0, 1, 2]));
}

/// A file that loses its name while an fsync writes its nodes has it again after a cut, and counts it, although the inode
/// of the chain counts none.
#[test]
fn a_name_that_comes_back_counts() {
    let device = run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let options = MountOptions::default();
        let fs = mounted(&rt, &device, &options).await;
        let file = create(&fs, "file").await;
        fs.syncfs(ME).await.expect("a checkpoint");
        write(&fs, file, 1, 3).await;
        fs.fsync(ME, file).await.expect("a sync");
        let left = after_cut(&rt, &device, 1).await;
        let blocks = 0..left.with(|medium| medium.caps().sectors);
        let block = |lba| left.with(|medium| medium.current(Lba(lba))).expand();
        let nodes = blocks.filter_map(|lba| block(lba).map(|bytes| (lba, bytes)));
        let in_chain = |bytes: &[u8; 4_096]| {
            let footer = NodeFooter::parse(bytes);
            footer.nid == file.0 as u32 && footer.has(node_flag::FSYNC)
        };
        let chain: Vec<_> = nodes.filter(|(_, bytes)| in_chain(bytes)).collect();
        let [(lba, inode)] = &chain[..] else { panic!("{} blocks", chain.len()) };
        let mut unlinked = inode.clone();
        unlinked[LINKS_AT..LINKS_AT + 4].fill(0);
        let unlinked = Payload::from_bytes(&unlinked[..]).expect("a sector");
        left.write(Lba(*lba), 1, unlinked).await.expect("a write");
        let fs = mounted(&rt, &left, &options).await;
        assert!(content(&fs, "file").await == expected(1, 3));
        assert_eq!(fs.getattr(ME, file).await.map(|attr| attr.links), Ok(1));
        fs.unmount().await.expect("an unmount");
        left
    });
    assert_sound(&device);
}

/// Nodes of the chain are not written over before the checkpoint that ends recovery is durable, also where the last
/// checkpoint calls their segment free: when power goes again, the next mount follows them.
#[test]
fn a_recovery_that_is_cut_begins_again() {
    let device = run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let options = MountOptions::default();
        let fs = mounted(&rt, &device, &options).await;
        let mut files = Vec::new();
        // One node each, with the content: more than a segment has blocks.
        for number in 0..600 {
            files.push(create(&fs, &format!("{number}")).await);
        }
        fs.syncfs(ME).await.expect("a checkpoint");
        for file in files {
            let data = Data::Bytes(file.0.to_le_bytes().to_vec());
            fs.write_all(ME, file, 0, data, Io::Buffered).await.expect("a write");
            fs.fsync(ME, file).await.expect("a sync");
        }
        let left = after_cut(&rt, &device, 1).await;
        let count = left.with(|medium| medium.caps().sectors);
        let late = AsyncDevice::new(&rt, Late::new(MemDevice::new(count), 1, 0));
        put(&late.erased(), &on_device(&left)).await;
        // All of the checkpoint but its last block.
        late.with(|late| {
            late.refuse = Box::new(|bio| bio.flags.has(Flags::PREFLUSH | Flags::FUA));
        });
        let ended = F2fs::mount(&rt, late.erased(), options.clone()).await;
        assert!(matches!(ended, Err(FsError::Io(_))), "{:?}", ended.err());
        let left = late.with(Late::take);
        let left = loaded(&rt, count, &sectors(&left)).await;
        let fs = mounted(&rt, &left, &options).await;
        for number in 0..600 {
            let name = format!("{number}");
            let file = fs.lookup(ME, fs.root(), name.as_bytes()).await.expect("the file").ino;
            assert_eq!(content(&fs, &name).await, file.0.to_le_bytes(), "{number}");
        }
        fs.unmount().await.expect("an unmount");
        left
    });
    assert_sound(&device);
}

/// A segment that the last checkpoint calls free, in which fsyncs wrote one block after the other of the same page, is in
/// use after roll-forward.
#[test]
fn a_segment_that_is_emptied_and_written_again_stays_in_use() {
    let device = run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let options = MountOptions::default();
        let fs = mounted(&rt, &device, &options).await;
        let file = create(&fs, "file").await;
        fs.syncfs(ME).await.expect("a checkpoint");
        for tag in 1..=700 {
            write(&fs, file, tag, 1).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
        let left = after_cut(&rt, &device, 1).await;
        let fs = mounted(&rt, &left, &options).await;
        // Segments that became free are discarded meanwhile.
        rt.sleep(Nanos::from_secs(1)).await;
        assert!(content(&fs, "file").await == expected(700, 1));
        fs.unmount().await.expect("an unmount");
        left
    });
    assert_sound(&device);
}

/// A log that fills holes goes on in one that roll-forward found nothing in.
#[test]
fn a_log_that_fills_holes_goes_on_after_what_was_found() {
    let device = run(async |rt| {
        let device = made(&rt, 128, Features::default()).await;
        let options = MountOptions {
            allocation: Allocation::Adaptive,
            small_volume: SmallVolume::Off,
            background_gc: false,
            ..MountOptions::default()
        };
        let fs = mounted(&rt, &device, &options).await;
        let threaded = |fs: &F2fs| fs.counts().detail.count("adaptive", "ssr_blocks");
        let holey = create(&fs, "holey").await;
        write(&fs, holey, 1, 8_192).await;
        fs.fsync(ME, holey).await.expect("a sync");
        for page in (0..8_192).step_by(2) {
            let hole = fs.fallocate(ME, holey, Allocate::PunchHole, page * PAGE, PAGE).await;
            hole.expect("a hole");
        }
        fs.syncfs(ME).await.expect("a checkpoint");
        let mut number = 0;
        while threaded(&fs) == Some(0) {
            let file = create(&fs, &format!("{number}")).await;
            write(&fs, file, 1, 64).await;
            fs.fsync(ME, file).await.expect("a sync");
            number += 1;
        }
        fs.syncfs(ME).await.expect("a checkpoint");
        let found = create(&fs, "found").await;
        write(&fs, found, 100_000, 8).await;
        fs.fsync(ME, found).await.expect("a sync");
        after_recovery(&rt, &device, (&options, 1), async |fs| {
            let next = create(fs, "next").await;
            write(fs, next, 200_000, 8).await;
            fs.fsync(ME, next).await.expect("a sync");
            assert_eq!(threaded(fs), Some(8));
            assert!(content(fs, "found").await == expected(100_000, 8));
        })
        .await
    });
    assert_sound(&device);
}

/// Whatever a cut takes of an fsync after a file left its inode, the content that a checkpoint has is there.
#[test]
fn content_that_leaves_its_inode_is_kept() {
    for seed in 0..20 {
        let device = run(async move |rt| {
            let device = made(&rt, 64, Features::default()).await;
            let omit = Some(OmittedRule::FsyncFlush);
            let options = MountOptions { omit, ..MountOptions::default() };
            let fs = mounted(&rt, &device, &options).await;
            let file = create(&fs, "file").await;
            let bytes = Data::Bytes(vec![7; 100]);
            fs.write_all(ME, file, 0, bytes, Io::Buffered).await.expect("a write");
            fs.syncfs(ME).await.expect("a checkpoint");
            let reserve = Allocate::Reserve { keep_size: true };
            fs.fallocate(ME, file, reserve, 0, 4 * PAGE).await.expect("blocks");
            fs.fsync(ME, file).await.expect("a sync without a flush");
            let left = after_cut(&rt, &device, seed).await;
            let fs = mounted(&rt, &left, &MountOptions::default()).await;
            assert!(content(&fs, "file").await == [7; 100], "seed {seed}");
            fs.unmount().await.expect("an unmount");
            left
        });
        assert_sound(&device);
    }
}
