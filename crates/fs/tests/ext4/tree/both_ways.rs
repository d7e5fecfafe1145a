//! Both ways: what the kernel wrote we read and change, and the kernel and e2fsck agree with what
//! comes of it.

use super::stand;
use crate::common::mount::LoopMount;
use crate::common::{Scratch, e2fsprogs, run, text};
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io, Kind, RenameMode};
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_rt::Executor;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
/// Names in the large directory: its index gets two levels with names this long.
const NAMES: usize = 6_000;

fn name(number: usize) -> String {
    format!("{number:0>150}")
}

fn content(number: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ number).collect()
}

/// Fills a volume by the kernel's hand.
fn fill(at: &Path) {
    fs::create_dir_all(at.join("deep/er/still")).expect("directories");
    fs::write(at.join("deep/er/still/file"), content(1, 1 << 20)).expect("a file");
    fs::create_dir(at.join("many")).expect("a directory");
    for number in 0..NAMES {
        fs::write(at.join("many").join(name(number)), b"").expect("a file");
    }
    let holes = File::create(at.join("holes")).expect("a file");
    for number in 0..900_u64 {
        holes.write_all_at(&content(number as u8, 4096), number * 3 * 4096).expect("a write");
    }
    std::os::unix::fs::symlink("deep/er", at.join("short")).expect("a link");
    std::os::unix::fs::symlink("x".repeat(500), at.join("long")).expect("a link");
    fs::hard_link(at.join("holes"), at.join("again")).expect("a link");
}

/// Reads what the kernel wrote, and changes it.
async fn read_and_change<F: FileSystem>(fs: &F) {
    let root = fs.root();
    let find = async |dir: Ino, name: &str| {
        fs.lookup(ME, dir, name.as_bytes()).await.unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let still = find(find(find(root, "deep").await.ino, "er").await.ino, "still").await.ino;
    let file = find(still, "file").await;
    let read = fs.read(ME, file.ino, 0, 1 << 30, Io::Buffered).await.expect("data");
    assert!(read.to_bytes() == content(1, 1 << 20));
    let holes = find(root, "holes").await;
    assert_eq!((holes.links, holes.size), (2, (899 * 3 + 1) * 4096));
    for number in 0..900_u64 {
        let read = fs.read(ME, holes.ino, number * 3 * 4096, 8192, Io::Direct).await.expect("data");
        let mut expected = content(number as u8, 4096);
        expected.resize(if number == 899 { 4096 } else { 8192 }, 0);
        assert!(read.to_bytes() == expected, "hole {number}");
    }
    let long = find(root, "long").await;
    assert_eq!(long.kind, Kind::Symlink);
    assert_eq!(fs.readlink(ME, long.ino).await.expect("a target"), vec![b'x'; 500]);
    let many = find(root, "many").await.ino;
    for number in 0..NAMES {
        find(many, &name(number)).await;
    }
    change_names(fs, many).await;
    for number in 0..900_u64 {
        let data = Data::Bytes(content(7, 4096));
        fs.write(ME, holes.ino, (number * 3 + 1) * 4096, data, Io::Buffered).await.expect("room");
    }
    fs.rename(ME, (root, b"deep"), (many, b"deep"), RenameMode::Replace).await.expect("a move");
}

/// Removes every third name of the large directory and adds others.
async fn change_names<F: FileSystem>(fs: &F, many: Ino) {
    for number in (0..NAMES).step_by(3) {
        fs.unlink(ME, many, name(number).as_bytes()).await.expect("a name less");
    }
    for number in NAMES..2 * NAMES {
        fs.create(ME, many, name(number).as_bytes(), 0o644).await.expect("a name more");
    }
}

/// What the kernel must find after our changes.
fn check(at: &Path) {
    let many = at.join("many");
    let listed = fs::read_dir(&many).expect("a directory").count();
    assert_eq!(listed, 2 * NAMES - NAMES.div_ceil(3) + 1);
    for number in 0..2 * NAMES {
        let there = many.join(name(number)).exists();
        assert_eq!(there, number >= NAMES || number % 3 != 0, "name {number}");
    }
    assert!(fs::read(many.join("deep/er/still/file")).expect("data") == content(1, 1 << 20));
    let holes = fs::read(at.join("again")).expect("data");
    assert_eq!(holes.len(), (899 * 3 + 2) * 4096);
    for (number, three) in holes.chunks(3 * 4096).enumerate() {
        assert!(three[..4096] == content(number as u8, 4096), "block {number}");
        assert!(three[4096..8192] == content(7, 4096), "block behind {number}");
    }
}

/// A volume that the kernel filled is read and changed by us, and the kernel and e2fsck agree.
#[test]
fn what_the_kernel_wrote() {
    if !e2fsprogs() {
        return;
    }
    let sets = ["has_journal", "^64bit,^metadata_csum", "^flex_bg,^dir_index", "orphan_file"];
    for features in sets.map(|set| ["-O", set]) {
        let scratch = Scratch::new();
        let path = stand::image(&scratch, 128, &features);
        let Some(mount) = LoopMount::new(&scratch, &path, "rw") else { return };
        fill(mount.path());
        drop(mount);
        let loaded = path.clone();
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let done = executor.block_on(async move {
            let device = stand::load(&handle, &loaded).await;
            let mounted = Ext4::mount(&handle, device.erased(), MountOptions::default()).await;
            let (fs, _) = mounted.expect("a mount");
            read_and_change(&fs).await;
            fs.unmount().await.expect("an unmount");
            let result = stand::check(&device, &scratch);
            let mount = LoopMount::new(&scratch, &result, "rw").expect("the kernel mounts it");
            check(mount.path());
            fs::write(mount.path().join("more"), content(9, 50_000)).expect("room");
            drop(mount);
            let again = run("e2fsck", &["-fn", text(&result)]);
            assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
        });
        done.expect("no deadlock");
    }
}
