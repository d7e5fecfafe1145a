//! What a directory does that calls alone do not show: names that move by hash when they leave the inode, and damage.

use super::super::format::{Dentries, Nid};
use super::super::fs::F2fs;
use super::super::mkfs::{MkfsOptions, mkfs};
use super::super::options::MountOptions;
use crate::contract::{Caller, FileSystem, FsError, Ino};
use nandscape_block::{AsyncDevice, MemDevice};
use nandscape_rt::Executor;
use std::collections::BTreeMap;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };

/// Runs a body on a new volume.
fn on_volume(body: impl AsyncFn(&F2fs) + 'static) {
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let ran = executor.block_on(async move {
        let device = AsyncDevice::new(&rt, MemDevice::new(64 << 20 >> 12)).erased();
        mkfs(&device, &MkfsOptions { fresh: true, ..MkfsOptions::new(1) }).await.expect("mkfs");
        let mounted = F2fs::mount(&rt, device, MountOptions::default()).await.expect("a mount");
        body(&mounted.0).await;
    });
    ran.expect("no deadlock");
}

async fn names(fs: &F2fs, dir: Ino, mut cookie: u64, all: &mut BTreeMap<Vec<u8>, u32>) {
    loop {
        let some = fs.readdir(ME, dir, cookie, 4).await.expect("names");
        let Some(last) = some.last() else { return };
        cookie = last.cookie;
        some.into_iter().for_each(|entry| *all.entry(entry.name).or_default() += 1);
    }
}

/// Names of a directory with several buckets on its first level are found, and listed once, over their move from the
/// inode to blocks; without several buckets as well.
#[test]
fn names_leave_the_inode() {
    for dir_level in [0, 3] {
        on_volume(async move |fs| {
            let dir = fs.mkdir(ME, fs.root(), b"d", 0o755).await.expect("a directory").ino;
            let inode = fs.0.dir_of(dir).await.expect("the directory");
            inode.raw.borrow_mut().dir_level = dir_level;
            let mut made = Vec::new();
            for number in 0..80 {
                let name = format!("stays-{number:03}");
                fs.create(ME, dir, name.as_bytes(), 0o644).await.expect("a file");
                made.push(name);
            }
            assert!(inode.has_inline_names());
            let some = fs.readdir(ME, dir, 0, 20).await.expect("names");
            let cookie = some.last().expect("names").cookie;
            let mut listed: BTreeMap<_, u32> =
                some.into_iter().map(|entry| (entry.name, 1)).collect();
            for number in 0..400 {
                fs.create(ME, dir, format!("comes-{number}").as_bytes(), 0o644).await.unwrap();
            }
            assert!(!inode.has_inline_names());
            let first_level = super::bucket(0, dir_level, u32::MAX).end;
            assert_eq!(first_level > 2, dir_level > 0);
            names(fs, dir, cookie, &mut listed).await;
            for name in &made {
                assert!(fs.lookup(ME, dir, name.as_bytes()).await.is_ok(), "{name}");
                assert_eq!(listed.get(name.as_bytes()), Some(&1), "{name}");
            }
            let mut all = BTreeMap::new();
            names(fs, dir, 0, &mut all).await;
            assert_eq!((all.len(), all.values().max()), (482, Some(&1)));
        });
    }
}

/// A conversion that finds no space leaves the names where they are.
#[test]
fn a_conversion_without_space_changes_nothing() {
    on_volume(async |fs| {
        let dir = fs.mkdir(ME, fs.root(), b"d", 0o755).await.expect("a directory").ino;
        let inode = fs.0.dir_of(dir).await.expect("the directory");
        for number in 0..40 {
            fs.create(ME, dir, format!("f{number}").as_bytes(), 0o644).await.expect("a file");
        }
        let before = (inode.layout.get(), inode.size.get(), inode.raw.borrow().blocks);
        let all = fs.0.nodes.space.take_some(u64::MAX).expect("all space");
        let op = fs.0.operations.begin().await.expect("an operation");
        assert_eq!(
            fs.0.nodes.convert_inline_dir(&op, &fs.0.segments, &inode).await,
            Err(FsError::NoSpace)
        );
        drop(op);
        fs.0.nodes.space.release(all);
        let after = (inode.layout.get(), inode.size.get(), inode.raw.borrow().blocks);
        assert_eq!((after, inode.has_inline_names()), (before, true));
        assert!(fs.lookup(ME, dir, b"f39").await.is_ok());
    });
}

/// Names that lead nowhere, or to a directory that leads elsewhere, are corrupt.
#[test]
fn names_that_lead_nowhere_are_refused() {
    on_volume(async |fs| {
        let dir = fs.mkdir(ME, fs.root(), b"d", 0o755).await.expect("a directory").ino;
        let inode = fs.0.dir_of(dir).await.expect("the directory");
        fs.create(ME, dir, b"f", 0o644).await.expect("a file");
        for wrong in [0, 1, 2, inode.number, 3, 999, u32::MAX] {
            let op = fs.0.operations.begin().await.expect("an operation");
            let place = inode.layout.get().inline_data();
            let damage = |bytes: &mut super::Block| {
                Dentries::inline(&mut bytes[place]).set_target(2, Nid(wrong), 1);
            };
            fs.0.nodes.edit_node(&op, Nid(inode.number), damage).await.expect("a node");
            drop(op);
            let found = fs.lookup(ME, dir, b"f").await;
            assert!(matches!(found, Err(FsError::Corrupt { .. })), "{wrong}: {found:?}");
            assert!(fs.unlink(ME, dir, b"f").await.is_err());
        }
    });
}
