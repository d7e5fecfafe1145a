//! Both trees are the same.

use super::{Churn, LENGTH, ME, Named, list};
use nandscape_fs::contract::{FileSystem, FsError, Ino, Io, Kind, Whence};
use std::ops::Range;

/// Files up to this length are compared byte by byte, longer ones where either file system has data.
const WHOLE: u64 = 2 * LENGTH;
/// Bytes that are read at once.
pub(super) const PART: u64 = 1 << 20;

/// The ranges of a file that are not holes.
pub(super) async fn data_ranges(fs: &impl FileSystem, ino: Ino, size: u64) -> Vec<Range<u64>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < size {
        let start = match fs.seek(ME, ino, at, Whence::Data).await {
            Err(FsError::BeyondEnd) => break,
            start => start.expect("data"),
        };
        at = fs.seek(ME, ino, start, Whence::Hole).await.expect("a hole");
        ranges.push(start..at.min(size));
    }
    ranges
}

impl Churn {
    pub(super) async fn compare_content(&self, ino: Ino) {
        let size = self.model.getattr(ME, self.of_model(ino)).await.expect("an inode").size;
        if size <= WHOLE {
            return self.compare_range(ino, 0..size + 1).await;
        }
        let mut ranges = data_ranges(&self.fs, ino, size).await;
        ranges.extend(data_ranges(&self.model, self.of_model(ino), size).await);
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                self.compare_range(ino, at..range.end.min(at + PART)).await;
                at += PART;
            }
        }
    }

    async fn compare_range(&self, ino: Ino, range: Range<u64>) {
        let (from, length) = (range.start, range.end - range.start);
        let ours = self.fs.read(ME, ino, from, length, Io::Buffered).await.expect("content");
        let of_model = self.of_model(ino);
        let model = self.model.read(ME, of_model, from, length, Io::Buffered).await;
        let (ours, model) = (ours.to_bytes(), model.expect("content").to_bytes());
        if ours != model {
            let at = ours.iter().zip(&model).position(|(ours, model)| ours != model);
            panic!(
                "seed {} call {}: inode {} from {from}: {} bytes, expected {}; byte {at:?} differs",
                self.seed,
                self.calls,
                ino.0,
                ours.len(),
                model.len()
            );
        }
    }

    pub(crate) async fn compare(&self) {
        for Named { dir, name, ino, kind } in self.names().await {
            let of_model = self.model.lookup(ME, self.of_model(dir), &name).await;
            let of_model =
                of_model.unwrap_or_else(|error| panic!("seed {}: {name:?}: {error}", self.seed));
            assert_eq!(of_model.ino, self.of_model(ino), "seed {}", self.seed);
            let attr = self.fs.getattr(ME, ino).await.expect("an inode");
            let seen = (attr.kind, attr.mode, attr.links, attr.uid, attr.gid);
            let expected =
                (of_model.kind, of_model.mode, of_model.links, of_model.uid, of_model.gid);
            assert_eq!(seen, expected, "seed {}: {name:?}", self.seed);
            match kind {
                Kind::File => {
                    assert_eq!(attr.size, of_model.size, "seed {}: {name:?}", self.seed);
                    self.compare_content(ino).await;
                }
                Kind::Symlink => {
                    let (ours, model) =
                        (self.fs.readlink(ME, ino), self.model.readlink(ME, of_model.ino));
                    assert_eq!(ours.await, model.await, "seed {}", self.seed);
                }
                _ => self.compare_names(ino).await,
            }
            self.compare_xattrs(ino).await;
        }
        self.compare_names(self.fs.root()).await;
    }

    async fn compare_names(&self, dir: Ino) {
        let of_model = list(&self.model, self.of_model(dir)).await.len();
        assert_eq!(list(&self.fs, dir).await.len(), of_model, "seed {}", self.seed);
    }

    async fn compare_xattrs(&self, ino: Ino) {
        let of_model = self.of_model(ino);
        let mut ours = self.fs.listxattr(ME, ino).await.expect("attributes");
        let mut model = self.model.listxattr(ME, of_model).await.expect("attributes");
        ours.sort();
        model.sort();
        assert_eq!(ours, model, "seed {}: inode {}", self.seed, ino.0);
        for xattr in ours {
            let value = self.fs.getxattr(ME, ino, &xattr).await;
            assert_eq!(value, self.model.getxattr(ME, of_model, &xattr).await);
        }
    }
}
