//! Files in the root, whose content is runs of tags, and what a mount counts.

use nandscape_block::{Payload, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io};
use nandscape_fs::f2fs::F2fs;

pub(crate) const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
pub(crate) const PAGE: u64 = 4_096;

pub(crate) async fn create(fs: &F2fs, name: &str) -> Ino {
    fs.create(ME, fs.root(), name.as_bytes(), 0o644).await.expect("a file").ino
}

/// Writes pages with this tag and those after it.
pub(crate) async fn write(fs: &F2fs, ino: Ino, page: u64, tag: u64, pages: u32) {
    let data = Data::Sectors(Payload::Run(Tag::new(tag)), pages);
    fs.write_all(ME, ino, page * PAGE, data, Io::Buffered).await.expect("a write");
}

pub(crate) async fn content(fs: &F2fs, ino: Ino) -> Vec<u8> {
    fs.read(ME, ino, 0, 1 << 30, Io::Buffered).await.expect("content").to_bytes()
}

pub(crate) fn expected(tag: u64, pages: u32) -> Vec<u8> {
    Data::Sectors(Payload::Run(Tag::new(tag)), pages).to_bytes()
}

/// A count of a group.
pub(crate) fn count(fs: &F2fs, group: &str, name: &str) -> u64 {
    fs.counts().detail.count(group, name).expect("a count")
}
