//! The tree that a mount shows, in the form of a manifest (`tests/kernel-f2fs/MANIFEST.md`).

use nandscape_fs::contract::{Caller, FileSystem, FsError, Ino, Io, Kind, Whence};
use nandscape_fs::f2fs::F2fs;
use nandscape_fs::f2fs::dump::{ContentSum, ManifestLine};
use std::collections::BTreeMap;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
/// Bytes that are read at once.
const PART: u64 = 1 << 20;

/// All paths, sorted by their bytes. The contract knows a device, a pipe or a socket as something special,
/// shown as type `s`; it has a time of creation also where the volume keeps none.
pub(crate) async fn shown(fs: &F2fs) -> Vec<ManifestLine> {
    let mut lines = BTreeMap::new();
    let mut waiting = vec![(b"/".to_vec(), fs.root())];
    while let Some((path, ino)) = waiting.pop() {
        let line = line(fs, &path, ino).await;
        if line.letter == 'd' {
            let above = if path == b"/" { b"" } else { &path[..] };
            for (name, ino) in names(fs, ino).await {
                waiting.push(([above, b"/", &name].concat(), ino));
            }
        }
        lines.insert(path, line);
    }
    lines.into_values().collect()
}

/// Names of a directory, but for "." and "..", with their inodes.
pub(crate) async fn names(fs: &F2fs, dir: Ino) -> Vec<(Vec<u8>, Ino)> {
    let (mut all, mut cookie) = (Vec::new(), 0);
    loop {
        let some = fs.readdir(ME, dir, cookie, 100).await.expect("names");
        let Some(last) = some.last() else { return all };
        cookie = last.cookie;
        let names = some.into_iter().map(|entry| (entry.name, entry.ino));
        all.extend(names.filter(|(name, _)| !matches!(&name[..], b"." | b"..")));
    }
}

async fn line(fs: &F2fs, path: &[u8], ino: Ino) -> ManifestLine {
    let attr = fs.getattr(ME, ino).await.expect("an inode");
    let mut xattrs = BTreeMap::new();
    for name in fs.listxattr(ME, ino).await.expect("names of attributes") {
        let value = fs.getxattr(ME, ino, &name).await.expect("an attribute");
        xattrs.insert(name, value);
    }
    let letter = match attr.kind {
        Kind::File => 'f',
        Kind::Directory => 'd',
        Kind::Symlink => 'l',
        Kind::Special => 's',
    };
    let crc = if letter == 'f' { Some(sum(fs, ino, attr.size).await) } else { None };
    let target = match attr.kind {
        Kind::Symlink => Some(fs.readlink(ME, ino).await.expect("a target")),
        _ => None,
    };
    ManifestLine {
        path: path.to_vec(),
        letter,
        mode: attr.mode,
        links: attr.links,
        uid: attr.uid,
        gid: attr.gid,
        size: attr.size,
        blocks: attr.blocks,
        ino: attr.ino.0,
        mtime: attr.mtime,
        ctime: attr.ctime,
        btime: Some(attr.crtime),
        rdev: None,
        crc,
        target,
        xattrs,
    }
}

/// crc32c of a file, whose holes are skipped.
async fn sum(fs: &F2fs, ino: Ino, size: u64) -> u32 {
    let (mut sum, mut at) = (ContentSum::default(), 0);
    while at < size {
        let from = match fs.seek(ME, ino, at, Whence::Data).await {
            Err(FsError::BeyondEnd) => break,
            from => from.expect("data"),
        };
        let end = fs.seek(ME, ino, from, Whence::Hole).await.expect("a hole").min(size);
        at = end.min(from + PART);
        let bytes = fs.read(ME, ino, from, at - from, Io::Buffered).await.expect("content");
        sum.add(from, &bytes.to_bytes());
    }
    sum.of_size(size)
}

/// What a mount showed is what a manifest says.
pub(crate) fn assert_same(shown: &[ManifestLine], manifest: &str) {
    let manifest: Vec<&str> = manifest.lines().filter(|line| !line.starts_with('#')).collect();
    for (ours, line) in shown.iter().zip(&manifest) {
        let mut ours = ours.clone();
        ours.btime = ours.btime.filter(|_| line.contains(" btime="));
        let mut usual = (*line).to_owned();
        for special in ["b", "c", "p"] {
            usual = usual.replace(&format!(" type={special} "), " type=s ");
        }
        let without_rdev = usual.split(' ').filter(|field| !field.starts_with("rdev="));
        assert_eq!(ours.to_string(), without_rdev.collect::<Vec<_>>().join(" "));
    }
    assert_eq!(shown.len(), manifest.len());
}
