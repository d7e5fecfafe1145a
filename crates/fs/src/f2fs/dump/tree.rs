//! The whole tree as a manifest: one line per path ([`ManifestLine`]), sorted by the bytes of the path. A
//! mounted volume can be shown in the same form, and the two compared. What cannot be read stands in a
//! line that begins with `#`.

use super::NAME_WIDTH;
use super::manifest::{ContentSum, Escaped, ManifestLine};
use crate::contract::Timestamp;
use crate::dump::Dump;
use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, RawError, RawInode};
use nandscape_block::BlockError;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a unit of `blocks`.
const UNIT_BYTES: u64 = 512;
/// Units per block.
const UNITS_PER_BLOCK: u64 = BLOCK_BYTES as u64 / UNIT_BYTES;

/// What a walk over the tree collects.
struct Walk<'a> {
    image: &'a F2fsImage,
    lines: BTreeMap<Vec<u8>, ManifestLine>,
    unsound: Vec<String>,
    /// Directories that wait, with their paths.
    waiting: Vec<(Vec<u8>, RawInode)>,
    entered: BTreeSet<Nid>,
}

pub(super) async fn manifest(image: &F2fsImage) -> Result<Dump, RawError> {
    let mut walk = Walk {
        image,
        lines: BTreeMap::new(),
        unsound: Vec::new(),
        waiting: Vec::new(),
        entered: BTreeSet::new(),
    };
    walk.visit(b"/".to_vec(), image.sb.root_ino).await?;
    while let Some((path, dir)) = walk.waiting.pop() {
        walk.enter(&path, &dir).await?;
    }
    let mut dump = Dump::new(NAME_WIDTH);
    dump.list("paths");
    for line in walk.lines.into_values() {
        dump.row("paths", format_args!("{line}"), line.json());
    }
    for problem in walk.unsound {
        dump.row("problems", format_args!("# {problem}"), problem.clone());
    }
    Ok(dump)
}

impl Walk<'_> {
    fn note(&mut self, path: &[u8], error: RawError) -> Result<(), BlockError> {
        match error {
            RawError::Device(error) => Err(error),
            RawError::Format(error) => {
                self.unsound.push(format!("{}: {error}", Escaped(path, b"")));
                Ok(())
            }
        }
    }

    /// Shows what a path leads to; a directory waits to be entered.
    async fn visit(&mut self, path: Vec<u8>, ino: Nid) -> Result<(), RawError> {
        let inode = match self.image.inode(ino).await {
            Ok(inode) => inode,
            Err(error) => return Ok(self.note(&path, error)?),
        };
        match line(self.image, &path, &inode).await {
            Ok(line) => drop(self.lines.insert(path.clone(), line)),
            Err(error) => self.note(&path, error)?,
        }
        if inode.inode.is_dir() {
            match self.entered.insert(ino) {
                true => self.waiting.push((path, inode)),
                false => {
                    let what = "is a directory with two names";
                    self.note(&path, FormatError::corrupt(Place::Inode(ino), 0, what).into())?;
                }
            }
        }
        Ok(())
    }

    async fn enter(&mut self, path: &[u8], dir: &RawInode) -> Result<(), RawError> {
        let names = match self.image.names(dir).await {
            Ok(names) => names,
            Err(error) => return Ok(self.note(path, error)?),
        };
        for name in names.iter().filter(|name| !matches!(&name.name[..], b"." | b"..")) {
            let above = if path == b"/" { b"" } else { path };
            self.visit([above, b"/", &name.name].concat(), name.ino).await?;
        }
        Ok(())
    }
}

async fn line(image: &F2fsImage, path: &[u8], raw: &RawInode) -> Result<ManifestLine, RawError> {
    let inode = &raw.inode;
    let letter = match inode.file_type() {
        mode::REGULAR => 'f',
        mode::DIR => 'd',
        mode::SYMLINK => 'l',
        mode::BLOCK => 'b',
        mode::CHAR => 'c',
        mode::FIFO => 'p',
        _ => 's',
    };
    let time = |seconds: u64, nanos| Timestamp { seconds: seconds.cast_signed(), nanos };
    let extra = ExtraAttrs::parse(&raw.node.bytes, raw.layout);
    let keeps_btime =
        image.sb.features().has(Feature::INODE_CRTIME) && raw.layout.extra_bytes() >= 24;
    let is_device = matches!(letter, 'b' | 'c');
    let area = image.xattrs(raw).await?;
    let mut xattrs = BTreeMap::new();
    for xattr in area.iter() {
        let xattr = xattr.map_err(|error| error.at(Place::Xattrs(raw.node.nid)))?;
        xattrs.insert(whole_xattr_name(xattr.index, xattr.name), xattr.value.to_vec());
    }
    Ok(ManifestLine {
        path: path.to_vec(),
        letter,
        mode: inode.mode & 0o7777,
        links: inode.links,
        uid: inode.uid,
        gid: inode.gid,
        size: inode.size,
        blocks: units(raw),
        ino: raw.node.nid.0.into(),
        mtime: time(inode.mtime, inode.mtime_nsec),
        ctime: time(inode.ctime, inode.ctime_nsec),
        btime: keeps_btime.then(|| time(extra.crtime, extra.crtime_nsec)),
        rdev: is_device.then(|| device_number(&raw.node.bytes, raw.layout)),
        crc: if letter == 'f' { Some(checksum(image, raw).await?) } else { None },
        target: if letter == 'l' { Some(target(image, raw).await?) } else { None },
        xattrs,
    })
}

/// What `stat` reports as blocks, in units of 512 bytes (`f2fs_getattr`).
fn units(raw: &RawInode) -> u64 {
    let inode = &raw.inode;
    let inline = match inode.has_inline(inline::DATA) && inode.is_regular()
        || inode.has_inline(inline::DENTRY) && inode.is_dir()
    {
        true => inode.size.div_ceil(UNIT_BYTES),
        false => 0,
    };
    inode.blocks.saturating_sub(1).saturating_mul(UNITS_PER_BLOCK).saturating_add(inline)
}

/// crc32c of the content of a regular file; holes are zeroes.
async fn checksum(image: &F2fsImage, raw: &RawInode) -> Result<u32, RawError> {
    let (size, ino) = (raw.inode.size, raw.node.nid);
    if size > max_pages(ADDRS_PER_INODE) * BLOCK_BYTES as u64 {
        return Err(FormatError::corrupt(Place::Inode(ino), 0x10, "size is out of range").into());
    }
    if raw.inode.has_inline(inline::DATA) {
        return Ok(crc32c::crc32c(inline_bytes(raw)?));
    }
    let mut sum = ContentSum::default();
    let mut nodes = image.file_nodes(raw);
    while let Some(dnode) = nodes.next().await {
        let dnode = dnode?;
        for (page, addr) in (dnode.first_page..).zip(dnode.slots.iter(&dnode.node.bytes)) {
            let from = page * BLOCK_BYTES as u64;
            if !addr.is_block() || from >= size {
                continue;
            }
            let bytes = image.data(addr, ino).await?;
            let length = (size - from).min(BLOCK_BYTES as u64);
            sum.add(from, &bytes[..length as usize]);
        }
    }
    Ok(sum.of_size(size))
}

/// Inline content, as long as the size says.
fn inline_bytes(raw: &RawInode) -> Result<&[u8], FormatError> {
    let area = &raw.node.bytes[raw.layout.inline_data()];
    let what = "inline data are longer than their room";
    let error = FormatError::corrupt(Place::Inode(raw.node.nid), 0x10, what);
    usize::try_from(raw.inode.size).ok().and_then(|size| area.get(..size)).ok_or(error)
}

/// The target of a symbolic link.
async fn target(image: &F2fsImage, raw: &RawInode) -> Result<Vec<u8>, RawError> {
    if raw.inode.has_inline(inline::DATA) {
        return Ok(inline_bytes(raw)?.to_vec());
    }
    let ino = raw.node.nid;
    let what = "target of a symbolic link is longer than a page";
    let error = FormatError::corrupt(Place::Inode(ino), 0x10, what);
    let size = usize::try_from(raw.inode.size).ok().filter(|size| *size <= BLOCK_BYTES);
    let size = size.ok_or(error)?;
    let first = raw.layout.addrs().get(&raw.node.bytes, 0);
    Ok(image.data(first, ino).await?[..size].to_vec())
}
