//! What a mounted file system shows: every name below the root with what it leads to, content
//! included.

use nandscape_block::{SectorData, Tag};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Attr, Caller, Data, FsError, Ino, Io, Kind};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// The file system under test.
pub(crate) type Fs = Rc<dyn MountedFs>;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4_096;

/// Names asked for at once.
const NAMES: usize = 256;
/// Pages read at once.
const PAGES: u64 = 64;

/// Tells files apart, also those that had the same inode one after the other.
pub(crate) type Identity = (Ino, u32);

/// What a name leads to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct FileSnapshot {
    pub(crate) identity: Identity,
    pub(crate) kind: Kind,
    /// Of a file; else 0.
    pub(crate) size: u64,
    /// Names that lead to it; of a directory, as `stat` counts them.
    pub(crate) links: u32,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    /// Of a symbolic link.
    pub(crate) target: Vec<u8>,
    pub(crate) xattrs: Xattrs,
    /// Of a file. What lies behind its end in its last page is zeroes here.
    pub(crate) pages: Vec<SectorData>,
}

/// Extended attributes by name.
pub(crate) type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// By path from the root, without the first slash.
pub(crate) type Tree = BTreeMap<String, FileSnapshot>;

pub(crate) fn identity(attr: &Attr) -> Identity {
    (attr.ino, attr.generation)
}

/// Everything but `lost+found`.
pub(crate) async fn read_tree(fs: &Fs) -> Result<Tree, FsError> {
    let me = Caller::default();
    let mut tree = Tree::new();
    let mut left = vec![(String::new(), fs.root())];
    while let Some((path, dir)) = left.pop() {
        for (name, ino) in names(fs, dir).await? {
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            if path == "lost+found" {
                continue;
            }
            let attr = fs.getattr(me, ino).await.map_err(|error| match error {
                // Nothing else happens while a tree is read.
                FsError::NoEntry => FsError::corrupt("directory: a name leads nowhere", &*path),
                other => other,
            })?;
            if attr.kind == Kind::Directory {
                left.push((path.clone(), ino));
            }
            tree.insert(path, see(fs, &attr).await?);
        }
    }
    Ok(tree)
}

/// The names in a directory, but for `.` and `..`.
async fn names(fs: &Fs, dir: Ino) -> Result<Vec<(String, Ino)>, FsError> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let entries = fs.readdir(Caller::default(), dir, cookie, NAMES).await?;
        let Some(last) = entries.last() else { return Ok(names) };
        cookie = last.cookie;
        let shown =
            entries.into_iter().map(|e| (String::from_utf8_lossy(&e.name).into_owned(), e.ino));
        names.extend(shown.filter(|(name, _)| name != "." && name != ".."));
    }
}

/// What an inode shows.
pub(crate) async fn see(fs: &Fs, attr: &Attr) -> Result<FileSnapshot, FsError> {
    let me = Caller::default();
    let size = if attr.kind == Kind::File { attr.size } else { 0 };
    let mut pages = Vec::new();
    for first in (0..size.div_ceil(PAGE)).step_by(PAGES as usize) {
        let len = (PAGES * PAGE).min(size - first * PAGE);
        let data = fs.read(me, attr.ino, first * PAGE, len, Io::Buffered).await?;
        pages.extend(into_pages(data, len));
    }
    let mut xattrs = Xattrs::new();
    for name in fs.listxattr(me, attr.ino).await? {
        let value = fs.getxattr(me, attr.ino, &name).await?;
        xattrs.insert(name, value);
    }
    let target = match attr.kind {
        Kind::Symlink => fs.readlink(me, attr.ino).await?,
        _ => Vec::new(),
    };
    Ok(FileSnapshot {
        identity: identity(attr),
        kind: attr.kind,
        size,
        links: attr.links,
        mode: attr.mode,
        uid: attr.uid,
        target,
        xattrs,
        pages,
    })
}

/// Counts the names that lead to each inode: they are what its links say.
///
/// # Errors
/// A path whose inode says another number.
pub(crate) fn check_links(tree: &Tree) -> Result<(), String> {
    let mut names: BTreeMap<Identity, u32> = BTreeMap::new();
    for (path, seen) in tree {
        *names.entry(seen.identity).or_default() += 1;
        // A directory counts itself, and the `..` of each directory in it.
        if seen.kind == Kind::Directory {
            *names.entry(seen.identity).or_default() += 1;
            let above = path.rsplit_once('/').and_then(|(above, _)| tree.get(above));
            above.into_iter().for_each(|above| *names.entry(above.identity).or_default() += 1);
        }
    }
    match tree.iter().find(|(_, seen)| names.get(&seen.identity) != Some(&seen.links)) {
        None => Ok(()),
        Some((path, seen)) => {
            let count = names.get(&seen.identity).copied().unwrap_or_default();
            Err(format!("{path} has {} links, and {count} lead to it", seen.links))
        }
    }
}

/// Pages of a range, each with the bytes of it in the range.
pub(crate) fn pages_in(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let Range { start, end } = range;
    let last = if start < end { end.div_ceil(PAGE) } else { 0 };
    (start / PAGE..last).map(move |page| {
        let from = start.saturating_sub(page * PAGE) as usize;
        let to = (end - page * PAGE).min(PAGE) as usize;
        (page, from..to)
    })
}

/// A page as bytes.
pub(crate) fn bytes_of(page: &SectorData) -> Vec<u8> {
    page.expand().map_or_else(|| vec![0; PAGE as usize], |bytes| bytes.to_vec())
}

/// Content as whole pages; a part of a page is filled with zeroes.
pub(crate) fn into_pages(data: Data, len: u64) -> Vec<SectorData> {
    let count = len.div_ceil(PAGE);
    match data {
        Data::Sectors(payload, _) => (0..count).map(|index| payload.sector(index as u32)).collect(),
        Data::Bytes(bytes) => {
            bytes.chunks(PAGE as usize).map(|bytes| head(bytes, bytes.len())).collect()
        }
        Data::Part(page, part) => vec![cut_page(&page, part.end as u64)],
    }
}

/// The first bytes of a page, followed by zeroes.
fn head(bytes: &[u8], len: usize) -> SectorData {
    let zeroes = SectorData::Tag(Tag::ZERO);
    if bytes[..len].iter().all(|byte| *byte == 0) {
        return zeroes;
    }
    zeroes.patched(0, &bytes[..len]).unwrap_or_default()
}

/// The content with all behind its first `len` bytes made zeroes.
pub(crate) fn cut_page(content: &SectorData, len: u64) -> SectorData {
    if len >= PAGE {
        return content.clone();
    }
    let zeroes = SectorData::Tag(Tag::ZERO);
    content.overlaid(len as usize..PAGE as usize, &zeroes).unwrap_or_default()
}
