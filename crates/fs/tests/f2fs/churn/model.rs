//! A model that has what a volume has: names, modes, owners, content, attributes. Times stay its own.

use super::compare::{PART, data_ranges};
use super::{ME, list};
use nandscape_fs::contract::{Data, FileSystem, Ino, Io, Kind, SetAttr, XattrMode};
use nandscape_fs::f2fs::F2fs;
use nandscape_fs::memfs::MemFs;
use std::collections::BTreeMap;

/// Fills an empty model. Returns its inode numbers by those of F2FS.
pub(super) async fn fill(model: &MemFs, fs: &F2fs) -> BTreeMap<u64, Ino> {
    let mut inos = BTreeMap::from([(fs.root().0, model.root())]);
    copy_attributes(model, fs, fs.root(), model.root()).await;
    let mut dirs = vec![fs.root()];
    while let Some(dir) = dirs.pop() {
        let of_dir = inos[&dir.0];
        for (name, ino, kind) in list(fs, dir).await {
            if let Some(known) = inos.get(&ino.0) {
                model.link(ME, *known, of_dir, &name).await.expect("a link");
                continue;
            }
            let made = match kind {
                Kind::Directory => model.mkdir(ME, of_dir, &name, 0o755).await,
                Kind::Symlink => {
                    let target = fs.readlink(ME, ino).await.expect("a target");
                    model.symlink(ME, of_dir, &name, &target).await
                }
                _ => model.create(ME, of_dir, &name, 0o644).await,
            };
            let made = made.expect("an inode").ino;
            inos.insert(ino.0, made);
            if kind == Kind::Directory {
                dirs.push(ino);
            }
            if kind == Kind::File {
                copy_content(model, fs, ino, made).await;
            }
            copy_attributes(model, fs, ino, made).await;
        }
    }
    inos
}

async fn copy_content(model: &MemFs, fs: &F2fs, from: Ino, to: Ino) {
    let size = fs.getattr(ME, from).await.expect("an inode").size;
    for range in data_ranges(fs, from, size).await {
        let mut at = range.start;
        while at < range.end {
            let part = PART.min(range.end - at);
            let bytes = fs.read(ME, from, at, part, Io::Buffered).await.expect("content");
            let bytes = Data::Bytes(bytes.to_bytes());
            model.write_all(ME, to, at, bytes, Io::Buffered).await.expect("a write");
            at += part;
        }
    }
    let change = SetAttr { size: Some(size), ..SetAttr::default() };
    model.setattr(ME, to, change).await.expect("a size");
}

async fn copy_attributes(model: &MemFs, fs: &F2fs, from: Ino, to: Ino) {
    let attr = fs.getattr(ME, from).await.expect("an inode");
    let (mode, uid, gid) = (Some(attr.mode), Some(attr.uid), Some(attr.gid));
    let change = SetAttr { mode, uid, gid, ..SetAttr::default() };
    model.setattr(ME, to, change).await.expect("attributes");
    for name in fs.listxattr(ME, from).await.expect("names") {
        let value = fs.getxattr(ME, from, &name).await.expect("a value");
        model.setxattr(ME, to, &name, &value, XattrMode::Set).await.expect("an attribute");
    }
}
