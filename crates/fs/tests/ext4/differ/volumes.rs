//! The volumes that are damaged: made by mke2fs with unlike features, filled by us and by debugfs.

use super::damage::Kind;
use crate::common::{Scratch, assert_clean, debugfs_write, run, text};
use crate::foreign::{ME, through};
use crate::tree::stand;
use nandscape_block::{Payload, Tag};
use nandscape_fs::contract::{Allocate, Data, FileSystem, Io, XattrMode};
use nandscape_fs::ext4::Ext4;
use std::path::PathBuf;

const PAGE: u64 = 4096;

/// A kind of volume: the features that mke2fs is given, and other options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    pub(super) features: &'static str,
    options: &'static [&'static str],
    /// Names of its large directory.
    names: u32,
}

pub(super) const ARMS: [Arm; 6] = [
    // An index of two levels.
    Arm { features: "metadata_csum,64bit", options: &["-N", "9000"], names: 7_400 },
    Arm { features: "^metadata_csum", options: &["-N", "4096"], names: 600 },
    Arm {
        features: "^metadata_csum,uninit_bg,^flex_bg",
        options: &["-g", "2048", "-N", "8192"],
        names: 600,
    },
    Arm {
        features: "^metadata_csum,^64bit,^flex_bg",
        options: &["-I", "128", "-g", "2048", "-N", "8192"],
        names: 600,
    },
    Arm {
        features: "^metadata_csum,^dir_index,^resize_inode,orphan_file",
        options: &[],
        names: 100,
    },
    Arm {
        features: "metadata_csum,orphan_file,^resize_inode,^sparse_super",
        options: &["-g", "1024", "-I", "512"],
        names: 300,
    },
];

impl Arm {
    /// Makes the volume; it is sound to e2fsck.
    pub(super) fn make(self, scratch: &Scratch) -> PathBuf {
        let path = stand::image(scratch, 32, &[&["-O", self.features], self.options].concat());
        debugfs_write(&path, "mknod pipe p\nmknod device b 8 1\nmknod terminal c 5 1\n");
        let names = self.names;
        let filled = through(scratch, &path, async move |fs| fill(fs, names).await);
        let path = filled.expect("a mount");
        let _ = run("e2fsck", &["-fy", text(&path)]);
        assert_clean(&path);
        path
    }

    /// Kinds of structures that the volume has; an arm that lacks one would not try it.
    pub(super) fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::Pointers => !self.features.contains("^resize_inode"),
            Kind::OrphanFile => self.features.contains("orphan_file"),
            _ => true,
        }
    }
}

fn tags(file: u64, pages: u32) -> Data {
    Data::Sectors(Payload::Run(Tag::new(file << 20)), pages)
}

/// Directories of unlike sizes, a deep tree of extents, links, attributes, unwritten blocks.
async fn fill(fs: &Ext4, names: u32) {
    let root = fs.root();
    let many = fs.mkdir(ME, root, b"many", 0o755).await.expect("room").ino;
    for number in 0..names {
        let name = format!("{number:0>240}").into_bytes();
        fs.create(ME, many, &name, 0o644).await.expect("room");
    }
    let small = fs.mkdir(ME, root, b"small", 0o755).await.expect("room").ino;
    for number in 0..40 {
        let name = format!("{number}").into_bytes();
        fs.mkdir(ME, small, &name, 0o755).await.expect("room");
    }
    let holes = fs.create(ME, small, b"holes", 0o644).await.expect("room").ino;
    for page in 0..1_500 {
        fs.write(ME, holes, page * 2 * PAGE, tags(1, 1), Io::Buffered).await.expect("room");
    }
    let long = fs.create(ME, small, b"long", 0o644).await.expect("room").ino;
    fs.write(ME, long, 0, tags(2, 60), Io::Buffered).await.expect("room");
    fs.link(ME, long, root, b"linked").await.expect("room");
    let reserved = Allocate::Reserve { keep_size: true };
    fs.fallocate(ME, long, reserved, 100 * PAGE, 50 * PAGE).await.expect("room");
    for (name, length) in [("fast", 7), ("full", 59), ("slow", 60), ("slower", 900)] {
        fs.symlink(ME, root, name.as_bytes(), &vec![b'x'; length]).await.expect("room");
    }
    for (ino, length) in [(small, 20), (many, 900), (long, 40), (holes, 600)] {
        let set = async |name: &[u8], length| {
            fs.setxattr(ME, ino, name, &vec![b'v'; length], XattrMode::Set).await.expect("room");
        };
        set(b"user.one", length).await;
        set(b"user.other", 3).await;
    }
}
