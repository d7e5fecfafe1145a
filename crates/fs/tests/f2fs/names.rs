//! Directories that grow and shrink, names when space runs out, extended attributes, and what an fsync must bring
//! back after names changed. fsck.f2fs finds nothing wrong after each.

use crate::common::volume::{after_cut, after_recovery, assert_sound, made, mounted, run};
use nandscape_block::{Payload, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{
    Caller, Data, FileSystem, FsError, Ino, Io, Kind, OpenFlags, RenameMode, SetAttr, XattrMode,
};
use nandscape_fs::f2fs::format::{Feature, Features};
use nandscape_fs::f2fs::{F2fs, FsyncMode, MountOptions};
use nandscape_rt::Stream;
use nandscape_rt::combine::join_all;
use std::collections::BTreeMap;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const MIB: u64 = 1 << 20;

/// Features that give inodes another layout, and none.
fn layouts() -> [Features; 2] {
    let inode = [Feature::EXTRA_ATTR, Feature::FLEXIBLE_INLINE_XATTR, Feature::INODE_CHECKSUM];
    [Features::default(), Features::of(&inode)]
}

async fn create(fs: &F2fs, dir: Ino, name: &str) -> Ino {
    fs.create(ME, dir, name.as_bytes(), 0o644).await.expect("a file").ino
}

async fn lookup(fs: &F2fs, dir: Ino, name: &str) -> Result<Ino, FsError> {
    fs.lookup(ME, dir, name.as_bytes()).await.map(|attr| attr.ino)
}

async fn write(fs: &F2fs, ino: Ino, byte: u8) {
    fs.write_all(ME, ino, 0, Data::Bytes(vec![byte; 5_000]), Io::Buffered).await.expect("a write");
}

async fn read(fs: &F2fs, ino: Ino) -> Vec<u8> {
    fs.read(ME, ino, 0, MIB, Io::Buffered).await.expect("data").to_bytes()
}

/// Checkpoints since mount.
fn checkpoints(fs: &F2fs) -> u64 {
    fs.counts().detail.count("checkpoint", "count").expect("a count")
}

async fn free(fs: &F2fs) -> u64 {
    fs.statfs(ME).await.expect("space").free
}

/// Names by what they lead to, listed a few at a time.
async fn names(fs: &F2fs, dir: Ino) -> BTreeMap<Vec<u8>, Ino> {
    let (mut all, mut cookie) = (BTreeMap::new(), 0);
    loop {
        let some = fs.readdir(ME, dir, cookie, 50).await.expect("names");
        let Some(last) = some.last() else { return all };
        cookie = last.cookie;
        for entry in some {
            assert_eq!(all.insert(entry.name, entry.ino), None, "listed once");
        }
    }
}

/// A directory of many levels holds all of its names over a mount, and gives its blocks back when they go.
#[test]
fn directories_grow_and_shrink() {
    for (features, inline_dentry) in layouts().into_iter().zip([true, false]) {
        let device = run(async move |rt| {
            let device = made(&rt, 128, features).await;
            let options = MountOptions { inline_dentry, ..MountOptions::default() };
            let fs = mounted(&rt, &device, &options).await;
            let dir = fs.mkdir(ME, fs.root(), b"d", 0o755).await.expect("a directory").ino;
            let before = free(&fs).await;
            let name = |number: u32| format!("{number}-{}", "n".repeat(number as usize % 120));
            let mut made = BTreeMap::new();
            for number in 0..6_000 {
                made.insert(name(number), create(&fs, dir, &name(number)).await);
            }
            fs.unmount().await.expect("an unmount");
            assert_sound(&device);

            let fs = mounted(&rt, &device, &options).await;
            let listed = names(&fs, dir).await;
            assert_eq!(listed.len(), made.len() + 2);
            for (name, ino) in &made {
                assert_eq!(listed.get(name.as_bytes()), Some(ino), "{name}");
                assert_eq!(lookup(&fs, dir, name).await, Ok(*ino));
            }
            let mut numbers: Vec<u32> = (0..6_000).collect();
            let mut order = Stream::new(1, "order");
            numbers.sort_by_cached_key(|_| order.bits());
            for number in numbers {
                assert_eq!(fs.rmdir(ME, fs.root(), b"d").await, Err(FsError::NotEmpty));
                fs.unlink(ME, dir, name(number).as_bytes()).await.expect("no file");
            }
            assert_eq!(names(&fs, dir).await.len(), 2);
            assert!(before - free(&fs).await < 40, "blocks of names are freed");
            fs.rmdir(ME, fs.root(), b"d").await.expect("no directory");
            assert_eq!(free(&fs).await, before + 1 + u64::from(!inline_dentry));
            fs.unmount().await.expect("an unmount");
            device
        });
        assert_sound(&device);
    }
}

/// Names that find no space leave nothing behind, and those that are there stay good.
#[test]
fn names_without_space_leave_nothing() {
    for features in layouts() {
        let device = run(async move |rt| {
            let device = made(&rt, 64, features).await;
            let fs = mounted(&rt, &device, &MountOptions::default()).await;
            let large = create(&fs, fs.root(), "large").await;
            let before = free(&fs).await;
            let tags = Data::Sectors(Payload::Run(Tag::new(1)), before as u32 - 400);
            let written = fs.write(ME, large, 0, tags, Io::Buffered).await.expect("most of it");
            assert_eq!(written, (before - 400) * 4096);
            let mut made = BTreeMap::new();
            let error = loop {
                let name = format!("{}-{}", made.len(), "x".repeat(100));
                let result = match made.len() % 3 {
                    0 => fs.mkdir(ME, fs.root(), name.as_bytes(), 0o755).await,
                    1 => fs.symlink(ME, fs.root(), name.as_bytes(), &[b't'; 4_000]).await,
                    _ => fs.create(ME, fs.root(), name.as_bytes(), 0o644).await,
                };
                match result {
                    Ok(attr) => made.insert(name.into_bytes(), attr.ino),
                    Err(error) => break error,
                };
            };
            assert_eq!(error, FsError::NoSpace);
            let mut listed = names(&fs, fs.root()).await;
            listed.retain(|name, _| !matches!(&name[..], b"." | b".." | b"large"));
            assert_eq!(listed, made);
            assert!(made.len() > 200);
            fs.syncfs(ME).await.expect("a checkpoint");
            for (name, ino) in made {
                let kind = fs.getattr(ME, ino).await.expect("attributes").kind;
                if kind == Kind::Directory {
                    fs.rmdir(ME, fs.root(), &name).await.expect("no directory");
                } else {
                    fs.unlink(ME, fs.root(), &name).await.expect("no file");
                }
            }
            fs.unlink(ME, fs.root(), b"large").await.expect("no file");
            assert!(free(&fs).await > before - 20);
            fs.unmount().await.expect("an unmount");
            device
        });
        assert_sound(&device);
    }
}

/// Attributes that do not fit the inode take a node, which goes with them.
#[test]
fn attributes_take_a_node_and_give_it_back() {
    for features in layouts() {
        let device = run(async move |rt| {
            let device = made(&rt, 64, features).await;
            let options = MountOptions::default();
            let fs = mounted(&rt, &device, &options).await;
            let file = create(&fs, fs.root(), "f").await;
            let before = free(&fs).await;
            let set = async |fs: &F2fs, name: &str, len| {
                let value = vec![7; len];
                fs.setxattr(ME, file, name.as_bytes(), &value, XattrMode::Set).await
            };
            assert_eq!(set(&fs, "user.small", 20).await, Ok(()));
            assert_eq!(free(&fs).await, before, "in the inode");
            assert_eq!(set(&fs, "user.large", 3_000).await, Ok(()));
            assert_eq!(free(&fs).await, before - 1, "in a node");
            assert_eq!(set(&fs, "user.more", 3_000).await, Err(FsError::NoSpace));
            fs.fsync(ME, file).await.expect("a sync");
            let device = after_cut(&rt, &device, 1).await;

            let fs = mounted(&rt, &device, &options).await;
            let value = fs.getxattr(ME, file, b"user.large").await;
            assert_eq!(value, Ok(vec![7; 3_000]), "rolled forward");
            assert_eq!(fs.listxattr(ME, file).await.expect("names").len(), 2);
            assert_eq!(set(&fs, "user.large", 2_000).await, Ok(()));
            fs.fsync(ME, file).await.expect("a sync");
            let device = after_cut(&rt, &device, 2).await;

            let fs = mounted(&rt, &device, &options).await;
            assert_eq!(fs.getxattr(ME, file, b"user.large").await, Ok(vec![7; 2_000]));
            assert_eq!(free(&fs).await, before - 1, "the node of before is gone");
            fs.removexattr(ME, file, b"user.large").await.expect("no attribute");
            assert_eq!(free(&fs).await, before);
            assert_eq!(fs.getxattr(ME, file, b"user.small").await, Ok(vec![7; 20]));
            fs.unmount().await.expect("an unmount");
            device
        });
        assert_sound(&device);
    }
}

/// Runs `before` on a new volume, cuts the power, and runs `after` on what that leaves.
fn over_cuts(
    options: &MountOptions,
    before: impl AsyncFn(&F2fs) + Copy + 'static,
    after: impl AsyncFn(&F2fs) + Copy + 'static,
) {
    for (seed, features) in (0..3).flat_map(|seed| layouts().map(|one| (seed, one))) {
        let options = options.clone();
        let device = run(async move |rt| {
            let device = made(&rt, 64, features).await;
            let fs = mounted(&rt, &device, &options).await;
            before(&fs).await;
            after_recovery(&rt, &device, (&options, seed), after).await
        });
        assert_sound(&device);
    }
}

/// A file that was made again under a name, after the last checkpoint, has it after a cut; the one of before is gone.
#[test]
fn a_name_that_was_taken_again_is_brought_back() {
    let before = async |fs: &F2fs| {
        let (root, old) = (fs.root(), create(fs, fs.root(), "f").await);
        write(fs, old, 1).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        fs.unlink(ME, root, b"f").await.expect("no file");
        let new = create(fs, root, "f").await;
        write(fs, new, 2).await;
        fs.fsync(ME, new).await.expect("a sync");
        assert_eq!(checkpoints(fs), 1, "rolled forward");
    };
    over_cuts(&MountOptions::default(), before, async |fs| {
        let file = lookup(fs, fs.root(), "f").await.expect("the file");
        assert_eq!(read(fs, file).await, vec![2; 5_000]);
        assert_eq!(names(fs, fs.root()).await.len(), 3);
    });
}

/// What roll-forward could not bring back is synced by a checkpoint: names after a rename, links, new directories.
#[test]
fn changed_names_are_synced() {
    let before = async |fs: &F2fs| {
        let root = fs.root();
        let dir = fs.mkdir(ME, root, b"d", 0o755).await.expect("a directory").ino;
        let (moved, linked) = (create(fs, root, "a").await, create(fs, root, "b").await);
        let (placed, victim) = (create(fs, root, "c").await, create(fs, root, "v").await);
        for (file, byte) in [(moved, 1), (linked, 2), (placed, 3), (victim, 4)] {
            write(fs, file, byte).await;
        }
        fs.syncfs(ME).await.expect("a checkpoint");
        let mode = RenameMode::Replace;
        fs.rename(ME, (root, b"a"), (dir, b"moved"), mode).await.expect("a move");
        fs.fsync(ME, moved).await.expect("a sync");
        fs.link(ME, linked, dir, b"linked").await.expect("a link");
        fs.fsync(ME, linked).await.expect("a sync");
        fs.rename(ME, (root, b"c"), (root, b"v"), mode).await.expect("a move");
        fs.fsync(ME, placed).await.expect("a sync");
        let deep = fs.mkdir(ME, dir, b"deep", 0o755).await.expect("a directory").ino;
        let new = create(fs, deep, "new").await;
        write(fs, new, 5).await;
        fs.fsync(ME, new).await.expect("a sync");
    };
    over_cuts(&MountOptions::default(), before, async |fs| {
        let root = fs.root();
        let dir = lookup(fs, root, "d").await.expect("the directory");
        let deep = lookup(fs, dir, "deep").await.expect("the directory");
        let expected = [(dir, "moved", 1), (dir, "linked", 2), (root, "v", 3), (deep, "new", 5)];
        for (dir, name, byte) in expected {
            let file = lookup(fs, dir, name).await.expect(name);
            assert_eq!(read(fs, file).await, vec![byte; 5_000], "{name}");
        }
        let linked = lookup(fs, dir, "linked").await;
        assert_eq!(linked, lookup(fs, root, "b").await);
        for gone in ["a", "c"] {
            assert_eq!(lookup(fs, root, gone).await, Err(FsError::NoEntry));
        }
    });
}

/// How many checkpoints an fsync of a file writes that has new content.
async fn checkpoints_of_sync(fs: &F2fs, file: Ino, byte: u8) -> u64 {
    let before = checkpoints(fs);
    write(fs, file, byte).await;
    fs.fsync(ME, file).await.expect("a sync");
    checkpoints(fs) - before
}

/// After a rename, or a link of which one name is left, the first fsync writes a checkpoint and the next does not; both
/// bring back content and name.
#[test]
fn the_second_sync_after_a_rename_needs_no_checkpoint() {
    let before = async |fs: &F2fs| {
        let root = fs.root();
        let (moved, linked) = (create(fs, root, "a").await, create(fs, root, "b").await);
        let (kept, exchanged) = (create(fs, root, "k").await, create(fs, root, "e").await);
        fs.syncfs(ME).await.expect("a checkpoint");
        fs.rename(ME, (root, b"a"), (root, b"moved"), RenameMode::Replace).await.expect("a move");
        assert_eq!(checkpoints_of_sync(fs, moved, 1).await, 1);
        assert_eq!(checkpoints_of_sync(fs, moved, 2).await, 0);
        fs.rename(ME, (root, b"e"), (root, b"k"), RenameMode::Exchange).await.expect("a move");
        for file in [exchanged, kept] {
            assert_eq!(checkpoints_of_sync(fs, file, 3).await, 1);
            assert_eq!(checkpoints_of_sync(fs, file, 4).await, 0);
        }
        // With two links every fsync writes one.
        fs.link(ME, linked, root, b"second").await.expect("a link");
        assert_eq!(checkpoints_of_sync(fs, linked, 5).await, 1);
        assert_eq!(checkpoints_of_sync(fs, linked, 6).await, 1);
        // The name of which the inode knows is gone, until the other one is looked up.
        fs.unlink(ME, root, b"second").await.expect("no file");
        assert_eq!(checkpoints_of_sync(fs, linked, 7).await, 1);
        assert_eq!(checkpoints_of_sync(fs, linked, 8).await, 1);
        assert_eq!(lookup(fs, root, "b").await, Ok(linked));
        assert_eq!(checkpoints_of_sync(fs, linked, 9).await, 1);
        assert_eq!(checkpoints_of_sync(fs, linked, 10).await, 0);
    };
    over_cuts(&MountOptions::default(), before, async |fs| {
        for (name, byte) in [("moved", 2), ("e", 4), ("k", 4), ("b", 10)] {
            let file = lookup(fs, fs.root(), name).await.expect(name);
            assert_eq!(read(fs, file).await, vec![byte; 5_000], "{name}");
        }
        assert_eq!(names(fs, fs.root()).await.len(), 6);
    });
}

/// With `fsync_mode=strict`, an fsync in a directory that lost names brings that along.
#[test]
fn strict_syncs_bring_names_along() {
    let before = async |fs: &F2fs| {
        create(fs, fs.root(), "old").await;
        fs.syncfs(ME).await.expect("a checkpoint");
        fs.unlink(ME, fs.root(), b"old").await.expect("no file");
        let new = create(fs, fs.root(), "new").await;
        fs.fsync(ME, new).await.expect("a sync");
    };
    let is_there = |old: bool| {
        async move |fs: &F2fs| {
            assert!(lookup(fs, fs.root(), "new").await.is_ok());
            assert_eq!(lookup(fs, fs.root(), "old").await.is_ok(), old);
        }
    };
    over_cuts(&MountOptions::default(), before, is_there(true));
    let strict = MountOptions { fsync_mode: FsyncMode::Strict, ..MountOptions::default() };
    over_cuts(&strict, before, is_there(false));
}

/// What was open when its last name went is freed by the next mount: a file, and a directory.
#[test]
fn orphans_are_freed_by_mount() {
    let before = async |fs: &F2fs| {
        let root = fs.root();
        let dir = fs.mkdir(ME, root, b"d", 0o755).await.expect("a directory").ino;
        let file = create(fs, root, "f").await;
        write(fs, file, 1).await;
        for ino in [dir, file] {
            fs.open(ME, ino, OpenFlags::default()).await.expect("open");
        }
        fs.rmdir(ME, root, b"d").await.expect("no directory");
        fs.unlink(ME, root, b"f").await.expect("no file");
        fs.syncfs(ME).await.expect("a checkpoint");
        assert_eq!(read(fs, file).await, vec![1; 5_000]);
    };
    over_cuts(&MountOptions::default(), before, async |fs| {
        assert_eq!(names(fs, fs.root()).await.len(), 2);
        let space = fs.statfs(ME).await.expect("space");
        assert_eq!(space.blocks - space.free, 2, "the root directory");
    });
}

/// A file that is deleted while a checkpoint waits for other operations is an orphan of that checkpoint with all of its
/// nodes: the next mount frees them.
#[test]
fn orphans_that_wait_for_a_checkpoint_are_whole() {
    let device = run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let options = MountOptions::default();
        let fs = mounted(&rt, &device, &options).await;
        let (large, file) =
            (create(&fs, fs.root(), "large").await, create(&fs, fs.root(), "f").await);
        let data = Data::Sectors(Payload::Run(Tag::new(1)), 1_500);
        fs.write_all(ME, large, 0, data, Io::Buffered).await.expect("a write");
        fs.unmount().await.expect("an unmount");

        let fs = mounted(&rt, &device, &options).await;
        fs.open(ME, file, OpenFlags::default()).await.expect("open");
        fs.unlink(ME, fs.root(), b"f").await.expect("no file");
        fs.getattr(ME, large).await.expect("in memory");
        fs.syncfs(ME).await.expect("a checkpoint");
        fs.setxattr(ME, file, b"user.x", &[1; 1_000], XattrMode::Set).await.expect("in a node");
        let size = SetAttr { size: Some(0), ..SetAttr::default() };
        let [one, two, three] = [(); 3].map(|()| fs.clone());
        let truncate = rt.spawn("cut", async move { one.setattr(ME, large, size).await.map(drop) });
        let sync = rt.spawn("sync", async move { two.syncfs(ME).await });
        let close = rt.spawn("close", async move { three.close(ME, file).await });
        for ended in join_all([truncate, sync]).await {
            ended.expect("a task").expect("a call");
        }
        let after = after_recovery(&rt, &device, (&options, 1), async |_| ()).await;
        drop(close);
        after
    });
    assert_sound(&device);
}
