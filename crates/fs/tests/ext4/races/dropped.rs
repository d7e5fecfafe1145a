//! Calls that are dropped under way. What was begun is finished by the file system itself or has not
//! happened: after an unmount, which waits for it or runs beside it, our check finds nothing, and the
//! volume is as after the call or as before it.

use super::*;
use nandscape_fs::contract::{Allocate, Kind, RenameMode, Result, XattrMode};
use nandscape_rt::Stream;
use std::collections::{BTreeMap, BTreeSet};

/// A call on a volume that [`prepared`] made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Create,
    Mkdir,
    Symlink,
    Link,
    Unlink,
    Rmdir,
    Rename,
    Replace,
    Exchange,
    /// The last close of a file without a name.
    Close,
    Cut,
    Grow,
    Write,
    WriteDirect,
    Reserve,
    Punch,
    SetXattr,
    RemoveXattr,
    /// Of a file with new content everywhere.
    Fsync,
    /// Of one whose blocks came before its content.
    FsyncAhead,
    Syncfs,
    Read,
    ReadDirect,
    List,
}

/// Where calls find what they need.
struct Place {
    fs: Ext4,
    root: Ino,
    dir: Ino,
    file: Ino,
}

/// An inode but for its times: kind, links, mode, content, and extended attributes.
type Entry = (Kind, u32, u16, Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>);
/// What stands on a volume, by path.
type Tree = BTreeMap<String, Entry>;

/// Little is kept in memory, and commits come all the time.
fn small() -> MountOptions {
    let options = MountOptions { buffers: 4, commit_interval: Nanos::from_us(100), ..cached(400) };
    MountOptions { inodes: 4, ..options }
}

/// A volume with a directory `d`, and in it files of 20 pages, an empty directory, and a link.
fn prepared() -> Stored {
    let medium = on_quick(formatted(ROOMY), async |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let dir = fs.mkdir(ME, fs.root(), b"d", 0o755).await.expect("room").ino;
        for name in ["f", "g", "h"] {
            let file = create(&fs, dir, name).await;
            put(&fs, file, 0, name.as_bytes()[0], 20, Io::Buffered).await;
            fs.setxattr(ME, file, b"user.old", &[3; 700], XattrMode::Set).await.expect("room");
        }
        fs.mkdir(ME, dir, b"empty", 0o755).await.expect("room");
        fs.symlink(ME, dir, b"link", &[b'l'; 400]).await.expect("room");
        fs.unmount().await.expect("an unmount");
        stand.take()
    });
    Stored::of(&medium)
}

impl Place {
    async fn on(fs: Ext4) -> Self {
        let (root, dir) = (fs.root(), lookup(&fs, "d").await);
        let file = fs.lookup(ME, dir, b"f").await.expect("the file").ino;
        Self { fs, root, dir, file }
    }

    /// What a call needs beforehand.
    async fn prepare(&self, call: Call) {
        let Self { fs, dir, file, .. } = self;
        match call {
            Call::Close => {
                fs.open(ME, *file, OpenFlags::default()).await.expect("the file");
                fs.unlink(ME, *dir, b"f").await.expect("a name less");
            }
            Call::Fsync | Call::Syncfs => {
                for page in 0..40 {
                    put(fs, *file, 30 + page * 2, 3, 1, Io::Buffered).await;
                }
            }
            Call::FsyncAhead => {
                let ahead = Allocate::Reserve { keep_size: false };
                fs.fallocate(ME, *file, ahead, 20 * PAGE, 60 * PAGE).await.expect("room");
                for page in 0..12 {
                    put(fs, *file, 22 + page * 5, 3, 5, Io::Buffered).await;
                }
                put(fs, *file, 90, 3, 50, Io::Buffered).await;
            }
            _ => {}
        }
    }

    async fn make(&self, call: Call) -> Result<()> {
        let Self { fs, root, dir, file } = self;
        let (root, dir, file) = (*root, *dir, *file);
        let rename = |to, mode| fs.rename(ME, (dir, b"f"), to, mode);
        let ahead = Allocate::Reserve { keep_size: false };
        match call {
            Call::Create => fs.create(ME, dir, b"new", 0o644).await.map(drop),
            Call::Mkdir => fs.mkdir(ME, dir, b"new", 0o755).await.map(drop),
            Call::Symlink => fs.symlink(ME, dir, b"new", &[b'n'; 300]).await.map(drop),
            Call::Link => fs.link(ME, file, root, b"new").await.map(drop),
            Call::Unlink => fs.unlink(ME, dir, b"f").await,
            Call::Rmdir => fs.rmdir(ME, dir, b"empty").await,
            Call::Rename => rename((root, b"new"), RenameMode::NoReplace).await,
            Call::Replace => rename((dir, b"g"), RenameMode::Replace).await,
            Call::Exchange => rename((dir, b"empty"), RenameMode::Exchange).await,
            Call::Close => fs.close(ME, file).await,
            Call::Cut => fs.setattr(ME, file, resized(5_000)).await.map(drop),
            Call::Grow => fs.setattr(ME, file, resized(500_000)).await.map(drop),
            Call::Write => {
                fs.write(ME, file, 30 * PAGE, bytes(4, 100), Io::Buffered).await.map(drop)
            }
            Call::WriteDirect => {
                fs.write(ME, file, 40 * PAGE, bytes(4, 10), Io::Direct).await.map(drop)
            }
            Call::Reserve => fs.fallocate(ME, file, ahead, 30 * PAGE, 900 * PAGE).await,
            Call::Punch => fs.fallocate(ME, file, Allocate::PunchHole, 5_000, 10 * PAGE).await,
            Call::SetXattr => fs.setxattr(ME, file, b"user.new", &[8; 900], XattrMode::Set).await,
            Call::RemoveXattr => fs.removexattr(ME, file, b"user.old").await,
            Call::Fsync | Call::FsyncAhead => fs.fsync(ME, file).await,
            Call::Syncfs => fs.syncfs(ME).await,
            Call::Read => fs.read(ME, file, 0, 1 << 20, Io::Buffered).await.map(drop),
            Call::ReadDirect => fs.read(ME, file, 0, 20 * PAGE, Io::Direct).await.map(drop),
            Call::List => fs.readdir(ME, dir, 0, 100).await.map(drop),
        }
    }
}

/// Everything on a volume.
async fn tree_of(fs: &Ext4) -> Tree {
    let mut tree = Tree::new();
    let mut waiting = vec![(String::new(), fs.root())];
    while let Some((above, dir)) = waiting.pop() {
        for entry in fs.readdir(ME, dir, 0, 1_000).await.expect("names") {
            let name = String::from_utf8(entry.name).expect("names of tests are text");
            if matches!(&*name, "." | ".." | "lost+found") {
                continue;
            }
            let attr = fs.getattr(ME, entry.ino).await.expect("attributes");
            let content = match attr.kind {
                Kind::File => get(fs, entry.ino, Io::Buffered).await,
                Kind::Symlink => fs.readlink(ME, entry.ino).await.expect("a target"),
                _ => Vec::new(),
            };
            let mut attributes = Vec::new();
            for name in fs.listxattr(ME, entry.ino).await.expect("attributes") {
                let value = fs.getxattr(ME, entry.ino, &name).await.expect("a value");
                attributes.push((name, value));
            }
            let path = format!("{above}/{name}");
            if attr.kind == Kind::Directory {
                waiting.push((path.clone(), entry.ino));
            }
            tree.insert(path, (attr.kind, attr.links, attr.mode, content, attributes));
        }
    }
    tree
}

/// The tree after a call, or as it would be without it, and how long the call takes.
fn expected(stored: &Stored, call: Call, made: bool) -> (Tree, Nanos) {
    on(stored.medium(Fua::Honoured), 0, 40_000, async move |stand| {
        let at = Place::on(stand.mount(&small()).await).await;
        at.prepare(call).await;
        let began = stand.rt.now();
        if made {
            at.make(call).await.expect("a call");
        }
        let took = stand.rt.now() - began;
        at.fs.unmount().await.expect("an unmount");
        (tree_of(&stand.mount(&small()).await).await, took)
    })
}

/// One dropped call, and what it leaves.
fn round(stored: &Stored, call: Call, seed: u64, within: Nanos) -> Result<Tree, String> {
    on(stored.medium(Fua::Honoured), seed, 40_000, async move |stand| {
        let at = Place::on(stand.mount(&small()).await).await;
        at.prepare(call).await;
        let after = Nanos(Stream::new(seed, "drop").below(within.0 + 1));
        drop(timeout(&stand.rt, after, at.make(call)).await);
        if seed % 2 == 1 {
            // Others go on, with the same file and with all.
            drop(stand.ends(get_some(&at)).await.map_err(|_| "a read waits for ever")?);
            let synced = stand.ends(at.fs.syncfs(ME)).await;
            synced.map_err(|_| "a sync waits for ever")?.map_err(|error| format!("{error}"))?;
        }
        let unmounted = stand.ends(at.fs.unmount()).await;
        unmounted.map_err(|_| "unmount waits for ever")?.map_err(|error| format!("{error}"))?;
        let findings = stand.findings().await;
        if findings.is_empty() {
            Ok(tree_of(&stand.mount(&small()).await).await)
        } else {
            Err(format!("{findings:?}"))
        }
    })
}

/// Reads the file, if it is still there.
async fn get_some(at: &Place) -> Result<Data> {
    at.fs.read(ME, at.file, 0, 1 << 20, Io::Buffered).await
}

/// Drops each of these calls with each seed.
fn assert_whole_or_not(calls: &[Call]) {
    let stored = prepared();
    let mut failed = Vec::new();
    for call in calls.iter().copied() {
        let (before, _) = expected(&stored, call, false);
        let (after, took) = expected(&stored, call, true);
        let within = Nanos(took.0 + took.0 / 4);
        let wrong = over_seeds(40, |seed| match round(&stored, call, seed, within)? {
            tree if tree == before || tree == after => Ok(()),
            tree => Err(format!("neither before nor after: {:?}", difference(&tree, &before))),
        });
        failed.extend(wrong.into_iter().map(|(seed, why)| (call, seed, why)));
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Paths with other entries in two trees, and what they lead to in each: links, length, and the byte
/// from which on the content is another.
fn difference(one: &Tree, other: &Tree) -> Vec<String> {
    let paths: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let shown = |path: &&String| {
        let (here, there) = (one.get(*path), other.get(*path));
        let content = |tree: &Tree| tree.get(*path).map_or(Vec::new(), |entry| entry.3.clone());
        let (mine, theirs) = (content(one), content(other));
        let at = mine.iter().zip(&theirs).position(|(mine, theirs)| mine != theirs);
        let entry = |entry: &Entry| (entry.1, entry.3.len());
        (here != there)
            .then(|| format!("{path}: {:?}, {:?}, {at:?}", here.map(entry), there.map(entry)))
    };
    paths.iter().filter_map(shown).collect()
}

#[test]
fn calls_that_make_names_are_whole_or_have_not_happened() {
    assert_whole_or_not(&[Call::Create, Call::Mkdir, Call::Symlink, Call::Link]);
}

#[test]
fn calls_that_take_names_are_whole_or_have_not_happened() {
    assert_whole_or_not(&[Call::Unlink, Call::Rmdir, Call::Close]);
}

#[test]
fn renames_are_whole_or_have_not_happened() {
    assert_whole_or_not(&[Call::Rename, Call::Replace, Call::Exchange]);
}

#[test]
fn changes_of_length_are_whole_or_have_not_happened() {
    assert_whole_or_not(&[Call::Cut, Call::Grow, Call::Reserve, Call::Punch]);
}

#[test]
fn writes_are_whole_or_have_not_happened() {
    assert_whole_or_not(&[Call::Write, Call::WriteDirect]);
}

#[test]
fn changes_of_attributes_are_whole_or_have_not_happened() {
    assert_whole_or_not(&[Call::SetXattr, Call::RemoveXattr]);
}

#[test]
fn dropped_syncs_change_nothing() {
    assert_whole_or_not(&[Call::Fsync, Call::FsyncAhead, Call::Syncfs]);
}

#[test]
fn dropped_reads_change_nothing() {
    assert_whole_or_not(&[Call::Read, Call::ReadDirect, Call::List]);
}
